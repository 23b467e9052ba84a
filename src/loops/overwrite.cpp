#include "loops/overwrite.h"

#include <algorithm>
#include <set>

#include "loops/uses.h"

namespace tenon::loops {
namespace {

// The only statement that writes a buffer, and what is around it.
struct Writer {
  const std::vector<Statement>* body = nullptr;
  size_t number = 0;  // in the body
  std::vector<const Loop*> loops;
  int64_t writes = 0;

  const Assign* assign() const { return std::get_if<Assign>(&(*body)[number]); }
};

bool uses(const Statement& statement, const std::string& buffer) {
  bool found = false;
  for_each_use(statement, [&](const Use& use) { found = found || use.place.buffer == buffer; });
  return found;
}

bool writes(const Statement& statement, const std::string& buffer) {
  bool found = false;
  for_each_use(statement, [&](const Use& use) {
    found = found || (use.place.buffer == buffer && use.access != Access::Read);
  });
  return found;
}

void find_writer(const std::vector<Statement>& body, const std::string& buffer,
                 std::vector<const Loop*>& loops, Writer& writer) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (writes(body[i], buffer)) {
      ++writer.writes;
      writer.body = &body;
      writer.number = i;
      writer.loops = loops;
    }
    const auto* loop = std::get_if<Loop>(&body[i]);
    if (loop != nullptr)
      loops.push_back(loop);
    if (const std::vector<Statement>* inner = body_of(body[i]))
      find_writer(*inner, buffer, loops, writer);
    if (loop != nullptr)
      loops.pop_back();
  }
}

int64_t count_users(const std::vector<Statement>& body, const std::string& buffer) {
  int64_t count = 0;
  for (const Statement& statement : body) {
    count += uses(statement, buffer) ? 1 : 0;
    if (const std::vector<Statement>* inner = body_of(statement))
      count += count_users(*inner, buffer);
  }
  return count;
}

// Whether each iteration of the loops has an index of its own: all their variables are in it, or in the
// bounds of one that is.
bool is_apart(const std::vector<Scalar>& at, const std::vector<const Loop*>& loops) {
  std::set<std::string> known;
  const auto add = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols())
      known.insert(symbol);
  };
  for (const Scalar& index : at) {
    if (index.kind() != Scalar::Kind::Index || index.index().is_unknown())
      return false;
    add(index.index());
  }
  return std::all_of(loops.rbegin(), loops.rend(), [&](const Loop* loop) {
    if (!known.contains(loop->variable))
      return false;
    add(loop->begin);
    add(loop->end);
    return true;
  });
}

}  // namespace

bool can_overwrite(const Kernel& kernel, size_t input, size_t output) {
  const Buffer &read = kernel.inputs[input], &written = kernel.outputs[output];
  if (read.sizes != written.sizes || info(read.dtype).bytes != info(written.dtype).bytes)
    return false;
  Writer writer;
  std::vector<const Loop*> loops;
  find_writer(kernel.body, written.name, loops, writer);
  const Assign* const assign = writer.writes == 1 ? writer.assign() : nullptr;
  if (assign == nullptr || !assign->combine.empty() || assign->places.size() != 1 ||
      !is_apart(assign->places.front().at, writer.loops))
    return false;
  int64_t users = 0;
  for (size_t i = 0; i <= writer.number; ++i) {
    const Statement& statement = (*writer.body)[i];
    if (!uses(statement, read.name))
      continue;
    ++users;
    bool is_same_place = std::holds_alternative<Assign>(statement);
    for_each_use(statement, [&](const Use& use) {
      if (use.place.buffer == read.name)
        is_same_place = is_same_place && use.place.at == assign->places.front().at;
    });
    if (!is_same_place)
      return false;
  }
  return users == count_users(kernel.body, read.name);
}

}  // namespace tenon::loops
