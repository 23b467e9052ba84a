#include "tune/print_tuning.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "base/units.h"
#include "base/utf8.h"
#include "schedule/cpu/contraction_candidates.h"

namespace tenon {

using compiler::as_json;
using schedule::describe;

namespace {

constexpr size_t kColumns = 100;
constexpr size_t kChoices = 30;  // the column where they begin

using Json = nlohmann::ordered_json;

void print_adopted(const TunedContraction& contraction, std::string& text) {
  const std::string row = fmt::format("{:>8}  {:>8}  {:>7.2f}x  ", format_seconds(contraction.seconds_before),
                                      format_seconds(contraction.seconds_after), contraction.speed_up());
  text += row + first_and_count(contraction.sources, kColumns - count_characters(row)) + "\n";
  const std::string before = describe(contraction.before), after = describe(contraction.after);
  const bool fits = kChoices + before.size() + after.size() + 3 <= kColumns;  // and an arrow between blanks
  text += fmt::format("{:{}}{}{}→ {}\n", "", kChoices, before,
                      fits ? " " : fmt::format("\n{:{}}", "", kChoices), after);
}

void print_dropped(const DroppedChoice& dropped, std::string& text) {
  const std::string start =
      fmt::format("outputs differ with {}, which is dropped, for ", describe(dropped.choice));
  text += start + first_and_count(dropped.sources, kColumns - start.size()) + "\n";
}

}  // namespace

std::string print_tuning(const TuneResult& result, int threads) {
  std::string text;
  const auto adopted = static_cast<size_t>(
      std::ranges::count_if(result.contractions, [](const auto& each) { return each.is_adopted(); }));
  if (adopted > 0)
    text += fmt::format("{:>8}  {:>8}  {:>8}  {}\n", "before", "after", "speed-up", "contraction");
  for (const TunedContraction& each : result.contractions)
    if (each.is_adopted())
      print_adopted(each, text);
  for (const DroppedChoice& each : result.dropped)
    print_dropped(each, text);
  if (result.unconfirmed > 0)
    text += fmt::format("time ran out before {} that looked faster could run again\n",
                        format_count(static_cast<size_t>(result.unconfirmed), "choice"));
  text += fmt::format("{} of {} adopted, after {} compared with what there was\n", adopted,
                      format_count(result.contractions.size(), "contraction"),
                      format_count(static_cast<size_t>(result.programs), "program"));
  text +=
      fmt::format("the whole model: {} before, {} after, {:.2f}x; each step in the fastest of {} with {}\n",
                  format_seconds(result.seconds_before), format_seconds(result.seconds_after),
                  result.seconds_before / result.seconds_after, format_count(result.runs, "run"),
                  format_count(static_cast<size_t>(threads), "thread"));
  return text;
}

Json tuning_as_json(const std::string& model, const TuneResult& result, int threads) {
  Json json = {{"model", model},
               {"threads", threads},
               {"before_ms", 1e3 * result.seconds_before},
               {"after_ms", 1e3 * result.seconds_after},
               {"runs", result.runs},
               {"programs", result.programs},
               {"unconfirmed", result.unconfirmed},
               {"contractions", Json::array()},
               {"dropped", Json::array()}};
  for (const TunedContraction& each : result.contractions)
    json["contractions"].push_back({{"key", fmt::format("{:016x}", each.key)},
                                    {"sources", each.sources},
                                    {"tried", each.tried},
                                    {"adopted", each.is_adopted()},
                                    {"before", as_json(each.before)},
                                    {"after", as_json(each.after)},
                                    {"before_ms", 1e3 * each.seconds_before},
                                    {"after_ms", 1e3 * each.seconds_after}});
  for (const DroppedChoice& each : result.dropped)
    json["dropped"].push_back(
        {{"sources", each.sources}, {"choice", as_json(each.choice)}, {"difference", each.difference}});
  return json;
}

}  // namespace tenon
