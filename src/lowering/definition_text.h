// definition_text.h — the parts of a node's text that printer and parser of kernel graphs must agree on. A
// definition is written as statements of loops: what its results start from, and what is combined with that.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

std::string print_body(const loops::Definition& definition, const BufferTable& buffers);
// The definition without its axes.
loops::Definition parse_body(std::string_view text, const std::vector<loops::Buffer>& results,
                             const BufferTable& buffers);

// A number with its dtype: f32(-inf).
std::string print_number(const loops::Scalar& number);
loops::Scalar parse_number(std::string_view text);

// "key 0x…, mr 6, may_split".
std::string print_contraction(const ContractionPart& part);
// Nothing where the text is no such list.
std::optional<ContractionPart> parse_contraction(std::string_view text);

}  // namespace tenon::lowering
