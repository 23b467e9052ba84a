// ceilings.h — what this machine can do at most, as measured: the roofs under which programs run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "target/target.h"

namespace tenon {

struct Ceilings {
  // At which buffers are copied that lie there: bytes read, and bytes written.
  struct Bandwidth {
    std::string name;
    int64_t capacity;  // in bytes, of all threads together; of memory, more than can be counted
    double bytes_per_second;
  };

  double flops_per_second = 0;             // multiplications and additions of f32 in registers
  std::vector<Bandwidth> bandwidths = {};  // the nearest first, memory last
  double dispatch_seconds = 0;             // to start all threads and wait for them, at least
  size_t nearest_shared = 1;               // the first of these that elements go through from step to step

  // How fast bytes come that are used together with `among` bytes, themselves included. Elements go from step
  // to step through the second level at best, for another thread may have made them.
  double bandwidth_for(double among) const;
};

// Those of a GPU: operations by its data sheet, and copies within the memory of the device as measured.
Ceilings measure_gpu(const Gpu& gpu, runtime::Device& device);

// Measures them for a number of threads, with kernels generated for the target, which must be this machine.
class CeilingMeter {
 public:
  CeilingMeter(const Target& target, int threads);
  ~CeilingMeter();

  // Takes some tenths of a second. The best that any call saw counts: others may use the machine, too.
  void measure();
  const Ceilings& ceilings() const { return ceilings_; }

 private:
  struct Kernels;

  // How often all threads do the work in a second.
  double rate(const std::function<void(int64_t thread)>& work) const;
  double measure_flops() const;
  double measure_copies(int64_t capacity) const;
  double measure_dispatch() const;

  Target target_;
  int threads_;
  std::unique_ptr<Kernels> kernels_;
  Ceilings ceilings_;
};

}  // namespace tenon
