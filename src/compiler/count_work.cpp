#include "compiler/count_work.h"

namespace tenon::compiler {

using loops::Buffer;
using loops::Kernel;
using loops::Statement;

namespace {

// As many as the largest buffers that a kernel reads or writes have.
Dim elements_of(const Kernel& kernel) {
  Dim most = 1;
  for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (const Buffer& buffer : *buffers) {
      Dim count = 1;
      for (const Dim& size : buffer.sizes)
        count = count * size;
      if (const Dim more = max(most, count); !more.is_unknown())
        most = more;
    }
  return most;
}

// In one iteration.
Dim work_of(const std::vector<Statement>& body, const std::map<std::string, Dim>& sizes) {
  Dim work = 1;
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&statement)) {
      std::map<std::string, Dim> first;
      Dim iterations = loops::iterations_of(*loop);
      for (const std::string& symbol : iterations.symbols())
        if (!sizes.contains(symbol))  // a loop around it
          first.emplace(symbol, Dim(0));
      work = work + iterations.substitute(first) * work_of(loop->body, sizes);
    } else if (const auto* inner = body_of(statement)) {
      work = work + work_of(*inner, sizes);
    }
  }
  return work.is_unknown() ? Dim(1) : work;
}

}  // namespace

Dim count_work(const Kernel& kernel, const std::vector<loops::ParallelRegion>& regions,
               const std::map<std::string, Dim>& sizes) {
  Dim work = 1;
  for (const loops::ParallelRegion& region : regions)
    work = max(work, (region.iterations * work_of(region.body, sizes)).substitute(sizes));
  // Too long a formula; each element is looked at, at least.
  return work.is_unknown() ? elements_of(kernel).substitute(sizes) : work;
}

}  // namespace tenon::compiler
