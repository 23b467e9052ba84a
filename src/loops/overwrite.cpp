#include "loops/overwrite.h"

#include <algorithm>
#include <set>

#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

// The only statement that writes a buffer.
struct Writer {
  const std::vector<Statement>* body = nullptr;
  size_t number = 0;  // in the body
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

void find_writer(const std::vector<Statement>& body, const std::string& buffer, Writer& writer) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (writes(body[i], buffer)) {
      ++writer.writes;
      writer.body = &body;
      writer.number = i;
    }
    if (const std::vector<Statement>* inner = body_of(body[i]))
      find_writer(*inner, buffer, writer);
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

// Whether each iteration of the loops around a statement has an index of its own. A tile at the end of a
// dimension may lie over the one before it, and compute some elements again.
bool is_apart(const Kernel& kernel, const Statement& statement, const std::vector<Scalar>& at) try {
  if (std::ranges::any_of(at, [](const Scalar& index) { return index.kind() != Scalar::Kind::Index; }))
    return false;
  const std::vector<Run> runs = find_runs(kernel);
  const auto run = std::ranges::find(runs, &statement, &Run::statement);
  CHECK(run != runs.end(), "{}: a statement that does not run", kernel.name);
  const auto is_an_index = [&](const Around& around) {
    return std::ranges::any_of(
        at, [&](const Scalar& index) { return index.index() == Dim::symbol(around.loop->variable); });
  };
  if (std::ranges::all_of(run->around, is_an_index))
    return true;
  const Context context;
  Words words(kernel);
  std::vector<std::string> variables, indices;
  for (const auto& [loop, place] : run->around)
    variables.push_back(words.name(loop->variable));
  for (const Scalar& index : at)
    indices.push_back(words.expression(index.index()));
  const Relation elements(context,
                          words.relation({fmt::format("L[{}] -> E[{}] : {}", fmt::join(variables, ", "),
                                                      fmt::join(indices, ", "), words.domain(*run))}));
  const isl_bool injective = isl_union_map_is_injective(elements.get());
  check_done(elements.context(), injective != isl_bool_error);
  return injective == isl_bool_true;
} catch (const Undecided&) {
  return false;
}

}  // namespace

bool can_overwrite(const Kernel& kernel, size_t input, size_t output) {
  const Buffer &read = kernel.inputs[input], &written = kernel.outputs[output];
  if (read.sizes != written.sizes || info(read.dtype).bytes != info(written.dtype).bytes)
    return false;
  Writer writer;
  find_writer(kernel.body, written.name, writer);
  const Assign* const assign = writer.writes == 1 ? writer.assign() : nullptr;
  if (assign == nullptr || !assign->combine.empty() || assign->places.size() != 1)
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
  return users == count_users(kernel.body, read.name) &&
         is_apart(kernel, (*writer.body)[writer.number], assign->places.front().at);
}

}  // namespace tenon::loops
