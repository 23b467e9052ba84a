#include "loops/polyhedra.h"

#include <isl/constraint.h>
#include <isl/flow.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>
#include <cstdlib>

#include "loops/edit.h"
#include "loops/order.h"
#include "loops/run_relations.h"

namespace tenon::loops {
namespace {

using Map = std::unique_ptr<isl_map, Free<isl_map_free>>;
using UnionMap = std::unique_ptr<isl_union_map, Free<isl_union_map_free>>;
using Set = std::unique_ptr<isl_set, Free<isl_set_free>>;

// A statement, and the loops whose values tell its runs apart.
struct Numbered {
  std::string text;
  std::vector<std::string> variables;
};

void number(const Run& run, const Kernel& kernel, std::map<int64_t, Numbered>& statements) {
  Numbered& statement = statements[origin_of(run).statement];
  statement.text = print(*run.statement, kernel);
  for (const auto& [loop, place] : run.around)
    statement.variables.push_back(loop->variable);
}

std::map<int64_t, Numbered> number(const Kernel& stamped) {
  std::map<int64_t, Numbered> statements;
  for (const Run& run : find_runs(stamped))
    number(run, stamped, statements);
  return statements;
}

std::string list(const std::map<int64_t, Numbered>& statements) {
  std::string text = "statements\n";
  for (const auto& [number, statement] : statements)
    text += fmt::format("  S{}: {}\n", number, statement.text);
  return text;
}

// What a statement uses of a buffer.
struct Used {
  int64_t statement;
  std::string combine;  // where it combines
  Element element;

  // What combines in a certain order reads the place that it writes.
  bool reads() const { return element.access != Access::Write || !combine.empty(); }
  bool writes() const { return element.access != Access::Read; }
  bool writes_certainly() const { return writes() && element.is_known; }
  bool writes_perhaps() const { return writes() && !element.is_known; }
};

// A dependence between two statements, in the order of the list.
struct Dependence {
  int64_t source, sink;
  std::string buffer;
  int kind;  // one of kKinds
  std::string text;

  friend auto operator<=>(const Dependence&, const Dependence&) = default;
};

// A run reads what another wrote, combines with it in any order, writes what it read, or writes what it
// wrote.
constexpr std::string_view kKinds[] = {"flow", "reduction", "anti", "output"};
enum Kind { kFlow, kReduction, kAnti, kOutput };

class Polyhedra {
 public:
  // The kernel is stamped. Runs are shown by the statements and loops that it had then.
  Polyhedra(const Kernel& kernel, std::map<int64_t, Numbered> statements)
      : kernel_(kernel), statements_(std::move(statements)), runs_(find_runs(kernel)) {
    for (const Run& run : runs_)
      depth_ = std::max(depth_, run.around.size());
  }

  std::string list_domains() {
    std::string text = "domains\n";
    for (const Run& run : runs_) {
      const Set domain(isl_map_domain(with_sizes(time_of(run)).release()));
      text += fmt::format("  {}\n", in_braces(isl_set_to_str(domain.get())));
    }
    return text;
  }
  std::string list_schedule() {
    std::map<int64_t, Set> domains;  // of statements, which may have several runs by now
    for (const Run& run : runs_) {
      isl_set* domain = isl_map_domain(time_of(run));
      Set& all = domains[number_of(run)];
      all.reset(all == nullptr ? domain : isl_set_union(all.release(), domain));
    }
    std::string text = "schedule\n";
    for (const Run& run : runs_) {
      isl_map* time = name_free_dims(time_of(run), [&](size_t i) {
        return i % 2 == 1 && i / 2 < run.around.size() ? run.around[i / 2].loop->variable : "";
      });
      isl_set* domain = isl_set_coalesce(isl_set_copy(domains.at(number_of(run)).get()));
      text += fmt::format("  {}\n", text_of(isl_map_gist_domain(time, domain)));
    }
    return text;
  }
  std::string list_dependences() {
    find_uses();
    for (const Used& sink : uses_)
      if (sink.reads())
        add_flow(sink);
    for (const Used& sink : uses_)
      if (sink.writes())
        add_overwritten(sink);
    std::string text = "dependences\n";
    for (const auto& [source, sink, buffer, kind, line] : dependences_)
      text += fmt::format("  {} through {}: {}\n", kKinds[kind], buffer, line);
    return text + (dependences_.empty() ? "  none\n" : "");
  }

 private:
  static int64_t number_of(const Run& run) { return origin_of(run).statement; }

  void find_uses() {
    std::set<std::string> written;
    for (const Run& run : runs_)
      for_each_use(*run.statement, [&](const Use& use) {
        if (use.access != Access::Read)
          written.insert(use.place.buffer);
      });
    for (const Run& run : runs_) {
      isl_union_map* time = isl_union_map_from_map(time_of(run));
      schedule_.reset(schedule_ == nullptr ? time : isl_union_map_union(schedule_.release(), time));
      const auto* assign = std::get_if<Assign>(run.statement);
      for (Element& element : relations_.elements(run, written)) {
        const bool combines = assign != nullptr && element.access != Access::Read;
        uses_.push_back({number_of(run), combines ? assign->combine : "", std::move(element)});
      }
    }
  }

  // What the sink reads was written last by these.
  void add_flow(const Used& sink) {
    isl_union_access_info* info = isl_union_access_info_from_sink(of_runs(sink));
    info = isl_union_access_info_set_must_source(info, all(&Used::writes_certainly));
    info = isl_union_access_info_set_may_source(info, all(&Used::writes_perhaps));
    add(info, sink, kFlow);
  }
  // What the sink writes was read since its last write by these, or written last by those.
  void add_overwritten(const Used& sink) {
    isl_union_access_info* reads = isl_union_access_info_from_sink(of_runs(sink));
    reads = isl_union_access_info_set_may_source(reads, all(&Used::reads));
    reads = isl_union_access_info_set_kill(reads, all(&Used::writes_certainly));
    add(reads, sink, kAnti);
    isl_union_access_info* writes = isl_union_access_info_from_sink(of_runs(sink));
    writes = isl_union_access_info_set_must_source(writes, all(&Used::writes_certainly));
    writes = isl_union_access_info_set_may_source(writes, all(&Used::writes_perhaps));
    add(writes, sink, kOutput);
  }

  void add(isl_union_access_info* info, const Used& sink, Kind kind) {
    info = isl_union_access_info_set_schedule_map(info, isl_union_map_copy(schedule_.get()));
    const std::unique_ptr<isl_union_flow, Free<isl_union_flow_free>> flow(
        check_done(context_.get(), isl_union_access_info_compute_flow(info)));
    const UnionMap all(check_done(context_.get(), isl_union_flow_get_may_dependence(flow.get())));
    for (const Map& piece : pieces_of(all.get())) {
      const int64_t source = std::stoll(isl_map_get_tuple_name(piece.get(), isl_dim_in) + 1);
      const Kind of_piece = combine_alike(source, sink) ? kReduction : kind;
      Dependence dependence{source, sink.statement, sink.element.buffer, of_piece,
                            text_of(piece, source, sink)};
      // What must wait for a flow already, needs nothing more.
      if (std::ranges::none_of(dependences_, [&](const Dependence& other) {
            return other.text == dependence.text && other.buffer == dependence.buffer;
          }))
        dependences_.insert(std::move(dependence));
    }
  }

  std::string text_of(const Map& piece, int64_t source, const Used& sink) const {
    const std::vector<std::string>& variables = statements_.at(sink.statement).variables;
    isl_map* dependence = name_free_dims(named(isl_map_copy(piece.get()), source),
                                         [&](size_t i) { return variables[i] + "'"; });
    return text_of(dependence) + (source == sink.statement ? distance_of(piece) : "") +
           (is_certain(source, sink) ? "" : ", perhaps");
  }
  // ", distance (1, -1)" where the runs are the same far apart everywhere.
  static std::string distance_of(const Map& piece) {
    const Set deltas(isl_map_deltas(isl_map_copy(piece.get())));
    std::vector<std::string> distances;
    for (int i = 0; i < isl_set_dim(deltas.get(), isl_dim_set); ++i) {
      const std::unique_ptr<isl_val, Free<isl_val_free>> value(
          isl_set_plain_get_val_if_fixed(deltas.get(), isl_dim_set, static_cast<unsigned>(i)));
      if (isl_val_is_int(value.get()) != isl_bool_true)
        return "";
      distances.push_back(std::to_string(isl_val_get_num_si(value.get())));
    }
    return fmt::format(", distance ({})", fmt::join(distances, ", "));
  }

  bool combine_alike(int64_t source, const Used& sink) const {
    return sink.element.access == Access::Combine && std::ranges::any_of(uses_, [&](const Used& use) {
             return use.statement == source && use.element.buffer == sink.element.buffer &&
                    use.element.access == Access::Combine && use.combine == sink.combine;
           });
  }
  bool is_certain(int64_t source, const Used& sink) const {
    return sink.element.is_known && std::ranges::all_of(uses_, [&](const Used& use) {
             return use.statement != source || use.element.buffer != sink.element.buffer ||
                    use.element.is_known;
           });
  }

  // From the runs of its statement, by its number.
  isl_union_map* of_runs(const Used& use) const {
    return isl_union_map_from_map(numbered(use.element.of_run, use.statement));
  }
  isl_union_map* all(bool (Used::*which)() const) const {
    isl_union_map* result = isl_union_map_empty(isl_union_map_get_space(schedule_.get()));
    for (const Used& use : uses_)
      if ((use.*which)())
        result = isl_union_map_union(result, of_runs(use));
    return result;
  }
  isl_map* numbered(const Relation& relation, int64_t statement) const {
    isl_map* map = check_done(context_.get(), isl_map_from_union_map(relation.copy()));
    return isl_map_set_tuple_name(map, isl_dim_in, fmt::format("S{}", statement).c_str());
  }

  // The maps of the relation, and of each its pieces apart.
  std::vector<Map> pieces_of(isl_union_map* relation) const {
    std::vector<Map> pieces;
    const auto add_map = [](isl_map* map, void* pieces_so_far) {
      const Map coalesced(isl_map_coalesce(isl_map_remove_redundancies(map)));
      const auto add_piece = [](isl_basic_map* piece, void* so_far) {
        static_cast<std::vector<Map>*>(so_far)->emplace_back(isl_map_from_basic_map(piece));
        return isl_stat_ok;
      };
      return isl_map_foreach_basic_map(coalesced.get(), add_piece, pieces_so_far);
    };
    check_done(context_.get(), isl_union_map_foreach_map(relation, add_map, &pieces) == isl_stat_ok);
    return pieces;
  }

  isl_map* time_of(const Run& run) {
    isl_map* map = named(numbered(relations_.time(run, depth_), number_of(run)), number_of(run));
    return isl_map_reset_tuple_id(map, isl_dim_out);
  }
  // With the variables of the statement that it starts at.
  isl_map* named(isl_map* map, int64_t statement) const {
    const std::vector<std::string>& variables = statements_.at(statement).variables;
    for (size_t i = 0; i < variables.size(); ++i)
      map = isl_map_set_dim_name(map, isl_dim_in, static_cast<unsigned>(i), variables[i].c_str());
    return map;
  }
  // What it leads to is written as expressions of what it starts at. What is none has a name.
  template <class NameOf>
  static isl_map* name_free_dims(isl_map* map, const NameOf& name_of) {
    isl_basic_map* hull = isl_map_affine_hull(isl_map_copy(map));
    for (int i = 0; i < isl_map_dim(map, isl_dim_out); ++i) {
      isl_constraint* equality = nullptr;
      const bool is_free =
          isl_basic_map_has_defining_equality(hull, isl_dim_out, i, &equality) == isl_bool_false;
      isl_constraint_free(equality);
      map = isl_map_set_dim_name(map, isl_dim_out, static_cast<unsigned>(i),
                                 is_free ? name_of(static_cast<size_t>(i)).c_str() : nullptr);
    }
    isl_basic_map_free(hull);
    return map;
  }

  // { S0[i] -> [0, i, 0] : 0 <= i < n }
  std::string text_of(isl_map* map) const {
    const Map readable = with_sizes(map);
    return in_braces(isl_map_to_str(readable.get()));
  }
  // With sizes as the kernel calls them, and without the condition that they are 0 or more.
  Map with_sizes(isl_map* map) const {
    isl_set* context = isl_set_universe(isl_space_params(isl_map_get_space(map)));
    for (int i = 0; i < isl_set_dim(context, isl_dim_param); ++i)
      if (!relations_.is_product(isl_set_get_dim_name(context, isl_dim_param, static_cast<unsigned>(i))))
        context = isl_set_lower_bound_si(context, isl_dim_param, static_cast<unsigned>(i), 0);
    map = isl_map_coalesce(isl_map_gist_params(map, context));
    for (int i = 0; i < isl_map_dim(map, isl_dim_param); ++i) {
      const auto at = static_cast<unsigned>(i);
      const std::string& size = relations_.symbol(isl_map_get_dim_name(map, isl_dim_param, at));
      map = isl_map_set_dim_name(map, isl_dim_param, at, size.c_str());
    }
    return Map(check_done(context_.get(), map));
  }
  // [n] -> { … } without the sizes before it, which the kernel has declared.
  std::string in_braces(char* text) const {
    const std::unique_ptr<char, Free<std::free>> owner(check_done(context_.get(), text));
    const std::string_view all = text;
    return std::string(all.substr(all.find('{')));
  }

  const Kernel& kernel_;
  std::map<int64_t, Numbered> statements_;
  std::vector<Run> runs_;
  size_t depth_ = 0;  // of loops within each other
  Context context_;
  RunRelations relations_{kernel_, context_};
  UnionMap schedule_;  // of all statements
  std::vector<Used> uses_;
  std::set<Dependence> dependences_;
};

template <class Show>
std::string unless_undecided(const Show& show) {
  try {
    return show();
  } catch (const Undecided& undecided) {
    return fmt::format("  not known: {}\n", undecided.reason);
  }
}

}  // namespace

std::string show_polyhedra(const Kernel& kernel) {
  const Kernel stamped = stamp(kernel);
  const std::map<int64_t, Numbered> statements = number(stamped);
  Polyhedra polyhedra(stamped, statements);
  return list(statements) + unless_undecided([&] {
           return polyhedra.list_domains() + polyhedra.list_schedule() + polyhedra.list_dependences();
         });
}

std::string show_schedule(const Kernel& before, const Kernel& after) {
  std::map<int64_t, Numbered> statements = number(before), more;
  const Kernel all = stamp_new(after, std::ssize(statements));
  for (const Run& run : find_runs(all))
    if (!statements.contains(origin_of(run).statement))
      number(run, all, more);
  const std::string listed = more.empty() ? "" : list(more);
  statements.merge(more);
  Polyhedra polyhedra(all, std::move(statements));
  return listed + unless_undecided([&] { return polyhedra.list_schedule(); });
}

}  // namespace tenon::loops
