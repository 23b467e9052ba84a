// steps.h — the steps of the tour, one file each, and the table that orders them.
#pragma once

#include <string_view>
#include <vector>

#include "cli/tour/screen.h"

namespace tenon::cli {

struct TourStep {
  std::string_view name;  // as `tenon tour NAME` takes it
  std::string_view title;
  std::string_view why;  // what one sees, and why it matters
  void (*show)(Screen&);
  std::vector<std::string_view> commands;  // for doing it oneself
};

const std::vector<TourStep>& tour_steps();

void show_notations(Screen& screen);
void show_passes(Screen& screen);
void show_recognition(Screen& screen);
void show_linear_fusion(Screen& screen);
void show_folding(Screen& screen);
void show_chain(Screen& screen);
void show_attention(Screen& screen);
void show_loops(Screen& screen);
void show_bisection(Screen& screen);
void show_report(Screen& screen);

}  // namespace tenon::cli
