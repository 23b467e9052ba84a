// random_graph.h — graphs drawn at random from all ops there are, and data for them.
#pragma once

#include <cmath>
#include <map>
#include <random>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/data.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon::fuzz {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), ops_(registered_ops()) {}

  // A graph of whatever the gate lets through.
  std::unique_ptr<Graph> make() {
    auto graph = std::make_unique<Graph>("random");
    for (size_t i = 1 + below(3); i > 0; --i)
      values_.push_back(graph->add_input(random_type(), one_in(4) ? "" : fmt::format("in {}", i)));
    for (size_t i = 1 + below(12); i > 0; --i)
      add_node(*graph);
    std::vector<Value> outputs;
    for (Value value : values_)
      if (one_in(3) && value.type().is_tensor())
        outputs.push_back(value);
    graph->set_outputs(outputs);
    return graph;
  }

  // A datum for an input: symbols have the sizes they were given when first met.
  Tensor input_for(const TensorType& type) { return random_tensor(type.dtype, extents_of(type, sizes_)); }

 protected:
  using Sizes = std::map<std::string, int64_t>;  // of symbols

  static Extents extents_of(const TensorType& type, const Sizes& sizes) {
    Extents extents;
    for (const Dim& dim : type.shape.dims())
      extents.push_back(dim.constant() ? *dim.constant() : sizes.at(dim.to_string()));
    return extents;
  }

  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  bool one_in(size_t n) { return below(n) == 0; }

  DType random_dtype() {
    // Mostly the ones most ops take.
    constexpr DType usual[] = {DType::F32, DType::F32, DType::F32, DType::I64, DType::I64, DType::Bool};
    return one_in(4) ? all_dtypes()[below(all_dtypes().size())].dtype : usual[below(std::size(usual))];
  }

  Type random_type() {
    std::vector<Dim> dims;
    for (size_t rank = below(5); rank > 0; --rank) {
      if (one_in(4)) {
        const std::string symbol = one_in(2) ? "n" : "m";
        sizes_.emplace(symbol, static_cast<int64_t>(1 + below(3)));
        dims.push_back(Dim::symbol(symbol));
      } else {
        dims.emplace_back(static_cast<int64_t>(one_in(10) ? 0 : 1 + below(4)));
      }
    }
    return Type::tensor(random_dtype(), dims);
  }

  Tensor random_tensor(DType dtype, const Extents& extents) {
    const auto count = static_cast<size_t>(element_count(extents));
    if (dtype == DType::String) {
      std::vector<std::string> texts(count);
      for (std::string& text : texts)
        text = std::string(below(3), static_cast<char>('a' + below(3)));
      return Tensor::strings(std::move(texts), extents);
    }
    if (kind(dtype) == DTypeKind::Complex)
      return Tensor(dtype, extents);
    constexpr double special[] = {0.0, -0.0, 1, -1, 0.5, 1e30, -1e30, INFINITY, -INFINITY, NAN};
    if (is_float(dtype)) {
      std::vector<double> values(count);
      for (double& value : values)
        value =
            one_in(6) ? special[below(std::size(special))] : std::normal_distribution<double>(0, 2)(random_);
      return narrow<double>(dtype, extents, values);
    }
    std::vector<int64_t> values(count);
    for (int64_t& value : values)
      value = one_in(12) ? static_cast<int64_t>(random_()) : static_cast<int64_t>(below(5)) - 1;
    return narrow<int64_t>(dtype, extents, values);
  }

  Attribute random_attribute(AttributeKind kind) {
    const auto integer = [&] {
      return one_in(15) ? static_cast<int64_t>(random_()) : static_cast<int64_t>(below(6)) - 2;
    };
    const auto real = [&] {
      return one_in(10) ? std::nan("") : std::normal_distribution<double>(0, 2)(random_);
    };
    constexpr const char* words[] = {"",     "constant", "linear",     "sum",
                                     "none", "left",     "half_pixel", "\"\\\n\x01"};
    switch (kind) {
      case AttributeKind::Bool:
        return one_in(2);
      case AttributeKind::Int:
        return integer();
      case AttributeKind::Float:
        return real();
      case AttributeKind::String:
        return words[below(std::size(words))];
      case AttributeKind::Ints: {
        Attribute::Ints values(below(5));
        std::generate(values.begin(), values.end(), integer);
        return values;
      }
      case AttributeKind::Floats: {
        Attribute::Floats values(below(4));
        std::generate(values.begin(), values.end(), real);
        return values;
      }
      case AttributeKind::Strings:
        return Attribute::Strings(below(3), words[below(std::size(words))]);
      case AttributeKind::DType:
        return random_dtype();
      case AttributeKind::Type:
        return random_type();
      case AttributeKind::Literal: {
        const DType dtype = random_dtype();
        if (one_in(3))
          return Literal::splat(random_tensor(dtype, {}), {static_cast<int64_t>(below(100))});
        if (one_in(3) && is_integer(dtype))
          return Literal::iota(dtype, integer(), integer(), static_cast<int64_t>(below(50)));
        return Literal(random_tensor(dtype, one_in(5) ? Extents{40} : Extents(below(3), 2)));
      }
    }
    return 0;
  }

  // A value that could stand here: one that is there already, or a new constant.
  Value operand(Graph& graph, std::string_view type) {
    const std::optional<DType> fixed = parse_dtype(type);
    for (int tries = 0; tries < 8; ++tries) {
      const Value value = values_[below(values_.size())];
      if (!fixed || (value.type().is_tensor() && value.dtype() == *fixed))
        return value;
    }
    return constant(graph, random_tensor(fixed.value_or(DType::F32),
                                         Extents(below(2), static_cast<int64_t>(1 + below(4)))));
  }

  void add_node(Graph& graph) {
    const OpDef& op = *ops_[below(ops_.size())];
    if (!op.regions.empty() || (op.traits.random && !draws_random_ops_))
      return;
    std::vector<Operand> operands;
    for (const OperandDecl& decl : op.operands) {
      std::vector<Value> values;
      const size_t count = decl.arity == Arity::One ? 1 : decl.arity == Arity::Optional ? below(2) : below(4);
      for (size_t i = 0; i < count; ++i)
        values.push_back(operand(graph, decl.type));
      operands.emplace_back(decl.name, values);
    }
    Attributes attributes;
    for (const AttributeDecl& decl : op.attributes) {
      if (decl.binding == Binding::Late && one_in(4))
        operands.emplace_back(decl.name, operand(graph, "i64"));
      else if (!decl.default_value || one_in(2))
        attributes.emplace(decl.name, random_attribute(decl.kind));
    }
    try {
      Node* node = graph.create(op, std::move(operands), std::move(attributes));
      if (one_in(3))
        node->set_sources({"layer \"one\"", "second"});
      for (Value result : node->results())
        values_.push_back(result);
    } catch (const UserError&) {
      // The gate refused it, as it should refuse most.
    }
  }

  std::mt19937_64 random_;
  std::vector<const OpDef*> ops_;
  std::vector<Value> values_;
  Sizes sizes_;
  bool draws_random_ops_ = true;
};

}  // namespace tenon::fuzz
