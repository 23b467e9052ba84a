// hint_at_inputs.h — errors that say that the inputs were nobody's.
#pragma once

#include <string_view>

#include "base/error.h"

namespace tenon {

// Runs `work` on inputs that came about like this ("are drawn"), which not every model takes: token ids must
// be small, say. An error is told with a hint at that, and at the sizes that can be given, if there are any
// (dims_to_bind).
template <class Work>
decltype(auto) hint_at_inputs(std::string_view how, const std::string& dims, Work&& work) {
  try {
    return work();
  } catch (const UnsupportedError&) {
    throw;
  } catch (const UserError& error) {
    throw user_error("{}\n  hint: the inputs {}; give your own with --inputs{}", error.what(), how,
                     dims.empty() ? "" : ", or sizes with " + dims);
  }
}

}  // namespace tenon
