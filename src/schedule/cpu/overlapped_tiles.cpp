#include "schedule/cpu/overlapped_tiles.h"

#include <algorithm>

#include "base/error.h"
#include "fusion/overlapped_tiles.h"
#include "loops/edit.h"
#include "loops/uses.h"
#include "schedule/assign.h"
#include "schedule/cpu/borders.h"
#include "schedule/cpu/nest.h"
#include "schedule/cpu/select_contraction.h"

namespace tenon::schedule {

using fusion::cut_into_tiles;
using fusion::set_rows;
using fusion::TileCut;
using fusion::TiledKernel;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;
using lowering::ContractionPlan;
using lowering::Group;
using lowering::Stage;

namespace {

Dim tile_variable(size_t cut) { return Dim::symbol(fmt::format("tile{}", cut)); }

class OverlappedTilesBuilder {
 public:
  OverlappedTilesBuilder(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                         const lowering::BufferTable& buffers, const Target& target)
      : buffers_(buffers), small_(buffers), context_{target, 1} {
    std::optional<std::vector<TiledKernel>> parts = cut_into_tiles(stages, group);
    CHECK(parts && set_rows(*parts, group.tile), "kernel {} cannot be cut into tiles", name);
    parts_ = std::move(*parts);
    kernel_.name = name;
    for (size_t i = 0; i + 1 < parts_.size(); ++i)
      own_.insert(parts_[i].result);
  }

  Kernel run() {
    std::vector<Statement> body;
    for (size_t i = 0; i < parts_.size(); ++i)
      add_part(i, body);
    fill_last_border();
    std::vector<Axis> tiles;
    for (size_t i = 0; i < parts_.back().rows.size(); ++i)
      tiles.push_back({tile_variable(i).to_string(), parts_.back().rows[i].tiles});
    append(kernel_.body, around(tiles, Mark::Parallel, std::move(body)));
    loops::separate_names(kernel_);
    return std::move(kernel_);
  }

 private:
  bool is_last(const TiledKernel& part) const { return &part == &parts_.back(); }

  // The kernel for an image the size of a tile and one thread, with indices moved to the tile.
  void add_part(size_t number, std::vector<Statement>& body) {
    TiledKernel& part = parts_[number];
    for (size_t i = 0; i < part.stages.size(); ++i)
      shrink(part, i);
    for (Stage& stage : part.stages)
      if (stage.plan)
        stage.plan = std::make_shared<const ContractionPlan>(select_part(stage, context_));
    const Buffer& result = part.stages.back().definition.results.front();
    small_.at(result.name) = result;
    Kernel nest = build_nest(kernel_.name, part.stages, part.group, {result.name}, small_, context_);
    loops::for_each_statement(nest.body, [](Statement& statement) {
      if (auto* loop = std::get_if<Loop>(&statement); loop != nullptr && loop->mark == Mark::Parallel)
        loop->mark = Mark::Serial;
    });
    loops::rename_locals(nest.body, fmt::format("part{}_", number));
    loops::change_places(nest.body, [&](Place place) { return moved(std::move(place), part); });
    if (!is_last(part))
      body.emplace_back(Local{result});
    append(body, std::move(nest.body));
    for (const Buffer& input : nest.inputs)
      if (!own_.contains(input.name) && !has(kernel_.inputs, input.name))
        kernel_.inputs.push_back(buffers_.at(input.name));
    if (is_last(part))
      kernel_.outputs.push_back(buffers_.at(result.name));
    for (const loops::Combine& combine : nest.combines)
      if (kernel_.find_combine(combine.name) == nullptr)
        kernel_.combines.push_back(combine);
  }

  static bool has(const std::vector<Buffer>& buffers, const std::string& name) {
    return std::ranges::find(buffers, name, &Buffer::name) != buffers.end();
  }

  // A stage for the rows of one tile. The last result has no padding along the cut, which belongs to other
  // tiles. Intermediate values within a part never have any.
  void shrink(TiledKernel& part, size_t number) const {
    Definition& definition = part.stages[number].definition;
    Buffer& result = definition.results.front();
    for (size_t i = 0; i < part.cuts.size(); ++i) {
      const std::string& variable = part.cuts[i].variables[number];
      const auto axis = std::ranges::find(definition.axes, variable, &Axis::variable);
      const auto at = std::ranges::find_if(
          definition.at, [&](const Scalar& index) { return loops::mentions(index, variable); });
      Dim& size = result.sizes[static_cast<size_t>(at - definition.at.begin())];
      const Dim border = is_last(part) ? Dim(0) : size - axis->size;
      axis->size = part.rows[i].rows;
      size = part.rows[i].rows + border;
      if (is_last(part))
        *at = Scalar::index(Dim::symbol(variable));
    }
  }

  // The place in the whole image of a place in the tile's kernel.
  Place moved(Place place, const TiledKernel& part) const {
    for (size_t i = 0; i < part.cuts.size(); ++i) {
      const Dim first = part.rows[i].first(tile_variable(i));
      if (is_last(part) && place.buffer == part.result)
        move(place, part.cuts[i].dim, first + part.cuts[i].border);
      const std::vector<TileCut::Read>& reads = part.cuts[i].reads;
      const auto read = std::ranges::find(reads, place.buffer, &TileCut::Read::buffer);
      if (read != reads.end())
        move(place, read->dim, read->stride * first - first_kept(place.buffer, i));
    }
    return place;
  }

  // The row of the whole image at which the local part of a buffer begins.
  Dim first_kept(const std::string& buffer, size_t cut) const {
    const auto maker = std::ranges::find(parts_, buffer, &TiledKernel::result);
    return maker == parts_.end() ? Dim(0) : maker->rows[cut].first(tile_variable(cut));
  }

  static void move(Place& place, size_t dim, const Dim& by) {
    CHECK(place.at[dim].kind() == Scalar::Kind::Index, "a row of {} has no known place", place.buffer);
    place.at[dim] = Scalar::index(place.at[dim].index() + by);
  }

  void fill_last_border() {
    const TiledKernel& last = parts_.back();
    for (const TileCut& cut : last.cuts)
      append(kernel_.body, fill_border(buffers_.at(last.result), last.stages.back(), cut.dim, cut.border,
                                       cut.border + cut.rows));
  }

  const lowering::BufferTable& buffers_;
  lowering::BufferTable small_;
  const Context context_;  // of the one thread that computes a tile
  std::vector<TiledKernel> parts_;
  std::set<std::string> own_;  // buffers
  Kernel kernel_;
};

}  // namespace

Kernel build_overlapped_tiles(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                              const lowering::BufferTable& buffers, const Target& target) {
  return OverlappedTilesBuilder(name, stages, group, buffers, target).run();
}

}  // namespace tenon::schedule
