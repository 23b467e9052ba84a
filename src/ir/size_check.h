// size_check.h — whether the sizes that symbols stand for go together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace tenon {

using Bindings = std::map<std::string, int64_t>;  // what symbols stand for

struct SizeCondition;

class SizeCheck {
 public:
  SizeCheck() = default;
  virtual ~SizeCheck() = default;
  SizeCheck(const SizeCheck&) = delete;
  SizeCheck& operator=(const SizeCheck&) = delete;

  // Sizes that do not go together are a user_error. What depends on symbols that are not bound is left out.
  // Several threads may ask at once.
  virtual void check(const Bindings& sizes) = 0;

  // The same as formulas.
  virtual std::vector<SizeCondition> conditions() const = 0;
};

}  // namespace tenon
