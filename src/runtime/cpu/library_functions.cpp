#include "runtime/cpu/library_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef __x86_64__
extern "C" {  // of the compiler's own library: halves to and from wider numbers, on machines that cannot
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}
#endif

namespace tenon::runtime {
namespace {

using OfDouble = double (*)(double);
using OfFloat = float (*)(float);
template <class Function>
void* address_of(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const LibraryFunction> library_functions() {
  static const LibraryFunction functions[] = {
      {"sin", address_of(static_cast<OfDouble>(std::sin))},
      {"cos", address_of(static_cast<OfDouble>(std::cos))},
      {"tan", address_of(static_cast<OfDouble>(std::tan))},
      {"ceil", address_of(static_cast<OfDouble>(std::ceil))},
      {"ceilf", address_of(static_cast<OfFloat>(std::ceil))},
      {"floor", address_of(static_cast<OfDouble>(std::floor))},
      {"floorf", address_of(static_cast<OfFloat>(std::floor))},
      {"trunc", address_of(static_cast<OfDouble>(std::trunc))},
      {"truncf", address_of(static_cast<OfFloat>(std::trunc))},
      {"roundeven", address_of(::roundeven)},
      {"roundevenf", address_of(::roundevenf)},
      {"fmod", address_of(static_cast<double (*)(double, double)>(std::fmod))},
      {"fmodf", address_of(static_cast<float (*)(float, float)>(std::fmod))},
      {"fma", address_of(static_cast<double (*)(double, double, double)>(std::fma))},
      {"fmaf", address_of(static_cast<float (*)(float, float, float)>(std::fma))},
      {"memcpy", address_of(std::memcpy)},
      {"memmove", address_of(std::memmove)},
      {"memset", address_of(std::memset)},
#ifdef __x86_64__
      {"__extendhfsf2", address_of(__extendhfsf2)},
      {"__truncsfhf2", address_of(__truncsfhf2)},
      {"__truncdfhf2", address_of(__truncdfhf2)},
#endif
  };
  return functions;
}

void* find_library_function(std::string_view name) {
  const std::span<const LibraryFunction> all = library_functions();
  const auto found = std::ranges::find(all, name, [](const LibraryFunction& each) { return each.name; });
  return found == all.end() ? nullptr : found->address;
}

}  // namespace tenon::runtime
