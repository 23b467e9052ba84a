#include "runtime/read_program.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/program_archive.h"
#include "tensor/packing.h"

namespace tenon::runtime {
namespace {

[[noreturn]] void refuse() { throw user_error("the saved program is damaged: its tables make no sense"); }

constexpr int kMostNested = 64;

class Reader : public ProgramArchive<Reader> {
 public:
  Reader(const ProgramFile& file, std::string_view target, ParseCall parse_call)
      : file_(file),
        image_(file.bytes_of(code_section(target))),
        weights_(file.offset_of(kWeightsSection)),
        parse_call_(parse_call) {
    const std::span<const std::byte> bytes = file.bytes_of(tables_section(target));
    rest_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    uint64_t texts = 0;
    count(texts);
    for (uint64_t i = 0; i < texts; ++i) {
      uint64_t size = 0;
      count(size);
      texts_.push_back(rest_.substr(0, size));
      rest_.remove_prefix(size);
    }
    dims_.resize(texts_.size());
  }

  ReadProgram read() {
    ReadProgram made{.program = std::make_shared<Program>(), .device = nullptr, .operations = {}};
    Imports imports;
    visit(*made.program);
    all(imports.names, imports.offset, made.operations);
    const uint64_t table = imports.names.size() * sizeof(void*);
    const auto kernels = std::ranges::count_if(
        made.program->steps, [](const Step& step) { return std::holds_alternative<KernelStep>(step); });
    if (!rest_.empty() || imports.offset % page_of(made.program->target.architecture) != 0 ||
        imports.offset > image_.size() || table > image_.size() - imports.offset ||
        std::ssize(made.operations) != kernels)
      refuse();
    made.device = make_cpu_device(load_image(file_.file(), image_, imports));
    return made;
  }

 private:
  friend class ProgramArchive<Reader>;
  using ProgramArchive::visit;

  // Nothing is nested so deep that the stack would not do.
  class Nested {
   public:
    explicit Nested(Reader& reader) : depth_(reader.depth_) {
      if (++depth_ > kMostNested)
        refuse();
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    int& depth_;
  };

  void number(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty())
        refuse();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80)
        return;
    }
    refuse();
  }
  void bounded(uint64_t& value, uint64_t bound) {
    number(value);
    if (value >= bound)
      refuse();
  }
  // Of what takes a byte each at least.
  void count(uint64_t& value) { bounded(value, rest_.size() + 1); }
  uint64_t text_number() {
    uint64_t value = 0;
    bounded(value, texts_.size());
    return value;
  }
  void text(std::string& text) { text = texts_[text_number()]; }
  void dim(Dim& dim) {
    const uint64_t number = text_number();
    if (!dims_[number])
      dims_[number] = Dim::parse(texts_[number]);
    dim = *dims_[number];
  }

  void constants(Prepare& prepare) {
    uint64_t steps = 0;
    count(steps);
    for (uint64_t i = 0; i < steps; ++i) {
      PrepareStep step{.slot = 0, .weights = {i}};
      std::string name;
      all(step.slot, name);
      prepare.steps.push_back(step);
      prepare.weights.push_back({.name = name, .literal = literal()});
    }
  }

  Literal literal() {
    TensorShape shape{};
    all(shape.dtype, shape.extents);
    if (shape.dtype == DType::String)
      return strings(shape.extents);
    uint64_t offset = 0;
    number(offset);
    StoredAs kind{};
    visit(kind);
    if (kind == StoredAs::Itself)
      return literal(shape, offset);
    TensorShape in_file{};
    StoredConstant stored;
    Packing packing;
    std::optional<FilePart> corrections;
    all(in_file.dtype, in_file.extents, stored, packing);
    if (kind == StoredAs::RepackedWindows)
      all(stored.packing.winograd_tile, packing.winograd_tile, corrections);
    if (packed_shape(stored) != in_file || packed_shape({stored.dtype, stored.extents, packing}) != shape ||
        needs_corrections(stored, packing) != corrections.has_value())
      refuse();
    return Literal::deferred(shape.dtype, shape.extents,
                             std::make_shared<RepackedConstant>(
                                 literal(in_file, offset), stored,
                                 corrections ? std::optional(literal(*corrections)) : std::nullopt, packing));
  }

  Literal literal(const FilePart& part) {
    if (part.size > file_.bytes().size())
      refuse();
    return literal({DType::U8, {static_cast<int64_t>(part.size)}}, part.offset);
  }

  Literal literal(const TensorShape& shape, uint64_t offset) {
    const uint64_t size = packed_size(shape.dtype, element_count(shape.extents)),
                   after = file_.bytes().size() - weights_;
    if (offset > after || size > after - offset)
      refuse();
    if (file_.file() != nullptr)
      return Literal::file_slice(shape.dtype, shape.extents, file_.file(), weights_ + offset, size);
    const std::span<const std::byte> bytes = file_.bytes().subspan(weights_ + offset, size);
    return info(shape.dtype).bits >= 8 ? Tensor(shape.dtype, shape.extents, nullptr, bytes)
                                       : unpack(shape.dtype, shape.extents, bytes);
  }

  Tensor strings(const Extents& extents) {
    std::vector<std::string> strings;
    visit(strings);
    if (element_count(extents) != std::ssize(strings))
      refuse();
    return Tensor::strings(std::move(strings), extents);
  }

  void code(std::vector<KernelCode>& code) {
    uint64_t kernels = 0;
    count(kernels);
    for (uint64_t i = 0; i < kernels; ++i) {
      std::vector<uint64_t> entries;
      visit(entries);
      if (std::ranges::any_of(entries, [&](uint64_t entry) { return entry >= image_.size(); }))
        refuse();
      code.push_back(code_in_image(entries));
    }
  }

  void step(uint64_t kind, Step& step) {
    if (kind == Step(KernelStep()).index()) {
      visit(step.emplace<KernelStep>());
    } else if (kind == Step(AliasStep()).index()) {
      visit(step.emplace<AliasStep>());
    } else if (kind == Step(LoopsStep()).index()) {
      read(step.emplace<LoopsStep>());
    } else if (kind == Step(CopyStep()).index()) {
      refuse();
    } else {
      step = read_host_step();
    }
  }

  HostStep read_host_step() {
    HostStep step;
    visit_description(step);
    if (!step.control) {
      std::string graph;
      text(graph);
      if (parse_call_ == nullptr)
        throw unsupported("{}: {} runs in the reference evaluator, which this runtime does without",
                          step.described, step.op);
      step.call = parse_call_(graph);
    }
    visit_places(step);
    return step;
  }

  void read(LoopsStep& step) {
    uint64_t loops = 0;
    count(loops);
    for (uint64_t i = 0; i < loops; ++i)
      step.loops.push_back(read_host_step());
    all(step.reads, step.writes);
  }

  void size_checks(std::shared_ptr<SizeCheck>& checks) {
    std::vector<SizeCondition> conditions;
    visit(conditions);
    if (!conditions.empty())
      checks = std::make_shared<SizeConditions>(std::move(conditions));
  }

  const ProgramFile& file_;
  const std::span<const std::byte> image_;
  const uint64_t weights_;  // where they begin in the file
  const ParseCall parse_call_;
  std::string_view rest_;
  std::vector<std::string_view> texts_;
  std::vector<std::optional<Dim>> dims_;  // of the texts that are sizes
  int depth_ = 0;
};

// Whether the nested programs of control flow take and give what it says.
bool is_sound_control(const HostStep& step) {
  const ControlFlow& control = *step.control;
  const auto fits = [&](std::string_view name, uint64_t inputs, uint64_t outputs) {
    const auto region = step.regions.find(name);
    return region != step.regions.end() && region->second->inputs.size() == inputs &&
           region->second->outputs.size() == outputs;
  };
  const uint64_t operands = step.reads.size(), results = step.writes.size();
  if (std::max({control.carried, control.scanned, control.captured}) > operands ||
      control.operand_count() != operands)
    return false;
  if (control.kind == ControlFlow::Kind::If)
    return control.has_condition && operands == 1 + control.captured &&
           fits("then", control.captured, results) && fits("else", control.captured, results);
  if (control.carried > results ||
      !fits("body", control.leading() + control.carried + control.scanned + control.captured,
            control.leading() + results))
    return false;
  if (control.kind == ControlFlow::Kind::While)
    return control.scanned == 0;
  const uint64_t collected = results - control.carried;
  return control.scanned > 0 && control.axes.size() == control.scanned &&
         control.reversed.size() == control.scanned && control.output_axes.size() == collected &&
         control.output_reversed.size() == collected;
}

// Whether each slot is one with memory of its own, or ends at one by aliases. No slot is passed twice.
bool have_memory(const std::vector<Slot>& slots) {
  std::vector<size_t> passed_from(slots.size(), slots.size());
  for (size_t first = 0; first < slots.size(); ++first) {
    size_t at = first;
    while (slots[at].alias && passed_from[at] == slots.size()) {
      passed_from[at] = first;
      at = *slots[at].alias;
      if (at >= slots.size())
        return false;
    }
    if (slots[at].alias && passed_from[at] == first)
      return false;
  }
  return true;
}

// That all numbers stand for something there is.
void check_numbers(const Program& program) {
  const size_t slots = program.slots.size();
  const auto has_slot = [&](size_t slot) { return slot < slots; };
  const auto has_home = [&](const Slot& slot) {
    const auto fits = [&](size_t count) {
      return slot.number >= 0 && static_cast<uint64_t>(slot.number) < count;
    };
    return (slot.home != Home::Input || fits(program.inputs.size())) &&
           (slot.home != Home::Output || fits(program.outputs.size()));
  };
  bool is_sound = program.output_names.size() == program.outputs.size() &&
                  std::ranges::all_of(program.slots, has_home) && have_memory(program.slots) &&
                  std::ranges::all_of(program.outputs, has_slot);
  for (const PrepareStep& step : program.prepare.steps)
    is_sound = is_sound && has_slot(step.slot);
  const auto check_host = [&](const HostStep& step) {
    for (const auto& [name, region] : step.regions)
      check_numbers(*region);
    is_sound = is_sound && !step.sources.empty() && (!step.control || is_sound_control(step));
  };
  for (const Step& step : program.steps) {
    for_each_slot(step, [&](size_t slot) { is_sound = is_sound && has_slot(slot); });
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      is_sound = is_sound && kernel->code < program.code.size() &&
                 kernel->regions.size() == program.code[kernel->code].regions && !kernel->sources.empty();
    else if (const auto* host = std::get_if<HostStep>(&step))
      check_host(*host);
    else if (const auto* loops = std::get_if<LoopsStep>(&step))
      std::ranges::for_each(loops->loops, check_host);
  }
  if (!is_sound)
    refuse();
}

}  // namespace

std::string tables_section(std::string_view target) { return fmt::format("tables {}", target); }
std::string code_section(std::string_view target) { return fmt::format("code {}", target); }

ReadProgram read_program(const ProgramFile& file, std::string_view target, ParseCall parse_call) {
  return with_context([&] { return file.name(); },
                      [&] {
                        ReadProgram made = Reader(file, target, parse_call).read();
                        check_numbers(*made.program);
                        return made;
                      });
}

}  // namespace tenon::runtime
