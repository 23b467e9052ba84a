// shrink.cpp — local buffers without the dimensions of which each iteration of a loop uses one element.
#include <algorithm>

#include "loops/attempt.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

void find_places(const std::vector<Statement>& body, const std::string& buffer, std::vector<Place>& found) {
  for (const Statement& statement : body) {
    for_each_use(statement, [&](const Use& use) {
      if (use.place.buffer != buffer)
        return;
      if (const auto* call = std::get_if<Call>(&statement))
        throw declined("{} is handed to {}", buffer, call->routine);
      if (std::holds_alternative<Copy>(statement))
        throw declined("{} is copied", buffer);
      found.push_back(use.place);
    });
    if (const std::vector<Statement>* inner = body_of(statement))
      find_places(*inner, buffer, found);
  }
}

// All that statements use of a buffer.
std::vector<Place> places_in(const std::vector<Statement>& body, const std::string& buffer) {
  std::vector<Place> found;
  find_places(body, buffer, found);
  return found;
}

// The dimension of which each iteration of the loop uses one element that no other iteration does.
std::optional<size_t> own_dimension(const Loop& loop, const Buffer& buffer) {
  const std::vector<Place> places = places_in(loop.body, buffer.name);
  for (size_t axis = 0; axis < buffer.sizes.size(); ++axis) {
    const Scalar& first = places.front().at[axis];
    const bool same = std::ranges::all_of(places, [&](const Place& each) { return each.at[axis] == first; });
    if (same && first.kind() == Scalar::Kind::Index &&
        (first.index() - Dim::symbol(loop.variable)).is_constant())
      return axis;
  }
  return std::nullopt;
}

// Moves the declaration of a local buffer into the loop behind it, if that is all that uses it and each
// iteration has elements of its own; then that dimension goes. Whether it did.
bool shrink_once(std::vector<Statement>& body, size_t declaration) {
  Buffer buffer = std::get<Local>(body[declaration]).buffer;
  std::vector<size_t> users;
  for (size_t i = declaration + 1; i < body.size(); ++i)
    if (!places_in({body[i]}, buffer.name).empty())
      users.push_back(i);
  auto* loop = users.size() == 1 ? std::get_if<Loop>(&body[users.front()]) : nullptr;
  const std::optional<size_t> axis = loop == nullptr ? std::nullopt : own_dimension(*loop, buffer);
  if (!axis)
    return false;
  const auto at_axis = static_cast<std::ptrdiff_t>(*axis);
  buffer.sizes.erase(buffer.sizes.begin() + at_axis);
  change_places(loop->body, [&](Place place) {
    if (place.buffer == buffer.name)
      place.at.erase(place.at.begin() + at_axis);
    return place;
  });
  loop->body.insert(loop->body.begin(), Local{buffer});
  body.erase(body.begin() + static_cast<std::ptrdiff_t>(declaration));
  return true;
}

bool shrink_anywhere(std::vector<Statement>& body, const std::string& buffer) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (const auto* local = std::get_if<Local>(&body[i]); local != nullptr && local->buffer.name == buffer)
      return shrink_once(body, i);
    if (std::vector<Statement>* inner = body_of(body[i]); inner != nullptr && shrink_anywhere(*inner, buffer))
      return true;
  }
  return false;
}

}  // namespace

Transformed shrink(const Kernel& kernel, const std::string& buffer) {
  return attempt(kernel, [&](Kernel& result) {
    find_buffer(result, buffer);
    bool shrunk = false;
    while (shrink_anywhere(result.body, buffer))
      shrunk = true;
    if (!shrunk)
      throw declined("no loop has elements of {} to itself", buffer);
  });
}

}  // namespace tenon::loops
