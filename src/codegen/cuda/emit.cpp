#include "codegen/cuda/emit.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/cuda/accesses.h"
#include "codegen/cuda/barriers.h"
#include "codegen/cuda/folds.h"
#include "codegen/cuda/pipelined_loops.h"
#include "ir/dim_expression.h"
#include "target/gpu.h"

namespace tenon::codegen::cuda {
namespace {

using loops::Assign;
using loops::Buffer;
using loops::Guard;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::ParallelRegion;
using loops::Place;
using loops::Space;
using loops::Statement;

constexpr int64_t kThreadsAtOnce = 512;  // of a multiprocessor, each with 128 registers
constexpr int64_t kMoreAtOnce = 1024;    // where half of the registers are enough
constexpr int64_t kFewerAtOnce = 256;    // with 255, as the sums of large tiles need them
constexpr int64_t kFewHeld = 32;         // elements that are held in them, and others beside
constexpr int64_t kMostHeldOfHalf = 80;
constexpr int64_t kMostSharedBytes = 228 << 10;  // of a multiprocessor, on any GPU

// The first statement that combines what threads have.
const Statement* find_first_fold(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    const auto* loop = std::get_if<Loop>(&statement);
    const std::vector<Statement>* inner = body_of(statement);
    if (loop != nullptr && loop->mark == Mark::Thread
            ? !find_folds(*loop).empty()
            : inner != nullptr && find_first_fold(*inner) != nullptr)
      return &statement;
  }
  return nullptr;
}

class Emitter : private PipelineText {
 public:
  explicit Emitter(const Kernel& kernel) : PipelineText(kernel) {
    for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
      for (const Buffer& buffer : *buffers)
        storage_.emplace(
            buffer.name,
            Storage{.kind = Storage::Kind::Pointer, .name = names_.of(buffer.name), .buffer = buffer});
    for (const std::string& symbol : kernel.size_symbols())
      indices_.set(symbol, {names_.of(symbol)}, {});
    reserve_names(kernel.body);
  }

  runtime::LaunchConfiguration emit(const ParallelRegion& whole, const std::string& name) {
    const PipelinedRegion pipelined(whole);
    const ParallelRegion& region = pipelined.region();
    pipelined_ = &pipelined;
    team_ = team_of(region);
    const Layouts layouts(kernel_, pipelined, team_.threads, team_.is_cluster());
    layouts_ = &layouts;
    RegionProducts products = products_of(pipelined, team_);
    shared_of_team_ = shared_bytes(pipelined, team_, products);
    quads_ = std::move(products.quads);
    swizzled_ = std::move(products.swizzled);
    warpgroup_products_ = std::move(products.of_warpgroups);
    if (team_.threads > 1)
      barriers_ = find_barriers(kernel_, pipelined, layouts, quads_, folds_synchronise(team_));
    writer_.open("extern \"C\" __global__ void {}__launch_bounds__({}) {}({})",
                 team_.is_cluster() ? fmt::format("__cluster_dims__({}) ", team_.blocks) : "",
                 launch_bounds(), name, parameters());
    const std::vector<Declaration> declarations = begin_iteration(region);
    shared_used_ = 0;
    Writer before = std::move(writer_);
    writer_ = before.same();
    if (shared_of_team_ != Dim(0))
      writer_.line("extern __shared__ __align__({}) unsigned char shared[];", alignment_of(swizzled_));
    begin_cluster(region);
    run(region.body);
    write_used(declarations, before);
    before.append(writer_);
    writer_ = std::move(before);
    writer_.close();
    barriers_.clear();
    return shape_of(region);
  }

  std::string text() const { return preamble_.text() + writer_.text(); }

 private:
  // Those of the kernel come first, so that they keep theirs.
  void reserve_names(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<Local>(&statement))
        names_.of(local->buffer.name);
      if (const auto* loop = std::get_if<Loop>(&statement))
        names_.of(loop->variable);
      if (const auto* inner = body_of(statement))
        reserve_names(*inner);
    }
  }

  int64_t threads_of_block() const { return team_.threads * team_.per_block / team_.blocks; }

  // So many blocks at once that a thread of a large one has as many registers as it can have in the largest
  // of that kind; more of them where rows are held in few registers, so that one loads while another stores.
  // For blocks that shared memory has no room for, registers would only be spilled.
  std::string launch_bounds() const {
    const int64_t threads = threads_of_block();
    // Where blocks stay, they were made for what a thread holds at one time.
    const int64_t held =
        pipelined_->persistent() != nullptr ? layouts_->most_elements_held() : layouts_->elements_held();
    const int64_t at_once = held > 0 && held <= kFewHeld ? kMoreAtOnce
                            : held > kMostHeldOfHalf     ? kFewerAtOnce
                                                         : kThreadsAtOnce;
    const bool is_large = threads >= kThreadsAtOnce / 2;
    const int64_t shared = shared_of_team_.constant().value_or(0),
                  fitting = kMostSharedBytes / std::max<int64_t>(shared, 1);
    const int64_t blocks = std::min(at_once / threads, fitting);
    return is_large && blocks > 1 ? fmt::format("{}, {}", threads, blocks) : fmt::format("{}", threads);
  }

  // Blocks of a cluster must have started before others write to their shared memory.
  void begin_cluster(const ParallelRegion& region) {
    awaits_start_ = team_.is_cluster() ? find_first_fold(region.body) : nullptr;
    if (awaits_start_ == nullptr)
      return;
    begin_exchanges();
    writer_.line("{}();", preamble_.use("arrive_at_cluster"));
  }

  std::string parameters() {
    std::vector<std::string> all;
    for (const Buffer& input : kernel_.inputs)
      all.push_back(
          fmt::format("const {}* __restrict__ {}", stored_type(input.dtype), names_.of(input.name)));
    for (const Buffer& output : kernel_.outputs)
      all.push_back(fmt::format("{}* __restrict__ {}", stored_type(output.dtype), names_.of(output.name)));
    for (const std::string& symbol : kernel_.size_symbols())
      all.push_back(fmt::format("const long long {}", names_.of(symbol)));
    all.emplace_back("int* failure");
    all.emplace_back("const int step");
    return fmt::format("{}", fmt::join(all, ", "));
  }

  // --- the iteration of the block loops ---

  // A line that stands where something after it needs the name; always where it has none.
  struct Declaration {
    std::string name, text;
  };

  void write_used(const std::vector<Declaration>& declarations, Writer& before) const {
    std::vector<std::string_view> used;
    const auto is_used = [&](const std::string& name) {
      return name.empty() || mentions_name(writer_.text(), name) ||
             std::ranges::any_of(used, [&](std::string_view line) { return mentions_name(line, name); });
    };
    for (size_t i = declarations.size(); i-- > 0;)
      if (is_used(declarations[i].name))
        used.push_back(declarations[i].text);
    for (size_t i = used.size(); i-- > 0;)
      before.write(used[i]);
  }

  std::vector<Declaration> begin_iteration(const ParallelRegion& region) {
    std::vector<Declaration> lines;
    const int64_t threads = team_.threads;
    lines.push_back(
        {"thread", team_.is_cluster() ? fmt::format("const int thread = blockIdx.x % {} * {} + threadIdx.x;",
                                                    team_.blocks, threads_of_block())
                   : team_.per_block == 1 ? "const int thread = threadIdx.x;"
                                          : fmt::format("const int thread = threadIdx.x % {};", threads)});
    if (threads < kWarpThreads)
      lines.push_back({"mask", fmt::format("const unsigned mask = {}U << threadIdx.x % 32 / {} * {};",
                                           (1U << threads) - 1, threads, threads)});
    if (region.parallel.empty() || pipelined_->persistent() != nullptr)
      return lines;
    const Range iterations = {0, std::max<int64_t>(indices_.range_of(region.iterations).high, 1) - 1};
    const std::string_view type = IndexText::type_of(iterations);
    std::string number = "blockIdx.x";
    if (team_.per_block > 1) {
      number = names_.fresh("iteration");
      lines.push_back(
          {number, fmt::format("const {} {} = {}blockIdx.x * {} + threadIdx.x / {};", type, number,
                               type == "int" ? "" : "(long long)", team_.per_block, threads)});
      lines.push_back({"", fmt::format("if ({} >= {}) return;", number,
                                       indices_.text(region.iterations).at(Binding::Sum))});
    } else if (team_.is_cluster()) {
      number = names_.fresh("iteration");
      lines.push_back({number, fmt::format("const {} {} = blockIdx.x / {};", type, number, team_.blocks)});
    } else if (const Loop& first = region.parallel.front();
               region.parallel.size() > 1 || first.begin != Dim(0) || first.step != 1) {
      number = names_.fresh("iteration");
      lines.push_back({number, fmt::format("const {} {} = blockIdx.x;", type, number)});
    }
    set_block_variables(region, number, iterations, lines);
    return lines;
  }

  // Row-major: the innermost counts fastest.
  void set_block_variables(const ParallelRegion& region, const std::string& number, const Range& iterations,
                           std::vector<Declaration>& lines) {
    Dim inner = 1;
    for (size_t i = region.parallel.size(); i-- > 0;) {
      const Loop& loop = region.parallel[i];
      const Dim count = loops::iterations_of(loop);
      const std::string symbol = " iteration";
      Range range = iterations;
      Expression own{number};
      if (inner != Dim(1))
        own = {fmt::format("{} / {}", number, indices_.text(inner).at(Binding::Unary)), Binding::Product};
      if (i > 0) {
        own = {fmt::format("{} % {}", own.text, indices_.text(count).at(Binding::Unary)), Binding::Product};
        range = {0, std::max<int64_t>(indices_.range_of(count).high, 1) - 1};
      }
      indices_.set(symbol, own, range);
      const Dim value = loop.begin + Dim::symbol(symbol) * loop.step;
      const std::string& name = names_.of(loop.variable);
      lines.push_back(
          {name, fmt::format("const {} {} = {};", indices_.type_of(value), name, indices_.text(value).text)});
      indices_.set(loop.variable, {name}, indices_.range_of(value));
      inner = inner * count;
    }
  }

  // --- statements that all threads run alike ---

  void run(const std::vector<Statement>& body) override {
    const auto storage = storage_;
    for (const Statement& statement : body)
      run_statement(statement, body.size() > 1);
    storage_ = storage;
  }

  void run_statement(const Statement& statement, bool has_others) override {
    const auto* loop = std::get_if<Loop>(&statement);
    const bool waits = barriers_.contains(&statement);
    wait_for_products_of(statement);
    const Pipeline* pipeline = loop == nullptr ? nullptr : pipelined_->find(*loop);
    // The first copies of a pipelined loop begin before blocks wait for each other to start.
    if (waits || (&statement == awaits_start_ && pipeline == nullptr))
      await_start();
    if (waits)
      synchronise();
    if (pipeline != nullptr)
      run_pipelined(*loop, *pipeline);
    else if (loop != nullptr && is_once(*loop))
      run_once(*loop, has_others);
    else
      std::visit([&](const auto& each) { run(each); }, statement);
  }

  void run(const loops::Call& call) { throw unsupported("kernel {} calls {}", kernel_.name, call.routine); }
  void run(const loops::Prefetch&) {}
  void run(const loops::Copy&) { CHECK(false, "a copy is a thread loop"); }

  // What is subtracted stands on the other side.
  std::string text_of(const Dim& condition) {
    std::vector<DimTerm> added;
    for (const DimTerm& term : terms_of(condition))
      if (term.coefficient > 0)
        added.push_back(term);
    const Dim left = DimExpression::sum(std::move(added)), right = left - condition;
    return fmt::format("{} >= {}", indices_.text(left).at(Binding::Sum),
                       indices_.text(right).at(Binding::Sum));
  }

  void run(const Guard& guard) {
    std::vector<std::string> conditions;
    for (const Dim& condition : guard.conditions)
      conditions.push_back(text_of(condition));
    writer_.open("if ({})", fmt::join(conditions, " && "));
    run(guard.body);
    writer_.close();
  }

  void run(const Assign& assign) {
    const auto is_pointer = [&](const Place& place) {
      return storage_.at(place.buffer).kind == Storage::Kind::Pointer;
    };
    if (at_ || team_.threads == 1 || std::ranges::none_of(assign.places, is_pointer))
      return run_assign(assign);
    if (!std::ranges::all_of(assign.places, is_pointer))
      throw unsupported("kernel {}: one statement writes private and shared buffers", kernel_.name);
    in_first_thread([&] { run_assign(assign); });
  }

  void run(const Local& local) {
    const Buffer& buffer = local.buffer;
    Storage storage{.kind = Storage::Kind::Registers, .name = names_.of(buffer.name), .buffer = buffer};
    if (const auto ring = rings_.find(buffer.name); ring != rings_.end()) {
      if (ring->second.slots > 1)
        declare_slot(ring->second, ring->second.slot);
      storage = ring->second.storage;
    } else if (const auto quad = quads_.find(buffer.name); quad != quads_.end()) {
      declare_in_quad(storage, quad->second);
    } else if (!at_ && is_shared(buffer, team_)) {
      set_shared(storage, local);
      declare_shared(storage, storage.name, 1);
    } else {
      declare_registers(storage, at_ ? nullptr : layouts_->find_spread(local));
    }
    storage_.insert_or_assign(buffer.name, std::move(storage));
  }

  void declare_in_quad(Storage& storage, const QuadBuffer& quad) {
    storage.kind = quad.is_factor() ? Storage::Kind::Fragments : Storage::Kind::Exchanged;
    if (quad.is_factor()) {
      writer_.line("unsigned {}[{}][{}][{}];", storage.name, quad.rows[0].second, quad.fragments,
                   quad.rows[1].second);
      return;
    }
    int64_t rows = 1;
    for (const auto& [variable, count] : quad.rows)
      rows *= count;
    writer_.line("{} {}[{}];", register_type(storage.buffer.dtype), storage.name, rows);
  }

  void declare_registers(Storage& storage, const Spread* spread) {
    std::string counts;
    const auto add = [&](const Dim& count) {
      const std::optional<int64_t> constant = count.constant();
      if (!constant)
        throw unsupported("kernel {}: '{}' is in registers, but its size {} is dynamic", kernel_.name,
                          storage.buffer.name, count);
      counts += fmt::format("[{}]", std::max<int64_t>(*constant, 1));
    };
    std::vector<Dim> sizes = storage.buffer.sizes;
    if (spread != nullptr) {
      storage.kind = Storage::Kind::Spread;
      storage.spread = spread;
      add(spread->held);
      sizes.erase(sizes.begin());
    } else if (at_ && at_->is_whole) {
      storage.kind = Storage::Kind::Lanes;
      add(at_->vector);
    }
    Dim elements = 1;
    for (const Dim& size : sizes)
      elements = elements * size;
    if (!sizes.empty())
      add(elements);
    writer_.line("{} {}{};", register_type(storage.buffer.dtype), storage.name, counts);
  }

  void run(const Loop& loop) {
    if (pipelined_->is_copy(loop)) {
      has_async_copies_ = false;
      copy(loop);
      if (has_async_copies_)
        writer_.line("{}();", preamble_.use("wait_for_copies"));
      return;
    }
    if (loop.mark == Mark::Thread) {
      find_tiles(loop);
      run_threads(loop, layouts_->vector_of(loop));
      if (!accumulators_.empty())
        wait_for_products(in_flight_);
      return;
    }
    if (run_tile(loop) || run_lanes(loop))
      return;
    if (&loop == pipelined_->persistent()) {
      const Counting counting = counting_of(loop, nullptr);
      const std::string& name = names_.of(loop.variable);
      writer_.write("#pragma unroll 1");
      writer_.open("for ({0} {1} = {2}; {1} < {3}; {4})", counting.type, name, counting.begin, counting.end,
                   next_text(name, counting.step));
      indices_.set(loop.variable, {name}, counting.range);
      run(loop.body);
      writer_.close();
      return;
    }
    const Range begin = indices_.range_of(loop.begin), end = indices_.range_of(loop.end);
    // One step past the end must fit, too.
    const Range range = {
        begin.low,
        std::max(begin.low, end.high > INT64_MAX - loop.step ? INT64_MAX : end.high - 1 + loop.step)};
    const std::string_view type = IndexText::type_of(range);
    const std::string& name = names_.of(loop.variable);
    const bool unrolls = loop.mark == Mark::Unrolled && loops::iterations_of(loop).is_constant();
    writer_.write(unrolls ? "#pragma unroll" : "#pragma unroll 1");
    writer_.open("for ({0} {1} = {2}; {1} < {3}; {4})", type, name, indices_.text(loop.begin).text,
                 indices_.text(loop.end).at(Binding::Sum), next_text(name, std::to_string(loop.step)));
    indices_.set(loop.variable, {name}, {begin.low, std::max(begin.low, end.high - 1)});
    run(loop.body);
    writer_.close();
  }

  // A loop that gives a name to where its body is.
  bool is_once(const Loop& loop) const {
    return loop.mark != Mark::Thread && loops::iterations_of(loop) == Dim(1) &&
           &loop != pipelined_->persistent();
  }

  void run_once(const Loop& loop, bool needs_scope) {
    const Range range = indices_.range_of(loop.begin);
    const std::string& name = names_.of(loop.variable);
    if (needs_scope)
      writer_.open();
    const std::string declaration =
        fmt::format("const {} {} = {};", IndexText::type_of(range), name, indices_.text(loop.begin).text);
    indices_.set(loop.variable, {name}, range);
    Writer before = std::move(writer_);
    writer_ = before.same();
    run(loop.body);
    if (mentions_name(writer_.text(), name))
      before.write(declaration);
    before.append(writer_);
    writer_ = std::move(before);
    if (needs_scope)
      writer_.close();
  }
};

}  // namespace

CudaText emit_cuda(const Kernel& kernel) {
  CudaText result;
  Emitter emitter(kernel);
  const std::vector<ParallelRegion> regions = loops::parallel_regions_of(kernel);
  for (size_t i = 0; i < regions.size(); ++i)
    result.shapes.push_back(emitter.emit(regions[i], fmt::format("phase_{}", i)));
  result.text = emitter.text();
  return result;
}

Dim shared_bytes(const ParallelRegion& region) {
  const PipelinedRegion pipelined(region);
  const Team team = team_of(region);
  return shared_bytes(pipelined, team, products_of(pipelined, team));
}

runtime::LaunchConfiguration shape_of(const ParallelRegion& region) {
  const Team team = team_of(region);
  return {.threads = team.threads * team.per_block / team.blocks,
          .iterations_per_block = team.per_block,
          .blocks_per_iteration = team.blocks,
          .is_persistent = is_persistent(region)};
}

}  // namespace tenon::codegen::cuda
