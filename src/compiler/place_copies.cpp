#include "compiler/place_copies.h"

#include <set>

namespace tenon::compiler {

using runtime::AliasStep;
using runtime::CopyStep;
using runtime::Home;
using runtime::KernelStep;
using runtime::Program;
using runtime::Slot;
using runtime::Step;

namespace {

class CopyPlacer {
 public:
  explicit CopyPlacer(Program& program) : program_(program), values_(program.slots.size()) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Home home = program.slots[i].home;
      values_[i] = {.on_host = home == Home::Input || home == Home::Constant,
                    .on_device = home == Home::Constant};
    }
  }

  void run() {
    for (Step& step : program_.steps) {
      if (auto* alias = std::get_if<AliasStep>(&step))
        view(*alias);
      else if (const auto* kernel = std::get_if<KernelStep>(&step))
        compute(kernel->reads, kernel->writes, CopyStep::To::Device);
      else
        std::visit(
            [&](const auto& each) {
              if constexpr (requires { each.reads; })
                compute(each.reads, each.writes, CopyStep::To::Host);
            },
            step);
      steps_.push_back(std::move(step));
    }
    const std::set<size_t> outputs(program_.outputs.begin(), program_.outputs.end());
    for (size_t slot : outputs)
      if (!places_of(slot).on_host)
        steps_.emplace_back(CopyStep{slot, CopyStep::To::Caller});
    program_.steps = std::move(steps_);
  }

 private:
  struct Places {
    bool on_host = false, on_device = false;
  };

  // Of a slot, or of the one in whose memory it lies.
  Places& places_of(size_t slot) {
    while (program_.slots[slot].alias && program_.slots[slot].home != Home::Own)
      slot = *program_.slots[slot].alias;
    return values_[slot];
  }

  void bring(size_t slot, CopyStep::To to) {
    Places& places = places_of(slot);
    bool& is_there = to == CopyStep::To::Device ? places.on_device : places.on_host;
    if (!is_there)
      steps_.emplace_back(CopyStep{slot, to});
    is_there = true;
  }

  void compute(const std::vector<size_t>& reads, const std::vector<size_t>& writes, CopyStep::To where) {
    for (size_t slot : reads)
      bring(slot, where);
    const bool on_device = where == CopyStep::To::Device;
    for (size_t slot : writes)
      places_of(slot) = {.on_host = !on_device, .on_device = on_device};
  }

  // What is in both places is viewed on the host.
  void view(AliasStep& alias) {
    const Places from = places_of(alias.from);
    alias.on_device = !from.on_host;
    if (program_.slots[alias.to].home == Home::Own)
      values_[alias.to] = {.on_host = from.on_host, .on_device = alias.on_device};
  }

  Program& program_;
  std::vector<Places> values_;  // by slot
  std::vector<Step> steps_;
};

}  // namespace

void place_copies(Program& program) { CopyPlacer(program).run(); }

}  // namespace tenon::compiler
