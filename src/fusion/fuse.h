// fuse.h — which nodes of a KernelGraph become one kernel: producers inlined into consumers, nodes grouped,
// groups ordered.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Items without the stages that are better computed where they are needed: their formulas stand there
// instead. What is in `kept` stays.
std::vector<lowering::Item> inline_stages(std::vector<lowering::Item> items,
                                          const std::set<std::string>& kept, const Target& target);

// What one group writes and an item of another reads, and why they are not one.
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

// In an order in which less memory is in use at once, where there is one, and loops that do not need each
// other follow one another. `views` tells of buffers that are others under another shape.
void order_groups(std::vector<lowering::Group>& groups, const std::vector<lowering::Item>& items,
                  const std::map<std::string, loops::Buffer>& buffers,
                  const std::map<std::string, std::string>& views);

}  // namespace tenon::fusion
