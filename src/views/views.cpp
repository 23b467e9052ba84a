#include "views/views.h"

#include "ir/print.h"

namespace tenon {

const std::vector<View>& all_views() {
  static const std::vector<View> views = {
      {"tenon", "Tenon's own text form, which parses back", print},
  };
  return views;
}

}  // namespace tenon
