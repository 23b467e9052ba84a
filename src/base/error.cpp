#include "base/error.h"

namespace tenon {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: CHECK({}) failed: {}", file, line, condition, message));
}

}  // namespace tenon
