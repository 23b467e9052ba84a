// fuse.h — which nodes of a KernelGraph become one kernel: producers inlined into consumers, nodes grouped,
// groups ordered.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Inlines stages that are cheaper to recompute where they are read than to store. What is in `kept` stays.
std::vector<lowering::Item> inline_stages(std::vector<lowering::Item> items,
                                          const std::set<std::string>& kept, const Target& target);

// A buffer between two groups, and why they were not fused.
struct Missed {
  std::string buffer;
  size_t reader;
  std::string reason;
};

struct Grouping {
  std::vector<lowering::Group> groups;  // each item is in one; in an order in which they can run
  std::vector<Missed> missed;
};

// What is in `kept` is needed besides what items read.
Grouping group_items(const std::vector<lowering::Item>& items, const std::set<std::string>& kept,
                     const Target& target);

// Orders groups for a low memory peak, with independent loops adjacent. `views` maps buffers that alias
// others under another shape.
void order_groups(std::vector<lowering::Group>& groups, const std::vector<lowering::Item>& items,
                  const std::map<std::string, loops::Buffer>& buffers,
                  const std::map<std::string, std::string>& views);

}  // namespace tenon::fusion
