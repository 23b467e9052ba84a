// status.h — errors become statuses: what stands between exceptions and callers in C.
#pragma once

#include <tenon/tenon.h>

#include <new>
#include <string_view>

#include "base/error.h"

namespace tenon::api {

// The message of this thread from now on. It lives as long as the thread, unless it is a literal.
void set_error_message(const char* literal) noexcept;
void set_error_message(const std::exception& error) noexcept;

template <class Work>
tenon_status guard(Work&& work) noexcept {
  try {
    work();
    return TENON_OK;
  } catch (const UserError& error) {
    set_error_message(error);
    return TENON_USER_ERROR;
  } catch (const std::bad_alloc&) {
    set_error_message("there is not enough memory");
    return TENON_USER_ERROR;
  } catch (const std::exception& error) {
    set_error_message(error);
    return TENON_INTERNAL_ERROR;
  } catch (...) {
    set_error_message("something that is no error was thrown");
    return TENON_INTERNAL_ERROR;
  }
}

template <class T>
T& given(T* argument, std::string_view name) {
  if (argument == nullptr)
    throw user_error("{} is NULL", name);
  return *argument;
}

// What a function gives that returns no status: 0, or NULL, where it fails.
template <class T, class Handle, class Find>
T found_in(const Handle* handle, std::string_view name, Find&& find) noexcept {
  T found{};
  guard([&] { found = find(given(handle, name)); });
  return found;
}

}  // namespace tenon::api
