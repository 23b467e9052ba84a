// run_compiled.h — compiled models run by commands, whose user can be told how to find out more.
#pragma once

#include "runtime/program.h"

namespace tenon::cli {

// Runs `work`, which runs a program.
template <class Work>
decltype(auto) run_compiled(Work&& work) {
  try {
    return work();
  } catch (const runtime::ElementError& error) {
    throw user_error("{}\n  hint: tenon run --engine reference says more", error.what());
  }
}

}  // namespace tenon::cli
