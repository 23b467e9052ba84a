#include "schedule/cpu/pack_constant.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/run_all.h"
#include "target/target.h"
#include "tensor/join.h"

namespace tenon::schedule {

using lowering::PackedBLayout;

namespace {

constexpr int64_t kPanelsTogether = 8;  // that one pass over a constant fills
constexpr int64_t kBf16Parts = 3;

// --- squares of elements of 4 bytes, transposed in registers ---

template <int n>
using Line __attribute__((vector_size(4 * n), may_alias)) = uint32_t;

// One step of a transpose: swaps the elements of two vectors whose number has the bit of `distance`.
template <int n, int distance, size_t... i>
void exchange(Line<n>& a, Line<n>& b, std::index_sequence<i...>) {
  const Line<n> low = a, high = b;
  a = __builtin_shufflevector(low, high, ((i & distance) != 0 ? n + i - distance : i)...);
  b = __builtin_shufflevector(low, high, ((i & distance) != 0 ? n + i : i + distance)...);
}
template <int n, int distance>
void exchange_all(Line<n>* lines) {
  if constexpr (distance < n) {
    for (int i = 0; i < n; ++i)
      if ((i & distance) == 0)
        exchange<n, distance>(lines[i], lines[i + distance], std::make_index_sequence<n>());
    exchange_all<n, 2 * distance>(lines);
  }
}

// Whole cache lines are written with non-temporal stores.
template <int n>
void transpose_square(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  Line<n> lines[n];
  for (int i = 0; i < n; ++i)
    std::memcpy(&lines[i], from + i * from_stride, sizeof(Line<n>));
  exchange_all<n, 1>(lines);
  const bool whole = reinterpret_cast<uintptr_t>(to) % sizeof(Line<n>) == 0 && to_stride % n == 0;
  for (int i = 0; i < n; ++i)
    if (whole)
      __builtin_nontemporal_store(lines[i], reinterpret_cast<Line<n>*>(to + i * to_stride));
    else
      std::memcpy(to + i * to_stride, &lines[i], sizeof(Line<n>));
}

// to[j][i] = from[i][j], for i below `rows` and j below `columns`.
template <int n, class T>
void transpose(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to, int64_t to_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    whole_rows = rows / n * n;
    whole_columns = columns / n * n;
    for (int64_t j = 0; j < whole_columns; j += n)
      for (int64_t i = 0; i < whole_rows; i += n)
        transpose_square<n>(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
      to[j * to_stride + i] = from[i * from_stride + j];
}

// --- panels of packed B ---

// Contiguous elements of a constant, and the reduction iterations that they belong to.
struct Run {
  int64_t from, to, count;
};

// The order in which a panel holds the elements of one lane, relative to its first.
std::vector<Run> runs_of(const Extents& sizes, const Extents& strides) {
  std::vector<std::pair<int64_t, int64_t>> places(static_cast<size_t>(element_count(sizes)));
  for (size_t i = 0; i < places.size(); ++i) {
    auto left = static_cast<int64_t>(i);
    places[i].second = left;
    for (size_t dim = sizes.size(); dim-- > 0; left /= sizes[dim])
      places[i].first += left % sizes[dim] * strides[dim];
  }
  std::sort(places.begin(), places.end());
  std::vector<Run> runs;
  for (const auto& [from, to] : places)
    if (!runs.empty() && runs.back().from + runs.back().count == from &&
        runs.back().to + runs.back().count == to)
      ++runs.back().count;
    else
      runs.push_back({from, to, 1});
  return runs;
}

// Which elements of a piece of a constant lie where in the panels.
class PanelMap {
 public:
  PanelMap(const Extents& extents, const PackedBLayout& order, const Extents& piece, int64_t first)
      : lanes_(order.lanes),
        group_lanes_(extents[order.lane_dim()] / order.groups),
        group_panels_(order.panels_of_group(extents[order.lane_dim()])),
        count_(order.groups * group_panels_),
        first_(first),
        end_(first + piece[order.lane_dim()]) {
    const Extents strides = row_major_strides(piece);
    lane_stride_ = strides[order.lane_dim()];
    const size_t outer = order.order.size() - 1 - order.reduced;
    for (size_t i = 0; i < order.order.size(); ++i)
      if (i != outer) {
        (i < outer ? outer_sizes_ : sizes_).push_back(extents[order.order[i]]);
        (i < outer ? outer_strides_ : strides_).push_back(strides[order.order[i]]);
      }
    iterations_ = element_count(sizes_);
    runs_ = runs_of(sizes_, strides_);
  }

 protected:
  // Which lanes of a panel the piece has; none where count is 0.
  struct Part {
    int64_t from, to, count;
  };
  Part part_of(int64_t panel) const {
    const int64_t begin = first_lane(panel), from = std::max(begin, first_);
    return {from - first_, from - begin, std::max<int64_t>(std::min(begin + lanes_, end_) - from, 0)};
  }
  // Where the panel before does not have them, too.
  Part own_part_of(int64_t panel) const {
    Part part = part_of(panel);
    const int64_t shared = first_lane_if_whole(panel) - first_lane(panel);
    return {part.from + shared, part.to + shared, part.count - shared};
  }

  // Calls visit(offset in the piece, offset in the panels) for each index of the outer dimensions.
  template <class Visit>
  void for_each_outer(Visit&& visit) const {
    for (int64_t i = 0; i < element_count(outer_sizes_); ++i) {
      int64_t from = 0, left = i;
      for (size_t dim = outer_sizes_.size(); dim-- > 0; left /= outer_sizes_[dim])
        from += left % outer_sizes_[dim] * outer_strides_[dim];
      visit(from, i * count_ * iterations_ * lanes_);
    }
  }

  int64_t first_lane_if_whole(int64_t panel) const {
    return panel / group_panels_ * group_lanes_ + panel % group_panels_ * lanes_;
  }
  int64_t first_lane(int64_t panel) const {
    return std::min(first_lane_if_whole(panel), (panel / group_panels_ + 1) * group_lanes_ - lanes_);
  }

  int64_t lanes_, group_lanes_, group_panels_, count_;
  int64_t first_, end_;  // the lanes of the piece
  int64_t lane_stride_ = 1, iterations_ = 1;
  Extents outer_sizes_, outer_strides_, sizes_, strides_;
  std::vector<Run> runs_;
};

template <class T>
class PanelFiller : PanelMap {
 public:
  PanelFiller(Tensor& panels, const Extents& extents, const PackedBLayout& order, const Tensor& piece,
              int64_t first)
      : PanelMap(extents, order, piece.extents(), first),
        to_(panels.mutable_data<T>().data()),
        from_(piece.data<T>().data()) {}

  void fill(int64_t begin, int64_t end) const {
    for_each_outer([&](int64_t from, int64_t to) {
      for (int64_t panel = begin; panel < end; panel += kPanelsTogether)
        fill(from_ + from, to_ + to, panel, std::min(panel + kPanelsTogether, end));
    });
  }

 private:
  void fill(const T* from, T* to, int64_t begin, int64_t end) const {
    if (lane_stride_ == 1) {
      for (const Run& run : runs_)
        for (int64_t i = 0; i < run.count; ++i)
          for (int64_t panel = begin; panel < end; ++panel) {
            const Part part = part_of(panel);
            std::copy_n(from + part.from + run.from + i, part.count,
                        to + (panel * iterations_ + run.to + i) * lanes_ + part.to);
          }
      return;
    }
    for (int64_t panel = begin; panel < end; ++panel)
      for (const Run& run : runs_) {
        const Part part = part_of(panel);
        transpose_part(from + part.from * lane_stride_ + run.from, part.count, run.count,
                       to + (panel * iterations_ + run.to) * lanes_ + part.to);
      }
  }

  void transpose_part(const T* from, int64_t lanes, int64_t iterations, T* to) const {
    if (lanes_ % 16 == 0)
      transpose<16>(from, lane_stride_, lanes, iterations, to, lanes_);
    else
      transpose<8>(from, lane_stride_, lanes, iterations, to, lanes_);
  }

  T* to_;
  const T* from_;
};

// The other way.
template <class T>
class PanelReader : PanelMap {
 public:
  PanelReader(Tensor& whole, const Extents& extents, const PackedBLayout& order, const Tensor& panels)
      : PanelMap(extents, order, extents, 0),
        to_(whole.mutable_data<T>().data()),
        from_(panels.data<T>().data()) {}

  void read(int64_t begin, int64_t end) const {
    for_each_outer([&](int64_t to, int64_t from) {
      for (int64_t panel = begin; panel < end; panel += kPanelsTogether)
        read(from_ + from, to_ + to, panel, std::min(panel + kPanelsTogether, end));
    });
  }

 private:
  void read(const T* from, T* to, int64_t begin, int64_t end) const {
    if (lane_stride_ == 1) {
      for (const Run& run : runs_)
        for (int64_t i = 0; i < run.count; ++i)
          for (int64_t panel = begin; panel < end; ++panel) {
            const Part part = own_part_of(panel);
            std::copy_n(from + (panel * iterations_ + run.to + i) * lanes_ + part.to, part.count,
                        to + part.from + run.from + i);
          }
      return;
    }
    for (int64_t panel = begin; panel < end; ++panel)
      for (const Run& run : runs_) {
        const Part part = own_part_of(panel);
        transpose<8>(from + (panel * iterations_ + run.to) * lanes_ + part.to, lanes_, run.count, part.count,
                     to + part.from * lane_stride_ + run.from, lane_stride_);
      }
  }

  T* to_;
  const T* from_;
};

// Iterates in the order of the source, except for the dimension that becomes the last, so that both loads and
// stores are contiguous.
template <class T>
void reorder_into(Tensor& to, const Tensor& from, const std::vector<size_t>& order) {
  const Extents& extents = from.extents();
  const Extents from_strides = row_major_strides(extents), strides = row_major_strides(to.extents());
  Extents to_strides(extents.size());
  for (size_t i = 0; i < order.size(); ++i)
    to_strides[order[i]] = strides[i];
  const size_t last = order.back();
  const T* x = from.data<T>().data();
  T* y = to.mutable_data<T>().data();
  const auto move = [&](const auto& self, size_t dim, const T* source, T* target) -> void {
    if (dim == extents.size()) {
      for (int64_t i = 0; i < extents[last]; ++i)
        target[i] = source[i * from_strides[last]];
      return;
    }
    for (int64_t i = 0; i < (dim == last ? 1 : extents[dim]); ++i)
      self(self, dim + 1, source + i * from_strides[dim], target + i * to_strides[dim]);
  };
  move(move, 0, x, y);
}

// words[i] = the elements at i of `count` rows, the first lowest.
template <class T>
void pack_row_of_words(const T* rows, int64_t columns, uint32_t* words) {
  constexpr int64_t count = sizeof(uint32_t) / sizeof(T);
  for (int64_t i = 0; i < columns; ++i) {
    uint32_t word = 0;
    for (int64_t row = 0; row < count; ++row)
      word |= static_cast<uint32_t>(rows[row * columns + i]) << (8 * sizeof(T) * row);
    words[i] = word;
  }
}

template <class T>
void unpack_row_of_words(const uint32_t* words, int64_t columns, T* rows) {
  constexpr int64_t count = sizeof(uint32_t) / sizeof(T);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < columns; ++i)
      rows[row * columns + i] = static_cast<T>(words[i] >> (8 * sizeof(T) * row));
}

// The bf16 in the upper half of a number, which is subtracted from it.
uint32_t take_top_half(float& number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number) & 0xffff0000;
  number -= std::bit_cast<float>(bits);
  return bits;
}

// The number that such parts were taken of. Nothing is added to a -0.
float sum_of_halves(uint32_t first, uint32_t second, uint32_t third) {
  const float rest = std::bit_cast<float>(second) + std::bit_cast<float>(third);
  return (second | third) == 0 ? std::bit_cast<float>(first) : std::bit_cast<float>(first) + rest;
}

// Where the parts of packed B of these extents lie.
struct Bf16x3Map {
  explicit Bf16x3Map(const Extents& panels)
      : lanes(panels.back()),
        pairs(panels[panels.size() - 2] / 2),
        words((pairs + kMatrixTileSide - 1) / kMatrixTileSide * kMatrixTileSide),
        count(element_count(panels) / std::max<int64_t>(2 * pairs * lanes, 1)),
        part(count * words * lanes) {}

  // Calls visit(offset in the panels, offset in a part) for each pair of terms of a panel, but for those of
  // the last block that the one before has: there, parts are 0.
  template <class Visit>
  void for_each_row(int64_t panel, Visit&& visit) const {
    for (int64_t i = 0; i < words; ++i) {
      const int64_t first = i / kMatrixTileSide * kMatrixTileSide,
                    pair = i - std::max<int64_t>(first + kMatrixTileSide - pairs, 0);
      if (pair >= first)
        visit((panel * pairs + pair) * 2 * lanes, (panel * words + i) * lanes);
    }
  }

  int64_t lanes, pairs, words, count, part;
};

// As an integer of the element's size.
template <class F>
void with_element(const Tensor& tensor, F&& f) {
  switch (tensor.element_size()) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      CHECK(false, "elements of {} bytes", tensor.element_size());
  }
}

}  // namespace

Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order) {
  Extents extents;
  for (size_t dim : order)
    extents.push_back(tensor.extents()[dim]);
  Tensor result(tensor.dtype(), extents);
  with_element(tensor, [&]<class T>(T) { reorder_into<T>(result, tensor, order); });
  return result;
}

Tensor vnni_packed(const Tensor& tensor, size_t dim, int threads) {
  const int64_t each = info(DType::I32).bytes / tensor.element_size();
  Extents extents = tensor.extents();
  extents[dim] /= each;
  Tensor packed(DType::I32, extents);
  const int64_t columns = row_major_strides(extents)[dim],
                rows = packed.count() / std::max<int64_t>(columns, 1), share = (rows + threads - 1) / threads;
  with_element(tensor, [&]<class T>(T) {
    const T* from = tensor.data<T>().data();
    auto* to = packed.mutable_data<uint32_t>().data();
    run_all(static_cast<size_t>(threads), threads, [&](size_t i) {
      const int64_t begin = static_cast<int64_t>(i) * share;
      for (int64_t row = begin; row < std::min(begin + share, rows); ++row)
        pack_row_of_words(from + row * each * columns, columns, to + row * columns);
    });
  });
  return packed;
}

Tensor vnni_unpacked(const Tensor& words, size_t dim, DType dtype, int threads) {
  const int64_t each = info(DType::I32).bytes / info(dtype).bytes;
  Extents extents = words.extents();
  extents[dim] *= each;
  Tensor tensor(dtype, extents);
  const int64_t columns = row_major_strides(extents)[dim],
                rows = words.count() / std::max<int64_t>(columns, 1), share = (rows + threads - 1) / threads;
  with_element(tensor, [&]<class T>(T) {
    const auto* from = words.data<uint32_t>().data();
    T* to = tensor.mutable_data<T>().data();
    run_all(static_cast<size_t>(threads), threads, [&](size_t i) {
      const int64_t begin = static_cast<int64_t>(i) * share;
      for (int64_t row = begin; row < std::min(begin + share, rows); ++row)
        unpack_row_of_words(from + row * columns, columns, to + row * each * columns);
    });
  });
  return tensor;
}

Extents packed_b_extents(const Extents& extents, const PackedBLayout& order) {
  Extents sizes;
  for (size_t dim : order.order)
    sizes.push_back(dim == order.lane_dim() ? order.groups * order.panels_of_group(extents[dim])
                                            : extents[dim]);
  sizes.push_back(order.lanes);
  return sizes;
}

Tensor empty_packed_b(DType dtype, const Extents& extents, const PackedBLayout& order) {
  return Tensor(dtype, packed_b_extents(extents, order));
}

void pack_b_panels(Tensor& panels, const Extents& extents, const PackedBLayout& order, const Tensor& piece,
                   int64_t first, int64_t begin, int64_t end) {
  with_element(piece,
               [&]<class T>(T) { PanelFiller<T>(panels, extents, order, piece, first).fill(begin, end); });
}

Tensor packed_b(const std::vector<Tensor>& pieces, size_t dim, const PackedBLayout& order, int threads) {
  const Extents extents = joined_extents(pieces, dim);
  std::vector<std::pair<Tensor, int64_t>> parts;  // and the lanes that they begin at
  if (dim == order.lane_dim()) {
    int64_t first = 0;
    for (const Tensor& piece : pieces) {
      parts.emplace_back(piece, first);
      first += piece.extents()[dim];
    }
  } else {
    parts.emplace_back(join(pieces, dim), 0);
  }
  Tensor panels = empty_packed_b(parts.front().first.dtype(), extents, order);
  const int64_t count = panels.extents()[order.order.size() - 1 - order.reduced],
                each = (count + threads - 1) / threads;
  run_all(static_cast<size_t>(threads), threads, [&](size_t i) {
    const int64_t begin = std::min(static_cast<int64_t>(i) * each, count),
                  end = std::min(begin + each, count);
    for (const auto& [part, first] : parts)
      pack_b_panels(panels, extents, order, part, first, begin, end);
  });
  return panels;
}

Tensor unpacked_b(const Tensor& panels, const Extents& extents, const PackedBLayout& order, int threads) {
  Tensor whole(panels.dtype(), extents);
  const int64_t count = order.groups * order.panels_of_group(extents[order.lane_dim()]),
                each = (count + threads - 1) / threads;
  with_element(panels, [&]<class T>(T) {
    const PanelReader<T> reader(whole, extents, order, panels);
    run_all(static_cast<size_t>(threads), threads, [&](size_t i) {
      const int64_t begin = std::min(static_cast<int64_t>(i) * each, count);
      reader.read(begin, std::min(begin + each, count));
    });
  });
  return whole;
}

Extents bf16x3_extents(const Extents& panels) {
  const int64_t pairs = panels[panels.size() - 2] / 2;
  Extents extents = {kBf16Parts};
  extents.insert(extents.end(), panels.begin(), panels.end() - 2);
  extents.insert(extents.end(),
                 {(pairs + kMatrixTileSide - 1) / kMatrixTileSide, kMatrixTileSide, panels.back()});
  return extents;
}

Tensor split_into_bf16x3(const Tensor& panels, int threads) {
  Tensor split(DType::I32, bf16x3_extents(panels.extents()));
  const Bf16x3Map map(panels.extents());
  const float* whole = panels.data<float>().data();
  int32_t* words = split.mutable_data<int32_t>().data();
  run_all(static_cast<size_t>(map.count), threads, [&](size_t number) {
    map.for_each_row(static_cast<int64_t>(number), [&](int64_t from, int64_t to) {
      for (int64_t lane = 0; lane < map.lanes; ++lane) {
        float low = whole[from + lane], high = whole[from + map.lanes + lane];
        for (int64_t p = 0; p < kBf16Parts; ++p)
          words[p * map.part + to + lane] =
              static_cast<int32_t>(take_top_half(low) >> 16 | take_top_half(high));
      }
    });
  });
  return split;
}

Tensor joined_bf16x3(const Tensor& split, const Extents& panels, int threads) {
  Tensor joined(DType::F32, panels);
  const Bf16x3Map map(panels);
  const auto* words = split.data<uint32_t>().data();
  float* whole = joined.mutable_data<float>().data();
  run_all(static_cast<size_t>(map.count), threads, [&](size_t number) {
    map.for_each_row(static_cast<int64_t>(number), [&](int64_t to, int64_t from) {
      for (int64_t lane = 0; lane < map.lanes; ++lane) {
        uint32_t parts[kBf16Parts];
        for (int64_t p = 0; p < kBf16Parts; ++p)
          parts[p] = words[p * map.part + from + lane];
        whole[to + lane] = sum_of_halves(parts[0] << 16, parts[1] << 16, parts[2] << 16);
        whole[to + map.lanes + lane] =
            sum_of_halves(parts[0] & 0xffff0000, parts[1] & 0xffff0000, parts[2] & 0xffff0000);
      }
    });
  });
  return joined;
}

}  // namespace tenon::schedule
