#include "lowering/interpret_elements.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "loops/apply_function.h"
#include "lowering/compiled_definition.h"
#include "lowering/unpack.h"
#include "tensor/wide.h"

namespace tenon::lowering {

using loops::Function;
using loops::Number;
using loops::Scalar;

namespace {

int64_t linear_index(std::span<const int64_t> index, const Extents& extents) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    linear = linear * extents[dim] + index[dim];
  return linear;
}

std::vector<int64_t> index_of(int64_t linear, const Extents& extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t dim = extents.size(); dim-- > 0; linear /= extents[dim])
    index[dim] = linear % extents[dim];
  return index;
}

// --- what buffers hold ---

// The elements of a tensor; those that are no f32 are widened when first asked for.
class Elements {
 public:
  explicit Elements(Tensor tensor) : tensor_(std::move(tensor)) {}

  const Extents& extents() const { return tensor_.extents(); }

  Number at(int64_t linear) {
    if (tensor_.dtype() == DType::F32)
      return double{tensor_.data<float>()[static_cast<size_t>(linear)]};
    if (std::holds_alternative<std::monostate>(wide_))
      with_wide(tensor_.dtype(), [&]<class T>(T) { wide_ = widen<T>(tensor_); });
    return std::visit(
        [&]<class T>(const T& all) -> Number {
          if constexpr (std::is_same_v<T, std::monostate>)
            CHECK(false, "elements are not widened");
          else
            return all[static_cast<size_t>(linear)];
        },
        wide_);
  }

 private:
  Tensor tensor_;
  std::variant<std::monostate, std::vector<double>, std::vector<int64_t>, std::vector<uint64_t>> wide_;
};

// A buffer of these extents in memory.
class BufferSource : public ElementSource {
 public:
  BufferSource(std::string name, Extents extents) : name_(std::move(name)), extents_(std::move(extents)) {}

  const Extents& extents() const { return extents_; }

  Number at(std::span<const int64_t> index) final {
    for (size_t dim = 0; dim < index.size(); ++dim)
      if (index[dim] < 0 || index[dim] >= extents_[dim])
        throw user_error("{}: index {} along dimension {} of {}", name_, index[dim], dim, extents_[dim]);
    return element(index);
  }

 private:
  virtual Number element(std::span<const int64_t> index) = 0;

  std::string name_;
  Extents extents_;
};

// Where the dimensions in memory stand among those of a value: which they are, and the padding before.
using Dims = std::vector<std::pair<size_t, int64_t>>;

class ValueSource : public BufferSource {
 public:
  ValueSource(std::string name, Extents extents, Tensor value, Dims dims, Number border)
      : BufferSource(std::move(name), std::move(extents)),
        value_(std::move(value)),
        dims_(std::move(dims)),
        border_(border),
        of_value_(dims_.size()) {}

 private:
  Number element(std::span<const int64_t> index) override {
    for (size_t i = 0; i < index.size(); ++i) {
      const auto& [dim, before] = dims_[i];
      of_value_[dim] = index[i] - before;
      if (of_value_[dim] < 0 || of_value_[dim] >= value_.extents()[dim])
        return border_;
    }
    return value_.at(linear_index(of_value_, value_.extents()));
  }

  Elements value_;
  Dims dims_;
  Number border_;  // the padding value
  std::vector<int64_t> of_value_;
};

class PackedSource : public BufferSource {
 public:
  PackedSource(std::string name, Extents extents, Tensor weights, PackedBLayout layout)
      : BufferSource(std::move(name), std::move(extents)),
        weights_(std::move(weights)),
        layout_(std::move(layout)) {}

 private:
  Number element(std::span<const int64_t> index) override {
    return weights_.at(
        linear_index(index_in_weights(layout_, weights_.extents(), index), weights_.extents()));
  }

  Elements weights_;
  PackedBLayout layout_;
};

class ComputedSource : public BufferSource {
 public:
  ComputedSource(std::string name, Extents extents, std::shared_ptr<CompiledDefinition> definition,
                 size_t result, Number border)
      : BufferSource(std::move(name), std::move(extents)),
        definition_(std::move(definition)),
        result_(result),
        border_(border) {}

 private:
  Number element(std::span<const int64_t> index) override {
    const std::vector<Number>& results = definition_->at(index);
    return results.empty() ? border_ : results[result_];
  }

  std::shared_ptr<CompiledDefinition> definition_;
  size_t result_;
  Number border_;
};

// The same bytes under another shape; elements of 8 or 16 bits may become words of 32.
class AliasSource : public BufferSource {
 public:
  AliasSource(std::string name, Extents extents, BufferSource& from, DType dtype_from, DType dtype)
      : BufferSource(std::move(name), std::move(extents)),
        from_(from),
        dtype_from_(dtype_from),
        in_words_(dtype_from != dtype) {}

 private:
  Number element(std::span<const int64_t> index) override {
    const int64_t linear = linear_index(index, extents());
    if (!in_words_)
      return element_of_source(linear);
    const auto count = static_cast<size_t>(info(DType::I32).bytes / info(dtype_from_).bytes);
    std::array<Number, 4> elements;
    for (size_t i = 0; i < count; ++i) {
      elements[i] = element_of_source(linear * static_cast<int64_t>(count) + static_cast<int64_t>(i));
      if (is_integer(dtype_from_))
        elements[i] = std::visit([](auto each) -> Number { return static_cast<int64_t>(each); }, elements[i]);
    }
    return loops::apply_function(is_integer(dtype_from_) ? Function::PackI8x4 : Function::PackBf16x2,
                                 DType::I32, std::span<const Number>(elements).first(count));
  }

  Number element_of_source(int64_t linear) { return from_.at(index_of(linear, from_.extents())); }

  BufferSource& from_;
  DType dtype_from_;
  bool in_words_;
};

}  // namespace

// --- graphs ---

class ElementInterpreter::Impl {
 public:
  Impl(const KernelGraph& graph, const Bindings& sizes, ValueLookup values)
      : graph_(graph),
        sizes_(sizes),
        value_of_(std::move(values)),
        find_source_([this](const std::string& name) -> ElementSource& {
          return source_of(graph_.buffers.id_of(name));
        }),
        sources_(graph.buffers.size()),
        writers_(graph.buffers.size()) {
    for (const KernelNode& node : graph.nodes)
      for (BufferId id : node.writes)
        writers_[id.number] = &node;
  }

  bool can_compute(BufferId id) const {
    if (graph_.buffers[id].home == Home::Constant)
      return is_readable_constant(graph_, id);
    return is_known(id) || can_recompute(id);
  }

  bool can_compare(BufferId id) const { return is_known(id) && has_definition(id) && can_recompute(id); }

  Tensor materialise(BufferId id) {
    BufferSource& source = source_of(id);
    const DType dtype = graph_.buffers[id].elements.dtype;
    return with_wide(dtype, [&]<class T>(T) {
      std::vector<T> elements(static_cast<size_t>(element_count(source.extents())));
      for (size_t i = 0; i < elements.size(); ++i)
        elements[i] = std::get<T>(source.at(index_of(static_cast<int64_t>(i), source.extents())));
      return narrow<T>(dtype, source.extents(), elements);
    });
  }

  Tensor compute(BufferId id, const std::vector<int64_t>& indices) {
    const Tensor& value = *value_of_(graph_.buffers[id]);
    const std::unique_ptr<BufferSource> computed = make_computed(id);
    const Dims dims = dims_of(id);
    return with_wide(value.dtype(), [&]<class T>(T) {
      std::vector<T> elements;
      for (int64_t linear : indices) {
        const std::vector<int64_t> of_value = index_of(linear, value.extents());
        std::vector<int64_t> index;
        for (const auto& [dim, before] : dims)
          index.push_back(of_value[dim] + before);
        elements.push_back(std::get<T>(computed->at(index)));
      }
      return narrow<T>(value.dtype(), {std::ssize(elements)}, elements);
    });
  }

 private:
  bool is_known(BufferId id) const { return value_of_(graph_.buffers[id]) != nullptr; }
  bool has_definition(BufferId id) const {
    const KernelNode* writer = writers_[id.number];
    return writer != nullptr && writer->kind == KernelNode::Kind::Definition;
  }

  // By its writer, from what that reads.
  bool can_recompute(BufferId id) const {
    const KernelNode* writer = writers_[id.number];
    if (writer != nullptr && writer->kind == KernelNode::Kind::Alias)
      return can_compute(writer->operands.front());
    if (!has_definition(id))
      return false;
    std::set<std::string> read;
    for (const Scalar& value : readable_definition(graph_, *writer->stage).values)
      loops::for_each_load(value, [&](const Scalar& load) { read.insert(load.name()); });
    return std::ranges::all_of(
        read, [&](const std::string& name) { return can_compute(graph_.buffers.id_of(name)); });
  }

  // --- sources ---

  BufferSource& source_of(BufferId id) {
    std::unique_ptr<BufferSource>& source = sources_[id.number];
    if (!source)
      source = make_source(id);
    return *source;
  }

  std::unique_ptr<BufferSource> make_source(BufferId id) {
    const KernelBuffer& buffer = graph_.buffers[id];
    if (is_readable_constant(graph_, id))
      return make_constant(id);
    if (is_known(id))
      return std::make_unique<ValueSource>(buffer.name(), extents_of(id), *value_of_(buffer), dims_of(id),
                                           border_of(id));
    if (has_definition(id))
      return make_computed(id);
    const KernelNode* writer = writers_[id.number];
    CHECK(writer != nullptr && writer->kind == KernelNode::Kind::Alias, "what {} holds is not known",
          buffer.name());
    const BufferId from = writer->operands.front();
    return std::make_unique<AliasSource>(buffer.name(), extents_of(id), source_of(from),
                                         graph_.buffers[from].elements.dtype, buffer.elements.dtype);
  }

  std::unique_ptr<BufferSource> make_constant(BufferId id) const {
    const KernelBuffer& buffer = graph_.buffers[id];
    Tensor elements = constant_elements(graph_, id);
    if (const auto* packed = std::get_if<PackedWeights>(&buffer.layout))
      return std::make_unique<PackedSource>(buffer.name(), extents_of(id), std::move(elements),
                                            packed->order);
    return std::make_unique<ValueSource>(buffer.name(), extents_of(id), std::move(elements), dims_of(id),
                                         border_of(id));
  }

  std::unique_ptr<BufferSource> make_computed(BufferId id) {
    const KernelNode& node = *writers_[id.number];
    std::shared_ptr<CompiledDefinition>& definition = definitions_[&node];
    if (!definition)
      definition = std::make_shared<CompiledDefinition>(readable_definition(graph_, *node.stage), sizes_,
                                                        find_source_);
    const std::string& name = graph_.buffers[id].name();
    const std::vector<loops::Buffer>& results = node.stage->definition.results;
    const auto result = std::ranges::find(results, name, &loops::Buffer::name) - results.begin();
    return std::make_unique<ComputedSource>(name, extents_of(id), definition, static_cast<size_t>(result),
                                            border_of(id));
  }

  Extents extents_of(BufferId id) const {
    Extents extents;
    for (const Dim& dim : graph_.buffers[id].elements.sizes) {
      const std::optional<int64_t> size = dim.evaluate(sizes_);
      if (!size)
        throw user_error("size {} of {} is unbound", dim, graph_.buffers[id].name());
      extents.push_back(*size);
    }
    return extents;
  }

  Dims dims_of(BufferId id) const {
    const KernelBuffer& buffer = graph_.buffers[id];
    const auto* image = std::get_if<ImageLayout>(&buffer.layout);
    const auto* permuted = std::get_if<PermutedLayout>(&buffer.layout);
    Dims dims;
    for (size_t i = 0; i < buffer.elements.sizes.size(); ++i) {
      const size_t dim = image != nullptr ? image->order[i] : permuted != nullptr ? permuted->order[i] : i;
      dims.emplace_back(dim, image != nullptr ? image->before[dim] : 0);
    }
    return dims;
  }

  Number border_of(BufferId id) const {
    const KernelNode* writer = writers_[id.number];
    const bool is_given = writer != nullptr && writer->stage && writer->stage->border;
    return (is_given ? *writer->stage->border : Scalar::zero(graph_.buffers[id].elements.dtype)).value();
  }

  const KernelGraph& graph_;
  const Bindings& sizes_;
  const ValueLookup value_of_;
  const CompiledDefinition::FindSource find_source_;
  std::vector<std::unique_ptr<BufferSource>> sources_;  // by buffer, as far as they are read
  std::vector<const KernelNode*> writers_;              // by buffer
  std::map<const KernelNode*, std::shared_ptr<CompiledDefinition>> definitions_;
};

Bindings sizes_of_values(const KernelGraph& graph, const ValueLookup& values) {
  Bindings sizes;
  for (const KernelBuffer& buffer : graph.buffers)
    if (const Tensor* tensor = buffer.value ? values(buffer) : nullptr)
      fits(*tensor, buffer.value.type(), sizes);
  return sizes;
}

ElementInterpreter::ElementInterpreter(const KernelGraph& graph, const Bindings& sizes, ValueLookup values)
    : impl_(std::make_unique<Impl>(graph, sizes, std::move(values))) {}
ElementInterpreter::~ElementInterpreter() = default;

bool ElementInterpreter::can_compute(BufferId buffer) const { return impl_->can_compute(buffer); }
bool ElementInterpreter::can_compare(BufferId buffer) const { return impl_->can_compare(buffer); }

Tensor ElementInterpreter::compute(BufferId buffer, const std::vector<int64_t>& indices) {
  return impl_->compute(buffer, indices);
}

Tensor ElementInterpreter::materialise(BufferId buffer) { return impl_->materialise(buffer); }

}  // namespace tenon::lowering
