// add_kernel.h — a kernel for tests that run on a GPU, and whether there is one.
#pragma once

#include "base/error.h"
#include "runtime/cuda/devices.h"
#include "runtime/step.h"

namespace tenon::runtime {

// z[i] = x[i] + y[i] for the n elements, which requires that x[i] is not negative: blocks of 128 threads.
// The driver compiles it for whatever GPU is there.
inline constexpr const char* kAdd = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry phase_0(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n, .param .u64 failure,
                        .param .u32 step)
{
  .reg .pred %is_outside, %is_negative;
  .reg .f32 %a, %b;
  .reg .b32 %block, %thread, %step;
  .reg .b64 %i, %n, %offset, %base, %x, %y, %z, %failure;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %base, %block, 128;
  cvt.u64.u32 %i, %thread;
  add.s64 %i, %i, %base;
  ld.param.u64 %n, [n];
  setp.ge.s64 %is_outside, %i, %n;
  @%is_outside ret;
  shl.b64 %offset, %i, 2;
  ld.param.u64 %x, [x];
  cvta.to.global.u64 %x, %x;
  add.s64 %x, %x, %offset;
  ld.global.f32 %a, [%x];
  setp.lt.f32 %is_negative, %a, 0f00000000;
  @%is_negative bra $failed;
  ld.param.u64 %y, [y];
  cvta.to.global.u64 %y, %y;
  add.s64 %y, %y, %offset;
  ld.global.f32 %b, [%y];
  add.f32 %a, %a, %b;
  ld.param.u64 %z, [z];
  cvta.to.global.u64 %z, %z;
  add.s64 %z, %z, %offset;
  st.global.f32 [%z], %a;
  ret;
$failed:
  ld.param.u64 %failure, [failure];
  cvta.to.global.u64 %failure, %failure;
  ld.param.u32 %step, [step];
  st.global.u32 [%failure], %step;
  ret;
}
)";

inline const KernelCode& add_code() {
  static const KernelCode code{
      .bytes = kAdd, .regions = 1, .shapes = {{.threads = 128, .iterations_per_block = 128}}};
  return code;
}

// Empty where there is one.
inline std::string why_no_gpu() {
  try {
    list_gpus();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace tenon::runtime
