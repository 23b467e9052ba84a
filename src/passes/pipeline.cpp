#include "passes/pipeline.h"

#include <chrono>
#include <map>

#include "ir/lint.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// A pipeline that is not done by then has rules that undo each other.
constexpr int kMostRounds = 20;
// As many rewrites are told of then.
constexpr size_t kLastChanges = 10;

void check_names(const std::set<std::string>& names, const std::vector<Pass>& pipeline) {
  std::vector<std::string_view> known;
  for (const Pass& pass : pipeline)
    known.push_back(pass.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw user_error("there is no pass \"{}\"{}", name, did_you_mean(name, known));
}

void check_well_formed(const Graph& graph, const Pass& pass) {
  const std::vector<std::string> problems = lint(graph);
  if (!problems.empty() && pass.is_added)
    throw user_error("the pass {} leaves a graph that is not well formed: {}", pass.name, problems.front());
  CHECK(problems.empty(), "after pass {}: {}", pass.name, problems.front());
}

// A pass that changed nested graphs may have found out more about the sizes of what they give.
void infer_from_regions(Graph& graph) {
  for (Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      infer_from_regions(*region);
    if (!node->regions().empty() && node->operand_count() > 0)
      node->set_operand(0, node->operand(0));
  }
}

// The rules that were applied last, for one who wonders which undo each other.
std::string last_changes(const Journal& journal) {
  const auto& all = journal.applications();
  std::vector<std::string> rules;
  for (size_t i = all.size() - std::min(all.size(), kLastChanges); i < all.size(); ++i)
    rules.push_back(fmt::format("{} ({})", all[i].rule, all[i].pass));
  return fmt::format("{}", fmt::join(rules, ", "));
}

// Rules go on undoing each other. Where one of them was added by who uses Tenon, that is not our bug: it took
// part in the last round, which began after so many applications.
void refuse_to_go_on(const std::vector<Pass>& pipeline, const Journal& journal, size_t before_round) {
  std::set<std::string_view> active;
  for (size_t i = before_round; i < journal.applications().size(); ++i)
    active.insert(journal.applications()[i].pass);
  for (const Pass& pass : pipeline) {
    if (!pass.is_added || !active.contains(pass.name))
      continue;
    if (active.size() == 1)
      throw user_error("the pass {} finds something to do however often it runs: {}", pass.name,
                       last_changes(journal));
    throw user_error("the pass {} and others undo each other, however often they run: {}", pass.name,
                     last_changes(journal));
  }
  CHECK(false, "passes undo each other: {}", last_changes(journal));
}

auto find_pass(std::vector<Pass>& pipeline, std::string_view name) {
  return std::find_if(pipeline.begin(), pipeline.end(), [&](const Pass& pass) { return pass.name == name; });
}

std::vector<Pass>& changeable_pipeline() {
  static std::vector<Pass> passes = {
      {"remove-dead", "erases nodes that nothing uses (DCE)", remove_dead,
       "first: no other pass need look at them"},
      {"fold-constants", "computes what depends on constants alone", fold_constants,
       "before all rules: they see through constants, but not through what makes them"},
      {"inline-branches", "takes the only branch that is ever taken", inline_branches,
       "after folding, which finds out conditions"},
      {"bind-branches", "tells branches the sizes of what they get", bind_branches,
       "after inlining, which leaves the dynamic branches; before loops, whose trip count may follow from "
       "sizes"},
      {"unroll-loops", "unrolls loops of no, one or few iterations", unroll_loops,
       "after folding, which finds trip counts"},
      {"unpack-sequences", "takes out of sequences what was put into them", unpack_sequences,
       "after loops are unrolled: what fills a sequence is often one"},
      {"prune-regions", "hands nested graphs only what they read", prune_regions,
       "after loops are unrolled: what is left of them is worth the work"},
      {"hoist-invariants", "moves loop-invariant computation out of loops (LICM)", hoist_invariants,
       "after pruning, which finds out what a loop never changes"},
      {"simplify", "drops operations that change nothing (algebraic simplification)", simplify,
       "before merging, so that more is equal"},
      {"merge-equal", "keeps one of several equal nodes (CSE)", merge_equal,
       "before rules that ask whether a value has one use"},
      {"normalise", "gives each formula one spelling", normalise, "before patterns are looked for"},
      {"split-siblings", "makes one split of slices that make up a tensor", split_siblings,
       "after merging, which leaves one of equal slices; before patterns, which then look for one split"},
      {"recognise-functions", "finds activations and normalisations that are written out",
       recognise_functions,
       "after normalise, which brings scales and casts together; before attention, which is made of softmax"},
      {"recognise-attention", "finds attention, however it is written", recognise_attention,
       "after normalise, which leaves one spelling of its parts"},
      {"fold-into-weights", "gives products and convolutions what stands beside them", fold_into_weights,
       "after attention is found, whose products have no weights; before parameters are frozen, so that "
       "gradients can be compared"},
      {"move-transposes", "moves transposes to where they cancel", move_transposes,
       "after attention and products have taken those beside them"},
      {"fold-norms", "gives linear layers the scales and shifts of normalisations", fold_norms,
       "after normalisations are found, and sums with fixed values have become biases"},
      {"merge-siblings", "makes one product of several of the same value (horizontal fusion)", merge_siblings,
       "after everything that could become part of one product alone is"},
      {"freeze-parameters", "makes constants of parameters", freeze_parameters,
       "last: up to here gradients for them can be compared; the next round sees their values"},
  };
  return passes;
}

bool is_rule_of_ours(std::string_view name) {
  return std::ranges::any_of(all_rules(), [&](const auto& subject) {
    return std::ranges::find(*subject.second, name, &Rule::name) != subject.second->end();
  });
}

// For each pass: after how many applications it last found nothing to do.
using FoundNothing = std::vector<std::optional<size_t>>;

void run_round(Graph& graph, Journal& journal, const PipelineOptions& options, int round,
               FoundNothing& found_nothing, std::vector<PassReport>& reports) {
  for (size_t i = 0; i < options.pipeline.size(); ++i) {
    const Pass& pass = options.pipeline[i];
    const std::string name(pass.name);
    if (options.disabled.contains(name) || (!options.only.empty() && !options.only.contains(name)))
      continue;
    const size_t before = journal.applications().size();
    if (found_nothing[i] == before)
      continue;  // nothing changed since
    if (options.before_pass)
      options.before_pass(pass, round);
    const auto start = std::chrono::steady_clock::now();
    journal.set_pass(pass.name);
    pass.run(graph, journal);
    infer_from_regions(graph);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const auto changes = static_cast<int64_t>(journal.applications().size() - before);
    reports.push_back({name, time.count(), changes, count_nodes(graph), round});
    if (changes == 0)
      found_nothing[i] = before;
    if (options.lint_everything)
      check_well_formed(graph, pass);
    if (changes > 0 && options.after_pass)
      options.after_pass(pass, graph);
  }
}

// That was made in adding to it.
std::optional<UserError>& first_mistake() {
  static std::optional<UserError> mistake;
  return mistake;
}

}  // namespace

const std::vector<Pass>& portable_pipeline() {
  if (const auto& mistake = first_mistake())
    throw *mistake;
  return changeable_pipeline();
}

void add_pass(Pass pass, std::string_view before) {
  try {
    insert_pass(changeable_pipeline(), std::move(pass), before);
  } catch (const UserError& error) {
    if (!first_mistake())
      first_mistake() = error;
  }
}

void insert_pass(std::vector<Pass>& pipeline, Pass pass, std::string_view before) {
  if (pass.name.empty())
    throw user_error("a pass or rewrite that is added needs a name");
  if (find_pass(pipeline, pass.name) != pipeline.end())
    throw user_error("there is a pass \"{}\" already", pass.name);
  if (pass.rewrite && is_rule_of_ours(pass.name))
    throw user_error("there is a rule \"{}\" already", pass.name);
  check_names({std::string(before)}, pipeline);
  pass.is_added = true;
  pipeline.insert(find_pass(pipeline, before), std::move(pass));
}

void add_rewrite(PatternRewrite rewrite, std::string_view before) {
  const auto kept = std::make_shared<const PatternRewrite>(std::move(rewrite));  // as long as the pass
  add_pass({.name = kept->name,
            .doc = "replaces what computes its pattern",
            .run = [kept](Graph& graph, Journal& journal) { replace_pattern(graph, *kept, journal); },
            .why_here = "added by this program",
            .rewrite = kept},
           before);
}

std::vector<PassReport> optimize(Graph& graph, Journal& journal, const PipelineOptions& options) {
  check_names(options.only, options.pipeline);
  check_names(options.disabled, options.pipeline);
  std::vector<PassReport> reports;
  FoundNothing found_nothing(options.pipeline.size());
  size_t before_round = 0;
  int round = 0;
  do {
    if (++round > kMostRounds)
      refuse_to_go_on(options.pipeline, journal, before_round);
    before_round = journal.applications().size();
    run_round(graph, journal, options, round, found_nothing, reports);
  } while (journal.applications().size() > before_round && journal.is_open());
  return reports;
}

std::vector<PassReport> run_pipeline(Graph& graph, Journal& journal, const PipelineOptions& options) {
  std::vector<PassReport> reports;
  FoundNothing found_nothing(options.pipeline.size());
  run_round(graph, journal, options, 1, found_nothing, reports);
  return reports;
}

}  // namespace tenon
