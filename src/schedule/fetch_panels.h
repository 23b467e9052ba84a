// fetch_panels.h — weights that come from memory, fetched while those before them are multiplied.
#pragma once

#include "loops/definition.h"

namespace tenon {

// How panels are read: one after the other, each by several blocks of rows in turn.
struct PanelReads {
  loops::Place here, next;          // what a turn of the sum reads of a panel, and the start of the next one
  std::vector<loops::Axis> summed;  // in the order in which panels hold them
  std::string lane;                 // the variable along which lanes are read
  int64_t lanes = 1;
  Dim pass = 0, passes = 1;  // the number of the block that reads the panel, and how many do
};

// What is fetched in a turn of the sum.
std::vector<loops::Statement> fetch_panels(const PanelReads& reads);

}  // namespace tenon
