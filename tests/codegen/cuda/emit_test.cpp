#include "codegen/cuda/emit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace tenon::codegen::cuda {
namespace {

CudaText emit(std::string_view kernel) { return emit_cuda(loops::parse_checked_kernel(kernel)); }

std::string without_preamble(const CudaText& emitted) {
  return emitted.text.substr(emitted.text.find("extern \"C\""));
}

constexpr std::string_view kPointwise = R"(kernel scale(x: f32[n]) -> (y: f32[n]) {
  for b in 0..floor((n+4095)/4096) block(256) {
    for i in 4096*b..min(4096*b+4096,n) thread { y[i] = x[i] * 2 + 1 }
  }
}
)";

constexpr std::string_view kHalf = R"(kernel halve(x: f16[64,128]) -> (y: f16[64,128]) {
  for b in 0..4 block(128) {
    for i in 2048*b..2048*b+2048 thread { y[floor(i/128),mod(i,128)] = x[floor(i/128),mod(i,128)] * 0.5 }
  }
}
)";

constexpr std::string_view kSoftmax = R"(kernel softmax(x: f32[n,1024]) -> (y: f32[n,1024]) {
  for r in 0..n block(128) {
    local e: f32[1024] in private
    local m: f32[] in private
    local s: f32[] in private
    m[] = -inf
    for j in 0..1024 thread { m[] max= x[r,j] }
    for j in 0..1024 thread { e[j] = exp(x[r,j] - m[]) }
    s[] = 0
    for j in 0..1024 thread { s[] += e[j] }
    for j in 0..1024 thread { y[r,j] = e[j] / s[] }
  }
}
)";

constexpr std::string_view kShortRows = R"(kernel short_rows(x: f32[n,64]) -> (y: f32[n,64]) {
  for r in 0..n block(16) {
    local s: f32[] in private
    s[] = 0
    for j in 0..64 thread { s[] += x[r,j] * x[r,j] }
    for j in 0..64 thread { y[r,j] = x[r,j] / sqrt(s[]) }
  }
}
)";

constexpr std::string_view kRing = R"(kernel ring(x: f32[n,256]) -> (y: f32[256]) {
  for b in 0..1 block(64) {
    local s: f32[256] in private
    for i in 0..256 thread { s[i] = 0 }
    for k in 0..n pipelined 3 {
      local t: f32[256] in shared
      copy(256) t[0] = x[k,0]
      for i in 0..256 thread { s[i] += t[255-i] }
    }
    for i in 0..256 thread { y[i] = s[i] }
  }
}
)";

constexpr std::string_view kClusters = R"(kernel clusters(x: f32[n,8192]) -> (y: f32[n,8192]) {
  for r in 0..n block(2048) pipelined 2 {
    local row: f32[8192] in shared
    local v: f32[8192] in private
    local s: f32[] in private
    copy(8192) row[0] = x[r,0]
    for i in 0..8192 thread { v[i] = row[i] }
    s[] = 0
    for i in 0..8192 thread { s[] += v[i] }
    for i in 0..8192 thread { y[r,i] = v[i] / s[] }
  }
}
)";

constexpr std::string_view kTranspose = R"(kernel transpose(x: f32[64,96]) -> (y: f32[96,64]) {
  for a in 0..2 block(256) {
    for b in 0..3 block {
      local tile: f32[32,33] in shared
      for t in 0..1024 thread { tile[floor(t/32),mod(t,32)] = x[32*a+floor(t/32),32*b+mod(t,32)] }
      for t in 0..1024 thread { y[32*b+floor(t/32),32*a+mod(t,32)] = tile[mod(t,32),floor(t/32)] }
    }
  }
}
)";

TEST(CudaText, WritesVectorsOf16BytesAndATail) {
  const CudaText emitted = emit(kPointwise);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __launch_bounds__(256, 2) phase_0(const float* __restrict__ x, float* __restrict__ y, const long long n, int* failure, const int step) {
  const int thread = threadIdx.x;
  const long long b = blockIdx.x;
  if (n >= 4096 * b + 4096) {
    #pragma unroll
    for (int trip = 0; trip < 4; ++trip) {
      const long long i = 4096 * b + 1024 * trip + 4 * thread;
      const Vector<float, 4> x_vector = load_vector<4>(x + i);
      Vector<float, 4> y_vector;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        y_vector.at[lane] = x_vector.at[lane] * 2.0f + 1.0f;
      }
      store_vector(y + i, y_vector);
    }
  } else {
    const long long i_end = min(4096 * b + 4096, n);
    #pragma unroll 1
    for (long long i_first = 4096 * b + 4 * thread; i_first < i_end; i_first += 1024) {
      if (i_first + 4 <= i_end) {
        const long long i = i_first;
        const Vector<float, 4> x_vector = load_vector<4>(x + i);
        Vector<float, 4> y_vector;
        #pragma unroll
        for (int lane = 0; lane < 4; ++lane) {
          y_vector.at[lane] = x_vector.at[lane] * 2.0f + 1.0f;
        }
        store_vector(y + i, y_vector);
      } else {
        #pragma unroll
        for (int lane = 0; lane < 4; ++lane) {
          if (i_first + lane < min(4096 * b + 4096, n)) {
            const long long i = i_first + lane;
            y[i] = x[i] * 2.0f + 1.0f;
          }
        }
      }
    }
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 256);
  EXPECT_EQ(emitted.shapes.front().iterations_per_block, 1);
}

TEST(CudaText, ConvertsNarrowFloatsInRegisters) {
  const CudaText emitted = emit(kHalf);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __launch_bounds__(128) phase_0(const unsigned short* __restrict__ x, unsigned short* __restrict__ y, int* failure, const int step) {
  const int thread = threadIdx.x;
  const int b = blockIdx.x;
  #pragma unroll
  for (int trip = 0; trip < 2; ++trip) {
    const int i = 2048 * b + 1024 * trip + 8 * thread;
    const Vector<unsigned short, 8> x_vector = load_vector<8>(x + i);
    Vector<unsigned short, 8> y_vector;
    #pragma unroll
    for (int lane = 0; lane < 8; ++lane) {
      y_vector.at[lane] = f16_of_f32(f32_of_f16(x_vector.at[lane]) * 0.5f);
    }
    store_vector(y + i, y_vector);
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 128);
  EXPECT_EQ(emitted.shapes.front().iterations_per_block, 1);
}

TEST(CudaText, KeepsRowsInRegisters) {
  const CudaText emitted = emit(kSoftmax);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __launch_bounds__(128) phase_0(const float* __restrict__ x, float* __restrict__ y, const long long n, int* failure, const int step) {
  const int thread = threadIdx.x;
  const long long r = blockIdx.x;
  float e[8];
  float m;
  float s;
  m = -infinity_f32();
  {
    float m_part = -infinity_f32();
    #pragma unroll
    for (int trip = 0; trip < 2; ++trip) {
      const int j = 512 * trip + 4 * thread;
      const Vector<float, 4> x_vector = load_vector<4>(x + 1024 * r + j);
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        m_part = maximum(m_part, x_vector.at[lane]);
      }
    }
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      m_part = maximum(m_part, __shfl_xor_sync(0xffffffff, m_part, offset, 32));
    }
    __shared__ float m_parts[4];
    if (thread % 32 == 0) {
      m_parts[thread / 32] = m_part;
    }
    __syncthreads();
    m_part = m_parts[0];
    #pragma unroll
    for (int warp = 1; warp < 4; ++warp) {
      m_part = maximum(m_part, m_parts[warp]);
    }
    m = maximum(m, m_part);
  }
  #pragma unroll
  for (int trip = 0; trip < 2; ++trip) {
    const int j = 512 * trip + 4 * thread;
    const Vector<float, 4> x_vector = load_vector<4>(x + 1024 * r + j);
    #pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      e[4 * trip + lane] = expf(x_vector.at[lane] - m);
    }
  }
  s = 0.0f;
  {
    float s_part = -0.0f;
    #pragma unroll
    for (int trip = 0; trip < 2; ++trip) {
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        s_part = s_part + e[4 * trip + lane];
      }
    }
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      s_part = s_part + __shfl_xor_sync(0xffffffff, s_part, offset, 32);
    }
    __shared__ float s_parts[4];
    if (thread % 32 == 0) {
      s_parts[thread / 32] = s_part;
    }
    __syncthreads();
    s_part = s_parts[0];
    #pragma unroll
    for (int warp = 1; warp < 4; ++warp) {
      s_part = s_part + s_parts[warp];
    }
    s = s + s_part;
  }
  #pragma unroll
  for (int trip = 0; trip < 2; ++trip) {
    const int j = 512 * trip + 4 * thread;
    Vector<float, 4> y_vector;
    #pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      y_vector.at[lane] = e[4 * trip + lane] / s;
    }
    store_vector(y + 1024 * r + j, y_vector);
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 128);
  EXPECT_EQ(emitted.shapes.front().iterations_per_block, 1);
}

// Of threads that hold few elements, more blocks run at once; tiles of products need the registers.
TEST(CudaText, GivesThreadsRegistersForWhatTheyHold) {
  EXPECT_NE(emit(R"(kernel k(x: f32[n,4096]) -> (y: f32[n,4096]) { for r in 0..n block(256) {
    local e: f32[4096] in private
    for j in 0..4096 thread { e[j] = x[r,j] }
    for j in 0..4096 thread { y[r,j] = e[j] } } })")
                .text.find("__launch_bounds__(256, 4)"),
            std::string::npos);
  EXPECT_NE(emit(R"(kernel k(x: f32[n,256]) -> (y: f32[n,256]) { for r in 0..n block(256) {
    local e: f32[256,8,8] in private
    for j in 0..256 thread { for a in 0..8 unrolled { for b in 0..8 unrolled { e[j,a,b] = x[r,j] } } }
    for j in 0..256 thread { y[r,j] = e[j,1,2] } } })")
                .text.find("__launch_bounds__(256, 2)"),
            std::string::npos);
}

TEST(CudaText, KeepsRegistersWhereSharedMemoryHasRoomForOneBlock) {
  const auto bounds_of = [](int64_t elements) {
    const std::string text = emit(fmt::format(R"(kernel k(x: f32[n,{0}]) -> (y: f32[n,{0}]) {{
      for r in 0..n block(256) {{
        local e: f32[{0}] in shared
        for j in 0..{0} thread {{ e[j] = x[r,j] }}
        for j in 0..{0} thread {{ y[r,j] = e[{0}-1-j] }} }} }})",
                                              elements))
                                 .text;
    const size_t begin = text.find("__launch_bounds__");
    return text.substr(begin, text.find(' ', text.find(')', begin)) - begin);
  };
  EXPECT_EQ(bounds_of(28 << 10), "__launch_bounds__(256, 2)");
  EXPECT_EQ(bounds_of(30 << 10), "__launch_bounds__(256)");
}

TEST(CudaText, PacksShortRowsIntoABlock) {
  const CudaText emitted = emit(kShortRows);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __launch_bounds__(128) phase_0(const float* __restrict__ x, float* __restrict__ y, const long long n, int* failure, const int step) {
  const int thread = threadIdx.x % 16;
  const unsigned mask = 65535U << threadIdx.x % 32 / 16 * 16;
  const long long iteration = (long long)blockIdx.x * 8 + threadIdx.x / 16;
  if (iteration >= n) return;
  const long long r = iteration;
  float s;
  s = 0.0f;
  {
    float s_part = -0.0f;
    {
      const int j = 4 * thread;
      const Vector<float, 4> x_vector = load_vector<4>(x + 64 * r + j);
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        s_part = fmaf(x_vector.at[lane], x_vector.at[lane], s_part);
      }
    }
    #pragma unroll
    for (int offset = 8; offset > 0; offset /= 2) {
      s_part = s_part + __shfl_xor_sync(mask, s_part, offset, 16);
    }
    s = s + s_part;
  }
  {
    const int j = 4 * thread;
    const Vector<float, 4> x_vector = load_vector<4>(x + 64 * r + j);
    Vector<float, 4> y_vector;
    #pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      y_vector.at[lane] = x_vector.at[lane] / sqrtf(s);
    }
    store_vector(y + 64 * r + j, y_vector);
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 128);
  EXPECT_EQ(emitted.shapes.front().iterations_per_block, 8);
}

TEST(CudaText, WaitsBetweenWritingAndReadingSharedMemory) {
  const CudaText emitted = emit(kTranspose);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __launch_bounds__(256, 2) phase_0(const float* __restrict__ x, float* __restrict__ y, int* failure, const int step) {
  const int thread = threadIdx.x;
  const int iteration = blockIdx.x;
  const int b = iteration % 3;
  const int a = iteration / 3;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const tile = (float*)(shared);
  #pragma unroll
  for (int trip = 0; trip < 4; ++trip) {
    const int t = 256 * trip + thread;
    tile[t + t / 32] = x[3072 * a + 64 * (t / 32) + 32 * b + t];
  }
  __syncthreads();
  #pragma unroll
  for (int trip = 0; trip < 4; ++trip) {
    const int t = 256 * trip + thread;
    y[2048 * b + 32 * a + 32 * (t / 32) + t] = tile[33 * t - 1055 * (t / 32)];
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 256);
  EXPECT_EQ(emitted.shapes.front().iterations_per_block, 1);
}

// Those for k + 2 begin when those for k have come, and all threads have read the slot of k - 1.
TEST(CudaText, CopiesAheadInARing) {
  EXPECT_EQ(
      without_preamble(emit(kRing)),
      R"(extern "C" __global__ void __launch_bounds__(64) phase_0(const float* __restrict__ x, float* __restrict__ y, const long long n, int* failure, const int step) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float s[4];
  #pragma unroll
  for (int trip = 0; trip < 4; ++trip) {
    s[trip] = 0.0f;
  }
  {
    float* const t_slots = (float*)(shared);
    #pragma unroll
    for (int stage = 0; stage < 2; ++stage) {
      const long long first = stage;
      if (first < n) {
        float* const t = t_slots + stage * 256;
        {
          const int copied = 4 * thread;
          copy_async<16>(t + copied, x + 256 * first + copied);
        }
      }
      end_stage();
    }
    int slot = 0;
    #pragma unroll 1
    for (long long k = 0; k < n; ++k) {
      float* const t = t_slots + slot * 256;
      wait_for_stage<1>();
      __syncthreads();
      {
        const long long next = k + 2;
        if (next < n) {
          float* const t = t_slots + (slot + 2) % 3 * 256;
          {
            const int copied = 4 * thread;
            copy_async<16>(t + copied, x + 256 * next + copied);
          }
        }
        end_stage();
      }
      #pragma unroll
      for (int trip = 0; trip < 4; ++trip) {
        const int i = 64 * trip + thread;
        s[trip] = s[trip] + t[-1 * i + 255];
      }
      slot = slot == 2 ? 0 : slot + 1;
    }
  }
  #pragma unroll
  for (int trip = 0; trip < 4; ++trip) {
    const int i = 64 * trip + thread;
    y[i] = s[trip];
  }
}
)");
}

// Each thread reads what it copied, so that nobody waits for others but where parts are exchanged. A thread
// block stays for several rows.
TEST(CudaText, CopiesTheNextRowAhead) {
  const CudaText emitted = emit(kClusters);
  EXPECT_EQ(
      without_preamble(emitted),
      R"(extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(512, 2) phase_0(const float* __restrict__ x, float* __restrict__ y, const long long n, int* failure, const int step) {
  const int thread = blockIdx.x % 4 * 512 + threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ unsigned long long all_came[2];
  if (threadIdx.x < 2) {
    begin_barrier(&all_came[threadIdx.x]);
  }
  unsigned exchange = 0;
  arrive_at_cluster();
  {
    float* const row = (float*)(shared) + 4 * threadIdx.x;
    {
      const long long first = blockIdx.x / 4;
      if (first < n) {
        {
          const int copied = 4 * thread;
          copy_async<16>(row, x + 8192 * first + copied);
        }
      }
      end_stage();
    }
    wait_for_cluster();
    #pragma unroll 1
    for (long long r = blockIdx.x / 4; r < n; r += gridDim.x / 4) {
      float v[4];
      float s;
      wait_for_stage<0>();
      {
        const Vector<float, 4> row_vector = load_vector<4>(row);
        #pragma unroll
        for (int lane = 0; lane < 4; ++lane) {
          v[4 * 0 + lane] = row_vector.at[lane];
        }
      }
      {
        const long long next = r + gridDim.x / 4;
        if (next < n) {
          {
            const int copied = 4 * thread;
            copy_async<16>(row, x + 8192 * next + copied);
          }
        }
        end_stage();
      }
      s = 0.0f;
      {
        float s_part = -0.0f;
        {
          #pragma unroll
          for (int lane = 0; lane < 4; ++lane) {
            s_part = s_part + v[4 * 0 + lane];
          }
        }
        #pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
          s_part = s_part + __shfl_xor_sync(0xffffffff, s_part, offset, 32);
        }
        if (threadIdx.x == 0) {
          expect_bytes(&all_came[exchange % 2], 256);
        }
        __shared__ float s_parts[2][64];
        if (thread % 32 < 4) {
          store_to_block(&s_parts[exchange % 2][thread / 32], thread % 32, s_part, &all_came[exchange % 2]);
        }
        wait_for_phase(&all_came[exchange % 2], exchange / 2 % 2);
        s_part = s_parts[exchange % 2][thread % 32];
        #pragma unroll
        for (int warp = 32; warp < 64; warp += 32) {
          s_part = s_part + s_parts[exchange % 2][warp + thread % 32];
        }
        #pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
          s_part = s_part + __shfl_xor_sync(0xffffffff, s_part, offset, 32);
        }
        ++exchange;
        s = s + s_part;
      }
      {
        const int i = 4 * thread;
        Vector<float, 4> y_vector;
        #pragma unroll
        for (int lane = 0; lane < 4; ++lane) {
          y_vector.at[lane] = v[4 * 0 + lane] / s;
        }
        store_vector(y + 8192 * r + i, y_vector);
      }
    }
  }
}
)");
  EXPECT_EQ(emitted.shapes.front().threads, 512);
  EXPECT_EQ(emitted.shapes.front().blocks_per_iteration, 4);
  EXPECT_TRUE(emitted.shapes.front().is_persistent);
}

TEST(CudaText, BeginsWithWhatItUses) {
  const std::string text = emit(kHalf).text;
  EXPECT_NE(text.find("struct alignas(N * sizeof(T)) Vector"), std::string::npos);
  EXPECT_NE(text.find("float f32_of_f16(unsigned short bits)"), std::string::npos);
  EXPECT_EQ(text.find("maximum"), std::string::npos);
  EXPECT_EQ(text.find("#include"), std::string::npos);
  EXPECT_EQ(emit(kTranspose).text.find("extern"), 0);
}

TEST(CudaText, SaysHowMuchSharedMemoryItNeeds) {
  const auto bytes = [](std::string_view kernel) {
    return shared_bytes(loops::parallel_regions_of(loops::parse_checked_kernel(kernel)).front());
  };
  EXPECT_EQ(bytes(kTranspose), Dim(32 * 33 * 4));
  EXPECT_EQ(bytes(kSoftmax), Dim(0));
  EXPECT_EQ(bytes(kRing), Dim(3 * 256 * 4));
  EXPECT_EQ(bytes(kClusters), Dim(8192 / 4 * 4));  // of a block of the cluster
  EXPECT_EQ(bytes(R"(kernel k(x: f32[n]) -> (y: f32[n]) {
    for b in 0..1 block(64) {
      local t: f16[n] in shared
      local u: f32[3] in shared
      for i in 0..n thread { local own: f32[4] own[0] = x[i] t[i] = f16(own[0]) }
      for i in 0..3 thread { u[i] = 1 }
      for i in 0..n thread { y[i] = f32(t[n-1-i]) + u[2] } } })"),
            Dim::parse("16*floor((2*n+15)/16)+16"));
}

TEST(CudaText, LetsThreadsGoOnWithTheirOwnElements) {
  const std::string text = emit(R"(kernel k(x: f32[8,256]) -> (y: f32[256]) {
    for b in 0..1 block(64) {
      for i in 0..256 thread { y[i] = 0 }
      for r in 0..8 { for i in 0..256 thread { y[i] += x[r,i] } } } })")
                               .text;
  EXPECT_EQ(text.find("__syncthreads"), std::string::npos) << text;
}

std::string refusal(std::string_view kernel) {
  try {
    emit(kernel);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "";
}

TEST(CudaText, RefusesWhatThreadsCannotShareOut) {
  EXPECT_EQ(refusal(R"(kernel k(x: f32[64]) -> (y: f32[64]) { for b in 0..1 block(64) {
              local t: f32[64] in private
              for i in 0..64 thread { t[i] = x[i] }
              for i in 0..63 thread { y[i] = t[i+1] } y[63] = 0 } })"),
            "kernel k: buffer 't' is not indexed by thread loop 'i' over all of its first dimension");
  EXPECT_EQ(refusal(R"(kernel k(x: f32[64]) -> (y: f32[64]) { for b in 0..1 block(64) {
              local t: f32[64] in private
              for i in 0..64 thread { t[i] = x[i] }
              for i in 0..64 thread { y[i] = t[3] } } })"),
            "kernel k: buffer 't' is spread over threads, but also used by all alike");
  EXPECT_EQ(refusal(R"(kernel k(x: f32[64]) -> (y: f32[]) { for b in 0..1 block(64) {
              for i in 0..64 thread { y[] = x[i] } } })"),
            "kernel k: the iterations of thread loop 'i' write one place of 'y' in order");
  EXPECT_EQ(refusal(R"(kernel k(x: f32[n]) -> (y: f32[n]) { for b in 0..1 block(64) {
              local t: f32[n] in private
              for c in 0..n { t[c] = x[c] }
              for i in 0..n thread { y[i] = t[0] } } })"),
            "kernel k: 't' is in registers, but its size n is dynamic");
  EXPECT_EQ(refusal(R"(kernel k(x: f32[64], at: i64[64]) -> (y: f32[64]) { for b in 0..1 block(64) {
              for i in 0..64 thread { y[i] = 0 }
              for i in 0..64 thread { y[{at[i]}] += x[i] } } })"),
            "kernel k: threads combine into places of 'y' that depend on data");
}

// The kernels above, by NVIDIA's compiler, where there is one.
TEST(CudaText, IsAcceptedByNvcc) {
  if (std::system("nvcc --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no nvcc";
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("tenon_nvcc_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::filesystem::path source = folder / "kernels.cu", ptx = folder / "kernels.ptx",
                              said = folder / "said.txt";
  const auto read = [](const std::filesystem::path& file) {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const auto compile = [&](std::string_view kernel, std::string_view options) {
    std::ofstream(source) << emit(kernel).text;
    EXPECT_EQ(std::system(fmt::format("nvcc {} -arch=sm_90 -Werror all-warnings '{}' -o '{}' >'{}' 2>&1",
                                      options, source.string(), ptx.string(), said.string())
                              .c_str()),
              0)
        << read(said);
  };
  for (const std::string_view kernel : {kSoftmax, kShortRows, kTranspose, kRing, kClusters})
    compile(kernel, "-cubin");
  for (const std::string_view kernel : {kPointwise, kHalf}) {
    compile(kernel, "-ptx");
    const std::string text = read(ptx);
    const bool is_half = kernel == kHalf;
    EXPECT_NE(text.find(is_half ? "ld.global.nc.v4.u32" : "ld.global.nc.v4.f32"), std::string::npos) << text;
    EXPECT_NE(text.find(is_half ? "st.global.v4.u32" : "st.global.v4.f32"), std::string::npos) << text;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::codegen::cuda
