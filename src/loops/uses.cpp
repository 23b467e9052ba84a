#include "loops/uses.h"

#include <set>

namespace tenon::loops {
namespace {

class UseWalk {
 public:
  explicit UseWalk(const std::function<void(const Use&)>& f) : f_(f) {}

  void visit(const std::vector<Place>& places, Access access) {
    for (const Place& place : places) {
      f_({place, access});
      for (const Scalar& index : place.at)
        visit(index, false);
    }
  }
  void visit(const Scalar& scalar, bool chosen) {
    const bool selects = scalar.kind() == Scalar::Kind::Apply && scalar.function() == Function::Select;
    for (size_t i = 0; i < scalar.operands().size(); ++i)
      visit(scalar.operands()[i], chosen || (selects && i > 0));
    if (scalar.kind() == Scalar::Kind::Load)
      f_({{scalar.name(), scalar.operands()}, Access::Read, chosen});
  }

 private:
  const std::function<void(const Use&)>& f_;
};

void change(std::vector<Scalar>& scalars, const std::function<Place(Place)>& f) {
  for (Scalar& scalar : scalars)
    scalar = replace_loads(scalar, [&](const Scalar& load) {
      Place place = f({load.name(), load.operands()});
      return Scalar::load(std::move(place.buffer), load.dtype(), std::move(place.at));
    });
}

void change(std::vector<Place>& places, const std::function<Place(Place)>& f) {
  for (Place& place : places) {
    change(place.at, f);
    place = f(std::move(place));
  }
}

}  // namespace

void for_each_use(const Statement& statement, const std::function<void(const Use&)>& f) {
  UseWalk walk(f);
  if (const auto* assign = std::get_if<Assign>(&statement)) {
    walk.visit(assign->places, assign->combine.empty() ? Access::Write : Access::Combine);
    for (const Scalar& value : assign->values)
      walk.visit(value, false);
  } else if (const auto* call = std::get_if<Call>(&statement)) {
    walk.visit(call->writes, Access::Write);
    walk.visit(call->reads, Access::Read);
  } else if (const auto* copy = std::get_if<Copy>(&statement)) {
    walk.visit({copy->to}, Access::Write);
    walk.visit({copy->from}, Access::Read);
  }
}

void change_places(std::vector<Statement>& body, const std::function<Place(Place)>& f) {
  for (Statement& statement : body) {
    if (auto* assign = std::get_if<Assign>(&statement)) {
      change(assign->places, f);
      change(assign->values, f);
    } else if (auto* call = std::get_if<Call>(&statement)) {
      change(call->writes, f);
      change(call->reads, f);
    } else if (auto* copy = std::get_if<Copy>(&statement)) {
      change(copy->to.at, f);
      change(copy->from.at, f);
      copy->to = f(std::move(copy->to));
      copy->from = f(std::move(copy->from));
    } else if (auto* prefetch = std::get_if<Prefetch>(&statement)) {
      prefetch->place = f(std::move(prefetch->place));
    } else if (std::vector<Statement>* inner = body_of(statement)) {
      change_places(*inner, f);
    }
  }
}

void rename_locals(std::vector<Statement>& body, const std::string& prefix) {
  std::set<std::string> names;
  const auto rename = [&](auto& self, std::vector<Statement>& statements) -> void {
    for (Statement& statement : statements) {
      if (auto* local = std::get_if<Local>(&statement)) {
        names.insert(local->buffer.name);
        local->buffer.name = prefix + local->buffer.name;
      }
      if (std::vector<Statement>* inner = body_of(statement))
        self(self, *inner);
    }
  };
  rename(rename, body);
  change_places(body, [&](Place place) {
    if (names.contains(place.buffer))
      place.buffer = prefix + place.buffer;
    return place;
  });
}

}  // namespace tenon::loops
