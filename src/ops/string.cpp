#include "ops/string.h"

#include <locale.h>
#include <re2/re2.h>
#include <wctype.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/utf8.h"
#include "ops/elements.h"
#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- string_concat ---

namespace string_concat {

Types infer(const Node& n) { return {Type::tensor(DType::String, broadcast_operands(n, n.operands()))}; }

Data eval(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  const Extents extents = broadcast_extents("string_concat", a.extents(), b.extents());
  Tensor y(DType::String, extents);
  auto to = y.mutable_strings().begin();
  walk<2>(extents, {broadcast_strides(a.extents(), extents), broadcast_strides(b.extents(), extents)},
          [&](const std::array<int64_t, 2>& at) {
            *to++ = a.strings()[static_cast<size_t>(at[0])] + b.strings()[static_cast<size_t>(at[1])];
          });
  return {y};
}

}  // namespace string_concat

// --- string_split ---

namespace string_split {

Types infer(const Node& n) {
  std::vector<Dim> dims = n.in("x").shape().dims();
  const Type counts = Type::tensor(DType::I64, dims);
  dims.emplace_back();
  return {Type::tensor(DType::String, dims), counts};
}

using Pieces = std::vector<std::string_view>;

Pieces split_at(std::string_view text, std::string_view delimiter, int64_t splits) {
  Pieces pieces;
  for (; splits != 0; --splits) {
    const size_t end = text.find(delimiter);
    if (end == text.npos)
      break;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  pieces.push_back(text);
  return pieces;
}

// Runs of blanks count as one delimiter, and none as any at the ends. What is left after the last split keeps
// its blanks.
Pieces split_at_blanks(std::string_view text, int64_t splits) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  Pieces pieces;
  while (true) {
    const size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos)
      return pieces;
    text.remove_prefix(begin);
    if (splits-- == 0)
      break;
    const size_t end = std::min(text.find_first_of(blanks), text.size());
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  pieces.push_back(text);
  return pieces;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::string delimiter = c.attr("delimiter").as<std::string>();
  const int64_t splits = std::max<int64_t>(c.attr("max_splits"), -1);
  std::vector<Pieces> split;
  size_t most = 0;
  for (const std::string& text : x.strings()) {
    split.push_back(delimiter.empty() ? split_at_blanks(text, splits) : split_at(text, delimiter, splits));
    most = std::max(most, split.back().size());
  }
  Extents extents = x.extents();
  extents.push_back(static_cast<int64_t>(most));
  Tensor y(DType::String, extents), counts(DType::I64, x.extents());
  for (size_t i = 0; i < split.size(); ++i) {
    counts.mutable_data<int64_t>()[i] = static_cast<int64_t>(split[i].size());
    for (size_t j = 0; j < split[i].size(); ++j)
      y.mutable_strings()[i * most + j] = split[i][j];
  }
  return {y, counts};
}

}  // namespace string_split

// --- string_normalize ---

namespace string_normalize {

using ChangeCase = wint_t (*)(wint_t, locale_t);

// Null where the case stays.
ChangeCase case_change_of(const Node& n) {
  return named<ChangeCase>(n, "change_case",
                           {{"none", nullptr}, {"lower", ::towlower_l}, {"upper", ::towupper_l}});
}

Types infer(const Node& n) {
  case_change_of(n);
  const Value x = n.in("x");
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dim(0).constant().value_or(1) != 1))
    throw operand_error(n, "x must be a vector, or a matrix of one row");
  return {Type::tensor(DType::String, x.rank() == 1 ? Shape{Dim()} : Shape{1, Dim()})};
}

// Applies towupper or towlower to each character of UTF-8 text. Bytes that are no UTF-8 stay as they are. The
// locale is the one that needs no installing and knows all of Unicode.
std::string change_case(const std::string& text, ChangeCase change) {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
  CHECK(locale != locale_t{}, "the locale C.UTF-8 is missing");
  std::string changed;
  for (std::string_view rest = text; !rest.empty();) {
    if (const auto code_point = take_utf8(rest)) {
      append_utf8(changed, change(*code_point, locale));
    } else {
      changed += rest.front();
      rest.remove_prefix(1);
    }
  }
  return changed;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.extent(0) != 1))
    throw user_error("string_normalize: x of shape [{}] is no vector, nor a matrix of one row",
                     fmt::join(x.extents(), ","));
  const ChangeCase change = case_change_of(c.node());
  const bool sensitive = c.attr("case_sensitive");
  const auto comparable = [&](const std::string& text) {
    return sensitive ? text : change_case(text, ::towlower_l);
  };
  std::set<std::string> dropped;
  for (const std::string& word : c.node().attr("drop").as<Attribute::Strings>())
    dropped.insert(comparable(word));
  std::vector<std::string> kept;
  for (const std::string& text : x.strings())
    if (!dropped.contains(comparable(text)))
      kept.push_back(change == nullptr ? text : change_case(text, change));
  if (kept.empty())
    kept.emplace_back();
  Extents extents = x.extents();
  extents.back() = static_cast<int64_t>(kept.size());
  return {Tensor::strings(kept, extents)};
}

}  // namespace string_normalize

// --- regex_full_match ---

namespace regex_full_match {

// RE2 matches in time linear in the text, and refuses patterns that would grow too big or nest too deep.
std::unique_ptr<const RE2> compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_unique<const RE2>(pattern, options);
  if (!compiled->ok())
    throw user_error("regex_full_match: the pattern \"{}\" is not valid: {}", pattern, compiled->error());
  return compiled;
}

Types infer(const Node& n) {
  compile(n.attr("pattern"));
  return {Type::tensor(DType::Bool, n.in("x").shape())};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const auto pattern = compile(c.attr("pattern").as<std::string>());
  std::vector<uint64_t> matches;
  for (const std::string& text : x.strings())
    matches.push_back(RE2::FullMatch(text, *pattern));
  return {narrow<uint64_t>(DType::Bool, x.extents(), matches)};
}

}  // namespace regex_full_match

// --- count_ngrams ---

namespace count_ngrams {

// The n-grams of one length: each n tokens of the pool, with its column of the result and its weight.
struct Column {
  int64_t index;
  double weight;
};
template <class T>
using Ngrams = std::map<std::vector<T>, Column>;

// One map for each length 1, 2, …
template <class T>
std::vector<Ngrams<T>> read_pool(const Node& n, std::span<const T> pool) {
  const Attribute::Ints &starts = n.attr("starts"), &columns = n.attr("columns");
  const Attribute::Floats& weights = n.attr("weights");
  const auto refuse = [&](std::string_view what) { return user_error("count_ngrams: {}", what); };
  std::vector<Ngrams<T>> all;
  size_t next = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t length = i + 1;
    const int64_t end = length < starts.size() ? starts[length] : static_cast<int64_t>(pool.size());
    if (starts[i] < 0 || end < starts[i] || end > static_cast<int64_t>(pool.size()))
      throw refuse(
          fmt::format("starts [{}] do not divide a pool of {} tokens", fmt::join(starts, ","), pool.size()));
    Ngrams<T>& ngrams = all.emplace_back();
    for (auto at = static_cast<size_t>(starts[i]); at + length <= static_cast<size_t>(end);
         at += length, ++next) {
      if (next >= columns.size() || (!weights.empty() && next >= weights.size()))
        throw refuse("there are more n-grams in the pool than columns, or than weights");
      ngrams.insert_or_assign(
          {pool.begin() + static_cast<int64_t>(at), pool.begin() + static_cast<int64_t>(at + length)},
          Column{columns[next], weights.empty() ? 1 : weights[next]});
    }
  }
  return all;
}

enum class Weighting : uint8_t { Count, Weight, WeightedCount };

Weighting weighting_of(const Node& n) {
  return named<Weighting>(
      n, "weighting",
      {{"tf", Weighting::Count}, {"idf", Weighting::Weight}, {"tfidf", Weighting::WeightedCount}});
}

int64_t count_columns(const Node& n) {
  const Attribute::Ints& columns = n.attr("columns");
  if (columns.empty())
    throw user_error("count_ngrams: there are no columns");
  const auto [least, greatest] = std::ranges::minmax(columns);
  if (least < 0 || greatest == std::numeric_limits<int64_t>::max())
    throw user_error("count_ngrams: there is no column {}", least < 0 ? least : greatest);
  return greatest + 1;
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  weighting_of(n);
  if (x.rank() < 1 || x.rank() > 2)
    throw operand_error(n, "x must be a vector or a matrix");
  std::vector<Dim> dims = x.shape().dims();
  dims.back() = count_columns(n);
  return {Type::tensor(DType::F32, dims)};
}

template <class T>
Tensor count(const Call& c, std::span<const T> tokens, std::span<const T> pool) {
  const Node& n = c.node();
  const std::vector<Ngrams<T>> ngrams = read_pool<T>(n, pool);
  const Weighting weighting = weighting_of(n);
  const int64_t shortest = std::max<int64_t>(n.attr("min_length"), 1);
  const int64_t longest = std::min<int64_t>(n.attr("max_length"), static_cast<int64_t>(ngrams.size()));
  Extents extents = c.in("x").extents();
  const int64_t row_length = extents.back(), columns = count_columns(n);
  extents.back() = columns;
  Tensor sums(DType::F64, extents);
  const std::span<double> result = sums.mutable_data<double>();
  for (int64_t length = shortest; length <= longest; ++length) {
    const Ngrams<T>& known = ngrams[static_cast<size_t>(length - 1)];
    // The tokens of an n-gram stand `distance` apart; for a single token that makes no difference.
    const int64_t skips = length == 1 ? 0 : std::clamp<int64_t>(n.attr("max_skips"), -1, row_length);
    for (int64_t distance = 1; distance <= skips + 1; ++distance)
      for (size_t row = 0; row < tokens.size(); row += static_cast<size_t>(row_length))
        for (int64_t i = 0; i + (length - 1) * distance < row_length; ++i) {
          std::vector<T> ngram;
          for (int64_t j = 0; j < length; ++j)
            ngram.push_back(tokens[row + static_cast<size_t>(i + j * distance)]);
          const auto it = known.find(ngram);
          if (it == known.end())
            continue;
          const auto [column, weight] = it->second;
          double& to = result[row / static_cast<size_t>(row_length) * static_cast<size_t>(columns) +
                              static_cast<size_t>(column)];
          if (weighting == Weighting::Weight)
            to = weight;
          else
            to += weighting == Weighting::Count ? 1 : weight;
        }
  }
  return narrow<double>(DType::F32, extents, result);
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const Tensor pool = c.node().attr("pool").as<Literal>().tensor();
  if (x.rank() < 1 || x.rank() > 2 ||
      pool.dtype() != (x.dtype() == DType::String ? DType::String : DType::I64))
    throw user_error(
        "count_ngrams: x is {} and the pool {}, but a vector or matrix of the same kind was wanted",
        describe(x.dtype(), x.extents()), describe(pool.dtype(), pool.extents()));
  if (x.dtype() == DType::String)
    return {count<std::string>(c, x.strings(), pool.strings())};
  return {count<int64_t>(c, as_ints(x), as_ints(pool))};
}

}  // namespace count_ngrams

}  // namespace

const Family& string_ops() {
  static const Family ops = {
      {.name = "string_concat",
       .doc = "a followed by b",
       .operands = {{"a", "str"}, {"b", "str"}},
       .results = {{"y", "str"}},
       .traits = {.elementwise = true},
       .infer = string_concat::infer,
       .eval = string_concat::eval},
      {.name = "string_split",
       .doc =
           "the pieces of each string between delimiters, filled up with empty ones, and how many there are",
       .operands = {{"x", "str"}},
       .attributes = {{"delimiter", AttributeKind::String,
                       "what separates pieces; empty: any number of blanks", ""},
                      {"max_splits", AttributeKind::Int,
                       "at how many delimiters to split at most; -1: at all", -1}},
       .results = {{"y", "str"}, {"counts", "i64"}},
       .infer = string_split::infer,
       .eval = string_split::eval},
      {.name = "string_normalize",
       .doc = "the strings but for some words, in lower or upper case; one empty string if none is left",
       .operands = {{"x", "str"}},
       .attributes = {{"change_case", AttributeKind::String, "none, lower or upper", "none"},
                      {"drop", AttributeKind::Strings, "the words to leave out", Attribute::Strings()},
                      {"case_sensitive", AttributeKind::Bool, "whether those must match in case too", false}},
       .results = {{"y", "str"}},
       .infer = string_normalize::infer,
       .eval = string_normalize::eval},
      {.name = "regex_full_match",
       .doc = "whether all of each string matches a pattern in RE2's syntax",
       .operands = {{"x", "str"}},
       .attributes = {{"pattern", AttributeKind::String, "the pattern"}},
       .results = {{"y", "bool"}},
       .infer = regex_full_match::infer,
       .eval = regex_full_match::eval},
      {.name = "count_ngrams",
       .doc = "how often each n-gram of a pool occurs in each row of x",
       .operands = {{"x", "T"}},
       .attributes = {{"pool", AttributeKind::Literal,
                       "the tokens of all n-grams, one after the other: shorter ones first"},
                      {"starts", AttributeKind::Ints, "where in the pool those of length 1, 2, … start"},
                      {"columns", AttributeKind::Ints,
                       "for each n-gram, the column of the result it is counted in"},
                      {"weights", AttributeKind::Floats, "for each n-gram; none: 1", Attribute::Floats()},
                      {"weighting", AttributeKind::String,
                       "tf: the count, idf: the weight if it occurs, tfidf: the count times the weight",
                       "tf"},
                      {"min_length", AttributeKind::Int, "n-grams from this length on are counted"},
                      {"max_length", AttributeKind::Int, "and up to this one"},
                      {"max_skips", AttributeKind::Int,
                       "up to how many tokens may stand between those of an n-gram", 0}},
       .results = {{"y", "f32"}},
       .types = {{"T", {DType::I64, DType::I32, DType::String}}},
       .infer = count_ngrams::infer,
       .eval = count_ngrams::eval},
  };
  return ops;
}

}  // namespace tenon
