// show.h — graphs shown in a form that tests name.
#pragma once

#include "ir/graph_text.h"
#include "views/views.h"

namespace tenon {

inline std::string show(std::string_view as, const Graph& graph) {
  for (const View& view : all_views())
    if (view.name == as)
      return view.render(graph);
  ADD_FAILURE() << "there is no view " << as;
  return "";
}

inline std::string show_text(std::string_view as, std::string_view text) {
  return show(as, *parse_graph(text));
}

}  // namespace tenon
