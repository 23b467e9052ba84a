// program_archive.h — what is saved of a program, field by field, in the order in which it is written and
// read: see write_program.h and read_program.h.
#pragma once

#include "runtime/program.h"
#include "runtime/stored_layout.h"

namespace tenon::runtime {

// `Self` writes or reads what fields are made of: number(uint64_t&), text(std::string&), dim(Dim&), and those
// parts of a program that are something else in a file: constants, code, host steps and size checks.
template <class Self>
class ProgramArchive {
 public:
  void visit(Program& program) {
    all(program.name, program.target, program.inputs, program.output_names, program.slots, program.outputs);
    self().constants(program.prepare);
    self().code(program.code);
    visit(program.steps);
    self().size_checks(program.size_checks);
  }

 protected:
  template <class... Fields>
  void all(Fields&... fields) {
    (visit(fields), ...);
  }

  void visit(std::string& text) { self().text(text); }
  void visit(Dim& dim) { self().dim(dim); }
  void visit(bool& value) { visit_as<uint64_t>(value); }
  void visit(int& value) { visit_as<int64_t>(value); }
  void visit(uint64_t& value) { self().number(value); }
  // Small numbers of either sign are small: 0, -1, 1, -2, … are 0, 1, 2, 3, …
  void visit(int64_t& value) {
    auto bits = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
    self().number(bits);
    value = static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
  }

  template <class Value, class Last>
  void visit_enum(Value& value, Last last) {
    auto number = static_cast<uint64_t>(value);
    self().bounded(number, static_cast<uint64_t>(last) + 1);
    value = static_cast<Value>(number);
  }
  void visit(DType& dtype) { visit_enum(dtype, DType::C128); }

  template <class T>
  void visit(std::vector<T>& values) {
    uint64_t count = values.size();
    self().count(count);
    values.resize(count);
    for (T& value : values)
      visit(value);
  }

  template <class T>
  void visit(std::optional<T>& value) {
    bool is_there = value.has_value();
    visit(is_there);
    if (is_there && !value)
      value.emplace();
    if (is_there)
      visit(*value);
  }

  // --- types ---

  void visit(Type& type) {
    uint64_t kind = type.index();
    self().bounded(kind, std::variant_size_v<Type::variant>);
    if (kind == 0)
      return visit_tensor(type);
    Type element = type.is_tensor() ? Type() : type.element();
    const typename Self::Nested nested(self());
    visit(element);
    type = kind == 1 ? Type::sequence(element) : Type::optional(element);
  }

  void visit_tensor(Type& type) {
    TensorType tensor = type.is_tensor() ? type.as_tensor() : TensorType();
    bool is_ranked = tensor.shape.ranked();
    std::vector<Dim> dims = is_ranked ? tensor.shape.dims() : std::vector<Dim>();
    all(tensor.dtype, is_ranked, dims);
    tensor.shape = is_ranked ? Shape(std::move(dims)) : Shape::unranked();
    type = std::move(tensor);
  }

  void visit(Target& target) {
    visit_enum(target.architecture, Architecture::Arm64);
    all(target.cpu, target.features, target.vector_bytes, target.vector_registers, target.fused_multiply_add,
        target.matrix_tiles, target.caches.level1_data, target.caches.level2, target.caches.level3_share,
        target.cores);
  }

  // Of layouts, those of constants that are stored in one and read in another.
  void visit(lowering::PackedWeights& packed) {
    all(packed.order.order, packed.order.reduced, packed.order.lanes, packed.order.groups, packed.split);
  }
  void visit(lowering::PermutedLayout& permuted) { visit(permuted.order); }
  void visit(Packing& packing) {
    const auto* permuted = std::get_if<lowering::PermutedLayout>(&packing.layout);
    const auto* packed = std::get_if<lowering::PackedWeights>(&packing.layout);
    auto permutation = permuted == nullptr ? std::nullopt : std::optional(*permuted);
    auto panels = packed == nullptr ? std::nullopt : std::optional(*packed);
    all(packing.vnni_dim, permutation, panels);
    if (panels)
      packing.layout = *panels;
    else if (permutation)
      packing.layout = *permutation;
  }
  void visit(StoredConstant& stored) { all(stored.dtype, stored.extents, stored.packing); }
  void visit(StoredAs& stored) { visit_enum(stored, StoredAs::RepackedWindows); }
  void visit(FilePart& part) { all(part.offset, part.size); }

  void visit(InputPort& port) { all(port.name, port.type, port.is_read); }

  void visit(Slot& slot) {
    all(slot.name, slot.type);
    visit_enum(slot.home, Home::Own);
    all(slot.number, slot.alias);
  }

  void visit(SizeCondition& condition) {
    visit_enum(condition.kind, SizeCondition::Kind::Multiple);
    all(condition.a, condition.b, condition.described);
  }

  // --- steps ---

  void visit(Step& step) {
    uint64_t kind = step.index();
    self().bounded(kind, std::variant_size_v<Step>);
    self().step(kind, step);
  }

  void visit(KernelRegion& region) { all(region.iterations, region.scratch); }
  void visit(KernelStep& step) {
    all(step.code, step.regions, step.reads, step.writes, step.sizes, step.work, step.flushes, step.is_tuned,
        step.sources, step.refusing);
  }
  void visit(AliasStep& step) {
    all(step.op, step.described, step.sources, step.from, step.to, step.on_device);
  }

  void visit(ControlFlow& control) {
    visit_enum(control.kind, ControlFlow::Kind::Scan);
    all(control.has_trip_count, control.has_condition, control.carried, control.scanned, control.captured,
        control.axes, control.reversed, control.output_axes, control.output_reversed, control.ends_by_count);
  }

  // Of one that is no control flow, its node follows.
  void visit_description(HostStep& step) { all(step.op, step.described, step.sources, step.control); }
  // What a host step has besides.
  void visit_places(HostStep& step) {
    all(step.reads, step.writes);
    uint64_t count = step.regions.size();
    self().count(count);
    auto region = step.regions.begin();
    for (uint64_t i = 0; i < count; ++i) {
      const typename Self::Nested nested(self());
      std::string name = region == step.regions.end() ? "" : region->first;
      visit(name);
      if (region == step.regions.end())
        region = step.regions.emplace(name, std::make_shared<Program>()).first;
      visit(*region->second);
      region = std::next(region);
    }
  }

 private:
  template <class As, class T>
  void visit_as(T& value) {
    auto wide = static_cast<As>(value);
    visit(wide);
    value = static_cast<T>(wide);
  }

  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace tenon::runtime
