#include "api/status.h"

namespace tenon::api {
namespace {

thread_local std::string error_text;
thread_local const char* error_message = "";  // error_text, or what is always there

}  // namespace

void set_error_message(const char* literal) noexcept { error_message = literal; }

void set_error_message(const std::exception& error) noexcept {
  try {
    error_text = error.what();
    error_message = error_text.c_str();
  } catch (const std::bad_alloc&) {
    error_message = "there is not enough memory to say what went wrong";
  }
}

}  // namespace tenon::api

const char* tenon_error_message(void) { return tenon::api::error_message; }
