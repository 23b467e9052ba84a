#include "runtime/write_program.h"

#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "ir/print.h"
#include "runtime/prepare.h"
#include "runtime/program_archive.h"
#include "schedule/cpu/winograd.h"
#include "schedule/cpu/winograd_weights.h"
#include "target/resources.h"

namespace tenon::runtime {
namespace {

void append_number(std::string& bytes, uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

class Writer : public ProgramArchive<Writer> {
 public:
  explicit Writer(const TablesToWrite& tables) : place_(tables.place) {
    auto program = tables.program;  // to visit means to be able to change
    auto imports = tables.imports;
    auto operations = tables.operations;
    visit(program);
    all(imports.names, imports.offset, operations);
  }

  // Texts first, each once, for names and sizes come again and again.
  std::string bytes() const {
    std::string bytes;
    append_number(bytes, texts_.size());
    for (const std::string* text : texts_) {
      append_number(bytes, text->size());
      bytes += *text;
    }
    return bytes + body_;
  }

 private:
  friend class ProgramArchive<Writer>;
  using ProgramArchive::visit;

  struct Nested {
    explicit Nested(Writer&) {}
  };

  void number(uint64_t& value) { append_number(body_, value); }
  void bounded(uint64_t& value, uint64_t) { number(value); }
  void count(uint64_t& value) { number(value); }
  void text(const std::string& text) {
    const auto [it, is_new] = numbers_.emplace(text, texts_.size());
    if (is_new)
      texts_.push_back(&it->first);
    append_number(body_, it->second);
  }
  void dim(const Dim& dim) { text(dim.to_string()); }

  void constants(Prepare& prepare) {
    append_number(body_, prepare.steps.size());
    for (PrepareStep& step : prepare.steps) {
      Weight& weight = prepare.weights[step.weights.front()];
      all(step.slot, weight.name);
      tensor(weight.literal.tensor());
    }
  }

  void tensor(const Tensor& tensor) {
    DType dtype = tensor.dtype();
    Extents extents = tensor.extents();
    all(dtype, extents);
    if (dtype == DType::String) {
      std::vector<std::string> strings = tensor.strings();
      visit(strings);
    } else {
      WeightPlace place = place_(tensor);
      append_number(body_, place.offset);
      StoredAs kind = kind_of(place);
      visit(kind);
      if (kind != StoredAs::Itself) {
        auto& [shape, stored, packing, corrections] = *place.other;
        all(shape.dtype, shape.extents, stored, packing);
        if (kind == StoredAs::RepackedWindows)
          all(stored.packing.winograd_tile, packing.winograd_tile, corrections);
      }
    }
  }

  static StoredAs kind_of(const WeightPlace& place) {
    if (!place.other)
      return StoredAs::Itself;
    const bool has_windows = place.other->stored.packing.winograd_tile || place.other->packing.winograd_tile;
    return has_windows ? StoredAs::RepackedWindows : StoredAs::Repacked;
  }

  void code(std::vector<KernelCode>& code) {
    append_number(body_, code.size());
    for (const KernelCode& each : code) {
      std::vector<uint64_t> entries(each.regions);
      std::memcpy(entries.data(), each.bytes.data(), entries.size() * sizeof(uint64_t));
      visit(entries);
    }
  }

  void step(uint64_t, Step& step) {
    if (auto* kernel = std::get_if<KernelStep>(&step))
      visit(*kernel);
    else if (auto* host = std::get_if<HostStep>(&step))
      write(*host);
    else if (auto* alias = std::get_if<AliasStep>(&step))
      visit(*alias);
    else if (auto* loops = std::get_if<LoopsStep>(&step))
      write(*loops);
    else
      CHECK(false, "a program for a device is saved");
  }

  void write(HostStep& step) {
    visit_description(step);
    if (!step.control)
      text(print_by_hash(step.call->node().graph()));
    visit_places(step);
  }

  void write(LoopsStep& step) {
    append_number(body_, step.loops.size());
    for (HostStep& loop : step.loops)
      write(loop);
    all(step.reads, step.writes);
  }

  void size_checks(const std::shared_ptr<SizeCheck>& checks) {
    std::vector<SizeCondition> conditions = checks ? checks->conditions() : std::vector<SizeCondition>();
    visit(conditions);
  }

  const std::function<WeightPlace(const Tensor&)>& place_;
  std::string body_;
  std::unordered_map<std::string, uint64_t> numbers_;
  std::vector<const std::string*> texts_;  // by number
};

// What a constant was packed from, where that can be said.
std::optional<StoredConstant> describe_stored(const Program& program, const PrepareStep& step,
                                              const Tensor& made) {
  if (made.dtype() == DType::String)
    return std::nullopt;
  const std::vector<Weight>& weights = program.prepare.weights;
  const Literal& first = weights[step.weights.front()].literal;
  StoredConstant stored{.dtype = first.dtype(),
                        .extents = first.extents(),
                        .packing = {.vnni_dim = step.vnni_dim, .layout = step.layout}};
  for (size_t i = 1; i < step.weights.size(); ++i)
    stored.extents[step.dim] += weights[step.weights[i]].literal.extents()[step.dim];
  lowering::Layout& layout = stored.packing.layout;
  if (auto* packed = std::get_if<lowering::PackedWeights>(&layout)) {
    packed->weights = {};
  } else if (const auto* winograd = std::get_if<lowering::TransformedWeights>(&layout)) {
    stored.packing.winograd_tile = winograd->tile;
    layout =
        lowering::PackedWeights{.weights = {}, .order = schedule::winograd_panels(made.extents().back())};
  } else if (std::holds_alternative<lowering::ImageLayout>(layout)) {
    layout = lowering::PlainLayout();
  }
  const bool is_so = packed_shape(stored) == TensorShape{made.dtype(), made.extents()};
  return is_so ? std::optional(stored) : std::nullopt;
}

// The constants of a program, made but for windows: those are not transformed.
std::vector<Tensor> make_constants(Program& program, const std::shared_ptr<Device>& device) {
  for (PrepareStep& step : program.prepare.steps)
    if (std::holds_alternative<lowering::TransformedWeights>(step.layout))
      step.layout = lowering::PlainLayout();
  Prepared prepared = run_prepare(program, device);
  if (prepared.failure)
    std::rethrow_exception(prepared.failure);
  return std::move(prepared.constants);
}

}  // namespace

StoredConstants freeze_constants(Program& program, const std::shared_ptr<Device>& device) {
  CHECK(!has_varying_weights(program), "the weights of {} vary", program.name);
  const std::vector<PrepareStep> steps = program.prepare.steps;
  std::vector<Tensor> constants = make_constants(program, device);
  Prepare frozen;
  StoredConstants stored;
  for (const PrepareStep& step : steps) {
    const std::string& name = program.prepare.weights[step.weights.front()].name;
    Tensor made = std::move(constants[step.slot]), windows;
    if (const auto* winograd = std::get_if<lowering::TransformedWeights>(&step.layout)) {
      windows = made;
      made = schedule::winograd_weights(windows, winograd->tile, program.target, available_cores());
    }
    if (const std::optional<StoredConstant> found = describe_stored(program, step, made))
      stored.emplace(made.bytes().data(), Frozen{*found, windows});
    frozen.steps.push_back({.slot = step.slot, .weights = {frozen.weights.size()}});
    frozen.weights.push_back({.name = name, .literal = std::move(made)});
  }
  program.prepare = std::move(frozen);
  const auto freeze_regions = [&](const HostStep& step) {
    for (const auto& [name, region] : step.regions)
      stored.merge(freeze_constants(*region, device));
  };
  for (const Step& step : program.steps)
    if (const auto* host = std::get_if<HostStep>(&step))
      freeze_regions(*host);
    else if (const auto* loops = std::get_if<LoopsStep>(&step))
      std::ranges::for_each(loops->loops, freeze_regions);
  return stored;
}

std::string write_tables(const TablesToWrite& tables) { return Writer(tables).bytes(); }

}  // namespace tenon::runtime
