// edit.h — finding loops in a kernel, and taking statements apart.
#pragma once

#include <set>

#include "loops/kernel.h"

namespace tenon::loops {

// Why a transformation was not done.
struct Declined {
  std::string reason;
};

template <class... Args>
Declined declined(fmt::format_string<Args...> format, Args&&... args) {
  return {fmt::format(format, std::forward<Args>(args)...)};
}

// A loop of other statements.
inline Loop with_body(Loop loop, std::vector<Statement> body) {
  loop.body = std::move(body);
  return loop;
}

// Loops within each other, outermost first, around a body.
std::vector<Statement> nested(const std::vector<Loop>& loops, std::vector<Statement> body);

// Where a statement stands.
struct Position {
  std::vector<Statement>* body;
  size_t index;

  Statement& statement() const { return (*body)[index]; }
  Loop& loop() const { return std::get<Loop>(statement()); }
  // Other statements in its place.
  void replace(std::vector<Statement> with) const;
};

// The only loop of that name; none, or several, are the user's fault.
Position find_loop(Kernel& kernel, const std::string& variable);
// The loops of a nest, from the outermost to the innermost of those named: each stands within the one before,
// other loops may be between. Not within each other: declined.
std::vector<Position> find_nest(Kernel& kernel, const std::vector<std::string>& variables);

// An input, output or local buffer; none of that name is the user's fault.
const Buffer& find_buffer(Kernel& kernel, const std::string& name);

// A name that begins like this, and that nothing in the kernel, or none of these, has; it is added to them.
std::string fresh_name(const Kernel& kernel, const std::string& like);
std::string fresh_among(std::set<std::string>& names, const std::string& like);
std::set<std::string> names_in(const Kernel& kernel);

// The statements, with other names for their own local buffers and loops, so that they can stand beside the
// first.
std::vector<Statement> renamed_copy(std::set<std::string>& names, const std::vector<Statement>& body);

// Statements that were brought together may have local buffers and loops of one name in sight of each other:
// the later ones are given others.
void separate_names(Kernel& kernel);

// Calls f for every statement, outer ones first.
void for_each_statement(std::vector<Statement>& body, const std::function<void(Statement&)>& f);

// Dims whose minimum this one is: min(a,b) - c is that of a - c and b - c.
std::vector<Dim> minima_of(const Dim& dim);

// Where the dim is least and largest while these loops run, outermost first. Declined where that cannot be
// said.
Dim least(const Dim& dim, const std::vector<Loop>& loops);
Dim largest(const Dim& dim, const std::vector<Loop>& loops);

}  // namespace tenon::loops
