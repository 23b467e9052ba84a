#include "codegen/cuda/folds.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "codegen/cuda/accesses.h"

namespace tenon::codegen::cuda {

using loops::Assign;
using loops::Function;
using loops::Loop;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kMostPartialResults = 256;  // of one fold, in the registers of a thread
constexpr int64_t kLeastExchanged = 4;        // bytes that are written to another block of a cluster

// Of integers and bools with fewer bits, as shuffles take and other blocks are given them.
bool is_widened(DType dtype) { return info(dtype).bytes < kLeastExchanged && !is_float(dtype); }

std::string_view exchanged_type(DType dtype) { return is_widened(dtype) ? "int" : register_type(dtype); }

void find_variables(const std::vector<Statement>& body, std::set<std::string>& found) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement))
      found.insert(loop->variable);
    if (const auto* inner = body_of(statement))
      find_variables(*inner, found);
  }
}

}  // namespace

bool FoldText::fold(const Assign& assign) {
  const auto it = folds_.find(&assign);
  if (it == folds_.end())
    return false;
  const Fold& fold = it->second;
  const std::string at = subscript(assign, fold);
  if (adds_product(assign)) {
    const Expression part{fold.parts.front() + at};
    writer_.line("{} = {};", part.text, product_added(assign, part).text);
    return true;
  }
  std::vector<Expression> coming;
  for (const Scalar& value : assign.values)
    coming.push_back(value_of(value));
  absorb(assign, fold, at, std::move(coming));
  return true;
}

void FoldText::begin_folds(const Loop& loop) {
  for (const Assign* assign : find_folds(loop))
    begin_fold(*assign, loop);
}

// One result is enough, unless the place varies in loops within.
std::optional<int64_t> FoldText::partial_count(const Assign& assign, const Loop& loop) const {
  std::set<std::string> inner;
  find_variables(loop.body, inner);
  const bool varies = std::ranges::any_of(assign.places, [&](const Place& place) {
    return std::ranges::any_of(inner,
                               [&](const std::string& variable) { return mentions(place.at, variable); });
  });
  if (!varies)
    return std::nullopt;
  std::optional<int64_t> count;
  for (const Place& place : assign.places) {
    Dim elements = 1;
    for (const Dim& size : storage_.at(place.buffer).buffer.sizes)
      elements = elements * size;
    if (const int64_t own = elements.constant().value_or(kMostPartialResults + 1);
        own > kMostPartialResults || (count && count != own))
      throw unsupported("kernel {}: thread loop '{}' combines into too many elements of '{}'", kernel_.name,
                        loop.variable, place.buffer);
    count = elements.constant();
  }
  return count;
}

void FoldText::begin_fold(const Assign& assign, const Loop& loop) {
  const std::optional<Function> function = loops::built_in_combine(assign.combine);
  const loops::Combine* own = kernel_.find_combine(assign.combine);
  if (!function && (own == nullptr || !own->unordered))
    throw unsupported("kernel {}: the iterations of thread loop '{}' write one place of '{}' in order",
                      kernel_.name, loop.variable, assign.places.front().buffer);
  Fold fold{
      .parts = {}, .begun = {}, .count = partial_count(assign, loop), .of_warps = {}, .begun_warps = {}};
  for (const Place& place : assign.places) {
    const DType dtype = dtype_of(place);
    fold.parts.push_back(names_.fresh(storage_.at(place.buffer).name + "_part"));
    const std::string start = function ? elements_.neutral(*function, dtype).text : "0";
    if (!fold.count) {
      writer_.line("{} {} = {};", register_type(dtype), fold.parts.back(), start);
      continue;
    }
    writer_.line("{} {}[{}];", register_type(dtype), fold.parts.back(), *fold.count);
    for_each_part(fold,
                  [&](const std::string& at) { writer_.line("{}{} = {};", fold.parts.back(), at, start); });
  }
  if (!function) {
    fold.begun = names_.fresh("begun");
    if (fold.count)
      writer_.line("bool {}[{}] = {{}};", fold.begun, *fold.count);
    else
      writer_.line("bool {} = false;", fold.begun);
  }
  folds_.insert_or_assign(&assign, std::move(fold));
}

// Which of the partial results the iteration at hand adds to.
std::string FoldText::subscript(const Assign& assign, const Fold& fold) {
  if (!fold.count)
    return "";
  const Place& place = assign.places.front();
  return fmt::format("[{}]", indices_.text(*offset_of(storage_.at(place.buffer).buffer, place.at)).text);
}

template <class F>
void FoldText::for_each_part(const Fold& fold, F&& f) {
  if (!fold.count)
    return f(std::string());
  writer_.write("#pragma unroll");
  const std::string part = writer_.open_loop("part", "for (int {0} = 0; {0} < {1}; ++{0})", *fold.count);
  f(fmt::format("[{}]", part));
  writer_.close();
}

void FoldText::absorb(const Assign& assign, const Fold& fold, const std::string& at,
                      std::vector<Expression> coming) {
  const auto set = [&](const std::vector<Expression>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      writer_.line("{}{} = {};", fold.parts[i], at, values[i].text);
  };
  std::vector<Expression> there;
  for (const std::string& part : fold.parts)
    there.push_back({part + at});
  if (fold.begun.empty())
    return set(combine(assign, there, coming));
  for (size_t i = 0; i < coming.size(); ++i)
    coming[i] = named(dtype_of(assign.places[i]), coming[i]);
  writer_.open("if ({}{})", fold.begun, at);
  std::vector<Expression> combined = combine(assign, there, coming);
  for (size_t i = 0; i < combined.size(); ++i)
    combined[i] = named(dtype_of(assign.places[i]), combined[i]);
  set(combined);
  writer_.otherwise();
  set(coming);
  writer_.line("{}{} = true;", fold.begun, at);
  writer_.close();
}

void FoldText::finish_folds(const Loop& loop) {
  const std::vector<const Assign*> folds = find_folds(loop);
  at_.reset();
  if (team_.threads > 1)
    for (const Assign* assign : folds)
      shuffle(*assign, folds_.at(assign));
  if (!folds.empty() && meets_in_shared_memory(team_)) {
    if (team_.is_cluster())
      expect_parts(folds);
    for (const Assign* assign : folds)
      write_of_warp(*assign, folds_.at(assign));
    if (team_.is_cluster())
      wait_for_parts();
    else
      synchronise();
    for (const Assign* assign : folds)
      combine_warps(*assign, folds_.at(assign));
    if (team_.is_cluster())
      writer_.line("++exchange;");
  }
  for (const Assign* assign : folds)
    finish_fold(*assign, folds_.extract(assign).mapped());
}

Expression FoldText::shuffled(DType dtype, std::string_view function, const std::string& value,
                              const std::string& from) {
  const std::string_view type = register_type(dtype);
  const bool is_short = is_widened(dtype);
  const std::string call =
      fmt::format("{}({}, {}{}, {}, {})", function, team_.threads < 32 ? "mask" : "0xffffffff",
                  is_short ? "(int)" : "", value, from, std::min<int64_t>(team_.threads, 32));
  return is_short ? Expression{fmt::format("({}){}", type, call), Binding::Unary} : Expression{call};
}

// Built-in combines are the same both ways round, so that all threads get the result at once; of others the
// first thread has it.
void FoldText::shuffle(const Assign& assign, const Fold& fold) {
  const std::string_view function = fold.begun.empty() ? "__shfl_xor_sync" : "__shfl_down_sync";
  for_each_part(fold, [&](const std::string& at) {
    writer_.write("#pragma unroll");
    const std::string offset = writer_.open_loop("offset", "for (int {0} = {1}; {0} > 0; {0} /= 2)",
                                                 std::min<int64_t>(team_.threads, 32) / 2);
    std::vector<Expression> coming;
    for (size_t i = 0; i < fold.parts.size(); ++i) {
      const DType dtype = dtype_of(assign.places[i]);
      coming.push_back(shuffled(dtype, function, fold.parts[i] + at, offset));
      if (!fold.begun.empty())
        coming.back() = named(dtype, coming.back(), "other");
    }
    if (fold.begun.empty()) {
      absorb(assign, fold, at, std::move(coming));
    } else {
      const Expression begun =
          named(DType::Bool, shuffled(DType::Bool, function, fold.begun + at, offset), "other");
      writer_.open("if ({})", begun.text);
      absorb(assign, fold, at, std::move(coming));
      writer_.close();
    }
    writer_.close();
    if (!fold.begun.empty() && (team_.is_in_warp() || team_.is_cluster())) {
      for (size_t i = 0; i < fold.parts.size(); ++i)
        writer_.line("{}{} = {};", fold.parts[i], at,
                     shuffled(dtype_of(assign.places[i]), "__shfl_sync", fold.parts[i] + at, "0").text);
      writer_.line("{}{} = {};", fold.begun, at,
                   shuffled(DType::Bool, "__shfl_sync", fold.begun + at, "0").text);
    }
  });
}

void FoldText::begin_exchanges() {
  writer_.line("__shared__ unsigned long long all_came[2];");
  writer_.open("if (threadIdx.x < 2)");
  writer_.line("{}(&all_came[threadIdx.x]);", preamble_.use("begin_barrier"));
  writer_.close();
  writer_.line("unsigned exchange = 0;");
}

// Each block has those of all warps of the cluster.
void FoldText::expect_parts(const std::vector<const Assign*>& folds) {
  int64_t bytes = 0;
  for (const Assign* assign : folds) {
    const Fold& fold = folds_.at(assign);
    int64_t each = fold.begun.empty() ? 0 : kLeastExchanged;
    for (const Place& place : assign->places)
      each += std::max<int64_t>(info(dtype_of(place)).bytes, kLeastExchanged);
    bytes += each * fold.count.value_or(1) * (team_.threads / 32);
  }
  writer_.open("if (threadIdx.x == 0)");
  writer_.line("{}(&all_came[exchange % 2], {});", preamble_.use("expect_bytes"), bytes);
  writer_.close();
}

void FoldText::wait_for_parts() {
  writer_.line("{}(&all_came[exchange % 2], exchange / 2 % 2);", preamble_.use("wait_for_phase"));
}

void FoldText::write_of_warp(const Assign& assign, Fold& fold) {
  const int64_t warps = team_.threads / 32;
  const std::string count = fold.count ? fmt::format("[{}]", *fold.count) : "";
  const auto declare = [&](DType dtype, const std::string& part) {
    const std::string name = names_.fresh(part + "s");
    // Of a cluster, two in turn, as what is written to other blocks has at least 32 bits.
    if (!team_.is_cluster())
      writer_.line("__shared__ {} {}{}[{}];", register_type(dtype), name, count, warps);
    else
      writer_.line("__shared__ {} {}[2]{}[{}];", exchanged_type(dtype), name, count, warps);
    return team_.is_cluster() ? name + "[exchange % 2]" : name;
  };
  for (size_t i = 0; i < fold.parts.size(); ++i)
    fold.of_warps.push_back(declare(dtype_of(assign.places[i]), fold.parts[i]));
  if (!fold.begun.empty())
    fold.begun_warps = declare(DType::Bool, fold.begun);
  const auto write = [&](DType dtype, const std::string& of_warps, const std::string& at,
                         const std::string& part) {
    if (team_.is_cluster())
      writer_.line("{}(&{}{}[thread / 32], thread % 32, {}{}{}, &all_came[exchange % 2]);",
                   preamble_.use("store_to_block"), of_warps, at, is_widened(dtype) ? "(int)" : "", part, at);
    else
      writer_.line("{}{}[thread / 32] = {}{};", of_warps, at, part, at);
  };
  writer_.open("if (thread % 32 {})", team_.is_cluster() ? fmt::format("< {}", team_.blocks) : "== 0");
  for_each_part(fold, [&](const std::string& at) {
    for (size_t i = 0; i < fold.parts.size(); ++i)
      write(dtype_of(assign.places[i]), fold.of_warps[i], at, fold.parts[i]);
    if (!fold.begun.empty())
      write(DType::Bool, fold.begun_warps, at, fold.begun);
  });
  writer_.close();
}

Expression FoldText::part_of_warp(DType dtype, const std::string& of_warps, const std::string& warp) const {
  const std::string part = fmt::format("{}[{}]", of_warps, warp);
  return team_.is_cluster() && is_widened(dtype)
             ? Expression{fmt::format("({}){}", register_type(dtype), part), Binding::Unary}
             : Expression{part};
}

// Those of a cluster are many: each lane combines some, and then they are shuffled once more.
void FoldText::combine_in_lanes(const Assign& assign, const Fold& fold) {
  for_each_part(fold, [&](const std::string& at) {
    const auto of_warp = [&](const std::string& warp) {
      std::vector<Expression> parts;
      for (size_t i = 0; i < fold.of_warps.size(); ++i)
        parts.push_back(part_of_warp(dtype_of(assign.places[i]), fold.of_warps[i] + at, warp));
      return parts;
    };
    for (size_t i = 0; i < fold.parts.size(); ++i)
      writer_.line("{}{} = {};", fold.parts[i], at, of_warp("thread % 32")[i].text);
    writer_.write("#pragma unroll");
    const std::string warp =
        writer_.open_loop("warp", "for (int {0} = 32; {0} < {1}; {0} += 32)", team_.threads / 32);
    const std::string own = fmt::format("{} + thread % 32", warp);
    if (team_.threads / 32 % 32 != 0)
      writer_.open("if ({} < {})", own, team_.threads / 32);
    absorb(assign, fold, at, of_warp(own));
    if (team_.threads / 32 % 32 != 0)
      writer_.close();
    writer_.close();
  });
  shuffle(assign, fold);
}

void FoldText::combine_warps(const Assign& assign, const Fold& fold) {
  if (team_.is_cluster() && fold.begun.empty())
    return combine_in_lanes(assign, fold);
  for_each_part(fold, [&](const std::string& at) {
    for (size_t i = 0; i < fold.parts.size(); ++i)
      writer_.line("{}{} = {}{}[0];", fold.parts[i], at, fold.of_warps[i], at);
    if (!fold.begun.empty())
      writer_.line("{}{} = {}{}[0];", fold.begun, at, fold.begun_warps, at);
    writer_.write("#pragma unroll");
    const std::string warp =
        writer_.open_loop("warp", "for (int {0} = 1; {0} < {1}; ++{0})", team_.threads / 32);
    std::vector<Expression> coming;
    for (size_t i = 0; i < fold.of_warps.size(); ++i)
      coming.push_back(part_of_warp(dtype_of(assign.places[i]), fold.of_warps[i] + at, warp));
    if (!fold.begun.empty())
      writer_.open("if ({}{}[{}])", fold.begun_warps, at, warp);
    absorb(assign, fold, at, std::move(coming));
    if (!fold.begun.empty())
      writer_.close();
    writer_.close();
  });
}

// With what was there.
void FoldText::finish_fold(const Assign& assign, const Fold& fold) {
  const auto finish = [&](const std::string& at) {
    std::vector<Expression> there, coming, places;
    for (size_t i = 0; i < assign.places.size(); ++i) {
      const Storage& storage = storage_.at(assign.places[i].buffer);
      places.push_back(at.empty() ? element(storage, assign.places[i].at) : Expression{storage.name + at});
      there.push_back(storage.kind == Storage::Kind::Pointer
                          ? elements_.from_stored(storage.buffer.dtype, places[i])
                          : places[i]);
      coming.push_back({fold.parts[i] + at});
    }
    if (!fold.begun.empty())
      writer_.open("if ({}{})", fold.begun, at);
    std::vector<Expression> results = combine(assign, there, coming);
    if (results.size() > 1)
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = named(dtype_of(assign.places[i]), results[i], "value");
    for (size_t i = 0; i < results.size(); ++i) {
      const Storage& storage = storage_.at(assign.places[i].buffer);
      writer_.line("{} = {};", places[i].text,
                   storage.kind == Storage::Kind::Pointer
                       ? elements_.to_stored(storage.buffer.dtype, results[i]).text
                       : results[i].text);
    }
    if (!fold.begun.empty())
      writer_.close();
  };
  begin_statement({});
  const bool is_pointer = storage_.at(assign.places.front().buffer).kind == Storage::Kind::Pointer;
  if (is_pointer)
    in_first_thread([&] { for_each_part(fold, finish); });
  else
    for_each_part(fold, finish);
}

void FoldText::synchronise() {
  if (team_.threads == 1)
    return;
  if (team_.is_in_warp())
    writer_.line("__syncwarp({});", team_.threads < 32 ? "mask" : "0xffffffff");
  else if (team_.is_cluster())
    writer_.line("{}();", preamble_.use("cluster_sync"));
  else {
    if (!swizzled_.empty())
      writer_.line("{}();", preamble_.use("fence_proxy_async"));
    writer_.line("__syncthreads();");
  }
}

}  // namespace tenon::codegen::cuda
