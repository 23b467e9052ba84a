#include "http.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace {

constexpr size_t kMostHeaderBytes = 16 << 10, kMostBodyBytes = 64 << 20;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

bool equal_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view cut(std::string_view& rest, std::string_view separator) {
  const size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + separator.size(), rest.size()));
  return part;
}

size_t read_length(std::string_view text) {
  size_t length = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (problem != std::errc() || end != text.data() + text.size())
    throw HttpError(400, "Content-Length is no number", true);
  if (length > kMostBodyBytes)
    throw HttpError(413, "a request has at most 64 MiB", true);
  return length;
}

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::optional<Request> RequestReader::next() {
  const size_t end = bytes_.find("\r\n\r\n");
  if (std::min(end, bytes_.size()) > kMostHeaderBytes)
    throw HttpError(431, "the header has more than 16 KiB", true);
  if (end == std::string::npos)
    return std::nullopt;
  std::string_view rest = std::string_view(bytes_).substr(0, end);
  std::string_view line = cut(rest, "\r\n");
  Request request;
  request.method = cut(line, " ");
  request.path = cut(line, " ");
  if (request.method.empty() || request.path.empty() || !line.starts_with("HTTP/1."))
    throw HttpError(400, "this is no request of HTTP/1.1", true);
  request.keep_alive = line != "HTTP/1.0";
  std::optional<size_t> length;
  while (!rest.empty()) {
    std::string_view value = cut(rest, "\r\n");
    const std::string_view name = cut(value, ":");
    value = trim(value);
    if (equal_letters(name, "Content-Length")) {
      if (length)
        throw HttpError(400, "Content-Length is given twice", true);
      length = read_length(value);
    } else if (equal_letters(name, "Transfer-Encoding")) {
      throw HttpError(411, "a request says how long it is by Content-Length", true);
    } else if (equal_letters(name, "Connection")) {
      request.keep_alive =
          equal_letters(value, "keep-alive") || (request.keep_alive && !equal_letters(value, "close"));
    }
  }
  if (!length && request.method == "POST")
    throw HttpError(411, "a request says how long it is by Content-Length", true);
  const size_t first = end + 4;
  if (bytes_.size() - first < length.value_or(0))
    return std::nullopt;
  request.body = bytes_.substr(first, length.value_or(0));
  bytes_.erase(0, first + length.value_or(0));
  return request;
}

std::string write_response(int status, std::string_view json, bool keep_alive) {
  std::string response = "HTTP/1.1 " + std::to_string(status) + " ";
  response += reason(status);
  response += "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(json.size());
  response += keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  response += json;
  return response;
}
