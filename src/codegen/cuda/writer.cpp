#include "codegen/cuda/writer.h"

#include <algorithm>
#include <cctype>

#include "codegen/cuda/preamble.h"
#include "loops/scalar.h"

namespace tenon::codegen::cuda {
namespace {

// Words of C++ and CUDA, and those that emitted text has everywhere.
constexpr std::string_view kReserved[] = {
    // clang-format off
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class",
    "compl", "concept", "const", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public", "register",
    "requires", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true",
    "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "min", "max", "abs", "fma", "fmaf", "fabs", "fabsf", "pow",
    "powf", "fmod", "fmodf", "rint", "rintf",
    "failure", "step", "thread", "mask", "shared", "exchange", "all_came",
    // clang-format on
};

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool mentions_name(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part_of_name(text[at - 1])) && (end == text.size() || !is_part_of_name(text[end])))
      return true;
  }
  return false;
}

Names::Names() : taken_(std::begin(kReserved), std::end(kReserved)) {
  for (const std::string_view name : Preamble::names())
    taken_.emplace(name);
  for (const loops::FunctionInfo& function : loops::all_functions())
    for (const std::string_view suffix : {"", "f"})
      taken_.insert(fmt::format("{}{}", function.name, suffix));
}

bool Names::is_taken(std::string_view name) const { return taken_.contains(name) || fresh_.contains(name); }

const std::string& Names::of(const std::string& name) {
  if (const auto it = of_.find(name); it != of_.end())
    return it->second;
  std::string base;
  for (const char c : name)
    base += is_part_of_name(c) ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base.front())) != 0 || base.starts_with("__"))
    base = "v" + base;
  std::string unique = base;
  for (int i = 2; is_taken(unique); ++i)
    unique = fmt::format("{}_{}", base, i);
  taken_.insert(unique);
  return of_.emplace(name, std::move(unique)).first->second;
}

std::string Names::fresh(std::string_view base) {
  std::string unique(base);
  for (int i = 2; is_taken(unique); ++i)
    unique = fmt::format("{}_{}", base, i);
  fresh_.insert(unique);
  return unique;
}

}  // namespace tenon::codegen::cuda
