#include "frontends/onnx/write/parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/pages.h"
#include "frontends/onnx/write/constants.h"
#include "ir/evaluate.h"
#include "ops/data.h"
#include "tensor/release_literal.h"

namespace tenon::onnx {
namespace {

constexpr uint64_t kPart = 8 << 20;  // bytes

// Indices along one axis of a value.
struct Range {
  size_t axis;
  int64_t begin, end;
};

// Gives back what was read of a mapped file, once there is more of it than a part.
class Trail {
 public:
  explicit Trail(bool mapped) : mapped_(mapped) {}
  void read_up_to(const std::byte* end, const std::byte* begin) {
    from_ = from_ == nullptr ? begin : from_;
    if (mapped_ && static_cast<uint64_t>(end - from_) >= kPart)
      release_pages({std::exchange(from_, end), end});
  }

 private:
  bool mapped_;
  const std::byte* from_ = nullptr;
};

// A copy of the elements in a range: as many runs of bytes as there are indices before the axis.
Tensor copy_range(std::span<const std::byte> bytes, DType dtype, Extents extents, const Range& range,
                  bool mapped) {
  uint64_t runs = 1, step = static_cast<uint64_t>(info(dtype).bytes);
  for (size_t i = 0; i < extents.size(); ++i)
    (i < range.axis ? runs : step) *= i == range.axis ? 1 : static_cast<uint64_t>(extents[i]);
  const uint64_t stride = step * static_cast<uint64_t>(extents[range.axis]);
  extents[range.axis] = range.end - range.begin;
  Tensor part(dtype, extents);
  std::byte* to = part.mutable_bytes().data();
  const uint64_t length = step * static_cast<uint64_t>(range.end - range.begin);
  Trail trail(mapped);
  for (uint64_t run = 0; run < runs && length > 0; ++run, to += length) {
    const std::byte* from = bytes.data() + run * stride + step * static_cast<uint64_t>(range.begin);
    std::memcpy(to, from, length);
    trail.read_up_to(from + length, from);
  }
  return part;
}

// The values that one is made of, itself included.
std::set<Value> all_within(Value value) {
  std::set<Value> all;
  const auto add = [&](const auto& self, Value each) -> void {
    if (all.insert(each).second && literal_of(*each.node()) == nullptr)
      for (Value operand : each.node()->operands())
        self(self, operand);
  };
  add(add, value);
  return all;
}

class PartComputer {
 public:
  Tensor compute(Value value, const Range& range) {
    parts_.clear();
    return part(value, range);
  }

 private:
  using RangeOf = std::function<std::optional<Range>(Value)>;
  using Key = std::tuple<const Node*, int64_t, size_t, int64_t, int64_t>;

  // Once, where several read it.
  Tensor part(Value value, const Range& range) {
    const Key key{value.node(), value.index(), range.axis, range.begin, range.end};
    const auto it = parts_.find(key);
    return it != parts_.end() ? it->second : parts_.emplace(key, compute_anew(value, range)).first->second;
  }

  Tensor compute_anew(Value value, const Range& range) {
    const Node& node = *value.node();
    if (const Literal* literal = literal_of(node))
      return part_of(*literal, range);
    if (node.op().traits.elementwise)
      return evaluate(value, range_in_broadcast(value, range));
    if (node.is("transpose")) {
      const std::vector<int64_t> permutation = node.attr("permutation");
      return evaluate(value, [&](Value) {
        return std::optional(Range{static_cast<size_t>(permutation[range.axis]), range.begin, range.end});
      });
    }
    if (node.is("matmul") && node.in("a").rank() == 2 && node.in("b").rank() <= 2 && range.axis == 0 &&
        node.in("a") != node.in("b"))
      return evaluate(value, [&](Value operand) -> std::optional<Range> {
        if (operand != node.in("a"))
          return std::nullopt;
        return Range{node.attr("transpose_a") ? size_t{1} : size_t{0}, range.begin, range.end};
      });
    const Tensor& tensor = whole(value);
    return copy_range(tensor.bytes(), tensor.dtype(), tensor.extents(), range, false);
  }

  // Of an operand that is broadcast along the axis, all is needed.
  static RangeOf range_in_broadcast(Value value, const Range& range) {
    return [=](Value operand) -> std::optional<Range> {
      const auto missing = static_cast<size_t>(value.rank() - operand.rank());
      if (range.axis < missing || operand.dim(static_cast<int64_t>(range.axis - missing)) == Dim(1))
        return std::nullopt;
      return Range{range.axis - missing, range.begin, range.end};
    };
  }

  // The node on ranges of its operands, or on all of them where there is none.
  Tensor evaluate(Value value, const RangeOf& range_of) {
    Data operands;
    for (Value operand : value.node()->operands()) {
      const std::optional<Range> range = range_of(operand);
      operands.emplace_back(range ? part(operand, *range) : whole(operand));
    }
    return evaluate_node(*value.node(), operands)[static_cast<size_t>(value.index())].tensor();
  }

  static Tensor part_of(const Literal& literal, const Range& range) {
    if (const auto* splat = std::get_if<Literal::Splat>(&literal.form())) {
      Extents extents = literal.extents();
      extents[range.axis] = range.end - range.begin;
      return repeat(splat->element, extents);
    }
    const auto* slice = std::get_if<Literal::FileSlice>(&literal.form());
    // Any byte of a file may stand for true, and some elements are narrower than a byte.
    if (slice != nullptr && literal.dtype() != DType::Bool && info(literal.dtype()).bits % 8 == 0)
      return copy_range(slice->file->bytes().subspan(slice->offset, slice->size), literal.dtype(),
                        literal.extents(), range, true);
    const Tensor tensor = literal.tensor();
    return copy_range(tensor.bytes(), tensor.dtype(), tensor.extents(), range, false);
  }

  // Computed once for all parts.
  const Tensor& whole(Value value) {
    const auto it = whole_.find({value.node(), value.index()});
    return it != whole_.end()
               ? it->second
               : whole_.emplace(std::pair(value.node(), value.index()), onnx::compute(value)).first->second;
  }

  std::map<std::pair<const Node*, int64_t>, Tensor> whole_;
  std::map<Key, Tensor> parts_;  // of the range that is being computed
};

}  // namespace

void compute_in_parts(Value value, const std::function<void(const Tensor&)>& use) {
  const std::set<Value> within = all_within(value);
  uint64_t bytes = 0;
  for (Value each : within)
    bytes = std::max(bytes, size_in_file(each));
  if (value.rank() == 0 || bytes <= kPart) {
    use(compute(value));
  } else {
    const int64_t rows = value.shape().extents()->front();
    const auto parts = static_cast<int64_t>((bytes + kPart - 1) / kPart);
    const int64_t at_once = std::max<int64_t>((rows + parts - 1) / parts, 1);
    PartComputer computer;
    for (int64_t begin = 0; begin < rows; begin += at_once)
      use(computer.compute(value, {.axis = 0, .begin = begin, .end = std::min(begin + at_once, rows)}));
  }
  for (Value each : within)
    if (const Literal* literal = literal_of(*each.node()))
      release(*literal);
}

void read_in_parts(std::span<const std::byte> mapped,
                   const std::function<void(std::span<const std::byte>)>& use) {
  for (uint64_t begin = 0; begin < mapped.size(); begin += kPart) {
    const std::span<const std::byte> part = mapped.subspan(begin, std::min(kPart, mapped.size() - begin));
    use(part);
    release_pages(part);
  }
  release_pages(mapped);  // those across the ends of parts, too
}

}  // namespace tenon::onnx
