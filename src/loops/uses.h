// uses.h — the elements of buffers that a statement uses.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

enum class Access : uint8_t { Read, Write, Combine };

struct Use {
  Place place;
  Access access;
  bool chosen = false;  // by a select: perhaps it is not read at all
};

// Calls f for every use by a statement itself, not by those within it. What is fetched is not used yet. A
// copy uses boxes, of which these are the first elements.
void for_each_use(const Statement& statement, const std::function<void(const Use&)>& f);

// The statements, and those within them, with f(place) for every place that they use or prefetch; f sees its
// indices changed already. Declarations stay.
void change_places(std::vector<Statement>& body, const std::function<Place(Place)>& f);

// Puts a prefix before the names of the buffers that the statements declare, as a name means one thing in a
// kernel.
void rename_locals(std::vector<Statement>& body, const std::string& prefix);

}  // namespace tenon::loops
