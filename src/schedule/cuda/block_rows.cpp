#include "schedule/cuda/block_rows.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "loops/uses.h"
#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/loads.h"
#include "target/cluster.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Place;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

constexpr int64_t kElementsPerThread = 16;      // of a row
constexpr int64_t kMostElementsPerThread = 32;  // of a long one, as long as there are threads
constexpr int64_t kLongRow = 4096;
constexpr int64_t kRegistersPerBlock = 32 << 10;  // for what stages exchange, half of a multiprocessor's
constexpr int64_t kMostRegisters = 64;            // of a thread, likewise
constexpr int64_t kMostSharedBytes = 64 << 10;    // of a block, likewise
constexpr int64_t kAllSharedBytes = 160 << 10;    // where other positions of a row are read
constexpr int64_t kThreadsOfAnyRow = 256;         // where the length is not known
constexpr int64_t kSharedOfFolds = 6 << 10;       // in bytes, and what the driver has, beside copies of rows
constexpr int64_t kStages = 2;                    // of blocks that stay: the next row comes meanwhile

int64_t threads_for(std::optional<int64_t> length) {
  if (!length)
    return kThreadsOfAnyRow;
  const int64_t each = *length > kLongRow ? kMostElementsPerThread : kElementsPerThread;
  const auto wanted = std::bit_ceil(static_cast<uint64_t>((*length + each - 1) / each));
  return std::clamp<int64_t>(static_cast<int64_t>(wanted), kWarpThreads, kMostThreads);
}

// Of a cluster, by the registers that a thread needs beside so many elements of a row.
int64_t blocks_at_once(int64_t length, int64_t threads) {
  return (length + threads - 1) / threads <= kMostElementsPerThread ? 2 : 1;
}

// Shared memory that the row to come may take in a block of a cluster.
int64_t shared_for_copies(int64_t length, int64_t threads, const Gpu& gpu) {
  return std::min(gpu.shared_bytes_per_block,
                  gpu.shared_bytes_per_multiprocessor / blocks_at_once(length, threads)) -
         kSharedOfFolds;
}

// Whether there are more rows than run at once, so that a cluster that stays has another to load.
bool has_rows_to_come(const Dim& rows, int64_t length, int64_t threads, const Gpu& gpu) {
  const int64_t at_once = gpu.multiprocessors * blocks_at_once(length, threads) / blocks_of_cluster(threads);
  return rows.constant().value_or(at_once + 1) > at_once;
}

// With few elements for each, a multiprocessor has room for two blocks, so that one computes while the other
// waits.
int64_t threads_in_cluster(int64_t length, const Gpu& gpu) {
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(
                               (length + kMostElementsPerThread - 1) / kMostElementsPerThread))),
                           most_blocks_of_cluster(gpu) * kThreadsOfClusterBlock);
}

class RowBlocks {
 public:
  enum class Intermediates : uint8_t { KeptIfTheyFit, Recomputed };

  RowBlocks(const std::vector<Stage>& stages, size_t shared, const std::set<std::string>& outputs,
            int64_t threads, const Gpu& gpu, Intermediates intermediates = Intermediates::KeptIfTheyFit,
            int64_t most_copied_bytes = 0)
      : shared_(shared),
        outputs_(outputs),
        threads_(threads),
        intermediates_(intermediates),
        most_copied_bytes_(most_copied_bytes),
        all_shared_bytes_(std::min(kAllSharedBytes, gpu.shared_bytes_per_block)) {
    for (size_t i = 0; i < stages.size(); ++i)
      definitions_.push_back(renamed(stages[i].definition, shared, fmt::format("s{}", i)));
  }

  std::vector<Statement> run() {
    share_loads();
    for (size_t i = 0; i < definitions_.size(); ++i)
      add(i);
    std::vector<Statement> row;
    for (const Buffer& local : locals_)
      row.emplace_back(Local{local});
    append(row, std::move(body_));
    const std::vector<Axis>& axes = definitions_.front().axes;
    Statement blocks =
        over_blocks({axes.begin(), axes.begin() + static_cast<int64_t>(shared_)}, threads_, std::move(row));
    if (copied_bytes_ > 0)
      std::get<loops::Loop>(blocks).stages = kStages;
    return as_list(std::move(blocks));
  }

  // Whether what stages exchange fits where they exchange it.
  bool fits() const { return fits_; }

 private:
  // Where later stages find what one computed of the row.
  struct Kept {
    enum class Where : uint8_t {
      Number,      // one for the whole row
      Registers,   // each thread has the elements that it computes
      Shared,      // others are read, too
      Recomputed,  // by the formula
    };
    Where where;
    std::vector<size_t> dims = {};  // of the result, that are within the row
    std::vector<Axis> inner = {};   // the axes of the formula within the row
    std::optional<Scalar> formula = {};
  };

  std::vector<Axis> inner_axes(const Definition& definition) const {
    return definition.reduces() ? definition.reduced
                                : std::vector<Axis>(definition.axes.begin() + static_cast<int64_t>(shared_),
                                                    definition.axes.end());
  }

  int64_t most_registers() const {
    if (intermediates_ == Intermediates::Recomputed)
      return 0;
    return std::min(kRegistersPerBlock * blocks_of_cluster(threads_) / threads_, kMostRegisters);
  }

  static std::string local_name(const std::string& buffer) { return buffer + "_row0"; }

  // --- elements of inputs that several stages read, loaded once ---

  // What a load reads at each position of the row, whatever the stage calls its axes.
  struct RowLoad {
    std::vector<Dim> sizes;
    Scalar at_position;

    friend bool operator==(const RowLoad&, const RowLoad&) = default;
  };

  // Nothing where each position does not have an element of its own.
  std::optional<RowLoad> row_load(const Scalar& load, const std::vector<Axis>& inner) const {
    RowLoad found{.sizes = {}, .at_position = load};
    std::map<std::string, Dim> positions;
    for (const Axis& axis : inner) {
      if (!loops::mentions(load, axis.variable))
        return std::nullopt;
      positions.emplace(axis.variable, Dim::symbol(fmt::format("position{}", positions.size())));
      found.sizes.push_back(axis.size);
    }
    found.at_position = load.substitute(positions);
    return inner.empty() ? std::nullopt : std::optional(std::move(found));
  }

  void share_loads() {
    std::set<std::string> made;
    for (const Definition& definition : definitions_)
      for (const Buffer& result : definition.results)
        made.insert(result.name);
    std::vector<std::pair<RowLoad, std::set<size_t>>> loads;  // and the stages that have them
    for (size_t i = 0; i < definitions_.size(); ++i)
      for (const Scalar& value : definitions_[i].values)
        for_each_certain_load(value, [&](const Scalar& load) {
          const std::optional<RowLoad> row = row_load(load, inner_axes(definitions_[i]));
          if (!row || made.contains(load.name()))
            return;
          const auto known = std::ranges::find(loads, *row, [](const auto& each) { return each.first; });
          (known == loads.end() ? loads.emplace_back(*row, std::set<size_t>()) : *known).second.insert(i);
        });
    for (const auto& [load, stages] : loads)
      if (stages.size() > 1)
        share_load(load, stages);
  }

  void share_load(const RowLoad& load, const std::set<size_t>& stages) {
    Dim count = 1;
    for (const Dim& size : load.sizes)
      count = count * size;
    const int64_t each = (count.constant().value_or(INT32_MAX) + threads_ - 1) / threads_;
    if (registers_ + each > most_registers())
      return;
    registers_ += each;
    const Scalar& first = load.at_position;
    const Buffer local{
        fmt::format("{}_load{}", first.name(), locals_.size()), first.dtype(), {count}, Space::Private};
    locals_.push_back(local);
    for (size_t stage : stages) {
      const std::vector<Axis> inner = inner_axes(definitions_[stage]);
      for (Scalar& value : definitions_[stage].values)
        value = loops::replace_loads(value, [&](const Scalar& each_load) {
          return row_load(each_load, inner) == load
                     ? Scalar::load(local.name, local.dtype, {loops::variables_of(inner).front()})
                     : each_load;
        });
    }
    std::vector<Axis> positions;
    for (const Dim& size : load.sizes)
      positions.push_back({fmt::format("position{}", positions.size()), size});
    add_loop(positions, as_list(Assign{.places = {{local.name, {loops::variables_of(positions).front()}}},
                                       .combine = "",
                                       .values = {copied(load, positions).value_or(first)}}));
  }

  // The load from shared memory, to which the row is copied while the one before is computed: where that has
  // room, and it is a row of something, each with its own.
  std::optional<Scalar> copied(const RowLoad& load, const std::vector<Axis>& positions) {
    const std::vector<Scalar>& at = load.at_position.operands();
    const std::vector<Scalar> inner = loops::variables_of(positions);
    const std::vector<Axis>& axes = definitions_.front().axes;
    if (at.size() <= inner.size() ||
        !std::equal(inner.begin(), inner.end(), at.end() - static_cast<int64_t>(inner.size())))
      return std::nullopt;
    std::vector<Scalar> outer(at.begin(), at.end() - static_cast<int64_t>(inner.size()));
    const auto is_index = [](const Scalar& index) { return index.kind() == Scalar::Kind::Index; };
    const auto mentions = [&](const Axis& axis) {
      return std::ranges::any_of(outer,
                                 [&](const Scalar& index) { return loops::mentions(index, axis.variable); });
    };
    const DType dtype = load.at_position.dtype();
    Dim bytes = info(dtype).bytes;
    for (const Dim& size : load.sizes)
      bytes = bytes * size;
    const int64_t own = (bytes.constant().value_or(INT32_MAX) + blocks_of_cluster(threads_) - 1) /
                        blocks_of_cluster(threads_);
    if (copied_bytes_ + own > most_copied_bytes_ || !std::ranges::all_of(outer, is_index) ||
        std::ranges::any_of(positions, mentions) ||
        std::none_of(axes.begin(), axes.begin() + static_cast<int64_t>(shared_), mentions))
      return std::nullopt;
    copied_bytes_ += own;
    const Buffer row{fmt::format("{}_copy{}", load.at_position.name(), locals_.size()), dtype, load.sizes,
                     Space::Shared};
    locals_.push_back(row);
    const std::vector<Scalar> start(inner.size(), Scalar::index(0));
    outer.insert(outer.end(), start.begin(), start.end());
    body_.emplace_back(loops::Copy{
        .to = {row.name, start}, .from = {load.at_position.name(), std::move(outer)}, .sizes = load.sizes});
    return Scalar::load(row.name, dtype, inner);
  }

  // --- stages ---

  void add(size_t stage) {
    Definition definition = definitions_[stage];
    for (Scalar& value : definition.values)
      value = resolve(value);
    if (definition.reduces())
      reduce(definition);
    else if (inner_axes(definition).empty())
      compute_number(definition);
    else
      compute_row(definition, stage);
  }

  // The formula with what earlier stages keep in place of their results.
  Scalar resolve(const Scalar& value) const {
    return loops::replace_loads(value, [&](const Scalar& load) {
      const auto found = kept_.find(load.name());
      if (found == kept_.end())
        return load;
      const Kept& kept = found->second;
      std::vector<Scalar> at;
      for (size_t dim : kept.dims)
        at.push_back(load.operands()[dim]);
      if (kept.where != Kept::Where::Recomputed)
        return Scalar::load(local_name(load.name()), load.dtype(), std::move(at));
      std::map<std::string, Scalar> names;
      for (size_t i = 0; i < at.size(); ++i)
        names.emplace(kept.inner[i].variable, at[i]);
      const std::optional<Scalar> formula = loops::substitute(*kept.formula, names);
      CHECK(formula, "{} cannot be computed again where it is read", load.name());
      return *formula;
    });
  }

  void keep_number(const Buffer& result) {
    locals_.push_back({local_name(result.name), result.dtype, {}, Space::Private});
    kept_.emplace(result.name, Kept{.where = Kept::Where::Number});
  }

  static std::vector<Place> local_places(const Definition& definition) {
    std::vector<Place> places;
    for (const Buffer& result : definition.results)
      places.push_back({local_name(result.name), {}});
    return places;
  }

  void store_numbers(const Definition& definition) {
    for (const Buffer& result : definition.results)
      if (outputs_.contains(result.name))
        body_.emplace_back(Assign{.places = {{result.name, definition.at}},
                                  .combine = "",
                                  .values = {Scalar::load(local_name(result.name), result.dtype, {})}});
  }

  void reduce(const Definition& definition) {
    CHECK(definition.axes.size() == shared_, "a reduction keeps axes within rows");
    for (const Buffer& result : definition.results)
      keep_number(result);
    const std::vector<Place> places = local_places(definition);
    body_.emplace_back(Assign{.places = places, .combine = "", .values = definition.initial});
    add_loop(definition.reduced, as_list(assign(definition, places)));
    store_numbers(definition);
  }

  void compute_number(const Definition& definition) {
    for (const Buffer& result : definition.results)
      keep_number(result);
    body_.emplace_back(assign(definition, local_places(definition)));
    store_numbers(definition);
  }

  void compute_row(const Definition& definition, size_t stage) {
    const Buffer& result = definition.results.front();
    CHECK(definition.results.size() == 1, "a stage of a row has {} results", definition.results.size());
    Scalar value = definition.values.front();
    std::vector<Statement> body;
    if (is_read_after(result.name, stage)) {
      const Kept kept = keep_row(definition, stage);
      if (kept.where != Kept::Where::Recomputed) {
        std::vector<Scalar> at;
        for (size_t dim : kept.dims)
          at.push_back(definition.at[dim]);
        const Place place{local_name(result.name), at};
        body.emplace_back(Assign{.places = {place}, .combine = "", .values = {value}});
        value = Scalar::load(place.buffer, result.dtype, at);
      }
      kept_.emplace(result.name, kept);
    }
    if (outputs_.contains(result.name))
      body.emplace_back(Assign{.places = {{result.name, definition.at}}, .combine = "", .values = {value}});
    if (!body.empty())
      add_loop(inner_axes(definition), std::move(body));
  }

  Kept keep_row(const Definition& definition, size_t stage) {
    const Buffer& result = definition.results.front();
    Kept kept{.where = Kept::Where::Recomputed,
              .inner = inner_axes(definition),
              .formula = definition.values.front()};
    std::vector<Dim> sizes;
    for (const Axis& axis : kept.inner)
      for (size_t dim = 0; dim < definition.at.size(); ++dim)
        if (const auto found = loops::axis_of(definition.axes, definition.at[dim]);
            found && definition.axes[*found].variable == axis.variable) {
          kept.dims.push_back(dim);
          sizes.push_back(axis.size);
        }
    if (kept.dims.size() != kept.inner.size())
      return kept;
    Dim count = 1;
    for (const Dim& size : sizes)
      count = count * size;
    if (!count.constant() || intermediates_ == Intermediates::Recomputed)
      return kept;
    const int64_t each = (*count.constant() + threads_ - 1) / threads_,
                  bytes = *count.constant() * info(result.dtype).bytes;
    if (is_read_alike(result.name, kept, stage) && registers_ + each <= most_registers()) {
      registers_ += each;
      kept.where = Kept::Where::Registers;
      // One dimension, which the threads share out.
      locals_.push_back({local_name(result.name), result.dtype, {count}, Space::Private});
    } else if (shared_bytes_ + bytes <=
               (is_read_alike(result.name, kept, stage) ? kMostSharedBytes : all_shared_bytes_)) {
      shared_bytes_ += bytes;
      kept.where = Kept::Where::Shared;
      locals_.push_back({local_name(result.name), result.dtype, sizes, Space::Shared});
      fits_ = fits_ && blocks_of_cluster(threads_) == 1;
    } else {
      fits_ = fits_ && (is_read_alike(result.name, kept, stage) || !reads_registers(*kept.formula));
    }
    return kept;
  }

  // Which hold what each thread reads at its own positions.
  bool reads_registers(const Scalar& formula) const {
    bool reads = false;
    loops::for_each_load(formula, [&](const Scalar& load) {
      const auto local = std::ranges::find(locals_, load.name(), &Buffer::name);
      reads = reads || (local != locals_.end() && local->space == Space::Private && !local->sizes.empty());
    });
    return reads;
  }

  template <class F>
  void for_each_later_load(const std::string& buffer, size_t stage, F&& f) const {
    for (size_t i = stage + 1; i < definitions_.size(); ++i)
      for (const Scalar& value : definitions_[i].values)
        loops::for_each_load(value, [&](const Scalar& load) {
          if (load.name() == buffer)
            f(definitions_[i], load);
        });
  }

  bool is_read_after(const std::string& buffer, size_t stage) const {
    bool is_read = false;
    for_each_later_load(buffer, stage, [&](const Definition&, const Scalar&) { is_read = true; });
    return is_read;
  }

  // Whether every later stage reads the element at its own position in the row.
  bool is_read_alike(const std::string& buffer, const Kept& kept, size_t stage) const {
    bool alike = true;
    for_each_later_load(buffer, stage, [&](const Definition& reader, const Scalar& load) {
      const std::vector<Axis> inner = inner_axes(reader);
      alike = alike && inner.size() == kept.inner.size();
      for (size_t i = 0; alike && i < inner.size(); ++i)
        alike = inner[i].size == kept.inner[i].size &&
                load.operands()[kept.dims[i]] == Scalar::index(Dim::symbol(inner[i].variable));
    });
    return alike;
  }

  // A loop in which each thread has the same positions of rows of one length.
  void add_loop(const std::vector<Axis>& inner, std::vector<Statement> body) {
    const std::string variable = fmt::format("p{}", loops_++);
    const FlatAxes flat = flatten(inner, variable);
    std::vector<Statement> statements = substitute(body, flat.variables);
    // What lies in registers has one index, which is the position.
    loops::change_places(statements, [&](Place place) {
      const auto local = std::ranges::find(locals_, place.buffer, &Buffer::name);
      if (local != locals_.end() && local->space == Space::Private && local->sizes.size() == 1)
        place.at = {Scalar::index(Dim::symbol(variable))};
      return place;
    });
    body_.push_back(over_threads(variable, flat.size, std::move(statements)));
  }

  const size_t shared_;
  const std::set<std::string>& outputs_;
  const int64_t threads_;
  const Intermediates intermediates_;
  const int64_t most_copied_bytes_;
  const int64_t all_shared_bytes_;
  std::vector<Definition> definitions_;
  std::map<std::string, Kept> kept_;
  std::vector<Buffer> locals_;
  std::vector<Statement> body_;
  int64_t registers_ = 0, shared_bytes_ = 0, copied_bytes_ = 0, loops_ = 0;
  bool fits_ = true;
};

}  // namespace

void block_rows(Kernel& kernel, const std::vector<Stage>& stages, size_t shared,
                const std::set<std::string>& outputs, std::optional<int64_t> length, const Gpu& gpu) {
  std::vector<RowBlocks> candidates;
  if (length && fits_cluster(*length, gpu)) {
    const int64_t threads = threads_in_cluster(*length, gpu);
    Dim rows = 1;
    for (size_t i = 0; i < shared; ++i)
      rows = rows * stages.front().definition.axes[i].size;
    candidates.emplace_back(
        stages, shared, outputs, threads, gpu, RowBlocks::Intermediates::KeptIfTheyFit,
        has_rows_to_come(rows, *length, threads, gpu) ? shared_for_copies(*length, threads, gpu) : 0);
  }
  candidates.emplace_back(stages, shared, outputs, threads_for(length), gpu);
  candidates.emplace_back(stages, shared, outputs, threads_for(length), gpu,
                          RowBlocks::Intermediates::Recomputed);
  for (RowBlocks& rows : candidates) {
    kernel.body = rows.run();
    if (rows.fits())
      return;
  }
  CHECK(false, "rows do not fit, though nothing of them is kept");
}

bool fits_cluster(int64_t length, const Gpu& gpu) {
  return has_clusters(gpu) && length > kMostThreads * kMostElementsPerThread &&
         length <= kPortableBlocksOfCluster * kThreadsOfClusterBlock * kMostRegisters;
}

}  // namespace tenon::schedule::cuda
