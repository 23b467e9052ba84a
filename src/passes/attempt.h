// attempt.h — nodes made in a graph that go again if they turn out to make no sense there.
#pragma once

#include "ir/graph.h"

namespace tenon {

struct Attempt {
  std::optional<std::vector<Value>> values;
  std::string error;  // why there are none
};

// What `make` makes before `node`. A nested graph may make sense as long as sizes are not known, but not for
// those it gets: running it, if it ever comes to that, will say so.
Attempt make_before(Node* node, const std::function<std::vector<Value>()>& make);

// The same for what is to replace the results of `node`: nor may what depends on them turn out to make no
// sense, now that more is known of their sizes.
Attempt make_instead_of(Node* node, const std::function<std::vector<Value>()>& make);

}  // namespace tenon
