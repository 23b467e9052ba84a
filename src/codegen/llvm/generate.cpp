#include "codegen/generate.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>

#include <atomic>

#include "base/error.h"
#include "codegen/llvm/emit.h"
#include "runtime/cpu/library_functions.h"

// Null where LLVM is linked without the other architecture, as into a static program.
#ifdef __x86_64__
#pragma weak LLVMInitializeAArch64TargetInfo
#pragma weak LLVMInitializeAArch64Target
#pragma weak LLVMInitializeAArch64TargetMC
#pragma weak LLVMInitializeAArch64AsmPrinter
constexpr auto kOtherArchitecture = {&LLVMInitializeAArch64TargetInfo, &LLVMInitializeAArch64Target,
                                     &LLVMInitializeAArch64TargetMC, &LLVMInitializeAArch64AsmPrinter};
#else
#pragma weak LLVMInitializeX86TargetInfo
#pragma weak LLVMInitializeX86Target
#pragma weak LLVMInitializeX86TargetMC
#pragma weak LLVMInitializeX86AsmPrinter
constexpr auto kOtherArchitecture = {&LLVMInitializeX86TargetInfo, &LLVMInitializeX86Target,
                                     &LLVMInitializeX86TargetMC, &LLVMInitializeX86AsmPrinter};
#endif

namespace tenon::codegen {

using runtime::KernelCode;
using runtime::KernelFunction;

namespace {

void initialise() {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    for (auto* initialise_part : kOtherArchitecture)
      if (initialise_part != nullptr)
        initialise_part();
    return true;
  }();
  (void)once;
}

std::string triple_of(Architecture architecture) {
  const llvm::Triple process(llvm::sys::getProcessTriple());
  const bool is_x86 = architecture == Architecture::X86_64;
  if (process.getArch() == (is_x86 ? llvm::Triple::x86_64 : llvm::Triple::aarch64))
    return process.str();
  return is_x86 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu";
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  initialise();
  const std::string triple = triple_of(target.architecture);
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found == nullptr)
    throw user_error("this build of Tenon generates no code for {}",
                     target.architecture == Architecture::X86_64 ? "x86-64" : "arm64");
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, fmt::format("{}", fmt::join(target.features, ",")), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

// The few passes that code written as plainly as ours needs: variables to registers, and what stays the same
// in a loop out of it. The rest would cost more than it gains. They are named one by one, because a static
// program that reads the names of passes holds all passes that LLVM has.
constexpr char kPasses[] =
    "function(sroa,early-cse<memssa>,loop-mssa(licm),sroa,early-cse)";  // as text, for keys

llvm::FunctionPassManager make_passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  return passes;
}

void simplify(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&machine);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  llvm::createModuleToFunctionPassAdaptor(make_passes()).run(module, modules);
}

std::unique_ptr<llvm::Module> make_module(const loops::Kernel& kernel, const Target& target,
                                          llvm::TargetMachine& machine, llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("kernel", context);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(kernel);
  for (size_t i = 0; i < regions.size(); ++i)
    emit(kernel, regions[i], fmt::format("phase_{}", i), target, *module);
  std::string problem;
  llvm::raw_string_ostream text(problem);
  CHECK(!llvm::verifyModule(*module, &text), "the code of kernel {} is no LLVM IR: {}", kernel.name, problem);
  return module;
}

// All that the machine code follows from.
std::string key_of(const llvm::Module& module, const Target& target) {
  llvm::SmallVector<char, 0> bitcode;
  llvm::raw_svector_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  return fmt::format("{} {} {} {}\n{}", LLVM_VERSION_STRING, kPasses, target.cpu,
                     fmt::join(target.features, ","), std::string_view(bitcode.data(), bitcode.size()));
}

[[noreturn]] void refuse(llvm::Error error) { throw InternalError(llvm::toString(std::move(error))); }

}  // namespace

std::string describe_generator() { return "LLVM " LLVM_VERSION_STRING; }

namespace {

std::string object_of(const loops::Kernel& kernel, const Target& target,
                      const std::optional<ObjectCache>& cache) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(target);
  const std::unique_ptr<llvm::Module> module = make_module(kernel, target, *machine, context);
  std::string key;
  if (cache) {
    key = key_of(*module, target);
    if (std::optional<std::string> object = cache->find(key))
      return *object;
  }
  simplify(*module, *machine);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  CHECK(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile),
        "LLVM cannot write object files");
  passes.run(*module);
  const std::string object(bytes.begin(), bytes.end());
  if (cache)
    cache->store(key, object);
  return object;
}

}  // namespace

KernelCode generate_object(const loops::Kernel& kernel, const Target& target,
                           const std::optional<ObjectCache>& cache) {
  return {object_of(kernel, target, cache), loops::parallel_regions_of(kernel).size()};
}

std::string generate_text(const loops::Kernel& kernel, const Target& target) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(target);
  const std::unique_ptr<llvm::Module> module = make_module(kernel, target, *machine, context);
  simplify(*module, *machine);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

namespace {

llvm::orc::SymbolMap library_symbols(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  for (const auto& [name, address] : runtime::library_functions())
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  return symbols;
}

}  // namespace

struct Jit::Session {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::atomic<int64_t> loaded = 0;
};

Jit::Jit() : session_(std::make_unique<Session>()) {
  initialise();
  // It only loads code, so it need not find out what this machine is.
  llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(llvm::sys::getProcessTriple())};
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create();
  if (!jit)
    refuse(jit.takeError());
  session_->jit = std::move(*jit);
  llvm::orc::LLJIT& made = *session_->jit;
  if (llvm::Error error =
          made.getProcessSymbolsJITDylib()->define(llvm::orc::absoluteSymbols(library_symbols(made))))
    refuse(std::move(error));
}

Jit::~Jit() = default;

std::vector<KernelFunction> Jit::load(const KernelCode& code) {
  llvm::orc::LLJIT& jit = *session_->jit;
  // A space of its own, as all objects have the same names in them.
  auto space = jit.createJITDylib(fmt::format("kernel{}", session_->loaded++));
  if (!space)
    refuse(space.takeError());
  if (llvm::Error error = jit.addObjectFile(*space, llvm::MemoryBuffer::getMemBufferCopy(code.bytes)))
    refuse(std::move(error));
  std::vector<KernelFunction> functions;
  for (size_t i = 0; i < code.regions; ++i) {
    auto address = jit.lookup(*space, fmt::format("phase_{}", i));
    if (!address)
      refuse(address.takeError());
    functions.push_back(address->toPtr<KernelFunction>());
  }
  return functions;
}

}  // namespace tenon::codegen
