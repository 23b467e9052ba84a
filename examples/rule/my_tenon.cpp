// my_tenon.cpp — tenon with one more rule: eˣ · eʸ is eˣ⁺ʸ, which takes one exponential instead of two.
#include <tenon/extend.hpp>

using tenon::Value;

int main(int argc, char** argv) {
  tenon::add_rewrite({.name = "merge-exponentials",
                      .numerics = tenon::Numerics::Reassociates,
                      .pattern = [](Value x, Value y) { return exp(x) * exp(y); },
                      .replacement = [](Value x, Value y) { return exp(x + y); }});
  return tenon::command_line(argc, argv);
}
