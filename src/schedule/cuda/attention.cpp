#include "schedule/cuda/attention.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "fusion/permute_axes.h"
#include "loops/edit.h"
#include "schedule/assign.h"
#include "schedule/cuda/attention_sums.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

using fusion::AttentionTile;
using fusion::OnlineAttention;
using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::Stage;

namespace {

constexpr int64_t kVectorBytes = 16;  // that one instruction loads

// Loop variables, which end in a number, as no size does.
const std::string kQueryTile = "tile_q0", kKeyTile = "tile_k0", kElement = "e0", kLane = "lane0",
                  kOther = "other0", kVectorOfColumn = "vector0";

Scalar number(double value) { return Scalar::number(DType::F32, value); }
const Scalar& least() {
  static const Scalar infinity = number(-HUGE_VAL);
  return infinity;
}

Scalar apply(Function function, const Scalar& a, const Scalar& b) { return Scalar::apply(function, {a, b}); }
Scalar times(const Scalar& x, double factor) {
  return factor == 1 ? x : apply(Function::Multiply, x, number(factor));
}
Scalar exp2(const Scalar& x) { return apply(Function::Power, number(2), x); }

// Scores before they are multiplied by a positive number at last: the greatest is the same one.
struct Unscaled {
  Scalar score;
  double scale;
};
Unscaled without_scale(const Scalar& score) {
  if (score.kind() == Scalar::Kind::Apply && score.function() == Function::Multiply)
    for (size_t i = 0; i < 2; ++i)
      if (const Scalar& factor = score.operands()[i];
          factor.kind() == Scalar::Kind::Number && std::get<double>(factor.value()) > 0)
        return {Scalar(score.operands()[1 - i]), std::get<double>(factor.value())};
  return {score, 1};
}
Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b) {
  return Scalar::apply(Function::Select, {condition, a, b});
}

Scalar with_loads(const Scalar& formula, const std::map<std::string, Scalar>& loads) {
  return loops::replace_loads(formula, [&](const Scalar& load) {
    const auto it = loads.find(load.name());
    return it == loads.end() ? load : it->second;
  });
}

// Whether the elements of consecutive iterations are side by side in memory.
bool runs_along(const Scalar& formula, const std::string& variable) {
  bool runs = false;
  loops::for_each_load(formula, [&](const Scalar& load) {
    runs = runs || (!load.operands().empty() && loops::mentions(load.operands().back(), variable));
  });
  return runs;
}

// An operand in shared memory: so many rows at a time, [row, column], or in panels [panel, row, column].
struct Operand {
  Scalar formula;
  std::string row, column;  // its variables
  int64_t rows, columns;
  int64_t padded;  // columns: those beyond are 0
  Buffer tile;

  std::vector<Dim> place(const Dim& row, const Dim& column) const {
    constexpr int64_t panel = AttentionTile::kPanel;
    return tile.sizes.size() == 2 ? std::vector{row, column}
                                  : std::vector{floor_div(column, panel), row, mod(column, panel)};
  }
  bool is_padded() const { return columns != padded; }
};

class AttentionBlocks {
 public:
  AttentionBlocks(OnlineAttention attention, const AttentionTile& tile,
                  const std::vector<Definition>& epilogue, const std::set<std::string>& outputs,
                  std::set<std::string> names)
      : attention_(std::move(attention)),
        unscaled_(without_scale(attention_.score)),
        tile_(tile),
        epilogue_(epilogue),
        outputs_(outputs),
        names_(std::move(names)),
        scores_(tile, AttentionSums::Of::Scores, tile.keys, fresh("scores")),
        results_(tile, AttentionSums::Of::Results, tile.padded_columns(attention_.columns), fresh("results")),
        q_(operand("q", attention_.q, tile.queries(), query(), fusion::kSizeVariable, attention_.size,
                   tile.padded_size(attention_.size))),
        k_(operand("k", attention_.k, tile.keys, fusion::kKeyVariable, fusion::kSizeVariable, attention_.size,
                   tile.padded_size(attention_.size))),
        v_(operand("v", attention_.v, tile.keys, fusion::kKeyVariable, fusion::kColumnVariable,
                   attention_.columns, tile.padded_columns(attention_.columns))),
        weights_{fresh("weights"),
                 q_.tile.dtype,
                 {tile.queries(), tile.keys + AttentionTile::kPaddingOfWeights},
                 Space::Shared},
        of_threads_{fresh("of_threads"), DType::F32, {tile.queries(), tile.threads_of_row()}, Space::Shared},
        greatest_(scores_.of_rows(fresh("greatest"))),
        total_(scores_.of_rows(fresh("total"))) {}

  Statement run() const {
    std::vector<Statement> block;
    for (const Buffer& local : {q_.tile, weights_, of_threads_, results_.buffer(), greatest_, total_})
      block.emplace_back(Local{local});
    for (const Operand* each : {&k_, &v_})
      if (each->is_padded())
        block.emplace_back(Local{each->tile});
    for (const Operand* each : {&q_, &k_, &v_})
      append(block, clear_padding(*each));
    block.push_back(load(q_, symbol(kQueryTile) * tile_.queries(), attention_.queries()));
    block.push_back(begin_rows());
    block.emplace_back(Loop{.variable = kKeyTile,
                            .begin = floor_div(first_key(), tile_.keys),
                            .end = ceil_div(end_of_keys(), tile_.keys),
                            .mark = Mark::Serial,
                            .stages = tile_.stages,
                            .body = do_keys()});
    block.push_back(exchange(total_));
    block.push_back(store_results());
    std::vector<Axis> blocks = attention_.rows;
    blocks.erase(blocks.begin() + static_cast<int64_t>(attention_.query));
    blocks.push_back({kQueryTile, ceil_div(attention_.queries(), tile_.queries())});
    std::map<std::string, Dim> only;  // those of one iteration
    for (const Axis& axis : blocks)
      if (axis.size == Dim(1))
        only.emplace(axis.variable, 0);
    std::erase_if(blocks, [](const Axis& axis) { return axis.size == Dim(1); });
    return over_blocks(blocks, tile_.threads(), substitute(block, only));
  }

 private:
  std::string fresh(const std::string& name) { return loops::fresh_among(names_, name); }
  const std::string& query() const { return attention_.rows[attention_.query].variable; }

  Operand operand(const std::string& name, const Scalar& formula, int64_t rows, const std::string& row,
                  const std::string& column, int64_t columns, int64_t padded) {
    constexpr int64_t panel = AttentionTile::kPanel;
    const std::vector<Dim> sizes = tile_.by_warpgroups ? std::vector<Dim>{padded / panel, rows, panel}
                                                       : std::vector<Dim>{rows, padded + tile_.padding()};
    return {formula,
            row,
            column,
            rows,
            columns,
            padded,
            Buffer{fresh(name + "_tile"), tile_.on_tensor_cores ? formula.dtype() : DType::F32, sizes,
                   Space::Shared}};
  }

  Statement by_threads(std::vector<Statement> body) const {
    return over_threads(kThread, tile_.threads(), std::move(body));
  }

  static std::vector<Statement> in_lanes(int64_t lanes, Statement statement) {
    return loop(kLane, lanes, Mark::Vector, as_list(std::move(statement)));
  }

  // --- which keys are seen ---

  Dim first_query() const { return symbol(kQueryTile) * tile_.queries(); }
  Dim last_query() const {
    const Dim last = first_query() + (tile_.queries() - 1);
    return are_whole(attention_.queries(), tile_.queries()) ? last : min(last, attention_.queries() - 1);
  }
  static bool are_whole(const Dim& count, int64_t tile) { return divide_exactly(count, tile).has_value(); }

  // How much it grows from one value of the variable to the next, where that is always the same.
  static std::optional<int64_t> slope_of(const Dim& dim, const std::string& variable) {
    return (dim.substitute({{variable, symbol(variable) + 1}}) - dim).constant();
  }

  // Calls f with keys between which those seen by the query are, and whether they grow with it.
  template <class F>
  void for_each_bound(int64_t wanted_slope, F&& f) const {
    for (const Dim& condition : attention_.seen)
      if (slope_of(condition, fusion::kKeyVariable) == wanted_slope) {
        const Dim key = symbol(fusion::kKeyVariable),
                  bound = wanted_slope > 0 ? key - condition : condition + key;
        if (const std::optional<int64_t> slope = slope_of(bound, query()))
          f(bound, *slope);
      }
  }

  // Of those that some query of the block sees.
  Dim first_key() const {
    Dim first = 0;
    for_each_bound(1, [&](const Dim& bound, int64_t slope) {
      first = max(first, bound.substitute({{query(), slope >= 0 ? first_query() : last_query()}}));
    });
    return first;
  }
  Dim end_of_keys() const {
    Dim end = attention_.keys;
    for_each_bound(-1, [&](const Dim& bound, int64_t slope) {
      end = min(end, bound.substitute({{query(), slope >= 0 ? last_query() : first_query()}}) + 1);
    });
    return end;
  }

  // --- from memory to shared memory ---

  int64_t vector_of(const Operand& operand) const {
    int64_t vector = kVectorBytes / info(operand.tile.dtype).bytes;
    while (operand.columns % vector != 0)
      vector /= 2;
    return vector;
  }

  // Beyond the columns that there are; once, as nothing else is written there.
  std::vector<Statement> clear_padding(const Operand& operand) const {
    if (!operand.is_padded())
      return {};
    const int64_t columns = operand.padded - operand.columns;
    const Dim element = symbol(kElement);
    return as_list(over_threads(
        kElement, operand.rows * columns,
        as_list(store(operand.tile,
                      operand.place(floor_div(element, columns), mod(element, columns) + operand.columns),
                      Scalar::zero(operand.tile.dtype)))));
  }

  // The rows from the first on, of so many that there are; 0 beyond them.
  Statement load(const Operand& operand, const Dim& first, const Dim& count) const {
    const bool across =
        runs_along(operand.formula, operand.row) && !runs_along(operand.formula, operand.column);
    const int64_t vector = across ? 1 : vector_of(operand), rows = operand.rows,
                  vectors = operand.columns / vector;
    const Dim element = symbol(kElement), row = across ? mod(element, rows) : floor_div(element, vectors),
              column = (across ? floor_div(element, rows) : mod(element, vectors)) * vector +
                       (vector == 1 ? Dim(0) : symbol(kLane));
    const auto fill = [&](const Scalar& value) {
      return in_lanes(vector, store(operand.tile, operand.place(row, column), value));
    };
    const Scalar value =
        Scalar::cast(operand.tile.dtype,
                     operand.formula.substitute({{operand.row, first + row}, {operand.column, column}}));
    std::vector<Statement> body;
    if (are_whole(count, rows)) {
      body = fill(value);
    } else if (value.kind() == Scalar::Kind::Load) {
      body = fill(select(apply(Function::Less, index(first + row), index(count)), value,
                         Scalar::zero(operand.tile.dtype)));
    } else {
      body = fill(Scalar::zero(operand.tile.dtype));
      append(body, guarded({count - 1 - first - row}, fill(value)));
    }
    return over_threads(kElement, rows * vectors, std::move(body));
  }

  // --- rows of scores ---

  Statement begin_rows() const {
    std::vector<Statement> row =
        results_.for_each_column(as_list(store(results_.buffer(), results_.at(), number(0))));
    row.push_back(store(greatest_, scores_.at_row(), least()));
    row.push_back(store(total_, scores_.at_row(), number(0)));
    return by_threads(scores_.for_each_row(std::move(row)));
  }

  std::vector<Statement> do_keys() const {
    std::vector<Statement> body;
    body.emplace_back(Local{scores_.buffer()});
    for (const Operand* each : {&k_, &v_})
      if (!each->is_padded())
        body.emplace_back(Local{each->tile});
    const Dim first = symbol(kKeyTile) * tile_.keys;
    body.push_back(load(k_, first, attention_.keys));
    body.push_back(load(v_, first, attention_.keys));
    std::vector<Statement> products = scores_.for_each_row(
        scores_.for_each_column(as_list(store(scores_.buffer(), scores_.at(), number(0)))));
    append(products, scores_.add_products(q_.tile, k_.tile, tile_.padded_size(attention_.size)));
    body.push_back(by_threads(std::move(products)));
    body.push_back(find_greatest());
    body.push_back(weigh());
    body.push_back(by_threads(results_.add_products(weights_, v_.tile, tile_.keys)));
    return body;
  }

  // The body where the variables are those of a row and a column of scores.
  std::vector<Statement> at_query(std::vector<Statement> body) const {
    return where(query(), first_query() + scores_.row(), std::move(body));
  }
  std::vector<Statement> at_key(std::vector<Statement> body) const {
    return where(fusion::kKeyVariable, symbol(kKeyTile) * tile_.keys + scores_.column(), std::move(body));
  }

  // The value, or another beyond the queries and keys that there are, where nothing may be loaded.
  Scalar within(Scalar value, const Scalar& beyond) const {
    const auto limit = [&](const std::string& variable, const Dim& count) {
      value = select(apply(Function::Less, index(symbol(variable)), index(count)), value, beyond);
    };
    if (!are_whole(attention_.keys, tile_.keys))
      limit(fusion::kKeyVariable, attention_.keys);
    if (!are_whole(attention_.queries(), tile_.queries()))
      limit(query(), attention_.queries());
    return value;
  }

  // -inf weighs nothing. Without the scale.
  Scalar score() const {
    return within(with_loads(unscaled_.score, {{attention_.product, scores_.value()}}), least());
  }

  // A power alone is 0 where the score is -inf.
  Scalar weight() const {
    const Scalar weight = with_loads(attention_.weight, {{attention_.power, scores_.value()}});
    return weight == scores_.value() ? weight : within(weight, number(0));
  }

  // Each thread tells the others of its rows.
  Statement find_greatest() const {
    const Buffer own{"own0", DType::F32, {}, Space::Private};
    std::vector<Statement> row;
    row.emplace_back(Local{own});
    row.push_back(store(own, {}, least()));
    std::vector<Statement> column;
    if (const Scalar value = score(); value != scores_.value())
      column.push_back(store(scores_.buffer(), scores_.at(), value));
    column.push_back(store(own, {}, scores_.value(), "max"));
    append(row, scores_.for_each_column(at_key(std::move(column))));
    row.push_back(store(of_threads_, {scores_.row(), scores_.thread_of_row()}, element(own, {})));
    return by_threads(scores_.for_each_row(at_query(std::move(row))));
  }

  std::vector<Statement> combine_threads(const Buffer& into, const std::vector<Dim>& at,
                                         const std::string& combine) const {
    return loop(kOther, tile_.threads_of_row(), Mark::Unrolled,
                as_list(store(into, at, element(of_threads_, {scores_.row(), symbol(kOther)}), combine)));
  }

  // The binary logarithm of a power of e.
  Scalar in_bits(const Scalar& score) const { return times(score, unscaled_.scale * std::numbers::log2e); }

  // A row without anything to see yet has no greatest score, and nothing to be scaled. Powers are those of 2:
  // the base is rounded in bits once, so that all of a row have it in common.
  Statement weigh() const {
    const Buffer next{"next0", DType::F32, {}, Space::Private}, base{"base0", DType::F32, {}, Space::Private},
        scale{"scale0", DType::F32, {}, Space::Private};
    const Scalar greatest = element(greatest_, scores_.at_row()), coming = element(next, {}),
                 is_blind = apply(Function::Equal, coming, least());
    std::vector<Statement> row;
    for (const Buffer& local : {next, base, scale})
      row.emplace_back(Local{local});
    row.push_back(store(next, {}, greatest));
    append(row, combine_threads(next, {}, "max"));
    row.push_back(store(base, {}, select(is_blind, number(0), in_bits(coming))));
    row.push_back(store(scale, {}, exp2(apply(Function::Subtract, in_bits(greatest), element(base, {})))));
    row.push_back(store(greatest_, scores_.at_row(), coming));
    row.push_back(store(total_, scores_.at_row(), element(scale, {}), "*"));
    std::vector<Statement> column;
    column.push_back(store(scores_.buffer(), scores_.at(),
                           exp2(apply(Function::Subtract, in_bits(scores_.value()), element(base, {})))));
    column.push_back(store(total_, scores_.at_row(), scores_.value(), "+"));
    const Scalar stored = Scalar::cast(weights_.dtype, weight());
    const Statement keep = store(weights_, {scores_.row(), scores_.column()}, stored);
    if (loops::mentions(stored, fusion::kKeyVariable) || loops::mentions(stored, query())) {
      column.push_back(keep);
      append(row, scores_.for_each_column(at_key(std::move(column))));
    } else {  // those beside each other together
      append(row, scores_.for_each_column(std::move(column)));
      append(row, scores_.for_each_vector(as_list(make_loop(AttentionSums::lane().symbols().front(),
                                                            scores_.lanes(), Mark::Vector, as_list(keep)))));
    }
    append(row, results_.for_each_column(
                    as_list(store(results_.buffer(), results_.at(), element(scale, {}), "*"))));
    return by_threads(scores_.for_each_row(at_query(std::move(row))));
  }

  // --- results ---

  Statement exchange(const Buffer& of_rows) const {
    return by_threads(scores_.for_each_row(as_list(
        store(of_threads_, {scores_.row(), scores_.thread_of_row()}, element(of_rows, scores_.at_row())))));
  }

  // Without keys there is nothing to sum up.
  Scalar result() const {
    const Scalar result =
        with_loads(attention_.result,
                   {{attention_.sum, results_.value()},
                    {attention_.total, element(total_, scores_.at_row())},
                    {attention_.greatest, times(element(greatest_, scores_.at_row()), unscaled_.scale)}});
    if (attention_.keys.lower_bound().value_or(0) > 0)
      return result;
    return select(apply(Function::Less, index(0), index(attention_.keys)), result, number(0));
  }

  Statement store_results() const {
    const Dim column = symbol(kVectorOfColumn) * results_.lanes() + AttentionSums::lane();
    const std::string of_epilogue = epilogue_.front().axes.back().variable;
    std::vector<Statement> stores;
    for (Assign& each : build_epilogue(epilogue_, outputs_, result(), [&](const Scalar& scalar) {
           return scalar.substitute({{of_epilogue, column}});
         }))
      stores.emplace_back(std::move(each));
    const bool in_vectors = attention_.columns % results_.lanes() == 0;
    const Dim left =
        attention_.columns - 1 - (in_vectors ? symbol(kVectorOfColumn) * results_.lanes() : column);
    if (!in_vectors)
      stores = guarded({left}, std::move(stores));
    stores = as_list(make_loop(AttentionSums::lane().symbols().front(), results_.lanes(),
                               in_vectors ? Mark::Vector : Mark::Unrolled, std::move(stores)));
    if (in_vectors && tile_.padded_columns(attention_.columns) != attention_.columns)
      stores = guarded({left}, std::move(stores));
    std::vector<Statement> row;
    row.push_back(store(total_, scores_.at_row(), number(0)));
    append(row, combine_threads(total_, scores_.at_row(), "+"));
    append(row,
           results_.for_each_vector(where(kVectorOfColumn, results_.vector_of_column(), std::move(stores))));
    if (!are_whole(attention_.queries(), tile_.queries()))
      row = guarded({attention_.queries() - 1 - symbol(query())}, std::move(row));
    return by_threads(scores_.for_each_row(at_query(std::move(row))));
  }

  const OnlineAttention attention_;
  const Unscaled unscaled_;
  const AttentionTile tile_;
  const std::vector<Definition>& epilogue_;
  const std::set<std::string>& outputs_;
  std::set<std::string> names_;
  const AttentionSums scores_, results_;
  const Operand q_, k_, v_;
  const Buffer weights_;           // of a block of keys
  const Buffer of_threads_;        // what the threads of a row tell each other
  const Buffer greatest_, total_;  // of each row so far; the totals are of the thread's own columns
};

// Where the second product stands.
size_t find_second_product(const std::vector<Stage>& stages, size_t rows) {
  size_t second = 1;
  while (!(stages[second].definition.reduces() && stages[second].definition.axes.size() > rows))
    ++second;
  return second;
}

OnlineAttention match(const std::vector<Stage>& stages, size_t rows) {
  std::vector<Definition> definitions;
  for (size_t i = 0; i <= find_second_product(stages, rows); ++i)
    definitions.push_back(stages[i].definition);
  std::optional<OnlineAttention> online = fusion::match_online_attention(definitions, rows);
  CHECK(online, "attention is fused, but its rows are no softmax");
  return std::move(*online);
}

}  // namespace

void fuse_attention(Kernel& kernel, const std::vector<Stage>& stages, size_t rows,
                    const std::set<std::string>& outputs, const Gpu& gpu) {
  const std::optional<fusion::RatedAttentionTile> tile =
      fusion::choose_attention_tile(match(stages, rows), gpu);
  CHECK(tile, "attention is fused, but a thread block has no room for its tiles");
  fuse_attention(kernel, stages, rows, outputs, tile->tile);
}

void fuse_attention(Kernel& kernel, const std::vector<Stage>& stages, size_t rows,
                    const std::set<std::string>& outputs, const AttentionTile& tile) {
  std::vector<Definition> epilogue;
  std::map<std::string, Definition> results;
  for (size_t i = find_second_product(stages, rows); i < stages.size(); ++i) {
    const Definition each =
        results.empty() ? stages[i].definition : *fusion::permuted_like(results, stages[i].definition);
    results.emplace(each.results.front().name, each);
    epilogue.push_back(renamed(each, rows, "e"));
  }
  kernel.body =
      as_list(AttentionBlocks(match(stages, rows), tile, epilogue, outputs, loops::names_in(kernel)).run());
}

}  // namespace tenon::schedule::cuda
