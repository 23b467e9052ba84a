#include "loops/canonical_names.h"

#include <set>

namespace tenon::loops {

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
    names_.insert_or_assign(buffer.name, name);  // loops beside each other may have locals of one name
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
        for_each_index(scalar, add);
    };
    if (const auto* local = std::get_if<Local>(&statement)) {
      for (const Dim& size : local->buffer.sizes)
        add(size);
    } else if (const auto* assign = std::get_if<Assign>(&statement)) {
      for (const Place& place : assign->places)
        add_all(place.at);
      add_all(assign->values);
    } else if (const auto* prefetch = std::get_if<Prefetch>(&statement)) {
      add_all(prefetch->place.at);
    } else if (const auto* copy = std::get_if<Copy>(&statement)) {
      add_all(copy->to.at);
      add_all(copy->from.at);
      for (const Dim& size : copy->sizes)
        add(size);
    } else if (const auto* guard = std::get_if<Guard>(&statement)) {
      for (const Dim& condition : guard->conditions)
        add(condition);
    }
    if (const auto* body = body_of(statement))
      for (const Statement& inner : *body)
        collect_symbols(inner, found);
    if (const auto* loop = std::get_if<Loop>(&statement)) {
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
      scalar = replace_loads(scalar.substitute(sizes_), [&](const Scalar& load) {
        return Scalar::load(names_.at(load.name()), load.dtype(), load.operands());
      });
    return scalars;
  }

  Statement renamed(Statement statement) {
    if (auto* local = std::get_if<Local>(&statement)) {
      rename(local->buffer, fmt::format("t{}", locals_++));
      for (Dim& size : local->buffer.sizes)
        size = size.substitute(sizes_);
    } else if (auto* assign = std::get_if<Assign>(&statement)) {
      for (Place& place : assign->places)
        place = {names_.at(place.buffer), renamed(place.at)};
      assign->values = renamed(assign->values);
    } else if (auto* prefetch = std::get_if<Prefetch>(&statement)) {
      prefetch->place = {names_.at(prefetch->place.buffer), renamed(prefetch->place.at)};
    } else if (auto* copy = std::get_if<Copy>(&statement)) {
      for (Place* place : {&copy->to, &copy->from})
        *place = {names_.at(place->buffer), renamed(place->at)};
      for (Dim& size : copy->sizes)
        size = size.substitute(sizes_);
    } else if (auto* loop = std::get_if<Loop>(&statement)) {
      loop->begin = loop->begin.substitute(sizes_);
      loop->end = loop->end.substitute(sizes_);
    } else if (auto* guard = std::get_if<Guard>(&statement)) {
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

NamedKernel canonicalize_names(Kernel kernel) { return Renaming(std::move(kernel)).run(); }

}  // namespace tenon::loops
