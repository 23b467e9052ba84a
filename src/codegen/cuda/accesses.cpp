#include "codegen/cuda/accesses.h"

#include <algorithm>
#include <set>

#include "ir/dim_expression.h"
#include "loops/definition.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

using loops::Assign;
using loops::Loop;
using loops::Scalar;
using loops::Statement;

void for_each_use(const std::vector<Statement>& body, const std::function<void(const loops::Use&)>& f) {
  for (const Statement& statement : body) {
    loops::for_each_use(statement, f);
    if (const auto* inner = body_of(statement))
      for_each_use(*inner, f);
  }
}

const Scalar* copied_by(const Assign& assign) {
  if (assign.places.size() != 1 || !assign.combine.empty())
    return nullptr;
  const Scalar& value = assign.values.front();
  if (value.kind() == Scalar::Kind::Load)
    return &value;
  if (value.kind() != Scalar::Kind::Apply || value.function() != loops::Function::Select ||
      value.operands()[1].kind() != Scalar::Kind::Load || value.operands()[2] != Scalar::zero(value.dtype()))
    return nullptr;
  bool reads = false;
  loops::for_each_load(value.operands()[0], [&](const Scalar&) { reads = true; });
  return reads ? nullptr : &value.operands()[1];
}

bool mentions(const std::vector<Scalar>& at, const std::string& variable) {
  return std::ranges::any_of(at, [&](const Scalar& index) { return loops::mentions(index, variable); });
}

namespace {

class FoldFinder {
 public:
  explicit FoldFinder(const std::string& variable) : varying_({variable}) {}

  void visit(const std::vector<Statement>& body) {
    const std::set<std::string> around = own_;
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<loops::Local>(&statement))
        own_.insert(local->buffer.name);
      if (const auto* loop = std::get_if<Loop>(&statement); loop != nullptr && names_position(*loop))
        varying_.insert(loop->variable);
      if (const auto* assign = std::get_if<Assign>(&statement);
          assign != nullptr && !own_.contains(assign->places.front().buffer) &&
          !varies(assign->places.front().at))
        found.push_back(assign);
      if (const auto* inner = body_of(statement))
        visit(*inner);
    }
    own_ = around;
  }

  std::vector<const Assign*> found;

 private:
  // A loop of one iteration, whose variable is another name for where the thread is.
  bool names_position(const Loop& loop) const {
    return loops::iterations_of(loop) == Dim(1) && varies({Scalar::index(loop.begin)});
  }
  bool varies(const std::vector<Scalar>& at) const {
    return std::ranges::any_of(varying_, [&](const std::string& variable) { return mentions(at, variable); });
  }

  std::set<std::string> varying_, own_;
};

// 64*floor(i/64) + mod(i,64) is i: what is divided to find one index is multiplied again to find the next.
Dim rejoin(Dim offset) {
  const auto size_of = [](const Dim& dim) {
    const DimExpression* expression = DimExpression::of(dim);
    return expression == nullptr ? 0 : expression->size;
  };
  for (bool changed = !offset.is_unknown(); changed;) {
    changed = false;
    for (const DimTerm& term : terms_of(offset)) {
      if (term.factors.size() != 1 || term.factors.front()->function != DimFunction::Mod)
        continue;
      const Dim &a = term.factors.front()->operands[0], &b = term.factors.front()->operands[1];
      const Dim without = offset + (a - b * floor_div(a, b) - mod(a, b)) * term.coefficient;
      if (changed = !without.is_unknown() && size_of(without) < size_of(offset); changed) {
        offset = without;
        break;
      }
    }
  }
  return offset;
}

}  // namespace

std::vector<const Assign*> find_folds(const Loop& loop) {
  FoldFinder finder(loop.variable);
  finder.visit(loop.body);
  return finder.found;
}

std::optional<Dim> offset_of(const loops::Buffer& buffer, const std::vector<Scalar>& at) {
  Dim offset = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i].kind() != Scalar::Kind::Index)
      return std::nullopt;
    offset = offset * buffer.sizes[i] + at[i].index();
  }
  return offset.is_unknown() ? std::nullopt : std::optional(rejoin(offset));
}

Movement movement_of(const loops::Buffer& buffer, const std::vector<Scalar>& at, const loops::Loop& loop,
                     int64_t count) {
  if (!mentions(at, loop.variable))
    return Movement::None;
  const std::optional<Dim> offset = offset_of(buffer, at);
  if (!offset)
    return Movement::Far;
  const auto place = [&](int64_t iteration) {
    return offset->substitute({{loop.variable, loop.begin + Dim::symbol(" vector") * count + iteration}});
  };
  const Dim first = place(0);
  bool is_one = true, is_contiguous = true, is_near = true;
  for (int64_t i = 1; i < count; ++i) {
    const std::optional<int64_t> beyond = (place(i) - first).constant();
    is_one = is_one && beyond == 0;
    is_contiguous = is_contiguous && beyond == i;
    is_near = is_near && beyond && std::abs(*beyond) <= 8 * count;
  }
  if (is_one)
    return Movement::None;
  if (is_contiguous && mod(first, count).constant() == 0)
    return Movement::Aligned;
  return is_near ? Movement::Near : Movement::Far;
}

}  // namespace tenon::codegen::cuda
