// generate.cpp — what a build without LLVM has in place of a code generator: it says so.
#include "codegen/generate.h"

#include "base/error.h"

namespace tenon::codegen {
namespace {

[[noreturn]] void refuse() {
  throw user_error(
      "this build of tenon has no CPU code generator (TENON_LLVM=OFF)\n  hint: tenon run --engine reference "
      "needs none");
}

}  // namespace

std::string describe_generator() { return "not built"; }

runtime::KernelCode generate_object(const loops::Kernel&, const Target&, const std::optional<ObjectCache>&) {
  refuse();
}

std::string generate_text(const loops::Kernel&, const Target&) { refuse(); }

struct Jit::Session {};

Jit::Jit() = default;
Jit::~Jit() = default;

std::vector<runtime::KernelFunction> Jit::load(const runtime::KernelCode&) { refuse(); }

}  // namespace tenon::codegen
