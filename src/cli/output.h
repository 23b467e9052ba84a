// output.h — stdout, with its errors: a full disk must not pass for success.
#pragma once

#include <string>

namespace tenon::cli {

// Both throw a user error where stdout takes no more.
void write_output(const std::string& text);
void flush_output();

}  // namespace tenon::cli
