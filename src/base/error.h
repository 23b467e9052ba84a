// error.h — the two kinds of bad news that end what we are doing: the user's input is at fault, or we are.
//
// Both are exceptions, so that code which computes stays readable; they are caught where context can be added
// (which node, which file) and at the top, where they become an exit status. The third kind of bad news, an
// optimisation declined, is not an error: what declines it says why, and work goes on.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tenon {

// The user's input is at fault (exit status 2). The message says what was got, what was wanted, and a hint.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
};

// The input is valid, but asks for something Tenon does not do (exit status 2).
class UnsupportedError : public UserError {
 public:
  using UserError::UserError;
};

// We broke one of our own rules (exit status 3).
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& message) : std::logic_error(message) {}
};

template <class... Args>
UserError user_error(fmt::format_string<Args...> format, Args&&... args) {
  return UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
UnsupportedError unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return UnsupportedError(fmt::format(format, std::forward<Args>(args)...));
}

// Runs `work`; an error on the way out is told where it happened: "CONTEXT: message". `context` is only
// called when there is an error.
template <class Context, class Work>
decltype(auto) with_context(Context&& context, Work&& work) {
  try {
    return work();
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("{}: {}", context(), error.what()));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", context(), error.what()));
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("{}: {}", context(), error.what()));
  }
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace tenon

// States an invariant of ours: CHECK(a == b, "got {} and {}", a, b).
#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::tenon::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
