#include "fusion/overlapped_tiling.h"

#include <algorithm>
#include <cmath>

#include "fusion/cost.h"
#include "fusion/overlapped_tiles.h"

namespace tenon::fusion {

using loops::Buffer;
using lowering::BufferId;
using lowering::BufferTable;
using lowering::Group;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Pattern;
using lowering::Stage;
using lowering::TileSize;

namespace {

// Shares of a core's L2: what a thread finds there of an image that another kernel left, and what a tile may
// take.
constexpr double kStays = 0.25, kTile = 0.5;
constexpr double kSeen = 0.25;  // of the time that memory takes: computation hides the rest
// Load imbalance where each thread has one tile: a core may be slower for a while.
constexpr double kUneven = 0.15;
constexpr double kStart = 500;  // nanoseconds until a starting kernel reaches full speed

constexpr size_t kMostParts = 4;  // of a tile: each adds rows that are recomputed

class TilingFinder {
 public:
  TilingFinder(const KernelGraph& graph, const Target& target, int threads)
      : groups_(graph.groups),
        nodes_(graph.nodes),
        buffers_(graph.buffers),
        kept_(graph.kept()),
        rates_(rates_of(target)),
        cache_(static_cast<double>(target.caches.level2)),
        threads_(threads) {
    for (size_t group = 0; group < groups_.size(); ++group)
      for (size_t node : groups_[group].nodes)
        for (BufferId buffer : nodes_[node].reads)
          readers_[buffer].insert(group);
  }

  // By the last of its groups.
  std::map<size_t, Group> run() {
    std::map<size_t, Group> found;
    for (size_t first = 0; first < groups_.size(); ++first)
      for (std::vector<size_t> chain = chain_from(first); chain.size() > 1; chain.pop_back())
        if (const std::optional<Group> tiles = cut(chain)) {
          found.emplace(chain.back(), *tiles);
          taken_.insert(chain.begin(), chain.end());
          break;
        }
    return found;
  }

 private:
  // The chain from this kernel on in which each is the only reader of the one before, as long as none is
  // tiled yet.
  std::vector<size_t> chain_from(size_t first) const {
    std::vector<size_t> chain;
    for (std::optional<size_t> next = first; next && chain.size() < kMostParts && may_be_part(*next);
         next = reader_of(chain.back()))
      chain.push_back(*next);
    return chain;
  }

  bool may_be_part(size_t group) const {
    const Group& all = groups_[group];
    if (all.pattern != Pattern::Contract || taken_.contains(group))
      return false;
    const auto can_cut = [&](size_t node) {
      const std::optional<Stage>& stage = nodes_[node].stage;
      return stage && stage->definition.results.size() == 1 && !stage->winograd_tile && !stage->packed_a &&
             (node == all.nodes.back() || !is_needed_outside(result_of(node), group));
    };
    return std::ranges::all_of(all.nodes, can_cut);
  }

  bool is_needed_outside(BufferId buffer, size_t group) const {
    const auto readers = readers_.find(buffer);
    return kept_.contains(buffer) ||
           (readers != readers_.end() && (readers->second.size() > 1 || !readers->second.contains(group)));
  }

  // Of a definition with one.
  BufferId result_of(size_t node) const { return *nodes_[node].writes.begin(); }

  // Where tiling would save anything.
  std::optional<size_t> reader_of(size_t group) const {
    const BufferId result = result_of(groups_[group].nodes.back());
    const auto readers = readers_.find(result);
    if (kept_.contains(result) || readers == readers_.end() || readers->second.size() != 1 ||
        bytes_lost(result) == 0)
      return std::nullopt;
    return *readers->second.begin();
  }

  // Of what one thread writes, what was evicted when the next kernel reads it.
  double bytes_lost(BufferId buffer) const {
    const std::optional<int64_t> bytes = size_of(buffers_[buffer].elements).constant();
    return std::max(static_cast<double>(bytes.value_or(0)) / threads_ - kStays * cache_, 0.0);
  }

  // Tiles of images, or of the rows of each image.
  std::optional<Group> cut(const std::vector<size_t>& chain) const {
    Group tiles;
    std::vector<Stage> stages;
    for (size_t group : chain) {
      tiles.parts.push_back(groups_[group]);
      for (size_t node : groups_[group].nodes) {
        tiles.nodes.push_back(node);
        stages.push_back(*nodes_[node].stage);
      }
    }
    const std::vector<Stage> last(stages.end() - static_cast<int64_t>(tiles.parts.back().nodes.size()),
                                  stages.end());
    const loops::Buffer& result = last.back().definition.results.front();
    for (size_t dim = 0; dim < result.sizes.size() && tiles.tile.size() < 2; ++dim) {
      const std::optional<TileCut> cut = cut_along(last, result.name, dim);
      if (!cut || cut->rows == 1)
        continue;
      if (const std::optional<Group> best = best_along(stages, tiles, dim, cut->rows))
        return best;
      tiles.tile.push_back({dim, 1});
    }
    return std::nullopt;
  }

  // The tile that saves most; nothing where none saves time.
  std::optional<Group> best_along(const std::vector<Stage>& stages, Group tiles, size_t dim,
                                  int64_t rows) const {
    tiles.tile.push_back({dim, rows});
    std::optional<std::vector<TiledKernel>> parts = cut_into_tiles(stages, tiles);
    if (!parts)
      return std::nullopt;
    std::vector<double> times;
    for (const TiledKernel& part : *parts)
      times.push_back(time_of(part));
    std::optional<Group> best;
    double most = 0;
    for (int64_t count = 1; count <= std::min(rows, kMostTiles); ++count) {
      tiles.tile.back().rows = rows / count;
      if (rows % count != 0 || !set_rows(*parts, tiles.tile))
        continue;
      if (const double saved = time_saved(*parts, times); saved > most) {
        most = saved;
        best = tiles;
      }
    }
    return best;
  }

  // Of one thread, in nanoseconds, untiled and without memory time.
  double time_of(const TiledKernel& part) const {
    const std::optional<int64_t> operations = cost_of(part.stages, {}, buffers_).operations.constant();
    return static_cast<double>(operations.value_or(INT64_MAX)) / rates_.operations / threads_;
  }

  // Saved by one thread, in nanoseconds, where the parts take so long; 0 where a tile does not stay in cache.
  double time_saved(const std::vector<TiledKernel>& parts, const std::vector<double>& times) const {
    double tiles = 1;
    for (const TileRows& rows : parts.back().rows)
      tiles *= static_cast<double>(rows.tiles);
    double time = 0, time_in_tiles = 0, saved = 0, bytes = 0;  // bytes: that a tile has in cache
    std::set<std::string> counted;
    for (size_t i = 0; i < parts.size(); ++i) {
      const TiledKernel& part = parts[i];
      double repeats = 1;
      for (const TileRows& rows : part.rows)
        repeats *= static_cast<double>(rows.rows * rows.tiles) / static_cast<double>(rows.all);
      time += times[i];
      time_in_tiles += times[i] * repeats + kStart * tiles / threads_;
      if (i + 1 < parts.size())
        saved += 2 * bytes_lost(buffers_.id_of(part.result)) / rates_.bytes_from_memory *
                 kSeen;  // written, and read
      bytes += bytes_made(part);
      for (const Stage& stage : part.stages)
        counted.insert(stage.definition.results.front().name);
      for (const Stage& stage : part.stages)
        for (const std::string& buffer : buffers_read(stage))
          if (counted.insert(buffer).second)
            bytes += bytes_read(part, buffer);
    }
    if (bytes > kTile * cache_)
      return 0;
    const double most = std::ceil(tiles / threads_);  // of one thread
    return saved + time - time_in_tiles * (most * threads_ / tiles + kUneven / most);
  }

  // Of a part of a buffer.
  double bytes_of(const std::string& name, const std::vector<TileSize>& part) const {
    const Buffer& buffer = buffers_.at(name);
    double bytes = static_cast<double>(size_of(buffer).constant().value_or(0));
    for (const auto& [dim, rows] : part)
      if (const int64_t all = buffer.sizes[dim].constant().value_or(rows); rows < all)
        bytes *= static_cast<double>(rows) / static_cast<double>(all);
    return bytes;
  }

  double bytes_made(const TiledKernel& part) const {
    std::vector<TileSize> made;
    for (size_t i = 0; i < part.cuts.size(); ++i)
      made.push_back({part.cuts[i].dim, part.rows[i].rows});
    return bytes_of(part.result, made);
  }

  double bytes_read(const TiledKernel& part, const std::string& buffer) const {
    std::vector<TileSize> read;
    for (size_t i = 0; i < part.cuts.size(); ++i)
      for (const TileCut::Read& each : part.cuts[i].reads)
        if (each.buffer == buffer)
          read.push_back({each.dim, each.stride * (part.rows[i].rows - 1) + each.last - each.first + 1});
    return bytes_of(buffer, read);
  }

  const std::vector<Group>& groups_;
  const std::vector<KernelNode>& nodes_;
  const BufferTable& buffers_;
  const std::set<BufferId> kept_;
  Rates rates_;
  double cache_, threads_;
  std::map<BufferId, std::set<size_t>> readers_;  // groups
  std::set<size_t> taken_;                        // groups that are in tiles
};

}  // namespace

void overlapped_tiling(KernelGraph& graph, const Target& target, int threads) {
  std::vector<Group>& groups = graph.groups;
  const std::map<size_t, Group> found = TilingFinder(graph, target, threads).run();
  std::set<size_t> in_tiles;
  for (const auto& [last, tiles] : found)
    in_tiles.insert(tiles.nodes.begin(), tiles.nodes.end());
  std::vector<Group> result;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (const auto tiles = found.find(i); tiles != found.end())
      result.push_back(tiles->second);
    else if (!in_tiles.contains(groups[i].nodes.front()))
      result.push_back(std::move(groups[i]));
  }
  groups = std::move(result);
}

}  // namespace tenon::fusion
