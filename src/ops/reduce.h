// reduce.h — reductions along axes: sum, mean, product, maximum, minimum, log of summed exps.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& reduce_ops();

enum class Keep : bool { None, Dims };  // whether a reduced dimension stays, with size 1

using Axes = std::vector<int64_t>;

Value reduce_sum(Value x, const Axes& axes, Keep keep = Keep::None);
Value reduce_mean(Value x, const Axes& axes, Keep keep = Keep::None);
Value reduce_prod(Value x, const Axes& axes, Keep keep = Keep::None);
Value reduce_max(Value x, const Axes& axes, Keep keep = Keep::None);
Value reduce_min(Value x, const Axes& axes, Keep keep = Keep::None);
Value reduce_log_sum_exp(Value x, const Axes& axes, Keep keep = Keep::None);

}  // namespace tenon
