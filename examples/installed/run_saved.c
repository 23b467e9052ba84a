/* run_saved.c — a saved program, run by libtenonrt alone. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static void expect_ok(tenon_status status) {
  if (status != TENON_OK) {
    fprintf(stderr, "%s\n", tenon_error_message());
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 2)
    return 1;
  tenon_program* program;
  expect_ok(tenon_open(argv[1], NULL, &program));
  printf("%s: %s\n", tenon_program_input(program, 0)->name, tenon_program_input(program, 0)->type);

  float x[] = {1, 2, 3, 4}, y[3];
  int64_t sizes[] = {1, 4};
  tenon_tensor input = {.struct_size = sizeof input,
                        .data = x,
                        .bytes = sizeof x,
                        .dtype = TENON_F32,
                        .rank = 2,
                        .sizes = sizes};
  tenon_tensor output = {.struct_size = sizeof output, .data = y, .bytes = sizeof y, .dtype = TENON_F32};
  expect_ok(tenon_run(program, &input, 1, &output, 1, NULL));
  printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);
  tenon_free_program(program);
  return 0;
}
