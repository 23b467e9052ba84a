/* tenon.h — Tenon from C: load a model, compile it for this machine, run it on memory of yours.
 *
 * Every function that can fail returns a status, and leaves what it was to make untouched where it is not
 * TENON_OK; tenon_error_message says what went wrong. No exception leaves these functions. Different threads
 * may call any of them at once, and run one program at once; only a model must not be changed (bound, freed)
 * while another thread uses it.
 *
 * A struct that may grow begins with its size, struct_size, so that programs go on working with later
 * versions: what a program does not know is 0. One that is larger than this version knows is accepted as long
 * as what is beyond is 0. Set all fields, or leave them 0 as an initialiser does:
 *   tenon_run_options options = {.struct_size = sizeof options, .threads = 4};
 */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tenon_status {
  TENON_OK = 0,
  TENON_USER_ERROR = 2,     /* what was given is at fault, or asks for what Tenon does not do */
  TENON_INTERNAL_ERROR = 3, /* Tenon is at fault */
} tenon_status;

/* Such as "0.1.0". */
const char* tenon_version(void);

/* What went wrong in the last call of this thread that failed; "" before the first. It lives until the next.
 */
const char* tenon_error_message(void);

/* --- tensors --- */

/* Of elements. Those narrower than a byte take a byte each; tenon_dtype_name knows their names. */
typedef enum tenon_dtype {
  TENON_F64 = 0,
  TENON_F32 = 1,
  TENON_F16 = 2,
  TENON_BF16 = 3,
  TENON_F8E4M3FN = 4,
  TENON_F8E4M3FNUZ = 5,
  TENON_F8E5M2 = 6,
  TENON_F8E5M2FNUZ = 7,
  TENON_F8E8M0 = 8,
  TENON_F4E2M1 = 9,
  TENON_I64 = 10,
  TENON_I32 = 11,
  TENON_I16 = 12,
  TENON_I8 = 13,
  TENON_I4 = 14,
  TENON_I2 = 15,
  TENON_U64 = 16,
  TENON_U32 = 17,
  TENON_U16 = 18,
  TENON_U8 = 19,
  TENON_U4 = 20,
  TENON_U2 = 21,
  TENON_BOOL = 22, /* 0 or 1 */
  TENON_C64 = 24,
  TENON_C128 = 25,
} tenon_dtype;

/* Such as "f32"; NULL where it is no dtype. */
const char* tenon_dtype_name(int32_t dtype);

typedef enum tenon_device_type {
  TENON_DEVICE_CPU = 0,
  TENON_DEVICE_CUDA = 1, /* an NVIDIA GPU, as CUDA counts them */
} tenon_device_type;

typedef struct tenon_device {
  int32_t type;  /* a tenon_device_type */
  int32_t index; /* which of them; 0 for the CPU */
} tenon_device;

/* Memory of yours with the elements of a tensor, aligned for its elements; on a GPU, to 16 bytes. The tensors
 * of one call have the same struct_size. */
typedef struct tenon_tensor {
  size_t struct_size;
  void* data;     /* the first element; only read where it is an input */
  size_t bytes;   /* that there are for the elements, and what lies between them */
  int32_t dtype;  /* a tenon_dtype */
  int32_t rank;   /* how many sizes there are; of an output, how many there is room for, and after a run
                     how many there are: set it anew where a later run may give more dimensions */
  int64_t* sizes; /* read where it is an input, written where it is an output; an output may leave out
                     sizes (NULL) that it does not want to know */
  const int64_t* strides; /* as many as the rank: from one element to the next along each dimension, counted
                             in elements; NULL: contiguous, the last dimension innermost. Other strides cost a
                             copy. Those of an input may be 0 or negative; those of an output may be negative,
                             but must not place two elements at one address. On a GPU, tensors must be
                             contiguous. */
  tenon_device device;    /* where the memory is: the CPU's, or that of the program's device */
} tenon_tensor;

/* --- models --- */

typedef struct tenon_model tenon_model;

/* Reads a model: the path of a .onnx, .pt2, .gguf or .tenon file, or builtin:NAME. Weights stay in their
 * file, which must not change as long as the model or a program made of it lives. */
tenon_status tenon_load(const char* model_name, tenon_model** model);

/* Reads a model from memory: what a file of this name would hold, such as "model.onnx". The extension says of
 * which kind it is, and errors use the name. The bytes are copied. A model whose weights are in files of
 * their own wants the folder where these are; for others it may be NULL. */
tenon_status tenon_load_memory(const void* bytes, size_t size, const char* name, const char* folder,
                               tenon_model** model);

/* Of NULL, nothing is freed. */
void tenon_free_model(tenon_model* model);

/* An input or output. What it points to belongs to the program, and lives as long; or to the model, and lives
 * until that is bound or freed. */
typedef struct tenon_port {
  size_t struct_size; /* as this version of the library has it */
  const char* name;
  const char* type; /* such as "f32[batch,128]" */
  int32_t dtype;    /* a tenon_dtype; -1 for strings, sequences and optionals: tenon_compile refuses them */
  int32_t rank;     /* -1 where it is dynamic */
  const int64_t* sizes;          /* as many as the rank; -1 where one is not fixed */
  const char* const* dimensions; /* as many as the rank: "128", "batch", "2*n+1"; where one is dynamic, a name
                                    that the model does not have, or "?" */
} tenon_port;

/* 0, and an error message, where the model is NULL. */
size_t tenon_model_count_inputs(const tenon_model* model);
size_t tenon_model_count_outputs(const tenon_model* model);
/* NULL where there is no such input or output; and an error message, where the model is NULL. */
const tenon_port* tenon_model_input(const tenon_model* model, size_t number);
const tenon_port* tenon_model_output(const tenon_model* model, size_t number);

/* The names of dimensions that inputs have, each once, in alphabetical order; NULL where there are no more,
 * and an error message, where the model is NULL. They live as long as ports do. */
const char* tenon_model_dimension(const tenon_model* model, size_t number);

/* Gives all inputs' dimensions of this name a fixed size. */
tenon_status tenon_bind(tenon_model* model, const char* dimension, int64_t size);

/* --- programs --- */

typedef struct tenon_program tenon_program;

typedef enum tenon_numerics {
  TENON_NUMERICS_DEFAULT = 0, /* the same numbers but for rounding */
  TENON_NUMERICS_STRICT = 1,  /* the optimiser changes no bit */
  TENON_NUMERICS_FAST = 2,    /* numbers are taken to be finite, and may be rounded to fewer bits */
} tenon_numerics;

typedef struct tenon_optimize_options {
  size_t struct_size;
  int64_t numerics; /* a tenon_numerics */
  int64_t opset; /* of an ONNX file: what is newer there is decomposed, or refused; 0: that of the file that
                    was read, or a newer one where an op needs it */
} tenon_optimize_options;

/* Optimises a model and writes it, as the path ends in .onnx or .tenon. An ONNX file that comes of another
 * has no more nodes than that, nor noticeably more bytes. The model itself stays as it is. `options` may be
 * NULL. */
tenon_status tenon_optimize(const tenon_model* model, const tenon_optimize_options* options,
                            const char* path);

typedef enum tenon_precision {
  TENON_PRECISION_F32 = 0,  /* what the model has */
  TENON_PRECISION_BF16 = 1, /* products of f32 with weights round their factors to bf16, and add up in f32 */
} tenon_precision;

typedef struct tenon_dimension {
  const char* name;
  int64_t size;
} tenon_dimension;

typedef struct tenon_compile_options {
  size_t struct_size;
  int64_t numerics;  /* a tenon_numerics */
  int64_t precision; /* a tenon_precision; not with strict numerics */
  int64_t threads;   /* that will run it, at most 1024; 0: one for each core that this process may use */
  const char* cache_folder;          /* that keeps generated code from one start to the next; "": none; NULL:
                                        TENON_CACHE, else tenon in XDG_CACHE_HOME or ~/.cache */
  const tenon_dimension* dimensions; /* bound for this program alone, as by tenon_bind */
  size_t dimension_count;
  tenon_device device; /* that runs it. Programs for a GPU need NVIDIA's driver and NVRTC, which are loaded
                          when they are first asked for; that they, or the GPU, are missing is an error. */
  /* The rest is called while tenon_compile runs, one call at a time, but from any thread; NULL: not at all.
   * What is passed lives as long as the call, which must not throw, and must not call Tenon with this model.
   *
   * on_progress is told of each step before it is done: of a pass, whose name `what` is, and of a kernel that
   * code is generated for, "kernel". It is number `step`, from 1 on, of `steps` of its kind; 0: nobody knows
   * how many there will be. on_remark is told of each optimisation that was declined, and why; `node` is the
   * one that it was about. */
  void (*on_progress)(void* user_data, const char* what, int64_t step, int64_t steps);
  void (*on_remark)(void* user_data, const char* node, const char* pass, const char* reason);
  void* user_data; /* passed to both */
} tenon_compile_options;

/* Optimises a model and compiles it for a device of this machine. The program does without the model from
 * then on. `options` may be NULL. */
tenon_status tenon_compile(const tenon_model* model, const tenon_compile_options* options,
                           tenon_program** program);

typedef struct tenon_open_options {
  size_t struct_size;
  const char* target; /* that the program was saved for, by its name; NULL: the best that this machine runs */
  int64_t check_weights; /* other than 0: reads all weights first, to find out whether they are damaged */
} tenon_open_options;

/* Opens a program that tenon compile has saved, for the CPU. The file is mapped, and must not change as long
 * as the program lives. A file that is damaged, of a later version, or without code for this machine is an
 * error. `options` may be NULL. */
tenon_status tenon_open(const char* path, const tenon_open_options* options, tenon_program** program);

/* The same of a program in memory: the bytes of such a file, which must stay as they are and where they are
 * as long as the program lives. Weights are read there where the bytes begin at a multiple of 64, as those of
 * `tenon compile --as object` do; otherwise all is copied. Code is copied. */
tenon_status tenon_open_memory(const void* bytes, size_t size, const tenon_open_options* options,
                               tenon_program** program);

/* Of NULL, nothing is freed. */
void tenon_free_program(tenon_program* program);

/* The same as of a model. */
size_t tenon_program_count_inputs(const tenon_program* program);
size_t tenon_program_count_outputs(const tenon_program* program);
const tenon_port* tenon_program_input(const tenon_program* program, size_t number);
const tenon_port* tenon_program_output(const tenon_program* program, size_t number);

typedef struct tenon_run_options {
  size_t struct_size;
  int64_t threads; /* at most 1024; 0: one for each core that this process may use */
  uint64_t seed;   /* of the model's random ops */
  void* stream;    /* of a program for a GPU: a CUstream or cudaStream_t of its device's primary context,
                      which the run goes to; NULL: a stream of Tenon's own, and the run has ended when
                      tenon_run returns. CUDA's default stream is cudaStreamLegacy, (void*)1. */
} tenon_run_options;

/* Runs the program: reads the inputs, and writes the elements and sizes of the outputs. No output may overlap
 * another or an input. Where the sizes of inputs and outputs are fixed and all of the model becomes generated
 * code, the outputs are computed where they belong, but for those that are inputs, constants or each other,
 * and nothing else is copied but strided tensors, or allocated from the second run on. Where an output has
 * too little room for its elements, the status is TENON_USER_ERROR, but the sizes of the outputs are written;
 * the program does not even run where they follow from those of the inputs. After any error the program is as
 * good as before, and what the outputs hold is not defined. `options` may be NULL. */
tenon_status tenon_run(const tenon_program* program, const tenon_tensor* inputs, size_t input_count,
                       tenon_tensor* outputs, size_t output_count, const tenon_run_options* options);

/* On a GPU, tensors may be in its memory or in the CPU's, each by itself; those in the CPU's are copied. With
 * a stream of yours, the run comes after what is in the stream, and tenon_run may return before it has ended:
 * where all outputs are on the GPU and no part of the model falls back to the host. What comes after it in
 * the stream sees the outputs; keep the memory of tensors on the GPU until then. Inputs in the CPU's memory
 * have been read when tenon_run returns. Without a stream of yours, whatever writes the inputs must have
 * ended before. Runs in several streams do not wait for each other.
 *
 * An index out of range, or a division by zero, in a run that has not ended when tenon_run returns is the
 * error of the next tenon_synchronize, which waits for all such runs that were started before. Programs that
 * run on the CPU have none. */
tenon_status tenon_synchronize(const tenon_program* program);

#ifdef __cplusplus
}
#endif

#endif
