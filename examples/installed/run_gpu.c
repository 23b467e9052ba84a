/* run_gpu.c — a model compiled for a GPU, and enqueued on memory and a stream of the caller's. */
#include <stdio.h>
#include <tenon/tenon.h>

/* y = model(x) in a CUstream or cudaStream_t. x and y are memory of the GPU, from cudaMalloc, PyTorch or
 * whoever else. It returns at once; what comes later in the stream sees y. */
static tenon_status enqueue(const tenon_program* program, void* x, void* y, void* stream) {
  const tenon_device gpu = {TENON_DEVICE_CUDA, 0};
  int64_t sizes[] = {1, 4};
  tenon_tensor input = {.struct_size = sizeof input,
                        .data = x,
                        .bytes = 4 * sizeof(float),
                        .dtype = TENON_F32,
                        .rank = 2,
                        .sizes = sizes,
                        .device = gpu};
  tenon_tensor output = {
      .struct_size = sizeof output, .data = y, .bytes = 3 * sizeof(float), .dtype = TENON_F32, .device = gpu};
  tenon_run_options options = {.struct_size = sizeof options, .stream = stream};
  return tenon_run(program, &input, 1, &output, 1, &options);
}

int main(void) {
  tenon_model* model;
  tenon_program* program;
  tenon_compile_options options = {.struct_size = sizeof options, .device = {TENON_DEVICE_CUDA, 0}};
  if (tenon_load("builtin:tiny", &model) != TENON_OK ||
      tenon_compile(model, &options, &program) != TENON_OK) {
    fprintf(stderr, "%s\n", tenon_error_message());
    return 1;
  }
  /* Memory of the host is not taken for the GPU's. */
  float x[] = {1, 2, 3, 4}, y[3];
  if (enqueue(program, x, y, NULL) != TENON_OK)
    printf("%s\n", tenon_error_message());
  /* It waits for what was enqueued, and says what a kernel refused meanwhile. */
  if (tenon_synchronize(program) != TENON_OK)
    printf("%s\n", tenon_error_message());
  tenon_free_program(program);
  tenon_free_model(model);
  return 0;
}
