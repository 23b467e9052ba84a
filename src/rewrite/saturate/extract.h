// extract.h — which member of each class to compute, so that some values cost least together.
//
// A term that several others use is paid for once. Finding the least is hard then; so several choices are
// improved until no change makes them better: of one class, of all results of a term, or of all users of a
// class; and the best of them is taken. What the graph has now is one of them: the result is never worse than
// that.
#pragma once

#include <functional>

#include "rewrite/saturate/egraph.h"

namespace tenon::saturate {

struct Cost {
  double nodes = 0;  // of the graph that is written
  double bytes = 0;  // of their results, and of constants
  double work = 0;   // multiply-adds, or elements where there are none

  Cost& operator+=(const Cost& other) {
    nodes += other.nodes;
    bytes += other.bytes;
    work += other.work;
    return *this;
  }
};

// Whether `cost` is to be preferred: fewer nodes, or as many and fewer bytes, and hardly more work.
bool is_better(const Cost& cost, const Cost& than);

// What computing a term costs. A constant costs where it is used; what is made of constants alone is computed
// before the model runs, and costs its bytes.
using CostModel = std::function<Cost(const EGraph& egraph, TermId term)>;

// The member of each class, by class; -1 where none can be computed.
using Choice = std::vector<ValueId>;

struct Extraction {
  Choice choice;
  Cost before, after;
};

// For these values of a graph, of which those of the terms that it has now are given.
Extraction extract(const EGraph& egraph, const std::vector<ValueId>& roots, const std::vector<TermId>& now,
                   const CostModel& cost);

// The values as the choice makes them, of terms that are added where they are not there.
std::vector<ValueId> build(EGraph& egraph, const Choice& choice, const std::vector<ValueId>& values);

}  // namespace tenon::saturate
