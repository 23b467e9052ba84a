// words.h — takes apart the texts by which the kernel describes the machine.
#pragma once

#include <algorithm>
#include <string_view>

namespace tenon {

// The text up to `end` or all of it, which is taken off `rest` together with `end`.
inline std::string_view cut(std::string_view& rest, char end) {
  const std::string_view head = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), head.size() + 1));
  return head;
}

}  // namespace tenon
