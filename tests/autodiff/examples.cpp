#include "autodiff/examples.h"

namespace tenon {
namespace {

using Examples = std::vector<Example>;

void append(Examples& all, const Examples& more) { all.insert(all.end(), more.begin(), more.end()); }

Example unary(const std::string& op, double low = -2, double high = 2) {
  return {op, "%x: f64[2,3]", "%y = " + op + "(%x)", low, high};
}

// Operands of the same shape, one that broadcasts along two axes, and one that lacks one.
Examples binary(const std::string& op, double low = -2, double high = 2) {
  const std::string nodes = "%y = " + op + "(%a, %b)";
  return {{op, "%a: f64[2,3], %b: f64[2,3]", nodes, low, high},
          {op, "%a: f64[2,1], %b: f64[1,3]", nodes, low, high},
          {op, "%a: f64[2,3], %b: f64[3]", nodes, low, high},
          {op, "%a: f64[], %b: f64[2,3]", nodes, low, high}};
}

Examples elementwise() {
  Examples all = {unary("abs"),
                  unary("neg"),
                  unary("relu"),
                  unary("exp"),
                  unary("log", 0.5, 3),
                  unary("sqrt", 0.5, 3),
                  unary("reciprocal", 0.5, 3),
                  unary("sin"),
                  unary("cos"),
                  unary("tan", -1, 1),
                  unary("asin", -0.9, 0.9),
                  unary("acos", -0.9, 0.9),
                  unary("atan"),
                  unary("sinh"),
                  unary("cosh"),
                  unary("tanh"),
                  unary("asinh"),
                  unary("acosh", 1.5, 3),
                  unary("atanh", -0.9, 0.9),
                  unary("erf"),
                  unary("bessel_i0", -12, 12),
                  unary("bessel_i0e", 0.5, 12),
                  unary("bessel_i1", 0.5, 12),
                  unary("bessel_i1e", -12, -0.5),
                  unary("digamma", 0.5, 4),
                  unary("erfcx"),
                  unary("erfinv", -0.9, 0.9),
                  unary("lgamma", 0.5, 4),
                  {"polygamma", "%x: f64[2,3]", "%y = polygamma(%x, order=1)", 1, 4},
                  {"zeta", "%x: f64[2,3]", "%a = constant(value=f64[] {2.5})\n%y = zeta(%a, %x)", 1, 4},
                  unary("sigmoid"),
                  unary("copy"),
                  unary("softplus"),
                  unary("mish"),
                  unary("silu"),
                  unary("gelu"),
                  unary("elu"),
                  unary("leaky_relu"),
                  unary("hard_sigmoid", -4, 4),
                  unary("hard_swish", -5, 5),
                  {"to_device", "%x: f64[2]", "%y = to_device(%x, device=\"cpu\")"},
                  {"silu", "%x: f64[2,3]", "%y = silu(%x, alpha=1.7)"},
                  {"gelu", "%x: f64[2,3]", "%y = gelu(%x, approximate=\"tanh\")"},
                  {"leaky_relu", "%x: f64[2,3]", "%y = leaky_relu(%x, alpha=0.3)"},
                  {"elu", "%x: f64[2,3]", "%y = elu(%x, alpha=1.5, scale=0.7, input_scale=0.8)"},
                  {"hard_sigmoid", "%x: f64[2,3]", "%y = hard_sigmoid(%x, alpha=0.6, beta=0.4)"},
                  {"cast", "%x: f64[2]", "%0 = cast(%x, to=f64)\n%y = mul(%0, %x)"},
                  {"pow", "%a: f64[2,3]", "%b = constant(value=i64[3] {0, 1, 3})\n%y = pow(%a, %b)"},
                  {"mod", "%a: f64[2,3], %b: f64[3]", "%y = mod(%a, %b, sign_of_dividend=true)", 0.6, 3},
                  {"where", "%a: f64[2,1], %b: f64[3]",
                   "%c = constant(value=bool[2,3] {1, 0, 0, 1, 1, 0})\n%y = where(%c, %a, %b)"},
                  {"clip", "%x: f64[2,3]", "%y = clip(%x)"},
                  {"clip", "%x: f64[2,3], %low: f64[]", "%y = clip(%x, min=%low)"},
                  {"clip", "%x: f64[2,3], %high: f64[3]", "%y = clip(%x, max=%high)"},
                  {"clip", "%x: f64[2,3], %low: f64[], %high: f64[3]", "%y = clip(%x, %low, %high)"}};
  for (const std::string op : {"add", "sub", "mul", "max", "min"})
    append(all, binary(op));
  for (const std::string op : {"div", "pow", "mod"})
    append(all, binary(op, 0.6, 3));
  return all;
}

Examples reductions() {
  Examples all;
  for (const std::string op :
       {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_log_sum_exp"})
    append(all, {{op, "%x: f64[2,3,2]", "%y = " + op + "(%x, axes=[1])"},
                 {op, "%x: f64[2,3,2]", "%y = " + op + "(%x, axes=[0,-1], keep_dims=true)"},
                 {op, "%x: f64[2,3]", "%y = " + op + "(%x, axes=[-1,0])"},
                 {op, "%x: f64[2,3]", "%y = " + op + "(%x, axes=[])"}});
  append(
      all,
      {{"reduce_prod", "%x: f64[2,3]",
        "%z = constant(value=f64[2,3] {0, 1, 1, 0, 0, 1})\n%0 = mul(%x, %z)\n%y = reduce_prod(%0, axes=[1])"},
       {"cumulative_sum", "%x: f64[2,3]", "%y = cumulative_sum(%x, axis=1)"},
       {"cumulative_sum", "%x: f64[2,3]", "%y = cumulative_sum(%x, axis=-2, exclusive=true)"},
       {"cumulative_sum", "%x: f64[2,3]", "%y = cumulative_sum(%x, axis=1, reverse=true)"},
       {"cumulative_max", "%x: f64[2,5]", "%y, %i = cumulative_max(%x, axis=1)"},
       {"cumulative_min", "%x: f64[5,2]", "%y, %i = cumulative_min(%x, axis=-2)"},
       {"cumulative_log_sum_exp", "%x: f64[2,5]", "%y = cumulative_log_sum_exp(%x, axis=1)"},
       {"cumulative_log_sum_exp", "%x: f64[5,2]", "%y = cumulative_log_sum_exp(%x, axis=0, reverse=true)"},
       {"cumulative_prod", "%x: f64[2,3]", "%y = cumulative_prod(%x, axis=1)"},
       {"cumulative_prod", "%x: f64[4,2]", "%y = cumulative_prod(%x, axis=-2, exclusive=true)"},
       {"cumulative_prod", "%x: f64[4]", "%y = cumulative_prod(%x, axis=0, reverse=true)"},
       {"cumulative_prod", "%x: f64[4]",
        "%z = constant(value=f64[4] {1, 0, 1, 1})\n%0 = mul(%x, %z)\n%y = cumulative_prod(%0, axis=0, "
        "exclusive=true, reverse=true)"},
       {"softmax", "%x: f64[2,3]", "%y = softmax(%x)"},
       {"softmax", "%x: f64[2,3,2]", "%y = softmax(%x, axis=1)"},
       {"log_softmax", "%x: f64[2,3]", "%y = log_softmax(%x)"},
       {"log_softmax", "%x: f64[2,3,2]", "%y = log_softmax(%x, axis=0)"}});
  return all;
}

Examples products() {
  const auto matmul = [](const std::string& a, const std::string& b,
                         const std::string& flags = "") -> Example {
    return {"matmul", "%a: f64" + a + ", %b: f64" + b, "%y = matmul(%a, %b" + flags + ")"};
  };
  Examples all = {
      matmul("[2,3]", "[3,4]"),
      matmul("[3]", "[3]"),
      matmul("[3]", "[2,3,4]"),
      matmul("[2,4,3]", "[3]"),
      matmul("[2,2,3]", "[3,4]"),
      matmul("[2,3]", "[2,3,4]"),
      matmul("[2,1,2,3]", "[3,3,4]"),
      matmul("[3,2]", "[3,4]", ", transpose_a=true"),
      matmul("[2,3]", "[4,3]", ", transpose_b=true"),
      matmul("[2,2,3]", "[4,3]", ", transpose_b=true"),
      matmul("[2,3,2]", "[4,3]", ", transpose_a=true, transpose_b=true"),
      matmul("[3,2]", "[2,4,3]", ", transpose_a=true, transpose_b=true"),
      {"linear", "%x: f64[2,3], %w: f64[4,3], %b: f64[4]", "%y = linear(%x, %w, %b)"},
      {"linear", "%x: f64[3], %w: f64[4,3]", "%y = linear(%x, %w)"},
      {"linear", "%x: f64[2,2,3], %w: f64[4,3], %b: f64[4]", "%y = linear(%x, %w, %b)"},
      {"svm_regressor", "%x: f64[2,3]", "%y = svm_regressor(%x, coefficients=[1, -2, 0.5], rho=0.25)"},
      {"svm_regressor", "%x: f64[3]", "%y = svm_regressor(%x, coefficients=[1, -2, 0.5], rho=0.25)"}};
  for (const std::string kernel : {"linear", "poly", "rbf", "sigmoid"})
    all.push_back({"svm_regressor", "%x: f64[3,2]",
                   "%y = svm_regressor(%x, kernel=\"" + kernel +
                       "\", kernel_parameters=[0.5, 0.25, 2], vectors=[1, -1, 0.5, 2], coefficients=[1, -2], "
                       "rho=0.25)"});
  return all;
}

Examples movements() {
  return {
      {"reshape", "%x: f64[2,3]", "%s = constant(value=i64[2] {3, -1})\n%y = reshape(%x, %s)"},
      {"squeeze", "%x: f64[2,1,3]", "%y = squeeze(%x, axes=[1])"},
      {"unsqueeze", "%x: f64[2,3]", "%y = unsqueeze(%x, axes=[0,-1])"},
      {"transpose", "%x: f64[2,3,4]", "%y = transpose(%x, permutation=[2,0,1])"},
      {"broadcast", "%x: f64[3,1]", "%s = constant(value=i64[3] {2, 1, 4})\n%y = broadcast(%x, %s)"},
      {"slice", "%x: f64[4,5]",
       "%s = constant(value=i64[2] {1, -3})\n%e = constant(value=i64[2] {9, -1})\n%y = slice(%x, %s, %e, "
       "axes=[0,1])"},
      {"slice", "%x: f64[5]",
       "%s = constant(value=i64[1] {4})\n%e = constant(value=i64[1] {-9})\n%t = constant(value=i64[1] {-2})\n"
       "%y = slice(%x, %s, %e, %t, axes=[0])"},
      {"slice", "%x: f64[5,2]",
       "%s = constant(value=i64[1] {0})\n%e = constant(value=i64[1] {100})\n%t = constant(value=i64[1] {2})\n"
       "%y = slice(%x, %s, %e, %t, axes=[0])"},
      {"concat", "%a: f64[2,1], %b: f64[2,3]", "%y = concat([%a, %b, %a], axis=1)"},
      {"split", "%x: f64[2,5]",
       "%s = constant(value=i64[3] {1, 2, 2})\n%a, %b, %c = split(%x, %s, axis=1)\n%y = mul(%b, %c)"},
      {"gather", "%x: f64[3,4]", "%i = constant(value=i64[2,2] {0, 2, -1, 0})\n%y = gather(%x, %i, axis=0)"},
      {"gather", "%x: f64[3,4,2]",
       "%i = constant(value=i64[2,2] {0, 2, -1, 0})\n%y = gather(%x, %i, axis=1)"},
      {"gather", "%x: f64[3,4]", "%i = constant(value=i32[] {2})\n%y = gather(%x, %i, axis=-1)"},
      {"gather_elements", "%x: f64[3,2]",
       "%i = constant(value=i64[3,2] {0, 1, 1, -1, 0, 0})\n%y = gather_elements(%x, %i, axis=1)"},
      {"gather_nd", "%x: f64[3,2,2]",
       "%i = constant(value=i64[3,2] {0, 1, 2, 0, 0, 1})\n%y = gather_nd(%x, %i)"},
      {"gather_nd", "%x: f64[2,3,2]",
       "%i = constant(value=i64[2,2,1] {0, 2, -1, 2})\n%y = gather_nd(%x, %i, batch_dims=1)"},
      {"gather_nd", "%x: f64[2,2,3]",
       "%i = constant(value=i32[2,2,1] {0, 2, 1, 2})\n%y = gather_nd(%x, %i, batch_dims=2)"},
      {"pad", "%x: f64[2,3], %v: f64[]",
       "%p = constant(value=i64[4] {1, 0, 0, 2})\n%y = pad(%x, %p, %v, axes=[0,1])"},
      {"pad", "%x: f64[3,4]", "%p = constant(value=i64[2] {-1, 2})\n%y = pad(%x, %p, axes=[1])"},
      {"pad", "%x: f64[4]",
       "%p = constant(value=i64[2] {2, 3})\n%y = pad(%x, %p, axes=[0], mode=\"reflect\")"},
      {"pad", "%x: f64[4]", "%p = constant(value=i64[2] {2, 3})\n%y = pad(%x, %p, axes=[0], mode=\"edge\")"},
      {"pad", "%x: f64[4]", "%p = constant(value=i64[2] {2, 5})\n%y = pad(%x, %p, axes=[0], mode=\"wrap\")"},
      {"tile", "%x: f64[2,3]", "%r = constant(value=i64[2] {2, 3})\n%y = tile(%x, %r)"},
      {"reverse_sequence", "%x: f64[4,2]",
       "%l = constant(value=i64[2] {3, 4})\n%y = reverse_sequence(%x, %l, time_axis=0, batch_axis=1)"},
      {"triangle", "%x: f64[3,3]", "%y = triangle(%x, upper=true, diagonal=1)"},
      {"triangle", "%x: f64[2,3,4]", "%y = triangle(%x, upper=false)"},
      {"range", "%a: f64[], %d: f64[1]", "%e = constant(value=f64[] {10})\n%y = range(%a, %e, %d)", 0.7, 0.9},
      {"random_uniform", "%x: f64[2,3]",
       "%s = shape(%x)\n%r = random_uniform(%s, dtype=f64)\n%y = mul(%x, %r)"},
      {"random_normal", "%x: f64[2,3]",
       "%s = shape(%x)\n%r = random_normal(%s, dtype=f64, seed=3)\n%y = mul(%x, %r)"},
  };
}

Examples scatters() {
  Examples all;
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    append(all, {{"scatter_elements", "%x: f64[3,2], %u: f64[2,2]",
                  "%i = constant(value=i64[2,2] {0, 2, 0, -1})\n%y = scatter_elements(%x, %i, %u, axis=0, "
                  "reduction=\"" +
                      reduction + "\")"},
                 {"scatter_nd", "%x: f64[3,2], %u: f64[3,2]",
                  "%i = constant(value=i64[3,1] {0, 2, 0})\n%y = scatter_nd(%x, %i, %u, reduction=\"" +
                      reduction + "\")"}});
  }
  append(all, {{"scatter_elements", "%x: f64[3], %u: f64[4]",
                "%z = constant(value=f64[4] {0, 1, 0, 0})\n%0 = mul(%u, %z)\n%i = constant(value=i64[4] {0, "
                "0, 1, 1})\n"
                "%y = scatter_elements(%x, %i, %0, reduction=\"mul\")"},
               {"write_along", "%x: f64[2,4,2], %u: f64[2,2,2]", "%y = write_along(%x, %u)"},
               {"write_along", "%x: f64[2,4,2], %u: f64[2,3,2]",
                "%s = constant(value=i64[2] {1, 3})\n%y = write_along(%x, %u, %s, axis=1, circular=true)"}});
  return all;
}

Examples windows() {
  const auto conv = [](const std::string& x, const std::string& w, const std::string& attributes,
                       const std::string& needs_sizes = "") -> Example {
    return {"conv",     "%x: f64" + x + ", %w: f64" + w, "%y = conv(%x, %w, " + attributes + ")", -2, 2,
            needs_sizes};
  };
  const auto back = [](const std::string& x, const std::string& w, const std::string& attributes) -> Example {
    return {"conv_transpose", "%x: f64" + x + ", %w: f64" + w,
            "%y = conv_transpose(%x, %w, " + attributes + ")"};
  };
  const std::string late_padding = "the padding depends on dynamic sizes";
  Examples all = {
      conv("[2,2,5]", "[3,2,3]", "strides=[1], dilations=[1], pads=[0,0]"),
      conv("[1,2,6,5]", "[2,2,3,2]", "strides=[2,3], dilations=[1,1], pads=[1,0,0,1]"),
      conv("[2,2,7]", "[2,2,2]", "strides=[3], dilations=[2], pads=[2,1]"),
      conv("[2,4,5]", "[6,2,3]", "strides=[2], dilations=[1], pads=[1,1], groups=2"),
      conv("[1,3,4,4]", "[3,1,2,2]", "strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=3"),
      conv("[1,1,5]", "[1,1,3]", "strides=[2], dilations=[1], padding=\"same_upper\"", late_padding),
      conv("[1,1,5]", "[1,1,2]", "strides=[1], dilations=[1], padding=\"same_lower\"", late_padding),
      back("[2,2,3]", "[2,3,3]", "strides=[1], dilations=[1], pads=[0,0], output_padding=[0]"),
      back("[1,2,3,2]", "[2,2,3,2]", "strides=[2,3], dilations=[1,2], pads=[1,0,0,1], output_padding=[1,2]"),
      back("[2,4,3]", "[4,2,2]", "strides=[2], dilations=[1], pads=[0,0], groups=2, output_padding=[3]")};
  for (const std::string attributes :
       {"kernel=[2,2], strides=[1,1], dilations=[1,1], pads=[0,0,0,0]",
        "kernel=[3,2], strides=[2,2], dilations=[1,2], pads=[1,0,1,1]",
        "kernel=[2,2], strides=[2,2], dilations=[1,1], pads=[0,0,0,0], round_up=true",
        "kernel=[2,3], strides=[3,2], dilations=[1,1], pads=[0,1,1,1], round_up=true"})
    for (const std::string op : {"max_pool", "average_pool", "lp_pool"})
      all.push_back({op, "%x: f64[1,2,5,5]",
                     (op == "max_pool" ? "%y, %i = " : "%y = ") + op + "(%x, " + attributes + ")"});
  append(all,
         {{"average_pool", "%x: f64[2,1,5]",
           "%y = average_pool(%x, kernel=[3], strides=[2], dilations=[1], pads=[1,1], count_padding=true)"},
          {"average_pool", "%x: f64[1,2,5]",
           "%y = average_pool(%x, kernel=[3], strides=[3], dilations=[1], pads=[1,1], count_padding=true, "
           "round_up=true)"},
          {"average_pool", "%x: f64[1,2,5]",
           "%y = average_pool(%x, kernel=[2], strides=[1], dilations=[1], padding=\"same_upper\")"},
          {"lp_pool", "%x: f64[1,2,5]",
           "%y = lp_pool(%x, kernel=[3], strides=[2], dilations=[1], pads=[1,0], p=3)"},
          {"max_pool", "%x: f64[1,2,3,3]",
           "%y, %i = max_pool(%x, kernel=[2,2], strides=[1,1], dilations=[1,1], pads=[0,0,0,0], "
           "column_major=true)"},
          {"max_unpool", "%x: f64[1,1,2]",
           "%i = constant(value=i64[1,1,2] {1, 4})\n%s = constant(value=i64[3] {1, 1, 6})\n%y = "
           "max_unpool(%x, %i, %s)"}});
  return all;
}

// Positions reach beyond every border.
Examples samples() {
  Examples all;
  const auto grid = [&](const std::string& x, const std::string& positions, const std::string& attributes) {
    all.push_back({"grid_sample", "%x: f64" + x + ", %g: f64" + positions,
                   "%y = grid_sample(%x, %g, " + attributes + ")"});
  };
  for (const std::string mode : {"nearest", "linear", "cubic"})
    for (const std::string outside : {"zeros", "border", "reflection"})
      for (const std::string align_corners : {"false", "true"}) {
        const std::string attributes =
            "mode=\"" + mode + "\", outside=\"" + outside + "\", align_corners=" + align_corners;
        grid("[1,2,4]", "[1,5,1]", attributes);
        grid("[2,1,3,4]", "[2,2,2,2]", attributes);
      }
  for (const std::string attributes :
       {"mode=\"linear\"", "mode=\"cubic\", outside=\"reflection\"", "mode=\"nearest\", outside=\"border\""})
    grid("[1,1,2,3,2]", "[1,1,2,1,3]", attributes);
  const auto deform = [&](const std::string& x, const std::string& w, const std::string& offset,
                          const std::string& mask, const std::string& attributes) {
    const bool masked = !mask.empty();
    all.push_back(
        {"deform_conv",
         "%x: f64" + x + ", %w: f64" + w + ", %o: f64" + offset + (masked ? ", %m: f64" + mask : ""),
         "%y = deform_conv(%x, %w, %o, " + std::string(masked ? "%m, " : "") + attributes + ")"});
  };
  deform("[2,2,5]", "[3,2,2]", "[2,2,4]", "", "strides=[1], dilations=[1], pads=[0,0]");
  deform("[1,2,4,3]", "[2,2,2,2]", "[1,8,3,2]", "[1,4,3,2]",
         "strides=[1,1], dilations=[1,1], pads=[0,0,0,0]");
  deform("[2,4,4,3]", "[2,2,2,1]", "[2,8,2,3]", "[2,4,2,3]",
         "strides=[2,2], dilations=[2,1], pads=[1,2,0,1], groups=2, offset_groups=2");
  deform("[1,4,5]", "[4,1,2]", "[1,4,3]", "",
         "strides=[2], dilations=[1], pads=[1,0], groups=4, offset_groups=2");
  deform("[1,1,2,2,3]", "[1,1,1,2,2]", "[1,12,2,1,2]", "[1,4,2,1,2]",
         "strides=[1,1,1], dilations=[1,1,1], pads=[0,0,0,0,0,0]");
  const std::string images = "%i = constant(value=i64[3] {1, 0, 1})\n";
  for (const std::string attributes :
       {"size=[2,3], samples=2", "size=[2,1], samples=1, scale=1.7, half_pixel=false",
        "size=[1,2], samples=3, scale=0.8", "size=[2,2], samples=2, mode=\"max\"",
        "size=[1,2], samples=3, scale=2.5, half_pixel=false, mode=\"max\""}) {
    all.push_back({"roi_align", "%x: f64[2,2,4,3], %r: f64[3,4]",
                   images + "%y = roi_align(%x, %r, %i, " + attributes + ")"});
    all.push_back({"roi_align", "%x: f64[2,1,4,5], %d: f64[3,4]",
                   images +
                       "%c = constant(value=f64[3,4] {0, 0, 4, 3, 1, 1, 3, 3, -2, 0, 2, 5})\n"
                       "%r = add(%c, %d)\n%y = roi_align(%x, %r, %i, " +
                       attributes + ")",
                   -0.8, 0.8});
  }
  const std::string regions =
      "%b = constant(value=f64[3,1] {1, 0, 1})\n%c = constant(value=f64[3,4] {0, 0, 4, 3, 1, 1, 3, 3, 3, 2, "
      "7, 9})\n%p = add(%c, %d)\n%r = concat([%b, %p], axis=1)\n";
  for (const std::string attributes : {"size=[2,3]", "size=[1,2], scale=0.7", "size=[3,1], scale=1.4"})
    all.push_back({"max_roi_pool", "%x: f64[2,2,4,5], %d: f64[3,4]",
                   regions + "%y = max_roi_pool(%x, %r, " + attributes + ")", -2.5, 2});
  return all;
}

Examples norms() {
  return {
      {"batch_norm", "%x: f64[2,3,2], %s: f64[3], %b: f64[3], %m: f64[3], %v: f64[3]",
       "%y = batch_norm(%x, %s, %b, %m, %v)", 0.5, 2},
      {"batch_norm", "%x: f64[4], %s: f64[1], %b: f64[1], %m: f64[1], %v: f64[1]",
       "%y = batch_norm(%x, %s, %b, %m, %v, epsilon=0.1)", 0.5, 2},
      {"layer_norm", "%x: f64[2,3], %s: f64[3], %b: f64[3]", "%y = layer_norm(%x, %s, %b)"},
      {"layer_norm", "%x: f64[2,3,2], %s: f64[3,1], %b: f64[2]",
       "%y = layer_norm(%x, %s, %b, axis=1, epsilon=0.1)"},
      {"layer_norm", "%x: f64[2,3]", "%y = layer_norm(%x)"},
      {"layer_norm", "%x: f64[2,3], %b: f64[]", "%y = layer_norm(%x, bias=%b, axis=0)"},
      {"rms_norm", "%x: f64[2,3], %s: f64[3]", "%y = rms_norm(%x, %s)"},
      {"rms_norm", "%x: f64[2,3,2]", "%y = rms_norm(%x, axis=1, epsilon=0.1)"},
      {"group_norm", "%x: f64[2,4,3], %s: f64[4], %b: f64[4]", "%y = group_norm(%x, %s, %b, groups=2)"},
      {"group_norm", "%x: f64[2,4], %s: f64[4], %b: f64[4]",
       "%y = group_norm(%x, %s, %b, groups=2, epsilon=0.1)"},
      {"instance_norm", "%x: f64[2,2,3], %s: f64[2], %b: f64[2]", "%y = instance_norm(%x, %s, %b)"},
      {"instance_norm", "%x: f64[2,2,2,2], %s: f64[2], %b: f64[2]",
       "%y = instance_norm(%x, %s, %b, epsilon=0.1)"},
      {"local_response_norm", "%x: f64[2,4,3]",
       "%y = local_response_norm(%x, size=3, alpha=0.5, beta=0.6, bias=1.5)"},
      {"local_response_norm", "%x: f64[2,4,2,2]", "%y = local_response_norm(%x, size=2, alpha=0.5)"},
  };
}

Examples attentions() {
  const std::string q = "%q: f64[2,4,3,2], ", k = "%k: f64[2,2,5,2], ", v = "%v: f64[2,2,5,3]";
  const std::string bool_mask =
      "%m = constant(value=bool[3,5] {1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0})\n";
  const auto attention = [&](const std::string& more, const std::string& operands,
                             const std::string& attributes, const std::string& before = "") -> Example {
    return {"attention", q + k + v + more,
            before + "%y = attention(%q, %k, %v" + operands + ", scale=0.6" + attributes + ")"};
  };
  const auto scores = [&](const std::string& stage, const std::string& more, const std::string& operands,
                          const std::string& attributes, const std::string& before = "") -> Example {
    return {"attention_scores", "%q: f64[1,2,3,2], %k: f64[1,2,4,2]" + more,
            before + "%y = attention_scores(%q, %k" + operands + ", scale=0.6, stage=\"" + stage + "\"" +
                attributes + ")"};
  };
  const std::string sizes = "%o = constant(value=i64[2] {1, 2})\n%l = constant(value=i64[2] {5, 3})\n";
  return {
      attention("", "", ""),
      {"attention", "%q: f64[1,2,3,2], %k: f64[1,2,4,2], %v: f64[1,2,4,3]",
       "%y = attention(%q, %k, %v, scale=1)"},
      attention(", %m: f64[4,1,5]", ", %m", ""),
      attention("", ", %m", "", bool_mask),
      attention(", %m: f64[3,4]", ", %m", ", pad_mask=true, softcap=2"),
      attention("", ", offset=%o, lengths=%l", ", window_before=2, window_after=0", sizes),
      attention(", %m: f64[2,1,3,5]", ", %m, lengths=%l", ", window_after=1, softcap=1.5", sizes),
      scores("raw", "", "", ""),
      scores("capped", "", "", ", softcap=1.5"),
      scores("biased", ", %m: f64[3,4]", ", %m", ", softcap=1.5"),
      scores("probabilities", ", %m: f64[3,4]", ", %m", ", window_after=0"),
      {"rotary", "%x: f64[2,3,2,6], %c: f64[2,2,3], %s: f64[2,2,3]", "%y = rotary(%x, %c, %s)"},
      {"rotary", "%x: f64[2,3,2,6], %c: f64[1,2,2], %s: f64[1,2,2]", "%y = rotary(%x, %c, %s)"},
      {"rotary", "%x: f64[2,3,2,6], %c: f64[1,2,2], %s: f64[2,1,2]",
       "%y = rotary(%x, %c, %s, interleaved=true)"},
      {"linear_attention", "%q: f64[1,4,3,2], %k: f64[1,2,3,2], %v: f64[1,2,3,5]",
       "%y, %s = linear_attention(%q, %k, %v, scale=0.7)", -1, 1, "", true},
      {"linear_attention",
       "%q: f64[1,2,3,2], %k: f64[1,2,3,2], %v: f64[1,2,3,5], %h: f64[1,2,2,5], %d: f64[1,2,3,2], %b: "
       "f64[1,2,3,1]",
       "%z, %s = linear_attention(%q, %k, %v, %h, %d, %b, scale=0.7)\n%0 = reduce_sum(%s, axes=[0,1,2,3])\n"
       "%y = add(%z, %0)",
       -1, 1, "", true}};
}

Examples recurrents() {
  const std::string x = "%x: f64[3,2,2]";
  const auto layer = [&](const std::string& op, const std::string& gates, const std::string& directions,
                         const std::string& more, const std::string& operands,
                         const std::string& before = "") -> Example {
    const std::string last = op == "lstm" ? ", %c" : "";
    const std::string sum_c = op == "lstm" ? "%2 = mul(%1, %c)\n" : "%2 = copy(%1)\n";
    return {op,
            x + ", %w: f64[" + directions + "," + gates + ",2], %r: f64[" + directions + "," + gates + ",3]" +
                more,
            before + "%all, %h" + last + " = " + op + "(%x, %w, %r" + operands +
                ")\n%0 = reduce_sum(%all, axes=[0])\n%1 = mul(%0, %h)\n" + sum_c + "%y = tanh(%2)",
            -1,
            1,
            "",
            true};
  };
  const std::string lengths = "%l = constant(value=i64[2] {3, 2})\n";
  Examples all = {layer("rnn", "3", "1", "", ""),
                  layer("rnn", "3", "2", ", %b: f64[2,6]",
                        ", %b, lengths=%l, direction=\"bidirectional\", activations=[\"sigmoid\", "
                        "\"affine\"], alpha=[0.5, 0.6], beta=[0.1, 0.2]",
                        lengths),
                  layer("gru", "9", "1", ", %b: f64[1,18]", ", %b, direction=\"reverse\""),
                  layer("gru", "9", "1", ", %b: f64[1,18], %s: f64[1,2,3]",
                        ", %b, initial_h=%s, reset_after=true, clip=0.8"),
                  layer("gru", "9", "2", "", ", lengths=%l, direction=\"bidirectional\"", lengths),
                  layer("lstm", "12", "1", "", ""),
                  layer("lstm", "12", "1", ", %b: f64[1,24], %p: f64[1,9], %s: f64[1,2,3], %t: f64[1,2,3]",
                        ", %b, initial_h=%s, initial_c=%t, peepholes=%p"),
                  layer("lstm", "12", "2", ", %b: f64[2,24]",
                        ", %b, lengths=%l, direction=\"bidirectional\", coupled_gates=true", lengths)};
  for (const std::string activation : {"elu", "hard_sigmoid", "leaky_relu", "relu", "scaled_tanh", "softplus",
                                       "softsign", "thresholded_relu"})
    all.push_back(layer("rnn", "3", "1", "", ", activations=[\"" + activation + "\"]"));
  return all;
}

Examples transforms() {
  const auto einsum = [](const std::string& inputs, const std::string& operands,
                         const std::string& equation) -> Example {
    return {"einsum", inputs, "%y = einsum([" + operands + "], equation=\"" + equation + "\")"};
  };
  const auto resize = [](const std::string& x, const std::string& sizes,
                         const std::string& attributes) -> Example {
    return {"resize", "%x: f64" + x, sizes + "\n%y = resize(%x, " + attributes + ")"};
  };
  const std::string to_3_5 = "%s = constant(value=i64[2] {3, 5})",
                    by_scales = "%s = constant(value=f32[1] {1.7})";
  return {
      einsum("%a: f64[2,3], %b: f64[3,4]", "%a, %b", "ij,jk->ik"),
      einsum("%a: f64[2,3], %b: f64[3]", "%a, %b", "ij,j->i"),
      einsum("%a: f64[3,3]", "%a", "ii->"),
      einsum("%a: f64[3,3,2]", "%a", "iij->j"),
      einsum("%a: f64[2,3]", "%a", "ij->j"),
      einsum("%a: f64[2,1,2,3], %b: f64[4,3,2]", "%a, %b", "...ij,...jk->...ik"),
      einsum("%a: f64[2,3], %b: f64[1,3], %c: f64[2]", "%a, %b, %c", "ij,ij,i->"),
      {"determinant", "%x: f64[2,3,3]", "%y = determinant(%x)", -2, 2,
       "the size of the matrices must be known before the graph runs"},
      {"determinant", "%x: f64[1,1]", "%y = determinant(%x)", -2, 2,
       "the size of the matrices must be known before the graph runs"},
      {"top_k", "%x: f64[3,4]", "%k = constant(value=i64[] {2})\n%y, %i = top_k(%x, %k, axis=1)"},
      {"top_k", "%x: f64[3,4]",
       "%k = constant(value=i64[] {2})\n%y, %i = top_k(%x, %k, axis=0, largest=false)"},
      {"one_hot", "%v: f64[2]",
       "%i = constant(value=i64[3] {0, 2, 7})\n%d = constant(value=i64[] {4})\n%y = one_hot(%i, %d, %v)"},
      {"dft", "%x: f64[2,5,1]", "%y = dft(%x)"},
      {"dft", "%x: f64[2,4,2]", "%y = dft(%x, axis=1, inverse=true)"},
      {"dft", "%x: f64[5,2,1]", "%l = constant(value=i64[] {4})\n%y = dft(%x, %l, axis=0, onesided=true)"},
      {"dft", "%x: f64[3,2]", "%y = dft(%x, axis=0, onesided=true, inverse=true)"},
      {"frames", "%x: f64[2,7]",
       "%l = constant(value=i64[] {3})\n%s = constant(value=i64[] {2})\n%y = frames(%x, %l, %s, axis=1)"},
      resize("[1,2,4]", by_scales, "scales=%s, axes=[2], mode=\"linear\""),
      resize("[2,4,3]", to_3_5, "sizes=%s, axes=[1,2], mode=\"nearest\""),
      resize("[2,4,3]", to_3_5, "sizes=%s, axes=[2,1], mode=\"cubic\", positions=\"align_corners\""),
      resize("[2,6,3]", to_3_5, "sizes=%s, axes=[1,2], mode=\"linear\", antialias=true"),
      resize("[2,6,3]", to_3_5 + "\n%r = constant(value=f64[4] {0.1, 0, 0.8, 1.5})",
             "sizes=%s, region=%r, axes=[1,2], mode=\"linear\", positions=\"crop\", outside_value=2"),
      {"affine_grid", "%t: f64[2,2,3]", "%s = constant(value=i64[4] {2, 1, 3, 4})\n%y = affine_grid(%t, %s)"},
      {"affine_grid", "%t: f64[1,3,4]",
       "%s = constant(value=i64[5] {1, 1, 2, 3, 2})\n%y = affine_grid(%t, %s, align_corners=true)"},
      {"col2im", "%x: f64[2,8,4]",
       "%i = constant(value=i64[2] {3, 3})\n%b = constant(value=i64[2] {2, 2})\n%y = col2im(%x, %i, %b, "
       "strides=[1,1], dilations=[1,1], pads=[0,0,0,0])"},
      {"col2im", "%x: f64[1,4,3]",
       "%i = constant(value=i64[1] {5})\n%b = constant(value=i64[1] {2})\n%y = col2im(%x, %i, %b, "
       "strides=[2], dilations=[1], pads=[0,1])"},
      {"dequantize", "%s: f64[]",
       "%x = constant(value=i8[2,3] {1, -2, 3, 4, 5, -6})\n%y = dequantize(%x, %s, to=f64)"},
      {"dequantize", "%s: f64[3]",
       "%x = constant(value=i8[2,3] {1, -2, 3, 4, 5, -6})\n%z = constant(value=i8[3] {1, 2, -1})\n%y = "
       "dequantize(%x, %s, %z, to=f64, axis=1)"},
      {"dequantize", "%s: f64[2,2]",
       "%x = constant(value=i32[2,3] {1, -2, 3, 4, 5, -6})\n%y = dequantize(%x, %s, to=f64, axis=1, "
       "block_size=2)"},
      {"dynamic_quantize", "%x: f64[2,3]", "%q, %y, %z = dynamic_quantize(%x)"}};
}

Examples sequences() {
  const auto split = [](const std::string& attributes, const std::string& position,
                        const std::string& before = "") -> Example {
    return {"sequence_at", "%x: f64[5,2]",
            before + "%p = constant(value=i64[] {" + position + "})\n%s = sequence_split(%x" + attributes +
                ")\n%y = sequence_at(%s, %p)"};
  };
  return {split("", "1"),
          split(", axis=1, keep_dims=false", "-1"),
          split(", %z", "1", "%z = constant(value=i64[] {2})\n"),
          split(", %z", "-2", "%z = constant(value=i64[3] {1, 3, 1})\n"),
          {"sequence_at", "%a: f64[2], %b: f64[3]",
           "%p = constant(value=i64[] {-1})\n%s = sequence_construct([%a, %b])\n%y = sequence_at(%s, %p)"}};
}

Examples control() {
  Examples all = {
      {"if", "%x: f64[2,3], %z: f64[3]",
       "%c = constant(value=bool[] {1})\n"
       "%y = if(%c, [%x, %z]) then(%a: f64[p,q], %b: f64[q]) {\n%0 = mul(%a, %b)\nreturn %0\n}\n"
       "else(%a: f64[p,q], %b: f64[q]) {\nreturn %a\n}"},
      {"if", "%x: f64[2,3], %z: f64[3]",
       "%s = reduce_sum(%x, axes=[0,1])\n%l = constant(value=f64[] {100})\n%c = greater(%s, %l)\n"
       "%y, %w = if(%c, [%x, %z]) then(%a: f64[p,q], %b: f64[q]) {\n%0 = mul(%a, %b)\nreturn %0, %a\n}\n"
       "else(%a: f64[p,q], %b: f64[q]) {\n%0 = softmax(%a)\nreturn %a, %0\n}"},
      {"scan", "%h: f64[2], %x: f64[3,2], %w: f64[2]",
       "%y, %all = scan([%h], [%x], [%w], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) "
       "body(%c: f64[p], %s: f64[p], %k: f64[p]) {\n%0 = mul(%c, %k)\n%1 = add(%0, %s)\n%2 = tanh(%1)\n"
       "return %2, %0\n}"},
      {"scan", "%h: f64[2], %x: f64[2,3], %w: f64[2]",
       "%last, %y = scan([%h], [%x], [%w], axes=[1], reversed=[1], output_axes=[1], output_reversed=[1]) "
       "body(%c: f64[p], %s: f64[p], %k: f64[p]) {\n%0 = mul(%c, %s)\n%1 = gelu(%0)\n%2 = mul(%s, %k)\n"
       "return %1, %2\n}"},
      {"while", "%x: f64[2], %w: f64[2]",
       "%n = constant(value=i64[] {3})\n"
       "%y, %all = while(trip_count=%n, carried=[%x], captured=[%w]) body(%i: i64[], %c: f64[p], %k: f64[p]) "
       "{\n"
       "%go = constant(value=bool[] {1})\n%t = cast(%i, to=f64)\n%0 = mul(%c, %k)\n%1 = sub(%0, %t)\n%2 = "
       "sin(%1)\n"
       "return %go, %2, %0\n}"},
      {"while", "%x: f64[2]",
       "%limit = constant(value=f64[] {50})\n%go = constant(value=bool[] {1})\n"
       "%last, %y = while(condition=%go, carried=[%x], captured=[%limit]) "
       "body(%i: i64[], %c: f64[p], %l: f64[]) {\n"
       "%0 = mul(%c, %c)\n%s = reduce_sum(%0, axes=[0])\n%more = less(%s, %l)\nreturn %more, %0, %s\n}",
       1.1, 1.9},
  };
  for (Example& example : all)
    example.one_symbol_per_size = true;
  return all;
}

}  // namespace

std::vector<Example> all_examples() {
  Examples all;
  for (const Examples& family :
       {elementwise(), reductions(), products(), movements(), scatters(), windows(), samples(), norms(),
        attentions(), recurrents(), transforms(), sequences(), control()})
    append(all, family);
  return all;
}

}  // namespace tenon
