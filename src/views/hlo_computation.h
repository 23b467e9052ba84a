// hlo_computation.h — the lines of one HLO computation, as they are written one by one.
#pragma once

#include <map>

#include "ir/graph.h"
#include "views/naming.h"

namespace tenon {

// Computations that others call by name, in the order in which they were first needed.
class HloModule {
 public:
  std::string take_name(std::string_view wanted) { return names_.take(wanted); }
  void add(std::string text) { computations_.push_back(std::move(text)); }
  // A computation of two scalars, such as add_f32 for a reduction.
  std::string scalar_computation(std::string_view instruction, DType dtype);
  // The same, but of the second scalar, as a scatter that replaces what it finds wants it.
  std::string second_of_two(DType dtype);
  const std::vector<std::string>& computations() const { return computations_; }

 private:
  std::string add_once(const std::string& wanted, const std::string& lines);

  ViewNames names_{"_."};
  std::map<std::string, std::string> scalar_computations_;
  std::vector<std::string> computations_;
};

class HloComputation {
 public:
  explicit HloComputation(HloModule& module) : module_(module) {}

  HloModule& module() { return module_; }

  // Adds `NAME = TYPE instruction` and gives its name, which is `wanted` as far as that is free.
  std::string emit(std::string_view wanted, const std::string& type, const std::string& instruction,
                   const std::string& comment = "");
  std::string emit(std::string_view wanted, const Type& type, const std::string& instruction);
  std::string parameter(const std::string& wanted, const Type& type, const std::string& comment);

  void define(Value value, std::string name) { names_.set(value, std::move(name)); }
  // What stands for a value as an operand; a constant is emitted when it is first used.
  std::string use(Value value);
  // The same, broadcast to `type` if it is of another shape.
  std::string use_as(Value value, const Type& type);
  // `name`, a value of type `from`, broadcast to `type`.
  std::string broadcast(const std::string& name, const Type& from, const Type& type);

  // The last lines: a tuple unless there is just one value.
  std::string finish(const std::string& head, const std::vector<std::string>& roots, const Types& types);

 private:
  struct Line {
    std::string name, text;
  };
  HloModule& module_;
  ViewNames names_{"_"};
  std::vector<Line> lines_;
  std::unordered_set<const ValueData*> emitted_;  // constants
  int64_t parameter_count_ = 0;
};

// f32[1,3] broadcast(f32[] constant(0))
std::string hlo_splat(double value, const Type& type);
// constant(2), constant({1, 2}), or constant({...}) for a long one.
std::string hlo_constant(const Literal& literal);

}  // namespace tenon
