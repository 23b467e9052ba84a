#include "schedule/cpu/prefetch_b.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Mark;
using loops::Place;
using loops::Prefetch;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kIterationsAhead = 24;
constexpr int64_t kUnknownPasses = 4;
constexpr int64_t kManyPasses = 100;  // of which the first may wait

// All row blocks that read a panel prefetch a share of the next, which spreads memory traffic over their
// time. At most as many shares as blocks.
int64_t shares_of(const PackedBReads& reads) {
  const int64_t passes = std::max<int64_t>(reads.passes.constant().value_or(kUnknownPasses), 1);
  if (passes > kManyPasses)
    return 1;
  return std::gcd(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(passes))), reads.lanes);
}

// One of so many shares of what an iteration reads of the next panel; nothing where its address is too
// complex, as with symbolic sizes.
std::vector<Statement> fetch_share(const PackedBReads& reads, int64_t shares) {
  const int64_t count = reads.lanes / shares;
  const Dim first = (min(reads.pass, shares - 1) * reads.iterations + reads.iteration) * count;
  if (first.is_unknown())
    return {};
  Place place = reads.next;
  place.at.back() = Scalar::index(count > reads.line ? first + Dim::symbol(reads.lane) : first);
  if (count <= reads.line)
    return as_list(Prefetch{std::move(place)});
  return as_list(make_loop(reads.lane, count, Mark::Vector, as_list(Prefetch{std::move(place)})));
}

}  // namespace

std::vector<Statement> prefetch_b(const PackedBReads& reads) {
  std::vector<Statement> fetches;
  if (const int64_t shares = shares_of(reads); shares > 1)
    append(fetches, fetch_share(reads, shares));
  // Hardware prefetchers do not cross pages.
  Place ahead = reads.here;
  for (Scalar& index : ahead.at)
    index = index.substitute({{reads.summed, Dim::symbol(reads.summed) + kIterationsAhead}});
  fetches.emplace_back(make_loop(reads.lane, reads.lanes, Mark::Vector, as_list(Prefetch{std::move(ahead)})));
  return fetches;
}

}  // namespace tenon::schedule
