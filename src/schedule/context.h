// context.h — what scheduling depends on besides what is scheduled.
#pragma once

#include "target/target.h"

namespace tenon::schedule {

struct Context {
  const Target& target;
  int threads;  // that will run the kernel, for which loops are partitioned; results do not depend on them
};

}  // namespace tenon::schedule
