/* run.c — a model loaded, described, compiled and run from C. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static void expect_ok(tenon_status status) {
  if (status != TENON_OK) {
    fprintf(stderr, "%s\n", tenon_error_message());
    exit(1);
  }
}

int main(void) {
  tenon_model* model;
  expect_ok(tenon_load("builtin:tiny", &model)); /* or the path of a .onnx file */
  const tenon_port* port = tenon_model_input(model, 0);
  printf("input %s: %s\n", port->name, port->type);
  port = tenon_model_output(model, 0);
  printf("output %s: %s of %d dimensions\n", port->name, tenon_dtype_name(port->dtype), port->rank);

  tenon_program* program;
  expect_ok(tenon_compile(model, NULL, &program));
  tenon_free_model(model);

  float x[] = {1, 2, 3, 4}, y[3];
  int64_t sizes[] = {1, 4};
  tenon_tensor input = {.struct_size = sizeof input,
                        .data = x,
                        .bytes = sizeof x,
                        .dtype = TENON_F32,
                        .rank = 2,
                        .sizes = sizes};
  tenon_tensor output = {.struct_size = sizeof output, .data = y, .bytes = sizeof y, .dtype = TENON_F32};
  tenon_run_options options = {.struct_size = sizeof options, .threads = 1};
  expect_ok(tenon_run(program, &input, 1, &output, 1, &options));
  printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);

  /* What does not fit is an error, and the program goes on. */
  sizes[0] = 2;
  if (tenon_run(program, &input, 1, &output, 1, NULL) != TENON_OK)
    printf("%s\n", tenon_error_message());
  tenon_free_program(program);
  return 0;
}
