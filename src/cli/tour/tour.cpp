// tour.cpp — tenon tour: the built-in models through every stage, step by step.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/contenders.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tour/steps.h"
#include "ir/op.h"

namespace tenon::cli {

const std::vector<TourStep>& tour_steps() {
  static const std::vector<TourStep> steps = {
      {.name = "notations",
       .title = "One model, five notations",
       .why = "A model is a graph: values flow through operators. PyTorch's FX and TorchScript, ONNX, XLA's "
              "HLO and TVM's Relay write down the same graph in their own words. Tenon reads it once and "
              "shows it in any of them. Here is relu(linear(x)).",
       .show = show_notations,
       .commands = {"tenon print builtin:tiny --as fx", "tenon print --help"}},
      {.name = "passes",
       .title = "A wasteful model shrinks, pass by pass",
       .why = "A pass is a function that rewrites the graph. This model computes relu(x) twice and "
              "multiplies by one; each pass that finds something leaves fewer nodes, and every rewrite is "
              "numbered, so that it can be blamed later.",
       .show = show_passes,
       .commands = {"tenon optimize builtin:unoptimized", "tenon passes", "tenon rules multiply-by-one"}},
      {.name = "gelu",
       .title = "GELU, found in nine nodes",
       .why = "Exporters write GELU out in small steps, each in their own way. Tenon looks at what a piece "
              "of the graph computes, not at how it is spelt, and puts one node there, for which it knows a "
              "good kernel.",
       .show = show_recognition,
       .commands = {"tenon print builtin:gelu_approx --stage optimised"}},
      {.name = "linear",
       .title = "linear + relu and matmul + bias + relu, each one kernel",
       .why = "Run op by op, every result goes to memory and comes back for the next op. Fused, the bias and "
              "the relu are applied while the sum is still in a register: the loop nest below is all that "
              "runs.",
       .show = show_linear_fusion,
       .commands = {"tenon print builtin:tiny --stage scheduled",
                    "tenon print builtin:matmul_bias_relu --stage fused"}},
      {.name = "conv",
       .title = "Batch normalisations folded into convolutions, and proof of it",
       .why = "At inference a batch normalisation only scales and shifts, so that it can be folded into the "
              "weights of the convolution before it. Four checks hold every pass to the model it was given: "
              "outputs on random inputs, gradients, the form of the graph, and that parameters do not grow.",
       .show = show_folding,
       .commands = {"tenon verify builtin:multi_conv_bn",
                    "tenon bench builtin:multi_conv_bn --against unfused"}},
      {.name = "chain",
       .title = "Five elementwise ops, one trip to memory",
       .why = "Elementwise ops compute little for every byte they move, so memory decides how fast they are. "
              "Fusing five of them moves a fifth of the bytes.",
       .show = show_chain,
       .commands = {"tenon bench builtin:chain5_any_size --dim rows=4096 --against unfused",
                    "tenon profile builtin:chain5_any_size --dim rows=4096"}},
      {.name = "attention",
       .title = "Attention whose scores are never in memory",
       .why = "softmax(q kᵀ / 8) v is recognised as attention and compiled to one kernel that works on a few "
              "rows of scores at a time. Op by op, the whole matrix of scores would have to be stored.",
       .show = show_attention,
       .commands = {"tenon print builtin:attention --stage optimised",
                    "tenon bench builtin:attention_any_length --dim length=512 --against unfused"}},
      {.name = "loops",
       .title = "A loop nest, tiled; and a request that is declined",
       .why =
           "Kernels are loop nests. Tiling works on blocks that stay in cache. A dependence analysis "
           "decides whether a rearrangement is legal, and names the two statements that forbid it where it "
           "is not.",
       .show = show_loops,
       .commands = {"tenon loops docs/loops/matmul.loops --apply \"tile(i,j,k,32,256,32); permute(k,j); "
                    "vectorise(j)\"",
                    "tenon loops docs/loops/matvec.loops --apply \"parallelise(j)\""}},
      {.name = "bisect",
       .title = "A wrong rule, caught",
       .why =
           "Here the tour registers a rule that is wrong on purpose: it drops a scale, x · c => x. It fires "
           "once among many right rewrites. Bisection makes half of them, compares the outputs, halves "
           "again, and ends at the culprit and a small model that shows it. The rule is the tour's alone; "
           "docs/tutorial/4-rewriting.md has one that you can build and catch.",
       .show = show_bisection,
       .commands = {"tenon tour bisect", "tenon bisect builtin:mha_causal"}},
      {.name = "report",
       .title = "All of this for one model, as a page",
       .why = "A report is one HTML file that needs no network: the graph at every pass, the way from each "
              "kernel back "
              "to the nodes of the model, what was not fused and why, kernels under the roofline, memory "
              "over time, and "
              "the checks. This one is of three convolutions with batch normalisations, as in a ResNet.",
       .show = show_report,
       .commands = {"tenon report builtin:mha_causal -o report.html"}},
  };
  return steps;
}

namespace {

struct Options {
  std::string step;
  bool no_pause = false, list = false;
};

bool is_terminal(int descriptor) { return ::isatty(descriptor) != 0; }

bool wants_colour() {
  const char* terminal = std::getenv("TERM");
  return is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

void list_steps() {
  const std::vector<TourStep>& steps = tour_steps();
  for (size_t i = 0; i < steps.size(); ++i)
    write_output(fmt::format("{:>2} {:<10} {}\n", i + 1, steps[i].name, steps[i].title));
}

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// By its name, or by its number.
const TourStep& wanted_step(const std::string& name) {
  const std::vector<TourStep>& steps = tour_steps();
  std::vector<std::string_view> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].name == name || std::to_string(i + 1) == name)
      return steps[i];
    names.push_back(steps[i].name);
  }
  if (is_number(name))
    throw user_error("the tour has no step {}: they are 1 to {}", name, steps.size());
  throw user_error("the tour has no step \"{}\"{}\n  there are: {}", name, did_you_mean(name, names),
                   fmt::join(names, " "));
}

void show(const TourStep& step, std::string_view number, Screen& screen) {
  screen.heading(fmt::format("{}{}", number, step.title));
  screen.paragraph(step.why);
  step.show(screen);
  screen.subheading("Do it yourself:");
  for (std::string_view command : step.commands)
    screen.command(command);
  flush_output();
}

// Whether to go on.
bool pause(Screen& screen) {
  screen.question("Enter goes on, q ends the tour: ");
  flush_output();
  std::string answer;
  return std::getline(std::cin, answer) && answer != "q";
}

void show_all(Screen& screen, bool with_pauses) {
  const std::vector<TourStep>& steps = tour_steps();
  screen.paragraph(
      fmt::format("Tenon compiles machine-learning models. This tour takes small built-in models through "
                  "every stage, in {} "
                  "steps; all numbers are measured here and now.",
                  steps.size()));
  for (size_t i = 0; i < steps.size(); ++i) {
    show(steps[i], fmt::format("{} of {}: ", i + 1, steps.size()), screen);
    if (with_pauses && i + 1 < steps.size() && !pause(screen))
      return;
  }
  screen.heading("Where to go from here");
  screen.paragraph(
      "Take a model of your own, .onnx or .pt2: see what is in it, make it faster, and prove it.");
  for (const char* command : {"tenon print MODEL --as deps", "tenon optimize MODEL -o FASTER.onnx",
                              "tenon verify MODEL", "tenon bench MODEL --against unfused"})
    screen.command(command);
  screen.paragraph("README.md and docs/ explain each. One step of this tour again: tenon tour STEP.");
}

void tour(const Options& options) {
  if (options.list)
    return list_steps();
  Screen screen(wants_colour());
  if (!options.step.empty())
    return show(wanted_step(options.step), "", screen);
  show_all(screen, !options.no_pause && is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO));
}

}  // namespace

void add_tour(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("tour", "shows the built-in models at every stage, with what they gain");
  std::vector<std::string> names;
  for (const TourStep& step : tour_steps())
    names.emplace_back(step.name);
  offer(command->add_option("STEP", options->step, "shows this step alone, by its name or number"),
        {.words = names});
  command->add_flag("--no-pause", options->no_pause, "does not wait for Enter after each step");
  command->add_flag("--list", options->list, "lists the steps");
  command->footer(examples({"tenon tour", "tenon tour attention", "tenon tour 3", "tenon tour --list"}));
  command->callback([options] { tour(*options); });
}

}  // namespace tenon::cli
