#include "codegen/cuda/barriers.h"

#include <algorithm>

#include "codegen/cuda/accesses.h"

namespace tenon::codegen::cuda {
namespace {

using loops::Assign;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

// What threads accessed since they last waited for each other.
struct Pending {
  std::string buffer;
  std::string owner;  // whose elements are the same for all accesses of this owner; empty: anyone's
  bool writes;

  friend auto operator<=>(const Pending&, const Pending&) = default;
};
using PendingSet = std::set<Pending>;

const std::string kFirstThread = "first thread";

class BarrierFinder {
 public:
  BarrierFinder(const loops::Kernel& kernel, const PipelinedRegion& region, const Layouts& layouts,
                const std::map<std::string, QuadBuffer>& quads, bool folds_synchronise)
      : region_(region), layouts_(layouts), quads_(quads), folds_synchronise_(folds_synchronise) {
    for (const loops::Buffer& input : kernel.inputs)
      private_.insert(input.name);  // nobody writes them
    for (const loops::Buffer& output : kernel.outputs)
      buffers_.insert_or_assign(output.name, &output);
  }

  PendingSet visit(const std::vector<Statement>& body, PendingSet pending) {
    const std::set<std::string> around = private_;
    for (const Statement& statement : body)
      pending = visit(statement, std::move(pending));
    private_ = around;
    return pending;
  }

  std::set<const Statement*> barriers;

 private:
  PendingSet visit(const Statement& statement, PendingSet pending) {
    if (const auto* local = std::get_if<loops::Local>(&statement)) {
      declare(*local);
      return pending;
    }
    if (const auto* loop = std::get_if<Loop>(&statement); loop != nullptr && loop->mark != Mark::Thread) {
      const Pipeline* pipeline = region_.find(*loop);
      if (pipeline != nullptr && conflict(pending, accesses_of(*loop, pipeline->copies))) {
        barriers.insert(&statement);
        pending.clear();
      }
      return visit_repeated(*loop, pipeline, std::move(pending));
    }
    if (const auto* guard = std::get_if<loops::Guard>(&statement)) {
      PendingSet after = visit(guard->body, pending);
      after.merge(pending);
      return after;
    }
    return visit_simple(statement, std::move(pending));
  }

  // No two threads share an element of what is spread over them, and those of a quad need not wait for each
  // other.
  void declare(const loops::Local& local) {
    buffers_.insert_or_assign(local.buffer.name, &local.buffer);
    if (local.buffer.space == Space::Private || layouts_.find_spread(local) != nullptr ||
        quads_.contains(local.buffer.name))
      private_.insert(local.buffer.name);
    else
      private_.erase(local.buffer.name);
  }

  // What an iteration leaves, the next finds; perhaps there is none.
  PendingSet visit_repeated(const Loop& loop, const Pipeline* pipeline, PendingSet pending) {
    serial_.insert(loop.variable);
    while (true) {
      PendingSet after =
          pipeline == nullptr ? visit(loop.body, pending) : visit_pipelined(loop, *pipeline, pending);
      after.insert(pending.begin(), pending.end());
      if (after == pending)
        break;
      pending = std::move(after);
    }
    serial_.erase(loop.variable);
    return pending;
  }

  // What was copied appears where the copies stand. Those of a later iteration begin there, too, or after the
  // last reader; what they write is another slot until they are waited for.
  PendingSet visit_pipelined(const Loop& loop, const Pipeline& pipeline, PendingSet pending) {
    const std::set<std::string> around = private_;
    const PendingSet copied = accesses_of(loop, pipeline.copies);
    std::vector<const Statement*> others;
    for (const Statement& statement : loop.body)
      if (std::ranges::find(pipeline.copies, &statement) == pipeline.copies.end())
        others.push_back(&statement);
    const auto wait_before_copies = [&] {
      barriers.insert(pipeline.copies.front());
      pending.clear();
    };
    for (const Statement& statement : loop.body) {
      if (&statement == pipeline.copies.front()) {
        pending.insert(copied.begin(), copied.end());
        if (pipeline.last_reader == nullptr && conflict(copied, accesses_of(loop, others)))
          wait_before_copies();
      }
      if (std::ranges::find(pipeline.copies, &statement) != pipeline.copies.end())
        continue;
      pending = visit(statement, std::move(pending));
      if (&statement == pipeline.last_reader && conflict(pending, copied))
        wait_before_copies();
    }
    private_ = around;
    return pending;
  }

  // All that these statements of the loop access, whenever that is.
  PendingSet accesses_of(const Loop& loop, const std::vector<const Statement*>& statements) {
    const std::set<std::string> around = private_;
    for (const Statement& statement : loop.body)
      if (const auto* local = std::get_if<loops::Local>(&statement))
        declare(*local);
    PendingSet all;
    for (const Statement* statement : statements)
      add_accesses(*statement, all);
    private_ = around;
    return all;
  }
  void add_accesses(const Statement& statement, PendingSet& all) {
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr && loop->mark == Mark::Thread)
      return visit_body(loop->body, *loop, all, find_folds(*loop));
    if (const auto* local = std::get_if<loops::Local>(&statement))
      declare(*local);
    loops::for_each_use(statement, [&](const loops::Use& use) { add(all, use, ""); });
    if (const auto* inner = body_of(statement))
      for (const Statement& each : *inner)
        add_accesses(each, all);
  }

  // An assignment or a thread loop.
  PendingSet visit_simple(const Statement& statement, PendingSet pending) {
    PendingSet own, afterwards;
    bool waits = false;
    if (const auto* loop = std::get_if<Loop>(&statement)) {
      waits = visit_threads(*loop, own, afterwards);
    } else if (const auto* assign = std::get_if<Assign>(&statement)) {
      const bool is_alike = private_.contains(assign->places.front().buffer);
      loops::for_each_use(statement,
                          [&](const loops::Use& use) { add(own, use, is_alike ? "" : kFirstThread); });
    }
    if (conflict(pending, own)) {
      barriers.insert(&statement);
      pending.clear();
    }
    if (waits)
      return afterwards;
    pending.merge(own);
    pending.merge(afterwards);
    return pending;
  }

  // Whether threads wait for each other within; what they access before, and after that.
  bool visit_threads(const Loop& loop, PendingSet& own, PendingSet& afterwards) {
    const std::vector<const Assign*> folds = find_folds(loop);
    visit_body(loop.body, loop, own, folds);
    const bool waits = !folds.empty() && folds_synchronise_;
    for (const Assign* fold : folds) {
      for (const loops::Place& place : fold->places) {
        add(afterwards, {place, loops::Access::Combine}, kFirstThread);
        if (!waits)  // the thread writes as soon as it has its result
          add(own, {place, loops::Access::Combine}, kFirstThread);
      }
      if (waits) {
        const std::string parts = fmt::format(" parts of {}", fmt::ptr(fold));
        own.insert({parts, "", true});
        afterwards.insert({parts, "", false});
      }
    }
    return waits;
  }
  void visit_body(const std::vector<Statement>& body, const Loop& loop, PendingSet& own,
                  const std::vector<const Assign*>& folds) {
    const std::set<std::string> around = private_;
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<loops::Local>(&statement))
        private_.insert(local->buffer.name);
      const auto* assign = std::get_if<Assign>(&statement);
      const bool is_fold = std::ranges::find(folds, assign) != folds.end();
      loops::for_each_use(statement, [&](const loops::Use& use) {
        if (!is_fold || use.access == loops::Access::Read)
          add(own, use, owner_of(use.place, loop));
      });
      if (const auto* inner = body_of(statement))
        visit_body(*inner, loop, own, folds);
    }
    private_ = around;
  }

  // Two accesses to an element by one owner are those of one thread: one dimension, or several last ones
  // together, say which iteration of the loop it is, and nothing else.
  std::string owner_of(const loops::Place& place, const Loop& loop) const {
    for (size_t i = 0; i < place.at.size(); ++i)
      if (const Scalar& index = place.at[i]; index.kind() == Scalar::Kind::Index)
        if (std::string owner = owner_by(index.index(), loop); !owner.empty())
          return fmt::format("dimension {}: {}", i, owner);
    const auto buffer = buffers_.find(place.buffer);
    for (size_t i = 0; buffer != buffers_.end() && i + 1 < place.at.size(); ++i)
      if (const std::optional<Dim> offset = offset_within(*buffer->second, place.at, i))
        if (std::string owner = owner_by(*offset, loop); !owner.empty())
          return fmt::format("dimensions from {}: {}", i, owner);
    return "";
  }
  // Of the dimensions from this one on.
  static std::optional<Dim> offset_within(const loops::Buffer& buffer, const std::vector<Scalar>& at,
                                          size_t first) {
    const auto skipped = static_cast<std::ptrdiff_t>(first);
    loops::Buffer inner = buffer;
    inner.sizes.erase(inner.sizes.begin(), inner.sizes.begin() + skipped);
    return offset_of(inner, {at.begin() + skipped, at.end()});
  }
  std::string owner_by(const Dim& index, const Loop& loop) const {
    if (!index.mentions(loop.variable) || mentions_serial(index) || mentions_serial(loop.begin))
      return "";
    const Dim slope = index.substitute({{loop.variable, Dim::symbol(loop.variable) + 1}}) - index;
    if (slope.constant().value_or(0) == 0)
      return "";
    return fmt::format("{} from {} by {} in vectors of {}",
                       index.substitute({{loop.variable, Dim::symbol(" thread")}}), loop.begin, loop.step,
                       layouts_.vector_of(loop));
  }
  bool mentions_serial(const Dim& dim) const {
    return std::ranges::any_of(serial_, [&](const std::string& variable) { return dim.mentions(variable); });
  }

  void add(PendingSet& set, const loops::Use& use, const std::string& owner) const {
    if (private_.contains(use.place.buffer))
      return;
    if (use.access != loops::Access::Write)
      set.insert({use.place.buffer, owner, false});
    if (use.access != loops::Access::Read)
      set.insert({use.place.buffer, owner, true});
  }

  static bool conflict(const PendingSet& a, const PendingSet& b) {
    return std::ranges::any_of(a, [&](const Pending& x) {
      return std::ranges::any_of(b, [&](const Pending& y) {
        return x.buffer == y.buffer && (x.writes || y.writes) && (x.owner != y.owner || x.owner.empty());
      });
    });
  }

  const PipelinedRegion& region_;
  const Layouts& layouts_;
  const std::map<std::string, QuadBuffer>& quads_;
  bool folds_synchronise_;
  std::map<std::string, const loops::Buffer*> buffers_;
  std::set<std::string> private_;  // buffers that no two threads share, or that nobody writes
  std::set<std::string> serial_;   // loops around
};

}  // namespace

std::set<const Statement*> find_barriers(const loops::Kernel& kernel, const PipelinedRegion& region,
                                         const Layouts& layouts,
                                         const std::map<std::string, QuadBuffer>& quads,
                                         bool folds_synchronise) {
  BarrierFinder finder(kernel, region, layouts, quads, folds_synchronise);
  finder.visit(region.region().body, {});
  return finder.barriers;
}

}  // namespace tenon::codegen::cuda
