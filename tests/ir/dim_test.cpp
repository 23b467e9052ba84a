// dim_test.cpp — dims: their normal form, their text, and that both always mean what was computed.
#include "ir/dim.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "base/error.h"
#include "ir/dim_list.h"

namespace tenon {

void PrintTo(const Dim& dim, std::ostream* stream) { *stream << dim.to_string(); }

namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();
constexpr int64_t smallest = std::numeric_limits<int64_t>::min();

const Dim k = Dim::symbol("k");
const Dim m = Dim::symbol("m");
const Dim n = Dim::symbol("n");
const Dim unknown;

std::string get_error(const std::string& text) {
  try {
    return "parsed as " + Dim::parse(text).to_string();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Dim, KnowsWhatItIs) {
  EXPECT_TRUE(unknown.is_unknown());
  EXPECT_FALSE(unknown.is_constant());
  EXPECT_EQ(unknown.constant(), std::nullopt);
  EXPECT_TRUE(Dim(7).is_constant());
  EXPECT_EQ(Dim(7).constant(), 7);
  EXPECT_FALSE(Dim(7).is_symbol());
  EXPECT_TRUE(n.is_symbol());
  EXPECT_FALSE(n.is_constant());
  EXPECT_FALSE((2 * n).is_symbol());
  EXPECT_FALSE((n + 1).is_symbol());
  EXPECT_FALSE((n * n).is_symbol());
  EXPECT_FALSE(floor_div(n, 2).is_symbol());
  EXPECT_TRUE((n + 0 * m).is_symbol());
  EXPECT_TRUE((n - n).is_constant());
  EXPECT_THROW(Dim::symbol(""), InternalError);
}

TEST(Dim, ComparesNormalForms) {
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(m + n, n + m);
  EXPECT_NE(n, m);
  EXPECT_NE(n, Dim(0));
  EXPECT_NE(n, unknown);
  EXPECT_NE(unknown, Dim(0));
  EXPECT_EQ(unknown, Dim());
  EXPECT_TRUE(provably_equal(n + m, m + n));
  EXPECT_FALSE(provably_equal(unknown, unknown));
  EXPECT_FALSE(provably_equal(n, unknown));
  EXPECT_EQ((2 * (n + m)).hash(), (m + n + m + n).hash());
}

TEST(Dim, KeepsUnknownUnknown) {
  for (const Dim& dim : {unknown + 1, 2 * unknown, unknown - unknown, n * unknown, floor_div(unknown, 2),
                         floor_div(n, unknown), mod(unknown, 1), max(unknown, 0), min(n, unknown)})
    EXPECT_TRUE(dim.is_unknown()) << dim.to_string();
  EXPECT_EQ(0 * unknown, 0);
  EXPECT_EQ(unknown * 0, 0);
}

TEST(Dim, PrintsNaturally) {
  EXPECT_EQ(unknown.to_string(), "?");
  EXPECT_EQ(Dim(-3).to_string(), "-3");
  EXPECT_EQ((n * 2).to_string(), "2*n");
  EXPECT_EQ((m - 1 + n).to_string(), "m+n-1");
  EXPECT_EQ((n - m).to_string(), "n-m");
  EXPECT_EQ((8 - n).to_string(), "8-n");
  EXPECT_EQ((-1 * n - 8).to_string(), "-n-8");
  EXPECT_EQ((1 + n + 3 * n * m + n * n * n).to_string(), "n*n*n+3*m*n+n+1");
  EXPECT_EQ((floor_div(n + 1, 2) + n).to_string(), "n+floor((n+1)/2)");
  EXPECT_EQ(floor_div(3 * n, 4).to_string(), "floor(3*n/4)");
  EXPECT_EQ(floor_div(n, 2 * m).to_string(), "floor(n/(2*m))");
  EXPECT_EQ(floor_div(n, m * m).to_string(), "floor(n/(m*m))");
  EXPECT_EQ(floor_div(n, max(m, 1)).to_string(), "floor(n/max(m,1))");
  EXPECT_EQ(max(n - 3, 0).to_string(), "max(n-3,0)");
  EXPECT_EQ(mod(n, 4).to_string(), "mod(n,4)");
  EXPECT_EQ(fmt::format("{:>5}", n), "    n");
}

TEST(Dim, QuotesOddNames) {
  EXPECT_EQ(Dim::symbol("unk__0").to_string(), "unk__0");
  EXPECT_EQ(Dim::symbol("past.0").to_string(), "past.0");
  EXPECT_EQ(Dim::symbol("batch size").to_string(), "`batch size`");
  EXPECT_EQ(Dim::symbol("a+b").to_string(), "`a+b`");
  EXPECT_EQ(Dim::symbol("7").to_string(), "`7`");
  EXPECT_EQ(Dim::symbol("?").to_string(), "`?`");
  EXPECT_EQ(Dim::symbol("a`b`").to_string(), "`a``b```");
  EXPECT_NE(Dim::symbol("m+n"), m + n);
  for (const char* name :
       {"batch size", "a+b", "7", "?", "`", "a``b`", " ", "größe", "max", "floor", "x,y)]"}) {
    const Dim dim = 2 * max(Dim::symbol(name), 3) + Dim::symbol(name);
    EXPECT_EQ(Dim::parse(dim.to_string()), dim) << dim.to_string();
  }
}

TEST(DimFloor, TakesOutWholeMultiples) {
  EXPECT_EQ(floor_div(4 * n, 4), n);
  EXPECT_EQ(floor_div(2 * n + 1, 2), n);
  EXPECT_EQ(floor_div(n + 6, 2), floor_div(n, 2) + 3);
  EXPECT_EQ(floor_div(n - 1, 1), n - 1);
  EXPECT_EQ(floor_div(n - 1, 2) + 1, floor_div(n + 1, 2));
  EXPECT_EQ(floor_div(5 * n, 4), n + floor_div(n, 4));
  EXPECT_EQ(floor_div(4 * n + 3, 6), floor_div(2 * n + 1, 3));
  EXPECT_EQ(floor_div(n * m + k, n), m + floor_div(k, n));
  EXPECT_EQ(floor_div(5 * n + 1, 2 * n), 2 + floor_div(n + 1, 2 * n));
}

TEST(DimFloor, CancelsWhatBothShare) {
  EXPECT_EQ(floor_div(12 * n * m, 64 * n), floor_div(3 * m, 16));
  EXPECT_EQ(floor_div(m * (n + k), n + k), m);
  EXPECT_EQ(floor_div(n, -2), floor_div(-1 * n, 2));
  EXPECT_EQ(floor_div(n, n), 1);
}

TEST(DimFloor, MergesFloorsOfFloors) {
  EXPECT_EQ(floor_div(floor_div(n, 2), 2), floor_div(n, 4));
  EXPECT_EQ(floor_div(floor_div(n, 2) + m, 3), floor_div(n + 2 * m, 6));
  const auto convolve = [](const Dim& size) { return floor_div(size + 2 * 1 - 3, 2) + 1; };
  EXPECT_EQ(convolve(convolve(n)).to_string(), "floor((n+3)/4)");
  EXPECT_NE(floor_div(2 * floor_div(n, 2), 3), floor_div(n, 3));
}

TEST(DimFloor, RoundsUpAsANegatedFloor) {
  EXPECT_EQ(ceil_div(n, 4), floor_div(n + 3, 4));
  EXPECT_EQ(ceil_div(n, 4), 0 - floor_div(0 - n, 4));
  EXPECT_EQ(ceil_div(n - m, 4), floor_div(n - m + 3, 4));
  EXPECT_EQ(ceil_div(4 * n, 4), n);
  EXPECT_EQ(ceil_div(n, m).to_string(), "-floor(-n/m)");
}

TEST(DimFloor, IsZeroWhereTheNumeratorIsSmaller) {
  EXPECT_EQ(floor_div(mod(n, 4), 4), 0);
  EXPECT_EQ(floor_div(mod(n, 4) + 1, 4).to_string(), "floor((mod(n,4)+1)/4)");
  EXPECT_EQ(floor_div(n, n + 1), 0);
  EXPECT_EQ(floor_div(n, m + 1).to_string(), "floor(n/(m+1))");
}

TEST(DimFloor, OfIntegersRoundsDown) {
  EXPECT_EQ(floor_div(Dim(7), 2), 3);
  EXPECT_EQ(floor_div(Dim(-7), 2), -4);
  EXPECT_EQ(floor_div(Dim(7), -2), -4);
  EXPECT_EQ(ceil_div(Dim(7), 2), 4);
  EXPECT_EQ(ceil_div(Dim(-7), 2), -3);
  EXPECT_EQ(mod(Dim(-7), 4), 1);
  EXPECT_EQ(mod(Dim(7), -4), -1);
  EXPECT_TRUE(floor_div(Dim(1), 0).is_unknown());
  EXPECT_TRUE(floor_div(n, 0).is_unknown());
  EXPECT_TRUE(mod(n, 0).is_unknown());
}

TEST(DimMod, DropsWholeMultiples) {
  EXPECT_EQ(mod(4 * n, 4), 0);
  EXPECT_EQ(mod(4 * n + 3, 4), 3);
  EXPECT_EQ(mod(5 * n - 1, 4), mod(n + 3, 4));
  EXPECT_EQ(mod(4 * n + 3, 6), 2 * mod(2 * n + 1, 3) + 1);
  EXPECT_EQ(mod(n * m + k, n), mod(k, n));
  EXPECT_EQ(mod(0 - n, 4), mod(3 * n, 4));
  EXPECT_EQ(mod(n, 1), 0);
}

TEST(DimMod, SeesThroughAModThatDivides) {
  EXPECT_EQ(mod(mod(n, 8), 4), mod(n, 4));
  EXPECT_EQ(mod(mod(n, 4), 8), mod(n, 4));
  EXPECT_EQ(mod(2 * mod(n, 2), 4), 2 * mod(n, 2));
  EXPECT_EQ(mod(mod(n, 6), 4).to_string(), "mod(mod(n,6),4)");
}

TEST(DimMax, DropsOperandsThatNeverDecide) {
  EXPECT_EQ(max(n, 0), n);
  EXPECT_EQ(max(n + 1, 1), n + 1);
  EXPECT_EQ(max(n, n), n);
  EXPECT_EQ(max(2 * n, n), 2 * n);
  EXPECT_EQ(min(n, -1), -1);
  EXPECT_EQ(min(n, n + m), n);
  EXPECT_EQ(max(min(n, 5), 5), 5);
  EXPECT_EQ(max(max(n, 3), max(5, m)), max(n, max(m, 5)));
  EXPECT_EQ(max(max(n, 3), max(5, m)).to_string(), "max(m,n,5)");
  EXPECT_EQ(max(Dim(largest), smallest), largest);
}

TEST(DimMax, KeepsOperandsThatMayDecide) {
  EXPECT_EQ(max(n, 1).to_string(), "max(n,1)") << "a size may be 0";
  EXPECT_EQ(max(n, m).to_string(), "max(m,n)");
  EXPECT_EQ(min(max(n, 1), 4).to_string(), "min(max(n,1),4)");
  EXPECT_EQ(max(n * m, n).to_string(), "max(m*n,n)") << "m may be 0";
}

TEST(Dim, DividesExactly) {
  EXPECT_EQ(divide_exactly(12 * n * m, 3 * n), 4 * m);
  EXPECT_EQ(divide_exactly(12, 4), Dim(3));
  EXPECT_EQ(divide_exactly(0, n), Dim(0));
  EXPECT_EQ(divide_exactly((n + m) * 64 * k, 16 * (m + n)), 4 * k);
  EXPECT_EQ(divide_exactly(n * n - m * m, n + m), n - m);
  EXPECT_EQ(divide_exactly(12, 5), std::nullopt);
  EXPECT_EQ(divide_exactly(n, 2), std::nullopt);
  EXPECT_EQ(divide_exactly(n, m), std::nullopt);
  EXPECT_EQ(divide_exactly(n + 1, n), std::nullopt);
  EXPECT_EQ(divide_exactly(n, 0), std::nullopt);
  EXPECT_EQ(divide_exactly(unknown, 1), std::nullopt);
  EXPECT_EQ(divide_exactly(n, unknown), std::nullopt);
  EXPECT_EQ(divide_exactly(smallest, -1), std::nullopt);
  EXPECT_EQ(divide_exactly(n - largest, -1 * n - 1), std::nullopt) << "leaves -2^63, by -n";
}

TEST(Dim, BoundsFromBelow) {
  EXPECT_EQ(Dim(-5).lower_bound(), -5);
  EXPECT_EQ((3 * n + 2).lower_bound(), 2);
  EXPECT_EQ((n - m).lower_bound(), std::nullopt);
  EXPECT_EQ((n * m + 1).lower_bound(), 1);
  EXPECT_EQ((n * floor_div(m - 1, 2)).lower_bound(), std::nullopt);
  EXPECT_EQ(floor_div(n + 7, 2).lower_bound(), 3);
  EXPECT_EQ(floor_div(n - 7, 2).lower_bound(), -4);
  EXPECT_EQ(floor_div(n + 5, m).lower_bound(), 0);
  EXPECT_EQ((n - 2 * mod(m, 4)).lower_bound(), -6);
  EXPECT_EQ(max(n - m, 2).lower_bound(), 2);
  EXPECT_EQ(min(n, 3).lower_bound(), 0);
  EXPECT_EQ((n - min(m, 3)).lower_bound(), -3);
  EXPECT_EQ(unknown.lower_bound(), std::nullopt);
}

TEST(Dim, BoundsFromAbove) {
  EXPECT_EQ(Dim(-5).upper_bound(), -5);
  EXPECT_EQ(n.upper_bound(), std::nullopt);
  EXPECT_EQ((7 - n).upper_bound(), 7);
  EXPECT_EQ(mod(n, 4).upper_bound(), 3);
  EXPECT_EQ((2 * floor_div(n + 1, 2) - n).upper_bound(), 1);
  EXPECT_EQ((n - 2 * floor_div(n, 2)).upper_bound(), 1);
  EXPECT_EQ((2 * floor_div(n + 7, 8) - floor_div(n + 3, 4)).upper_bound(), 1);
  EXPECT_EQ((floor_div(n + m, 3) - floor_div(n, 3)).upper_bound(), std::nullopt);
  EXPECT_EQ((m * floor_div(n, 2)).upper_bound(), std::nullopt);
  EXPECT_EQ((floor_div(n, m) - n).upper_bound(), std::nullopt);
  EXPECT_EQ((floor_div(n, largest) - n).upper_bound(), std::nullopt) << "too large to multiply by";
  EXPECT_EQ(unknown.upper_bound(), std::nullopt);
  EXPECT_EQ((min(n, 224) - n).upper_bound(), 0);
  EXPECT_EQ((2 * floor_div(min(n, 224) + 1, 2) - n).upper_bound(), 1);
  EXPECT_EQ((n - max(n, m)).upper_bound(), 0);
  EXPECT_EQ((min(n, 224) + min(m, 7)).upper_bound(), 231);
  EXPECT_EQ((max(n, 3) - m).upper_bound(), std::nullopt);
  const Dim between = 3 * floor_div(2 * n + 5, 6) - n;
  for (int64_t value = 0; value < 50; ++value)
    EXPECT_LE(between.evaluate({{"n", value}}), *between.upper_bound());
}

TEST(Dim, SubstitutesAllSymbolsAtOnce) {
  EXPECT_EQ((n + 2 * m).substitute({{"n", m}, {"m", n}}), m + 2 * n);
  EXPECT_EQ(floor_div(n + 1, 2).substitute({{"n", 2 * m + 3}}), m + 2);
  EXPECT_EQ(max(n, m).substitute({{"n", 4}, {"m", 6}}), 6);
  EXPECT_TRUE((n + m).substitute({{"n", unknown}}).is_unknown());
  EXPECT_EQ(unknown.substitute({{"n", 4}}), unknown);
  EXPECT_EQ((n * m).substitute({{"n", 0}}), 0);
}

TEST(Dim, EvaluatesWhereEverythingIsBound) {
  EXPECT_EQ((n * m - 1).evaluate({{"n", 3}, {"m", 4}}), 11);
  EXPECT_EQ((n * m).evaluate({{"n", 3}}), std::nullopt);
  EXPECT_EQ((n * m).evaluate({{"n", 0}}), 0);
  EXPECT_EQ(floor_div(n, m).evaluate({{"n", 3}, {"m", 0}}), std::nullopt);
  EXPECT_EQ((n * n).evaluate({{"n", largest}}), std::nullopt);
  EXPECT_EQ(Dim(5).evaluate({}), 5);
  EXPECT_EQ(unknown.evaluate({}), std::nullopt);
}

TEST(Dim, ListsItsSymbols) {
  EXPECT_EQ((n + floor_div(max(m, k), n)).symbols(), (std::vector<std::string>{"k", "m", "n"}));
  EXPECT_TRUE(Dim(3).symbols().empty());
  EXPECT_TRUE(unknown.symbols().empty());
}

TEST(Dim, OverflowsToUnknown) {
  EXPECT_TRUE((Dim(largest) + 1).is_unknown());
  EXPECT_TRUE((Dim(smallest) - 1).is_unknown());
  EXPECT_TRUE((0 - Dim(smallest)).is_unknown());
  EXPECT_TRUE((Dim(largest) * 2).is_unknown());
  EXPECT_TRUE((largest * n + n).is_unknown());
  EXPECT_TRUE((largest * n * 2).is_unknown());
  EXPECT_TRUE((n + smallest).is_unknown());
  EXPECT_TRUE(floor_div(Dim(smallest), -1).is_unknown());
  EXPECT_TRUE(floor_div(n, smallest).is_unknown());
  EXPECT_TRUE(mod(smallest, n).is_unknown());
  EXPECT_EQ((largest * n).lower_bound(), 0);
  EXPECT_EQ(floor_div(floor_div(n, largest), largest).to_string(),
            "floor(floor(n/9223372036854775807)/9223372036854775807)");
  EXPECT_EQ(floor_div(largest * n, largest), n);
}

TEST(Dim, GrowsToUnknown) {
  Dim sum = 0;
  Dim power = 1;
  Dim nested = n;
  for (int i = 0; i < 300; ++i) {
    sum = sum + Dim::symbol("s" + std::to_string(i));
    power = power * n;
    nested = max(nested, 2) * 3 - 1;
    if (i == 20) {
      EXPECT_FALSE(sum.is_unknown());
      EXPECT_FALSE(power.is_unknown());
      EXPECT_FALSE(nested.is_unknown());
    }
  }
  EXPECT_TRUE(sum.is_unknown());
  EXPECT_TRUE(power.is_unknown());
  EXPECT_TRUE(nested.is_unknown());
}

TEST(DimParse, ReadsMoreThanItPrints) {
  EXPECT_EQ(Dim::parse(" 2 * ( n + 1 ) - m\t"), 2 * n + 2 - m);
  EXPECT_EQ(Dim::parse("ceil(n/4)"), ceil_div(n, 4));
  EXPECT_EQ(Dim::parse("max(n,m,k,2)"), max(max(n, m), max(k, 2)));
  EXPECT_EQ(Dim::parse("-(n-m)"), m - n);
  EXPECT_EQ(Dim::parse("?"), unknown);
  EXPECT_EQ(Dim::parse("?*2+n"), unknown);
  EXPECT_EQ(Dim::parse("-9223372036854775808"), smallest);
  EXPECT_EQ(Dim::parse("9223372036854775807"), largest);
  EXPECT_EQ(Dim::parse("max"), Dim::symbol("max"));
}

TEST(DimParse, SaysWhatIsWrong) {
  EXPECT_EQ(get_error(""), "dimension \"\": wanted a number, a symbol or '(' at the end");
  EXPECT_EQ(get_error("n+"), "dimension \"n+\": wanted a number, a symbol or '(' at the end");
  EXPECT_EQ(get_error("n+*m"), "dimension \"n+*m\": wanted a number, a symbol or '(' before \"*m\"");
  EXPECT_EQ(get_error("2n"), "dimension \"2n\": wanted an operator before \"n\"");
  EXPECT_EQ(get_error("n/2"), "dimension \"n/2\": wanted an operator before \"/2\"");
  EXPECT_EQ(get_error("(n"), "dimension \"(n\": wanted ')' at the end");
  EXPECT_EQ(get_error("floor(n)"), "dimension \"floor(n)\": wanted '/' before \")\"");
  EXPECT_EQ(get_error("floor(n-1/2)"), "dimension \"floor(n-1/2)\": wanted '/' before \"-1/2)\"");
  EXPECT_EQ(get_error("floor(n/0)"), "dimension \"floor(n/0)\": divides by zero");
  EXPECT_EQ(get_error("mod(n,2-2)"), "dimension \"mod(n,2-2)\": divides by zero");
  EXPECT_EQ(get_error("mod(n)"), "dimension \"mod(n)\": mod wants 2 operands, got 1");
  EXPECT_EQ(get_error("sin(n)"),
            "dimension \"sin(n)\": no function is called sin: wanted floor, ceil, mod, max or min");
  EXPECT_EQ(get_error("`n"), "dimension \"`n\": wanted a closing backtick before \"n\"");
  EXPECT_EQ(get_error("``"), "dimension \"``\": wanted a name in the backticks at the end");
  const std::string too_large = "is too large: wanted numbers below 2^63 and at most 128 terms and factors";
  EXPECT_EQ(get_error("9223372036854775808"), "dimension \"9223372036854775808\": " + too_large);
  EXPECT_EQ(get_error("?+9223372036854775808"), "dimension \"?+9223372036854775808\": " + too_large);
  EXPECT_EQ(get_error("9223372036854775807*n*2"), "dimension \"9223372036854775807*n*2\": " + too_large);
  EXPECT_EQ(get_error(std::string(100000, '(')),
            "dimension: is nested too deeply: wanted at most 128 levels of parentheses");
}

// Random expressions, computed twice: as a Dim, and directly on the integers bound to the symbols.
using Bindings = std::map<std::string, int64_t>;
struct Sample {
  Dim dim;
  std::function<std::optional<int64_t>(const Bindings&)> evaluate;  // nothing on division by zero
};

class SampleMaker {
 public:
  explicit SampleMaker(uint32_t seed) : random_(seed) {}

  int64_t draw(int64_t low, int64_t high) { return low + static_cast<int64_t>(random_() % (high - low + 1)); }

  Sample make(int depth) {
    if (depth == 0 || draw(0, 5) == 0) {
      if (draw(0, 1) == 0) {
        const int64_t value = draw(-6, 12);
        return {value, [value](const Bindings&) { return value; }};
      }
      const std::string name(1, "kmn"[draw(0, 2)]);
      return {Dim::symbol(name), [name](const Bindings& bindings) { return bindings.at(name); }};
    }
    const Sample a = make(depth - 1);
    const Sample b = make(depth - 1);
    const int64_t choice = draw(0, 7);
    return {combine(choice, a.dim, b.dim), [=](const Bindings& bindings) -> std::optional<int64_t> {
              const auto x = a.evaluate(bindings);
              const auto y = b.evaluate(bindings);
              if (!x || !y)
                return std::nullopt;
              return combine_integers(choice, *x, *y);
            }};
  }

 private:
  static Dim combine(int64_t choice, const Dim& a, const Dim& b) {
    switch (choice) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return floor_div(a, b);
      case 4:
        return ceil_div(a, b);
      case 5:
        return mod(a, b);
      case 6:
        return max(a, b);
      default:
        return min(a, b);
    }
  }

  static std::optional<int64_t> combine_integers(int64_t choice, int64_t a, int64_t b) {
    if (choice >= 3 && choice <= 5 && b == 0)
      return std::nullopt;
    const auto take_remainder = [b](int64_t x) { return ((x % b) + b) % b; };
    switch (choice) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return (a - take_remainder(a)) / b;
      case 4:
        return (a + take_remainder(-a)) / b;
      case 5:
        return take_remainder(a);
      case 6:
        return std::max(a, b);
      default:
        return std::min(a, b);
    }
  }

  std::mt19937 random_;
};

TEST(DimProperty, MeansWhatWasComputed) {
  SampleMaker maker(1);
  int compared = 0;
  for (int i = 0; i < 8000; ++i) {
    const Sample sample = maker.make(1 + i % 4);
    const auto lower = sample.dim.lower_bound();
    for (int trial = 0; trial < 6 && !sample.dim.is_unknown(); ++trial) {
      const Bindings bindings = {{"k", maker.draw(0, 9)}, {"m", maker.draw(0, 9)}, {"n", maker.draw(0, 9)}};
      const auto expected = sample.evaluate(bindings);
      if (!expected)
        continue;
      ++compared;
      ASSERT_EQ(sample.dim.evaluate(bindings), expected) << sample.dim.to_string();
      ASSERT_LE(lower.value_or(*expected), *expected) << sample.dim.to_string();
    }
  }
  EXPECT_GT(compared, 20000);
}

TEST(DimProperty, ComputesTheSameInAList) {
  SampleMaker maker(3);
  DimList list({"k", "m", "n"});
  std::vector<std::pair<Dim, size_t>> dims;
  for (int i = 0; i < 2000; ++i)
    if (const Dim dim = maker.make(1 + i % 5).dim; !dim.is_unknown())
      dims.emplace_back(dim, list.add(dim));
  for (int trial = 0; trial < 20; ++trial) {
    const int64_t most = trial < 10 ? 9 : largest / 10;  // much overflows then
    const std::vector<int64_t> values = {maker.draw(0, most), maker.draw(0, most), maker.draw(0, most)};
    const Bindings bindings = {{"k", values[0]}, {"m", values[1]}, {"n", values[2]}};
    const std::vector<int64_t> registers = list.evaluate(values);
    for (const auto& [dim, number] : dims)
      ASSERT_EQ(registers[number], dim.evaluate(bindings).value_or(DimList::kNothing)) << dim.to_string();
  }
}

TEST(DimList, SharesRegisters) {
  DimList list({"m", "n"});
  EXPECT_EQ(list.add(n), 1U);
  const size_t sum = list.add(m + n);
  EXPECT_EQ(list.add(n + m), sum);
  EXPECT_EQ(list.dim(sum), m + n);
  EXPECT_TRUE(list.covers(2 * n));
  EXPECT_FALSE(list.covers(n + k));
  EXPECT_FALSE(list.covers(unknown));
}

TEST(DimProperty, ParsesBackToItself) {
  SampleMaker maker(2);
  for (int i = 0; i < 8000; ++i) {
    const Dim dim = maker.make(1 + i % 5).dim;
    const Dim parsed = Dim::parse(dim.to_string());
    ASSERT_EQ(parsed, dim);
    ASSERT_EQ(parsed.hash(), dim.hash());
    ASSERT_EQ(parsed.to_string(), dim.to_string());
    ASSERT_EQ(dim.substitute({}), dim);
  }
}

}  // namespace
}  // namespace tenon
