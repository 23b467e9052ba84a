#include "loops/check.h"

#include <algorithm>
#include <set>

#include "target/cluster.h"

namespace tenon::loops {
namespace {

class Checker {
 public:
  explicit Checker(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<Problem> run() {
    for (const std::string& symbol : kernel_.size_symbols())
      symbols_.insert(symbol);
    names_ = symbols_;
    for (const std::vector<Buffer>* buffers : {&kernel_.inputs, &kernel_.outputs})
      for (const Buffer& buffer : *buffers) {
        part_ = next_part_++;
        declare(buffer);
        if (buffer.space != Space::Memory && (buffer.space != Space::Streamed || buffers == &kernel_.inputs))
          report("'{}' is {} of the kernel, so it is in memory", buffer.name,
                 buffers == &kernel_.inputs ? "an input" : "an output");
      }
    for (const Combine& combine : kernel_.combines) {
      part_ = next_part_++;
      check(combine);
    }
    check(kernel_.body);
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({part_, fmt::format(format, std::forward<Args>(args)...)});
  }

  void declare_name(const std::string& name) {
    if (!names_.insert(name).second)
      report("'{}' is declared twice", name);
  }
  void declare(const Buffer& buffer) {
    declare_name(buffer.name);
    buffers_.insert_or_assign(buffer.name, buffer);
    for (const Dim& size : buffer.sizes)
      check(size);
  }

  void check(const Dim& dim) {
    if (dim.is_unknown())
      problems_.push_back({part_, "a size or index is unknown", true});
    for (const std::string& symbol : dim.symbols())
      if (!symbols_.contains(symbol))
        report("'{}' is neither a loop around it nor a size of an input or output", symbol);
  }

  void check(const Combine& combine) {
    declare_name(combine.name);
    if (built_in_combine(combine.name))
      report("'{}' is a combine already", combine.name);
    if (combine.there.size() != combine.coming.size() || combine.there.size() != combine.results.size())
      return report("combine '{}' has not as many values there, coming, and made", combine.name);
    std::map<std::string, DType> variables(combine.there.begin(), combine.there.end());
    variables.insert(combine.coming.begin(), combine.coming.end());
    if (variables.size() != combine.there.size() + combine.coming.size())
      report("combine '{}' has two variables of one name", combine.name);
    variables_ = std::move(variables);
    for (size_t i = 0; i < combine.results.size(); ++i) {
      check_combined(combine, combine.results[i]);
      check(combine.results[i]);
      if (const DType dtype = combine.there[i].second;
          combine.coming[i].second != dtype || combine.results[i].dtype() != dtype)
        report("combine '{}' makes {} of {} and {}", combine.name, combine.results[i].dtype(), dtype,
               combine.coming[i].second);
    }
    variables_.clear();
  }
  // What a combine makes depends on the values alone, so that its statements tell all that they use.
  void check_combined(const Combine& combine, const Scalar& scalar) {
    if (scalar.kind() == Scalar::Kind::Load)
      return report("combine '{}' reads '{}'", combine.name, scalar.name());
    if (scalar.kind() == Scalar::Kind::Index)
      report("combine '{}' speaks of {}", combine.name, scalar.index());
    for (const Scalar& operand : scalar.operands())
      check_combined(combine, operand);
  }

  void check(const Place& place, const char* use) {
    const auto it = buffers_.find(place.buffer);
    if (it == buffers_.end()) {
      report("'{}' is no buffer", place.buffer);
      return;
    }
    if (place.at.size() != it->second.sizes.size())
      report("'{}' has {} dimensions, but is {} with {} indices", place.buffer, it->second.sizes.size(), use,
             place.at.size());
    for (const Scalar& index : place.at) {
      check(index);
      if (index.dtype() != DType::I64)
        report("an index of '{}' is {}, not i64", place.buffer, index.dtype());
    }
  }
  void check_written(const Place& place) {
    check(place, "written");
    for (const Buffer& input : kernel_.inputs)
      if (input.name == place.buffer)
        report("'{}' is an input, but is written", place.buffer);
  }

  void check(const Scalar& scalar) {
    switch (scalar.kind()) {
      case Scalar::Kind::Number:
        return;
      case Scalar::Kind::Index:
        return check(scalar.index());
      case Scalar::Kind::Variable:
        if (const auto it = variables_.find(scalar.name());
            it == variables_.end() || it->second != scalar.dtype())
          report("'{}' is no variable of this combine", scalar.name());
        return;
      case Scalar::Kind::Load:
        check(Place{scalar.name(), scalar.operands()}, "read");
        if (const auto it = buffers_.find(scalar.name());
            it != buffers_.end() && it->second.dtype != scalar.dtype())
          report("'{}' is {}, but is read as {}", scalar.name(), it->second.dtype, scalar.dtype());
        return;
      case Scalar::Kind::Apply:
        return check_applied(scalar);
    }
  }
  void check_applied(const Scalar& scalar) {
    const std::vector<Scalar>& operands = scalar.operands();
    for (const Scalar& operand : operands)
      check(operand);
    const bool conditional = takes_condition(scalar.function());
    if (conditional && operands[0].dtype() != DType::Bool)
      report("the condition of {} is {}, not bool", info(scalar.function()).name, operands[0].dtype());
    for (size_t i = conditional ? 1 : 0; i + 1 < operands.size(); ++i)
      if (operands[i].dtype() != operands[i + 1].dtype())
        report("{} of {} and {}", info(scalar.function()).name, operands[i].dtype(), operands[i + 1].dtype());
  }

  void check(const std::vector<Statement>& body) {
    std::vector<std::string> locals;
    for (const Statement& statement : body) {
      part_ = next_part_++;
      std::visit([&](const auto& each) { check(each); }, statement);
      if (const auto* local = std::get_if<Local>(&statement))
        locals.push_back(local->buffer.name);
    }
    for (const std::string& name : locals) {
      buffers_.erase(name);
      names_.erase(name);
    }
  }
  void check(const Assign& assign) {
    if (assign.places.empty() || assign.places.size() != assign.values.size())
      report("{} values go to {} places", assign.values.size(), assign.places.size());
    const Combine* combine = kernel_.find_combine(assign.combine);
    if (combine == nullptr && !assign.combine.empty() && !built_in_combine(assign.combine))
      report("'{}' is no combine", assign.combine);
    if (combine != nullptr)
      check_fits(*combine, assign);
    for (size_t i = 0; i < std::min(assign.places.size(), assign.values.size()); ++i) {
      check_written(assign.places[i]);
      check(assign.values[i]);
      if (const auto it = buffers_.find(assign.places[i].buffer);
          it != buffers_.end() && it->second.dtype != assign.values[i].dtype())
        report("'{}' is {}, but is given {}", it->first, it->second.dtype, assign.values[i].dtype());
    }
  }
  void check_fits(const Combine& combine, const Assign& assign) {
    if (combine.there.size() != assign.places.size())
      return report("combine '{}' is for {} places, not {}", combine.name, combine.there.size(),
                    assign.places.size());
    for (size_t i = 0; i < combine.there.size(); ++i)
      if (const auto it = buffers_.find(assign.places[i].buffer);
          it != buffers_.end() && it->second.dtype != combine.there[i].second)
        report("'{}' is {}, but is combined as {}", it->first, it->second.dtype, combine.there[i].second);
  }
  void check(const Call& call) {
    for (const Place& place : call.writes)
      check_written(place);
    for (const Place& place : call.reads)
      check(place, "read");
  }
  void check(const Prefetch& prefetch) {
    check(prefetch.place, "fetched");
    for (const Scalar& index : prefetch.place.at)
      if (index.kind() != Scalar::Kind::Index)
        report("where '{}' is fetched depends on data", prefetch.place.buffer);
  }
  void check(const Copy& copy) {
    check_written(copy.to);
    check(copy.from, "copied");
    for (const Dim& size : copy.sizes)
      check(size);
    const auto to = buffers_.find(copy.to.buffer), from = buffers_.find(copy.from.buffer);
    if (to == buffers_.end() || from == buffers_.end())
      return;
    if (to->second.space != Space::Shared)
      report("'{}' is not shared, but a copy writes it", copy.to.buffer);
    if (from->second.space != Space::Memory)
      report("'{}' is not in memory, but is copied", copy.from.buffer);
    if (to->second.dtype != from->second.dtype)
      report("'{}' is {}, but {} is copied to it", copy.to.buffer, to->second.dtype, from->second.dtype);
    if (copy.sizes.size() > copy.to.at.size() || copy.sizes.size() > copy.from.at.size())
      report("a box of {} dimensions is copied from '{}' of {} to '{}' of {}", copy.sizes.size(),
             copy.from.buffer, copy.from.at.size(), copy.to.buffer, copy.to.at.size());
    for (const Place* place : {&copy.to, &copy.from})
      for (const Scalar& index : place->at)
        if (index.kind() != Scalar::Kind::Index)
          report("where a box of '{}' begins depends on data", place->buffer);
  }
  void check(const Local& local) { declare(local.buffer); }
  void check(const Loop& loop) {
    check(loop.begin);
    check(loop.end);
    if (loop.begin.lower_bound().value_or(-1) < 0)
      report("loop '{}' may begin below 0", loop.variable);
    if (loop.step < 1)
      report("loop '{}' has step {}", loop.variable, loop.step);
    check_mark(loop);
    declare_name(loop.variable);
    symbols_.insert(loop.variable);
    around_.push_back(&loop);
    check(loop.body);
    around_.pop_back();
    symbols_.erase(loop.variable);
    names_.erase(loop.variable);  // loops beside each other may share a variable
  }
  // A GPU's loops: blocks outermost, each all there is in the one around it, and threads somewhere within.
  void check_mark(const Loop& loop) {
    const bool is_outermost = loop.mark == Mark::Block && around_.empty();
    if (is_outermost ? loop.threads < 1 || loop.threads > kMostThreadsOfCluster : loop.threads != 0)
      report("loop '{}' has blocks of {} threads", loop.variable, loop.threads);
    if (loop.stages < 1 || (loop.stages > 1 && loop.mark != Mark::Serial && !is_outermost))
      report("loop '{}' is pipelined, but neither serial nor an outermost block loop", loop.variable);
    const bool is_in_block = !around_.empty() && around_.front()->mark == Mark::Block;
    if (loop.mark == Mark::Block && !is_outermost &&
        !(around_.back()->mark == Mark::Block && around_.back()->body.size() == 1))
      report("block loop '{}' is not all there is in another", loop.variable);
    if (loop.mark == Mark::Thread && (!is_in_block || std::ranges::any_of(around_, [](const Loop* each) {
          return each->mark == Mark::Thread;
        })))
      report("thread loop '{}' is in no block, or in another thread loop", loop.variable);
    if (loop.mark == Mark::Parallel && is_in_block)
      report("parallel loop '{}' is in a block", loop.variable);
  }
  void check(const Guard& guard) {
    for (const Dim& condition : guard.conditions)
      check(condition);
    check(guard.body);
  }

  const Kernel& kernel_;
  std::set<std::string> names_, symbols_;
  std::map<std::string, Buffer> buffers_;  // those in sight
  std::vector<const Loop*> around_;        // outermost first
  std::map<std::string, DType> variables_;
  size_t part_ = 0, next_part_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> find_problems(const Kernel& kernel) { return Checker(kernel).run(); }

std::vector<std::string> check(const Kernel& kernel) {
  std::vector<std::string> texts;
  for (Problem& problem : find_problems(kernel))
    texts.push_back(std::move(problem.text));
  return texts;
}

}  // namespace tenon::loops
