#include "compiler/rename_kernel.h"

#include <set>

namespace tenon {

using loops::Buffer;
using loops::Kernel;
using loops::Scalar;
using loops::Statement;

namespace {

class Renaming {
 public:
  explicit Renaming(Kernel kernel) { result_.kernel = std::move(kernel); }

  NamedKernel run() {
    Kernel& kernel = result_.kernel;
    for (Buffer& buffer : kernel.inputs) {
      result_.reads.push_back(buffer.name);
      rename(buffer, fmt::format("x{}", result_.reads.size() - 1));
    }
    for (Buffer& buffer : kernel.outputs) {
      result_.writes.push_back(buffer.name);
      rename(buffer, fmt::format("y{}", result_.writes.size() - 1));
    }
    std::set<std::string> mentioned;
    for (const Statement& statement : kernel.body)
      collect_symbols(statement, mentioned);
    for (const std::string& symbol : kernel.size_symbols())
      mentioned.erase(symbol);
    kernel.more_sizes.assign(mentioned.begin(), mentioned.end());
    for (const std::string& symbol : kernel.size_symbols()) {
      sizes_.emplace(symbol, Dim::symbol(fmt::format("n{}", sizes_.size())));
      result_.symbols.push_back(symbol);
    }
    for (std::string& symbol : kernel.more_sizes)
      symbol = sizes_.at(symbol).symbols().front();
    kernel.name = "kernel";
    for (std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
      for (Buffer& buffer : *buffers)
        for (Dim& size : buffer.sizes)
          size = size.substitute(sizes_);
    for (Statement& statement : kernel.body)
      statement = renamed(statement);
    order_symbols();
    return std::move(result_);
  }

 private:
  void rename(Buffer& buffer, const std::string& name) {
    names_.emplace(buffer.name, name);
    buffer.name = name;
  }

  // Symbols that a statement mentions, but for the variables of its loops.
  static void collect_symbols(const Statement& statement, std::set<std::string>& found) {
    const auto add = [&](const Dim& dim) {
      for (const std::string& symbol : dim.symbols())
        found.insert(symbol);
    };
    const auto add_all = [&](const std::vector<Scalar>& scalars) {
      for (const Scalar& scalar : scalars)
        loops::for_each_index(scalar, add);
    };
    if (const auto* local = std::get_if<loops::Local>(&statement)) {
      for (const Dim& size : local->buffer.sizes)
        add(size);
    } else if (const auto* assign = std::get_if<loops::Assign>(&statement)) {
      for (const loops::Place& place : assign->places)
        add_all(place.at);
      add_all(assign->values);
    } else if (const auto* fetch = std::get_if<loops::Fetch>(&statement)) {
      add_all(fetch->place.at);
    } else if (const auto* guard = std::get_if<loops::Guard>(&statement)) {
      for (const Dim& condition : guard->conditions)
        add(condition);
    }
    if (const auto* body = body_of(statement))
      for (const Statement& inner : *body)
        collect_symbols(inner, found);
    if (const auto* loop = std::get_if<loops::Loop>(&statement)) {
      add(loop->begin);
      add(loop->end);
      found.erase(loop->variable);
    }
  }

  // The kernel lists its symbols in an order of its own.
  void order_symbols() {
    std::vector<std::string> ordered;
    for (const std::string& symbol : result_.kernel.size_symbols())
      for (const auto& [before, now] : sizes_)
        if (now == Dim::symbol(symbol))
          ordered.push_back(before);
    result_.symbols = std::move(ordered);
  }

  std::vector<Scalar> renamed(std::vector<Scalar> scalars) {
    for (Scalar& scalar : scalars)
      scalar = loops::replace_loads(scalar.substitute(sizes_), [&](const Scalar& load) {
        return Scalar::load(names_.at(load.name()), load.dtype(), load.operands());
      });
    return scalars;
  }

  Statement renamed(Statement statement) {
    if (auto* local = std::get_if<loops::Local>(&statement)) {
      rename(local->buffer, fmt::format("t{}", locals_++));
      for (Dim& size : local->buffer.sizes)
        size = size.substitute(sizes_);
    } else if (auto* assign = std::get_if<loops::Assign>(&statement)) {
      for (loops::Place& place : assign->places)
        place = {names_.at(place.buffer), renamed(place.at)};
      assign->values = renamed(assign->values);
    } else if (auto* fetch = std::get_if<loops::Fetch>(&statement)) {
      fetch->place = {names_.at(fetch->place.buffer), renamed(fetch->place.at)};
    } else if (auto* loop = std::get_if<loops::Loop>(&statement)) {
      loop->begin = loop->begin.substitute(sizes_);
      loop->end = loop->end.substitute(sizes_);
    } else if (auto* guard = std::get_if<loops::Guard>(&statement)) {
      for (Dim& condition : guard->conditions)
        condition = condition.substitute(sizes_);
    }
    if (auto* body = body_of(statement))
      for (Statement& inner : *body)
        inner = renamed(inner);
    return statement;
  }

  NamedKernel result_;
  std::map<std::string, std::string> names_;
  std::map<std::string, Dim> sizes_;
  int64_t locals_ = 0;
};

}  // namespace

NamedKernel rename(Kernel kernel) { return Renaming(std::move(kernel)).run(); }

}  // namespace tenon
