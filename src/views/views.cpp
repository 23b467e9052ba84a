#include "views/views.h"

#include "ir/print.h"
#include "views/forms.h"

namespace tenon {

const std::vector<View>& all_views() {
  static const std::vector<View> views = {
      {"tenon", "Tenon's own text form, which parses back", print},
      {"fx", "a torch.fx table: opcode, name, target, args, kwargs", show_as_fx},
      {"fx-code", "a torch.fx graph as code, with the number of users of each value", show_as_fx_code},
      {"torchscript", "a TorchScript graph, with the weights fetched from the module", show_as_torchscript},
      {"onnx", "the graph in the words of ONNX, a node a line: Op(inputs) → outputs", show_as_onnx},
      {"hlo", "XLA's HLO: primitive instructions with every broadcast written out", show_as_hlo},
      {"relay", "a TVM Relay function", show_as_relay},
      {"cpp", "C++ source that traces to the same graph", show_as_cpp},
      {"dot", "a picture, for Graphviz", show_as_dot},
      {"deps", "what depends on what: branches, skip connections, chains that could fuse",
       show_as_dependencies},
  };
  return views;
}

}  // namespace tenon
