// run.cpp — a model loaded, compiled and run from C++.
#include <cstdio>
#include <tenon/tenon.hpp>

int main() {
  const tenon::Model model("builtin:tiny");  // or the path of a .onnx file
  for (const tenon::Port& port : model.inputs())
    std::printf("input %s: %s\n", port.name.c_str(), port.type.c_str());

  // The program reads and writes memory of the caller's.
  const tenon::Program program = tenon::compile(model);
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(3);
  const tenon_tensor inputs[] = {tenon::input<float>(x, *program.inputs()[0].sizes)};
  tenon_tensor outputs[] = {tenon::output<float>(y)};
  program.run(inputs, outputs, {.threads = 1});
  std::printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);

  // What does not fit is an error, and the program goes on.
  try {
    program.run({}, outputs);
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
  }
}
