// earlier_results.h — what tenon bench --json wrote earlier, beside what was measured now.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tenon::cli {

class EarlierResults {
 public:
  // Throws a user error on a file that is not one of tenon bench --json.
  explicit EarlierResults(const std::string& path);

  // "note: …\n" where another model or number of threads was measured; else "".
  std::string mismatch(const nlohmann::ordered_json& now) const;

  struct Comparison {
    std::string before, ratio;  // the number then, and how many times as much it is now
  };
  // For what a row of the table of `now` is called; nothing for a row that is not compared.
  std::optional<Comparison> compare(std::string_view title, const nlohmann::ordered_json& now) const;

 private:
  double number(const char* field) const;

  std::string path_;
  nlohmann::ordered_json json_;
};

}  // namespace tenon::cli
