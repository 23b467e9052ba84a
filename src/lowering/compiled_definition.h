// compiled_definition.h — a definition compiled for evaluating single elements of its results: loop variables
// are slots of an array, and sizes are numbers.
#pragma once

#include <span>

#include "ir/fit.h"
#include "loops/definition.h"

namespace tenon::lowering {

// The elements of a buffer, by their index in memory.
class ElementSource {
 public:
  virtual ~ElementSource() = default;

  // An index outside of the buffer is a user_error.
  virtual loops::Number at(std::span<const int64_t> index) = 0;
};

class CompiledDefinition {
 public:
  using FindSource = std::function<ElementSource&(const std::string& buffer)>;

  // A size that is unbound is a user_error.
  CompiledDefinition(const loops::Definition& definition, const Bindings& sizes,
                     const FindSource& find_source);
  ~CompiledDefinition();

  // One number for each result, at this index in memory; none where no point of the axes stands there. Float
  // sums are rounded once, at their end. What was computed is remembered.
  const std::vector<loops::Number>& at(std::span<const int64_t> index);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::lowering
