#include "ops/words.h"

namespace tenon {

UserError unknown_word(const Node& n, std::string_view attribute, std::span<const std::string_view> known) {
  const std::string& wanted = n.attr(attribute);
  return user_error("{}: {} is \"{}\", but must be {} or {}", n.op().name, attribute, wanted,
                    fmt::join(known.first(known.size() - 1), ", "), known.back());
}

}  // namespace tenon
