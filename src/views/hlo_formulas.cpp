#include "views/hlo_formulas.h"

#include <cmath>

namespace tenon {
namespace {

// Instructions on tensors of one type, that of the node's result.
class Formula {
 public:
  Formula(HloComputation& out, const Node& node)
      : node(node),
        out_(out),
        type_(node.result().type()),
        flags_(Type::tensor(DType::Bool, type_.as_tensor().shape)) {}

  std::string in(std::string_view name) { return out_.use_as(node.in(name), type_); }
  std::string number(double value) const { return hlo_splat(value, type_); }

  template <class... Operands>
  std::string operator()(std::string_view instruction, const Operands&... operands) {
    return out_.emit(instruction, type_, call(instruction, operands...));
  }
  std::string compare(const std::string& a, const std::string& b, std::string_view direction) {
    return out_.emit("compare", flags_, fmt::format("compare({}, {}), direction={}", a, b, direction));
  }
  template <class... Operands>
  std::string combine(std::string_view instruction, const Operands&... operands) {
    return out_.emit(instruction, flags_, call(instruction, operands...));
  }

  const Node& node;

 private:
  template <class... Operands>
  static std::string call(std::string_view instruction, const Operands&... operands) {
    return fmt::format("{}({})", instruction, fmt::join(std::vector<std::string>{operands...}, ", "));
  }

  HloComputation& out_;
  Type type_, flags_;
};

// 0.5 x (1 + erf(x / √2)), or 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
std::string gelu(Formula& f) {
  const std::string x = f.in("x");
  std::string bend;
  if (f.node.attr("approximate").as<std::string>() == "none") {
    bend = f("erf", f("multiply", x, f.number(std::sqrt(0.5))));
  } else {
    const std::string cube = f("multiply", f("multiply", x, x), x);
    const std::string inner = f("add", x, f("multiply", cube, f.number(0.044715)));
    bend = f("tanh", f("multiply", inner, f.number(std::sqrt(2 / M_PI))));
  }
  const std::string half = f("multiply", x, f.number(0.5)), sum = f("add", bend, f.number(1));
  return f("multiply", half, sum);
}

std::string clamped_line(Formula& f, const std::string& x, double slope, double start) {
  const std::string line = f("add", f("multiply", x, f.number(slope)), f.number(start));
  return f("clamp", f.number(0), line, f.number(1));
}

std::string hard_sigmoid(Formula& f) {
  return clamped_line(f, f.in("x"), f.node.attr("alpha"), f.node.attr("beta"));
}

std::string hard_swish(Formula& f) {
  const std::string x = f.in("x");
  return f("multiply", x, clamped_line(f, x, 1.0 / 6, 0.5));
}

std::string silu(Formula& f) {
  const std::string x = f.in("x");
  return f("multiply", x, f("logistic", x));
}

std::string leaky_relu(Formula& f) {
  const std::string x = f.in("x");
  const std::string is_positive = f.compare(x, f.number(0), "GE");
  return f("select", is_positive, x, f("multiply", x, f.number(f.node.attr("alpha"))));
}

// scale · x above zero, scale · alpha · (exp(input_scale · x) - 1) below
std::string elu(Formula& f) {
  const std::string x = f.in("x");
  const auto times = [&](const std::string& a, const char* factor) {
    const double number = f.node.attr(factor);
    return number == 1 ? a : f("multiply", a, f.number(number));
  };
  const std::string is_positive = f.compare(x, f.number(0), "GT");
  const std::string below = times(f("exponential-minus-one", times(x, "input_scale")), "alpha");
  return times(f("select", is_positive, x, below), "scale");
}

// max(x, 0) + log(1 + exp(-|x|)), which overflows for no x
std::string log_of_one_plus_exp(Formula& f, const std::string& x) {
  const std::string power = f("exponential", f("negate", f("abs", x)));
  const std::string positive = f("maximum", x, f.number(0));
  return f("add", positive, f("log-plus-one", power));
}

std::string softplus(Formula& f) { return log_of_one_plus_exp(f, f.in("x")); }

std::string mish(Formula& f) {
  const std::string x = f.in("x");
  return f("multiply", x, f("tanh", log_of_one_plus_exp(f, x)));
}

// NaN alone differs from itself.
std::string is_nan(Formula& f) {
  const std::string x = f.in("x");
  return f.compare(x, x, "NE");
}

// HLO's remainder has the sign of a; where b's is wanted and differs, one b is added.
std::string mod(Formula& f) {
  const std::string a = f.in("a"), b = f.in("b");
  const std::string rest = f("remainder", a, b);
  if (f.node.attr("sign_of_dividend") || is_unsigned(f.node.in("a").dtype()))
    return rest;
  const std::string zero = f.number(0);
  const std::string rest_below = f.compare(rest, zero, "LT"), b_below = f.compare(b, zero, "LT");
  const std::string differ = f.combine("xor", rest_below, b_below);
  const std::string is_wrong = f.combine("and", f.compare(rest, zero, "NE"), differ);
  return f("select", is_wrong, f("add", rest, b), rest);
}

}  // namespace

bool write_hlo_formula(HloComputation& out, const Node& node) {
  static const std::map<std::string_view, std::string (*)(Formula&)> formulas = {
      {"elu", elu},
      {"gelu", gelu},
      {"hard_sigmoid", hard_sigmoid},
      {"hard_swish", hard_swish},
      {"is_nan", is_nan},
      {"leaky_relu", leaky_relu},
      {"mish", mish},
      {"mod", mod},
      {"silu", silu},
      {"softplus", softplus},
  };
  const auto it = formulas.find(node.op().name);
  if (it == formulas.end())
    return false;
  Formula formula(out, node);
  out.define(node.result(), it->second(formula));
  return true;
}

}  // namespace tenon
