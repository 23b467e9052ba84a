// http.h — requests of HTTP/1.1 out of the bytes of a connection, and responses as bytes.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct Request {
  std::string method, path, body;
  bool keep_alive = true;
};

// What is answered in place of a result. After one that says nothing of where the next request begins, the
// connection is closed.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message, bool closes = false)
      : std::runtime_error(message), status_(status), closes_(closes) {}
  int status() const { return status_; }
  bool closes() const { return closes_; }

 private:
  int status_;
  bool closes_;
};

class RequestReader {
 public:
  void append(std::string_view bytes) { bytes_.append(bytes); }
  // The next request that has arrived as a whole. An HttpError where there will be none.
  std::optional<Request> next();
  bool has_begun() const { return !bytes_.empty(); }

 private:
  std::string bytes_;
};

std::string write_response(int status, std::string_view json, bool keep_alive);
