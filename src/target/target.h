// target.h — what this machine is: what generated code may use, and what it is arranged for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/gpu.h"

namespace tenon {

enum class Architecture { X86_64, Arm64 };

// In bytes.
struct Caches {
  int64_t level1_data = 32 << 10;
  int64_t level2 = 512 << 10;
  int64_t level3_share = 0;  // of one core; 0 where there is no third level

  bool operator==(const Caches&) const = default;
};

struct Target {
  Architecture architecture = Architecture::X86_64;
  std::string cpu;                    // a name of LLVM's that stands for nothing which this machine lacks
  std::vector<std::string> features;  // in LLVM's spelling, such as "+avx2"
  int64_t vector_bytes = 16;
  int vector_registers = 16;
  bool fused_multiply_add = false;
  bool matrix_tiles = false;  // x86's AMX, which this process has leave to use
  Caches caches;
  int cores = 1;  // that this process may use
  // That kernels are generated for, instead of the processor, whose part is the rest then.
  std::optional<Gpu> gpu = {};

  bool has(std::string_view feature) const;
  // VNNI of x86-64, i8mm of Arm.
  bool has_int8_dot_products() const { return has("+avx512vnni") || has("+avxvnni") || has("+i8mm"); }
  // Whether there are those of Arm that multiply matrices of two rows in registers, of bytes or of bf16.
  bool multiplies_matrices(bool of_bytes) const { return has(of_bytes ? "+i8mm" : "+bf16"); }
};

// Vectors in generated code are this many registers long, so that the instructions of one need not wait for
// each other.
constexpr int64_t kRegistersPerVector = 2;

// Channels that fill a good part of a vector: with fewer, convolutions vectorise along the image.
constexpr int64_t kLeastChannels = 8;

// In bytes, on every processor that we generate code for.
constexpr int64_t kCacheLine = 64;

// The side of an AMX tile, in rows and in words of 4 bytes.
constexpr int64_t kMatrixTileSide = 16;

// What a program is compiled for whose kernels run on a GPU beside a processor: what that offers generated
// code does not count.
Target beside(const Target& processor, Gpu gpu);

// Found out once, on first use.
const Target& this_machine();

// What the maker of its processor calls it, or else LLVM.
std::string processor_name();

// All of it in one line. Machines with the same line run the same kernels equally well.
std::string describe(const Target& target);

}  // namespace tenon
