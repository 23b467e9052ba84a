#include "binding/passes.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/functions.h"
#include "binding/tensors.h"
#include "ir/parse.h"
#include "verify/verify_rule.h"

namespace tenon::python {

std::vector<Pass> pipeline_with(const AddedPasses& added) {
  std::vector<Pass> pipeline = portable_pipeline();
  for (const AddedPass& each : added)
    insert_pass(pipeline, each.pass, each.before);
  return pipeline;
}

namespace {

Numerics parse_numerics(const std::string& word) {
  for (const Numerics each :
       {Numerics::BitExact, Numerics::Reassociates, Numerics::AssumesFinite, Numerics::ChangesPrecision})
    if (word == name(each))
      return each;
  throw user_error("numerics is bit-exact, reassociates, assumes-finite or changes-precision, but not {}",
                   word);
}

// What a pass says that it rewrote, or left alone.
Node& operation_of(const NodeHandle& handle) {
  if (handle.node() == nullptr)
    throw user_error("{} is no operation: a pass rewrites those", handle.describe());
  return *handle.node();
}

// A function of a rule, or one that is traced alone. The replacement of a rule declines by returning None.
auto traced(nb::object function, bool may_decline = false) {
  return [function = kept(std::move(function)),
          may_decline](const std::vector<Value>& values) -> std::vector<Value> {
    const nb::gil_scoped_acquire acquired;
    CHECK(!values.empty(), "a rule has inputs");
    const Lent graph(values.front().graph());
    nb::list arguments;
    for (Value value : values)
      arguments.append((*graph)->handle(value));
    const nb::object result = (*function)(*nb::tuple(arguments));
    std::vector<Value> results = returned_values(result, *graph);
    if (!may_decline && std::ranges::count(results, Value()) > 0)
      throw user_error("a function that is traced returns nodes of the graph, but this one returns None");
    return results;
  };
}

AddedPass make_rule(const std::string& rule_name, nb::object pattern, nb::object replacement, size_t inputs,
                    const std::optional<std::vector<std::string>>& types, const std::string& numerics,
                    const std::string& before) {
  if (inputs == 0)
    throw user_error("{}: the pattern of a rule takes at least one value", rule_name);
  TracedInputs traced_inputs;
  if (types) {
    if (types->size() != inputs)
      throw user_error("{}: the pattern takes {} values, but {} types are given", rule_name, inputs,
                       types->size());
    for (const std::string& type : *types)
      traced_inputs.emplace_back(parse_type(type));
  } else {
    for (size_t i = 0; i < inputs; ++i)
      traced_inputs.emplace_back(f32(Shape::unranked()));
  }
  const auto rewrite = std::make_shared<const PatternRewrite>(
      PatternRewrite{.name = rule_name,
                     .numerics = parse_numerics(numerics),
                     .inputs = std::move(traced_inputs),
                     .pattern = TracedFunction(traced(std::move(pattern))),
                     .replacement = TracedFunction(traced(std::move(replacement), true))});
  return {.pass = {.name = interned(rule_name),
                   .doc = "replaces what computes its pattern",
                   .run = [rewrite](Graph& graph,
                                    Journal& journal) { replace_pattern(graph, *rewrite, journal); },
                   .why_here = "added by this program",
                   .is_added = true,
                   .rewrite = rewrite},
          .before = before};
}

// What verifying a rule found.
struct VerifiedRule {
  RuleVerification result;
  std::string text;
  std::shared_ptr<Graph> before, after;  // of a counterexample
};

VerifiedRule verify_added_rule(const AddedPass& rule, double tolerance, uint64_t seed) {
  RuleVerification result = verify_rule(*rule.pass.rewrite, {.tolerance = tolerance, .seed = seed});
  std::string text = describe(result);
  VerifiedRule verified{std::move(result), std::move(text), nullptr, nullptr};
  if (auto& found = verified.result.counterexample) {
    verified.before = std::move(found->before);
    verified.after = std::move(found->after);
  }
  return verified;
}

const RuleCounterexample& counterexample_of(const VerifiedRule& verified) {
  CHECK(verified.result.counterexample, "there is no counterexample");
  return *verified.result.counterexample;
}

std::vector<std::string> names_of(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (DType dtype : dtypes)
    names.emplace_back(name(dtype));
  return names;
}

nb::list arrays_of(const Data& data) {
  nb::list arrays;
  for (const Datum& datum : data)
    arrays.append(to_python(Library{}, datum));
  return arrays;
}

std::shared_ptr<Graph> trace_function(nb::object function, const std::vector<std::string>& types,
                                      const std::vector<std::string>& names) {
  TracedInputs inputs;
  for (size_t i = 0; i < types.size(); ++i)
    inputs.emplace_back(parse_type(types[i]), names[i]);
  if (inputs.empty())
    throw user_error("a function that is traced takes at least one value");
  return trace(inputs, traced(std::move(function)));
}

// The journal of a pass, as long as it runs.
class JournalHandle {
 public:
  explicit JournalHandle(Journal& journal) : journal_(&journal) {}
  void end() { journal_ = nullptr; }
  Journal& get() const {
    if (journal_ == nullptr)
      throw user_error("the journal was lent for one call of a pass, which has returned");
    return *journal_;
  }

 private:
  Journal* journal_;
};

AddedPass make_pass(const std::string& pass_name, const std::string& doc, nb::object function,
                    const std::string& before) {
  return {.pass = {.name = interned(pass_name),
                   .doc = interned(doc),
                   .run =
                       [function = kept(std::move(function))](Graph& graph, Journal& journal) {
                         const nb::gil_scoped_acquire acquired;
                         const Lent lent(graph);
                         const auto handle = std::make_shared<JournalHandle>(journal);
                         try {
                           (*function)(*lent, handle);
                         } catch (...) {
                           handle->end();
                           throw;
                         }
                         handle->end();
                       },
                   .why_here = "added by this program",
                   .is_added = true},
          .before = before};
}

}  // namespace

void bind_passes(nb::module_& module) {
  nb::class_<AddedPass>(module, "AddedPass")
      .def_prop_ro("name", [](const AddedPass& added) { return std::string(added.pass.name); })
      .def_prop_ro("formula", [](const AddedPass& added) {
        return added.pass.rewrite ? formula_of(*added.pass.rewrite) : std::string(added.pass.doc);
      });
  nb::class_<VerifiedRule>(module, "VerifiedRule")
      .def_ro("text", &VerifiedRule::text)
      .def_prop_ro("verdict", [](const VerifiedRule& each) { return std::string(name(each.result.verdict)); })
      .def_prop_ro("detail", [](const VerifiedRule& each) { return each.result.detail; })
      .def_prop_ro("graphs", [](const VerifiedRule& each) { return each.result.graphs; })
      .def_prop_ro("samples", [](const VerifiedRule& each) { return each.result.samples; })
      .def_prop_ro("dtypes", [](const VerifiedRule& each) { return names_of(each.result.dtypes); })
      .def_prop_ro("holds_as",
                   [](const VerifiedRule& each) {
                     const std::optional<Numerics> numerics = each.result.holds_as;
                     return numerics ? std::optional(std::string(name(*numerics))) : std::nullopt;
                   })
      .def_prop_ro("problem", [](const VerifiedRule& each) { return counterexample_of(each).problem; })
      .def_ro("before", &VerifiedRule::before)
      .def_ro("after", &VerifiedRule::after)
      .def_prop_ro("inputs",
                   [](const VerifiedRule& each) { return arrays_of(counterexample_of(each).inputs); })
      .def_prop_ro("expected",
                   [](const VerifiedRule& each) { return arrays_of(counterexample_of(each).expected); })
      .def_prop_ro("actual",
                   [](const VerifiedRule& each) { return arrays_of(counterexample_of(each).actual); });
  nb::class_<JournalHandle>(module, "Journal", "Where a pass writes down what it rewrites.")
      .def_prop_ro(
          "is_open", [](const JournalHandle& journal) { return journal.get().is_open(); },
          "False once as many rewrites were made as were asked for: then the graph must stay as it is.")
      .def("allows",
           [](const JournalHandle& journal, const std::string& numerics) {
             return journal.get().allows(parse_numerics(numerics));
           })
      .def(
          "applied",
          [](const JournalHandle& journal, const std::string& rule, nb::handle replaced,
             const std::string& numerics) {
            std::vector<Node*> nodes;
            for (nb::handle each : replaced)
              nodes.push_back(&operation_of(nb::cast<const NodeHandle&>(each)));
            journal.get().applied(rule, nodes, parse_numerics(numerics));
          },
          nb::arg("rule"), nb::arg("replaced"), nb::arg("numerics") = "reassociates")
      .def("declined",
           [](const JournalHandle& journal, const std::string& rule, const NodeHandle& node,
              const std::string& reason) { journal.get().declined(rule, operation_of(node), reason); });
  module.def("trace", trace_function);
  module.def("make_rule", make_rule);
  module.def("make_pass", make_pass);
  module.def("verify_rule", verify_added_rule);
}

}  // namespace tenon::python
