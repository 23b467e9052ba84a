/* run_linked.c — a program that tenon compile --as object has made, linked into this one. */
#include <stdio.h>

#include "tiny.h"

int main(void) {
  tenon_program* program;
  float x[] = {1, 2, 3, 4}, y[3];
  int64_t sizes[] = {1, 4};
  tenon_tensor input = {.struct_size = sizeof input,
                        .data = x,
                        .bytes = sizeof x,
                        .dtype = TENON_F32,
                        .rank = 2,
                        .sizes = sizes};
  tenon_tensor output = {.struct_size = sizeof output, .data = y, .bytes = sizeof y, .dtype = TENON_F32};
  if (tiny_open(NULL, &program) != TENON_OK || tenon_run(program, &input, 1, &output, 1, NULL) != TENON_OK) {
    fprintf(stderr, "%s\n", tenon_error_message());
    return 1;
  }
  printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);
  tenon_free_program(program);
  return 0;
}
