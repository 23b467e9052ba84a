// datum.h — what a value is while a graph runs: a tensor, a sequence of data, or an optional datum.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace tenon {

struct Datum;

struct Sequence {
  std::vector<Datum> elements;
};

struct Optional {
  std::shared_ptr<const Datum> element;  // null when empty
};

struct Datum : std::variant<Tensor, Sequence, Optional> {
  using variant::variant;

  const Tensor& tensor() const {
    CHECK(std::holds_alternative<Tensor>(*this), "a tensor was expected");
    return std::get<Tensor>(*this);
  }
  const Sequence& sequence() const {
    CHECK(std::holds_alternative<Sequence>(*this), "a sequence was expected");
    return std::get<Sequence>(*this);
  }
  const Optional& optional() const {
    CHECK(std::holds_alternative<Optional>(*this), "an optional was expected");
    return std::get<Optional>(*this);
  }
};

using Data = std::vector<Datum>;

}  // namespace tenon
