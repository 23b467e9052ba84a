// child_process.h — work done in a process of its own, so that the rest outlives a crash or an endless loop.
#pragma once

#include <functional>
#include <string>

namespace tenon {

struct ChildEnd {
  std::string report;   // what the work returned
  std::string failure;  // why it returned nothing: "it crashed with signal 11"; empty when it did return
};

// Forks; the child calls `work`, which may take `seconds`. An exception that leaves it is a crash. A signal
// that ends the child, or its parent, has the child remove its leftovers first (interrupt.h). That there is
// no process to be had is the user's fault.
ChildEnd run_in_child(unsigned seconds, const std::function<std::string()>& work);

}  // namespace tenon
