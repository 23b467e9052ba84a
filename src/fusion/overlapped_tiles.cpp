#include "fusion/overlapped_tiles.h"

#include <algorithm>

namespace tenon::fusion {

using loops::Axis;
using loops::Definition;
using loops::mentions;
using loops::Scalar;
using lowering::Group;
using lowering::Stage;
using lowering::TileSize;

namespace {

// The range of an index over all variables but one: stride * variable + first to last.
struct Span {
  int64_t stride = 0, first = 0, last = 0;
};

// Nothing where it is not affine.
std::optional<Span> span_of(const Dim& index, const std::string& variable, const std::vector<Axis>& axes) {
  std::map<std::string, Dim> zeros;
  for (const std::string& symbol : index.symbols()) {
    const auto axis = std::ranges::find(axes, symbol, &Axis::variable);
    if (axis == axes.end() || !axis->size.constant())
      return std::nullopt;
    zeros.emplace(symbol, 0);
  }
  const std::optional<int64_t> at_zero = index.substitute(zeros).constant();
  if (!at_zero)
    return std::nullopt;
  Span span{.stride = 0, .first = *at_zero, .last = *at_zero};
  Dim sum = *at_zero;
  for (const std::string& symbol : index.symbols()) {
    std::map<std::string, Dim> one = zeros;
    one[symbol] = 1;
    const std::optional<int64_t> at_one = index.substitute(one).constant();
    const auto axis = std::ranges::find(axes, symbol, &Axis::variable);
    if (!at_one)
      return std::nullopt;
    const int64_t factor = *at_one - *at_zero;
    sum = sum + factor * Dim::symbol(symbol);
    if (symbol == variable) {
      span.stride = factor;
      continue;
    }
    const int64_t reach = factor * (*axis->size.constant() - 1);
    span.first += std::min<int64_t>(reach, 0);
    span.last += std::max<int64_t>(reach, 0);
  }
  return sum == index ? std::optional(span) : std::nullopt;
}

class CutFinder {
 public:
  explicit CutFinder(const std::vector<Stage>& stages) : stages_(stages) {
    cut_.variables.resize(stages.size());
    for (size_t i = 0; i < stages.size(); ++i)
      makers_.emplace(stages[i].definition.results.front().name, i);
  }

  std::optional<TileCut> run(const std::string& result, size_t dim) {
    const size_t maker = makers_.at(result);
    const Definition& last = stages_[maker].definition;
    const std::optional<size_t> axis = start(maker, dim);
    if (!axis || !last.axes[*axis].size.constant())
      return std::nullopt;
    cut_.dim = dim;
    cut_.rows = *last.axes[*axis].size.constant();
    cut_.border = *last.at[dim].index().substitute({{last.axes[*axis].variable, 0}}).constant();
    for (size_t i = stages_.size(); i-- > 0;)
      if (!follow(i))
        return std::nullopt;
    // What is read by rows is all that is read of a buffer.
    if (std::ranges::any_of(cut_.reads,
                            [&](const TileCut::Read& read) { return read_whole_.contains(read.buffer); }))
      return std::nullopt;
    return std::move(cut_);
  }

 private:
  // The axis of a stage that runs along a dimension of its result; nothing where another was found before.
  std::optional<size_t> start(size_t stage, size_t dim) {
    const Definition& definition = stages_[stage].definition;
    const std::vector<std::string> symbols = definition.at[dim].index().symbols();
    if (symbols.size() != 1)
      return std::nullopt;
    const auto axis = std::ranges::find(definition.axes, symbols.front(), &Axis::variable);
    std::string& variable = cut_.variables[stage];
    if (axis == definition.axes.end() || (!variable.empty() && variable != axis->variable))
      return std::nullopt;
    variable = axis->variable;
    return axis - definition.axes.begin();
  }

  bool follow(size_t stage) {
    const Definition& definition = stages_[stage].definition;
    const std::string& variable = cut_.variables[stage];
    bool possible = !variable.empty() && definition.results.size() == 1;
    for (const Scalar& value : definition.values) {
      possible = possible && loops::mentions_only_in_loads(value, variable);
      loops::for_each_load(
          value, [&](const Scalar& load) { possible = possible && follow(load, definition, variable); });
    }
    return possible;
  }

  bool follow(const Scalar& load, const Definition& definition, const std::string& variable) {
    std::vector<Axis> axes = definition.axes;
    axes.insert(axes.end(), definition.reduced.begin(), definition.reduced.end());
    const auto maker = makers_.find(load.name());
    std::optional<size_t> dim;
    Span span;
    for (size_t i = 0; i < load.operands().size(); ++i) {
      const Scalar& index = load.operands()[i];
      if (!mentions(index, variable))
        continue;
      if (dim || index.kind() != Scalar::Kind::Index)
        return false;
      const std::optional<Span> found = span_of(index.index(), variable, axes);
      if (!found || found->stride <= 0)
        return false;
      dim = i;
      span = *found;
    }
    if (maker == makers_.end()) {
      if (dim)
        return add({load.name(), *dim, span.stride, span.first, span.last});
      read_whole_.insert(load.name());
      return true;
    }
    // Intermediate values of the stages are read in place.
    if (!dim || !start(maker->second, *dim))
      return false;
    const Definition& made = stages_[maker->second].definition;
    return load.operands()[*dim].index().substitute({{variable, 0}}) ==
               made.at[*dim].index().substitute({{cut_.variables[maker->second], 0}}) &&
           span.stride == 1 && span.first == span.last;
  }

  bool add(const TileCut::Read& read) {
    const auto known = std::ranges::find(cut_.reads, read.buffer, &TileCut::Read::buffer);
    if (known == cut_.reads.end()) {
      cut_.reads.push_back(read);
      return true;
    }
    known->first = std::min(known->first, read.first);
    known->last = std::max(known->last, read.last);
    return known->dim == read.dim && known->stride == read.stride;
  }

  const std::vector<Stage>& stages_;
  std::map<std::string, size_t> makers_;
  std::set<std::string> read_whole_;
  TileCut cut_;
};

// --- which rows each kernel computes for a tile ---

int64_t first_row(const TileRows& rows, int64_t tile) {
  return std::max<int64_t>(std::min(rows.step * tile + rows.offset, rows.all - rows.rows), 0);
}

// What a kernel reads of the one whose rows are wanted.
struct Reader {
  const TileCut::Read& read;
  const TileRows& rows;
};

// Rows of a tile that no reader needs: where a window covers more padding than image, the first and last
// tiles begin off the regular grid.
constexpr int64_t kMostSpare = 16;

// Enough rows per tile to hold what all readers need.
std::optional<TileRows> rows_for(const TileCut& cut, const std::vector<Reader>& readers) {
  const auto needed = [&](int64_t tile) {
    int64_t first = cut.rows, last = 0;
    for (const Reader& reader : readers) {
      const int64_t row = first_row(reader.rows, tile), stride = reader.read.stride;
      first = std::min(first, stride * row + reader.read.first - cut.border);
      last = std::max(last, stride * (row + reader.rows.rows - 1) + reader.read.last - cut.border);
    }
    return std::pair(std::max<int64_t>(first, 0), std::min(last, cut.rows - 1));
  };
  const Reader& reader = readers.front();
  TileRows rows{.rows = 1,
                .all = cut.rows,
                .step = reader.read.stride * reader.rows.step,
                .offset = reader.read.stride * reader.rows.offset + reader.read.first - cut.border,
                .tiles = reader.rows.tiles};
  for (int64_t tile = 0; tile < rows.tiles; ++tile)
    rows.rows = std::max(rows.rows, needed(tile).second - needed(tile).first + 1);
  const int64_t most = std::min(rows.all, rows.rows + kMostSpare);
  for (; rows.rows <= most; ++rows.rows) {
    bool holds = true;
    for (int64_t tile = 0; tile < rows.tiles && holds; ++tile) {
      const int64_t first = first_row(rows, tile);
      holds = first <= needed(tile).first && needed(tile).second < first + rows.rows;
    }
    if (holds)
      return rows;
  }
  return std::nullopt;
}

bool reads(const TiledKernel& part, const std::string& buffer) {
  return std::ranges::any_of(part.stages,
                             [&](const Stage& stage) { return buffers_read(stage).contains(buffer); });
}

const TileCut::Read* find_read(const TileCut& cut, const std::string& buffer) {
  const auto read = std::ranges::find(cut.reads, buffer, &TileCut::Read::buffer);
  return read == cut.reads.end() ? nullptr : &*read;
}

// Along the dimension that all later kernels read by rows and are cut along.
std::optional<TileCut> cut_for_readers(const std::vector<TiledKernel>& parts, size_t number, size_t cut) {
  const TiledKernel& part = parts[number];
  std::optional<size_t> dim;
  for (size_t later = number + 1; later < parts.size(); ++later) {
    if (!reads(parts[later], part.result))
      continue;
    const TileCut::Read* read = find_read(parts[later].cuts[cut], part.result);
    if (read == nullptr || dim.value_or(read->dim) != read->dim)
      return std::nullopt;
    dim = read->dim;
  }
  return dim ? cut_along(part.stages, part.result, *dim) : std::nullopt;
}

}  // namespace

std::optional<TileCut> cut_along(const std::vector<Stage>& stages, const std::string& result, size_t dim) {
  if (dim + 1 == stages.back().definition.at.size())
    return std::nullopt;  // the vectorised dimension
  return CutFinder(stages).run(result, dim);
}

Dim TileRows::first(const Dim& tile) const {
  const Dim begin = step * tile + offset;
  const bool is_inside = offset >= 0 && step * (tiles - 1) + offset + rows <= all;
  return is_inside ? begin : max(min(begin, all - rows), 0);
}

std::optional<std::vector<TiledKernel>> cut_into_tiles(const std::vector<Stage>& stages, const Group& group) {
  std::vector<TiledKernel> parts;
  auto next = stages.begin();
  for (const Group& part : group.parts) {
    const auto end = next + static_cast<int64_t>(part.nodes.size());
    const std::string& result = (end - 1)->definition.results.front().name;
    parts.push_back({.stages = {next, end}, .group = part, .result = result, .cuts = {}, .rows = {}});
    next = end;
  }
  for (size_t i = parts.size(); i-- > 0;)
    for (size_t cut = 0; cut < group.tile.size(); ++cut) {
      std::optional<TileCut> own = i + 1 == parts.size()
                                       ? cut_along(parts[i].stages, parts[i].result, group.tile[cut].dim)
                                       : cut_for_readers(parts, i, cut);
      if (!own)
        return std::nullopt;
      parts[i].cuts.push_back(std::move(*own));
    }
  return parts;
}

bool set_rows(std::vector<TiledKernel>& parts, const std::vector<TileSize>& tile) {
  for (TiledKernel& part : parts)
    part.rows.clear();
  for (size_t cut = 0; cut < tile.size(); ++cut) {
    const int64_t rows = tile[cut].rows, all = parts.back().cuts[cut].rows;
    if (all % rows != 0 || all / rows > kMostTiles)
      return false;
    parts.back().rows.push_back({.rows = rows, .all = all, .step = rows, .offset = 0, .tiles = all / rows});
    for (size_t i = parts.size() - 1; i-- > 0;) {
      std::vector<Reader> readers;
      for (size_t later = i + 1; later < parts.size(); ++later)
        if (const TileCut::Read* read = find_read(parts[later].cuts[cut], parts[i].result))
          readers.push_back({*read, parts[later].rows[cut]});
      const std::optional<TileRows> own = rows_for(parts[i].cuts[cut], readers);
      if (!own)
        return false;
      parts[i].rows.push_back(*own);
    }
  }
  return true;
}

}  // namespace tenon::fusion
