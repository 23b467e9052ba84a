#include "ops/external.h"

#include <map>
#include <mutex>
#include <numeric>

#include "ir/parse.h"
#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

struct Functions {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<const ExternalFunction>> by_number;
  int64_t next = 0;
};

Functions& functions() {
  static Functions all;
  return all;
}

std::shared_ptr<const ExternalFunction> find_function(int64_t number) {
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  const auto it = all.by_number.find(number);
  return it == all.by_number.end() ? nullptr : it->second;
}

std::vector<DType> dtypes_of(const Node& n) {
  std::vector<DType> dtypes;
  for (const std::string& name : n.attr("dtypes").as<Attribute::Strings>()) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype)
      throw user_error("external: {} is no dtype", name);
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

Types infer(const Node& n) {
  const std::vector<DType> dtypes = dtypes_of(n);
  const auto& ranks = n.attr("ranks").as<Attribute::Ints>();
  if (ranks.size() != dtypes.size())
    throw user_error("external: there are {} dtypes, but {} ranks", dtypes.size(), ranks.size());
  if (std::ranges::any_of(ranks, [](int64_t rank) { return rank < 0 || rank > kMostAxes; }))
    throw user_error("external: a rank is from 0 to {}", kMostAxes);
  const auto count = static_cast<size_t>(std::accumulate(ranks.begin(), ranks.end(), int64_t{0}));
  const std::vector<Dim> sizes = vector_dims(n, "sizes", count);
  Types types;
  size_t next = 0;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    std::vector<Dim> dims;
    for (int64_t axis = 0; axis < ranks[i]; ++axis, ++next)
      dims.push_back(sizes[next] == Dim(-1) ? Dim() : sizes[next]);
    types.push_back(Type::tensor(dtypes[i], dims));
  }
  return types;
}

Data eval(const Call& c) {
  const std::string& name = c.node().attr("name");
  const auto function = find_function(c.attr("function"));
  if (!function)
    throw user_error("external: the function behind {} is gone", name);
  Data results = (*function)(c.all("operands"));
  const std::vector<DType> dtypes = dtypes_of(c.node());
  const auto& ranks = c.node().attr("ranks").as<Attribute::Ints>();
  if (results.size() != dtypes.size())
    throw user_error("external: {} gave {} results, but {} were expected", name, results.size(),
                     dtypes.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (const Tensor& tensor = results[i].tensor(); tensor.dtype() != dtypes[i] || tensor.rank() != ranks[i])
      throw user_error("external: result {} of {} is {}, but {} of rank {} was expected", i, name,
                       type_of(results[i]), dtypes[i], ranks[i]);
  return results;
}

// --- custom

// Of the type of a result, what inference cannot leave to the declared types.
Type without_shapes(const Type& type) {
  if (type.is_tensor())
    return Type::tensor(type.as_tensor().dtype, Shape::unranked());
  const Type element = without_shapes(type.element());
  return type.is_sequence() ? Type::sequence(element) : Type::optional(element);
}

Types infer_custom(const Node& n) {
  Types types;
  for (const std::string& text : n.attr("types").as<Attribute::Strings>())
    types.push_back(without_shapes(parse_type(text)));
  return types;
}

Data refuse_custom(const Call& c) {
  const std::string &op = c.node().attr("op"), &domain = c.node().attr("domain");
  throw unsupported("{}{}{} is an op that Tenon does not know: it can be optimised around, but not computed",
                    domain, domain.empty() ? "" : ".", op);
}

}  // namespace

ExternalHandle::ExternalHandle(ExternalFunction function) {
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  number_ = all.next++;
  all.by_number.emplace(number_, std::make_shared<const ExternalFunction>(std::move(function)));
}

ExternalHandle::~ExternalHandle() {
  std::shared_ptr<const ExternalFunction> function;  // destroyed once the lock is free: it may hold handles
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  function = std::move(all.by_number.extract(number_).mapped());
}

const Family& external_ops() {
  // They may draw random numbers, and have effects: what they compute is never folded or merged.
  static const Family ops = {
      {.name = "external",
       .doc = "what a function outside Tenon makes of the operands",
       .operands = {{"operands", "any", Arity::Many}, {"sizes", "i64"}},
       .attributes = {{"name", AttributeKind::String, "what errors and reports call it"},
                      {"function", AttributeKind::Int, "its number in this process"},
                      {"dtypes", AttributeKind::Strings, "of the results"},
                      {"ranks", AttributeKind::Ints, "of the results"}},
       .results = {{"results", "any", Arity::Many}},
       .traits = {.random = true, .takes_unranked = true},
       .infer = infer,
       .eval = eval},
      {.name = "custom",
       .doc = "a node of an ONNX file, kept as it is",
       .operands = {{"operands", "any", Arity::Many}},
       .attributes =
           {{"op", AttributeKind::String, "its name in the file"},
            {"domain", AttributeKind::String, "that the op is of", ""},
            {"version", AttributeKind::Int, "the oldest of the domain that has it so", 1},
            {"newest", AttributeKind::Int, "the newest one", std::numeric_limits<int64_t>::max()},
            {"types", AttributeKind::Strings, "of the results, without shapes"},
            {"attributes", AttributeKind::Strings, "each as NAME: KIND = VALUE", Attribute::Strings()},
            {"messages", AttributeKind::Strings,
             "attributes that have no such text, tensors among them: the bytes of the file in hexadecimal",
             Attribute::Strings()},
            {"omitted_inputs", AttributeKind::Ints, "the places of those that are left out",
             Attribute::Ints()},
            {"omitted_outputs", AttributeKind::Ints, "likewise", Attribute::Ints()}},
       .results = {{"results", "any", Arity::Many}},
       .traits = {.random = true, .takes_unranked = true},
       .infer = infer_custom,
       .eval = refuse_custom}};
  return ops;
}

std::vector<Value> external(Graph& graph, const ExternalCall& call, const std::vector<Value>& operands,
                            Value sizes) {
  Attribute::Strings dtypes;
  for (DType dtype : call.dtypes)
    dtypes.emplace_back(info(dtype).name);
  return graph
      .create("external", {{"operands", operands}, {"sizes", sizes}},
              {{"name", call.name}, {"function", call.function}, {"dtypes", dtypes}, {"ranks", call.ranks}})
      ->results();
}

std::vector<Value> custom(Graph& graph, const CustomNode& node, const std::vector<Value>& operands,
                          const Types& types) {
  Attribute::Strings dtypes;
  for (const Type& type : types)
    dtypes.push_back(to_string(without_shapes(type)));
  return graph
      .create("custom", {{"operands", operands}},
              {{"op", node.op},
               {"domain", node.domain},
               {"version", node.version},
               {"newest", node.newest},
               {"types", dtypes},
               {"attributes", node.attributes},
               {"messages", node.messages},
               {"omitted_inputs", node.omitted_inputs},
               {"omitted_outputs", node.omitted_outputs}},
              {}, &types)
      ->results();
}

}  // namespace tenon
