#include "ops/external.h"

#include <map>
#include <mutex>
#include <numeric>

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
  // It may draw random numbers, and have effects: what it computes is never folded or merged.
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
       .eval = eval}};
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

}  // namespace tenon
