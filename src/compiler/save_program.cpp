#include "compiler/save_program.h"

#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "codegen/link_image.h"
#include "ir/parse.h"
#include "runtime/choose_target.h"
#include "runtime/prepare.h"
#include "runtime/read_program.h"
#include "runtime/write_program.h"
#include "target/resources.h"
#include "tensor/packing.h"

namespace tenon::compiler {

using runtime::FilePart;
using runtime::HostStep;
using runtime::KernelCode;
using runtime::LoopsStep;
using runtime::Program;
using runtime::ProgramFile;
using runtime::SectionToWrite;
using runtime::Step;
using runtime::StoredConstant;
using runtime::StoredConstants;
using runtime::TensorShape;
using runtime::WeightPlace;

namespace {

constexpr std::string_view kModelSection = "model";
constexpr std::string_view kMadeWithSection = "made with";

constexpr uint64_t kPage = 4096;

// --- save ---

// Constants of all targets, each once: also where targets pack one in layouts of their own. Then it is there
// in that of the first of them.
class Weights {
 public:
  WeightPlace place(const Tensor& tensor, const StoredConstants& known) {
    if (info(tensor.dtype()).bits < 8 && tensor.dtype() != DType::Bool) {
      const auto packed = std::make_shared<std::vector<std::byte>>(pack(tensor));
      return {.offset = find_or_add(*packed, packed)};
    }
    if (const std::optional<uint64_t> offset = find(tensor.bytes()))
      return {.offset = *offset};
    const auto found = known.find(tensor.bytes().data());
    if (tensor.bytes().size() < kPage || found == known.end() ||
        packed_shape(found->second.stored) != shape_of(tensor))
      return {.offset = add(tensor)};
    const auto& [stored, windows] = found->second;
    const Tensor constant = stored.packing.winograd_tile ? windows : unpacked(tensor, stored, {}, threads_);
    std::vector<Packed>& alike = packed_[hash_bytes(constant.bytes())];
    for (Packed& other : alike)
      if (std::optional<WeightPlace> place = place_as(other, tensor, stored, constant))
        return *place;
    alike.push_back({add(tensor), tensor, stored});
    return {.offset = alike.back().offset};
  }

  uint64_t size() const { return end_; }
  SectionToWrite section() const {
    return {.name = std::string(runtime::kWeightsSection), .pieces = pieces_, .alignment = kPage};
  }

 private:
  struct Packed {
    uint64_t offset;
    Tensor tensor;
    StoredConstant stored;
    std::optional<FilePart> corrections = {};  // once a target has asked for them
  };

  static TensorShape shape_of(const Tensor& tensor) { return {tensor.dtype(), tensor.extents()}; }

  // Where it can be made of the other.
  std::optional<WeightPlace> place_as(Packed& other, const Tensor& tensor, const StoredConstant& stored,
                                      const Tensor& constant) {
    if (other.stored.dtype != stored.dtype || other.stored.extents != stored.extents)
      return std::nullopt;
    WeightPlace::Other made_of{shape_of(other.tensor), other.stored, stored.packing};
    std::optional<std::vector<std::byte>> corrections(std::in_place);
    const bool is_corrected = needs_corrections(other.stored, stored.packing);
    if (is_corrected)
      corrections = find_corrections(other.tensor, other.stored, constant, threads_);
    if (!corrections ||
        !identical(repacked(other.tensor, other.stored, *corrections, stored.packing, threads_), tensor))
      return std::nullopt;
    if (is_corrected && !other.corrections) {
      const auto shared = std::make_shared<std::vector<std::byte>>(std::move(*corrections));
      other.corrections = {.offset = find_or_add(*shared, shared), .size = shared->size()};
    }
    if (is_corrected)
      made_of.corrections = other.corrections;
    return WeightPlace{other.offset, std::move(made_of)};
  }

  std::optional<uint64_t> find(std::span<const std::byte> bytes) const {
    const auto [first, last] = known_.equal_range(hash_bytes(bytes));
    for (auto it = first; it != last; ++it)
      if (std::ranges::equal(pieces_[it->second].bytes, bytes))
        return pieces_[it->second].offset;
    return std::nullopt;
  }

  uint64_t find_or_add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    const std::optional<uint64_t> offset = find(bytes);
    return offset ? *offset : add(bytes, std::move(owner));
  }
  uint64_t add(const Tensor& tensor) {
    const auto shared = std::make_shared<Tensor>(tensor);
    return add(shared->bytes(), shared);
  }
  uint64_t add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    // Where the kernel reads them by the page, pages hold nothing else.
    const uint64_t offset = runtime::align_up(end_, bytes.size() >= kPage ? kPage : kCacheLine);
    known_.emplace(hash_bytes(bytes), pieces_.size());
    pieces_.push_back({offset, bytes});
    owners_.push_back(std::move(owner));
    end_ = offset + bytes.size();
    return offset;
  }

  const int threads_ = available_cores();
  uint64_t end_ = 0;
  std::vector<SectionToWrite::Piece> pieces_;
  std::vector<std::shared_ptr<const void>> owners_;           // of their bytes
  std::unordered_multimap<uint64_t, size_t> known_;           // pieces, by hash
  std::unordered_map<uint64_t, std::vector<Packed>> packed_;  // by the hash of what was packed
};

// Calls visit(program) for a program and for those of its host steps.
template <class Visit>
void for_each_program(Program& program, Visit&& visit) {
  visit(program);
  const auto visit_regions = [&](const HostStep& step) {
    for (const auto& [name, region] : step.regions)
      for_each_program(*region, visit);
  };
  for (const Step& step : program.steps)
    if (const auto* host = std::get_if<HostStep>(&step))
      visit_regions(*host);
    else if (const auto* loops = std::get_if<LoopsStep>(&step))
      std::ranges::for_each(loops->loops, visit_regions);
}

// Lays out the code of all these as one image.
codegen::Image link(Program& program) {
  std::vector<KernelCode> kernels;
  for_each_program(program, [&](const Program& each) {
    kernels.insert(kernels.end(), each.code.begin(), each.code.end());
  });
  codegen::Image image = codegen::link_image(kernels, program.target.architecture);
  size_t next = 0;
  for_each_program(program, [&](Program& each) {
    for (KernelCode& code : each.code)
      code = runtime::code_in_image(image.entries[next++]);
  });
  return image;
}

SectionToWrite text_section(std::string_view name, const std::string& text) {
  return {.name = std::string(name), .pieces = {{0, std::as_bytes(std::span(text))}}};
}

}  // namespace

SavedSizes save_program(const GraphToSave& graph, const std::vector<TargetToSave>& targets,
                        const std::filesystem::path& path) {
  std::deque<std::string> contents;  // of the sections, which point to them
  std::vector<SectionToWrite> sections;
  const auto add = [&](std::string_view name, std::string content) {
    sections.push_back(text_section(name, contents.emplace_back(std::move(content))));
    return contents.back().size();
  };
  add(kModelSection, print_by_hash(graph.model));
  add(kMadeWithSection, graph.made_with);
  std::vector<runtime::SavedTarget> saved;
  for (const auto& [name, context] : targets)
    saved.push_back({name, context.target.architecture, context.target.cpu, context.target.features});
  add(runtime::kTargetsSection, print_targets(saved));
  Weights weights;
  SavedSizes sizes;
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto& [name, context] = targets[i];
    const auto& [program, operations] = program_with_operations(graph.optimised, context);
    // What this machine cannot run, the reference evaluator computes.
    const bool runs_here = find_missing(saved[i], this_machine()).empty();
    const StoredConstants stored =
        freeze_constants(*program, runs_here ? context.backend->make_device(context.device) : nullptr);
    codegen::Image image = link(*program);
    add(runtime::tables_section(name), runtime::write_tables({.program = *program,
                                                              .imports = image.imports,
                                                              .operations = operations,
                                                              .place = [&](const Tensor& constant) {
                                                                return weights.place(constant, stored);
                                                              }}));
    sizes.code += add(runtime::code_section(name), std::move(image.bytes));
    sections.back().alignment = runtime::page_of(context.target.architecture);
  }
  sections.push_back(weights.section());
  write_program_file(path, sections);
  sizes.weights = weights.size();
  sizes.file = std::filesystem::file_size(path);
  return sizes;
}

// --- open ---

namespace {

std::string_view text_of(const ProgramFile& file, std::string_view section) {
  const std::span<const std::byte> bytes = file.bytes_of(section);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::shared_ptr<const OpCall> parse_call(const std::string& text) {
  const std::unique_ptr<Graph> graph = parse(text, {.folder = std::nullopt, .takes_absent = true});
  if (graph->node_count() != 1)
    throw user_error("a host step is of one node");
  return std::make_shared<OpCall>(*graph->first());
}

}  // namespace

OpenedProgram open_program(const ProgramFile& file, std::string_view wanted) {
  const std::string target = runtime::choose_target(file, this_machine(), wanted);
  runtime::ReadProgram read = read_program(file, target, parse_call);
  return {
      .executor = std::make_unique<runtime::Executor>(read.program, read.device, runtime::frozen_constants),
      .operations = std::move(read.operations),
      .target = target};
}

std::unique_ptr<Graph> read_saved_model(const ProgramFile& file) {
  return with_context(
      [&] { return file.name(); },
      [&] { return parse(text_of(file, kModelSection), {.folder = std::nullopt, .takes_absent = true}); });
}

std::string model_text(const ProgramFile& file) { return std::string(text_of(file, kModelSection)); }
std::string made_with(const ProgramFile& file) { return std::string(text_of(file, kMadeWithSection)); }

}  // namespace tenon::compiler
