#include "codegen/cuda/preamble.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::codegen::cuda {
namespace {

struct Part {
  std::string_view name;
  std::string_view text;
  std::vector<std::string_view> needs = {};
};

// In the order in which they are declared. Instructions stand on lines of their own.
const std::vector<Part>& all_parts() {
  static const std::vector<Part>& parts = *new std::vector<Part>{
      {"Vector", R"(template <class T, int N>
struct alignas(N * sizeof(T)) Vector {
  T at[N];
};
)"},
      {"load_vector",
       R"(// N elements in one instruction: of less than 32 bits, as words.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* from) {
  if constexpr (sizeof(T) >= 4 || N * sizeof(T) < 4) {
    return *(const Vector<T, N>*)from;
  } else {
    constexpr int per_word = 4 / sizeof(T), bits = 8 * sizeof(T);
    const auto words = *(const Vector<unsigned, N / per_word>*)from;
    Vector<T, N> vector;
    #pragma unroll
    for (int i = 0; i < N; ++i)
      vector.at[i] = (T)(words.at[i / per_word] >> i % per_word * bits);
    return vector;
  }
}
)",
       {"Vector"}},
      {"store_vector",
       R"(template <int N, class T>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, N>& vector) {
  if constexpr (sizeof(T) >= 4 || N * sizeof(T) < 4) {
    *(Vector<T, N>*)to = vector;
  } else {
    constexpr int per_word = 4 / sizeof(T), bits = 8 * sizeof(T);
    Vector<unsigned, N / per_word> words = {};
    #pragma unroll
    for (int i = 0; i < N; ++i)
      words.at[i / per_word] |= ((unsigned)vector.at[i] & ((1U << bits) - 1)) << i % per_word * bits;
    *(Vector<unsigned, N / per_word>*)to = words;
  }
}
)",
       {"Vector"}},
      {"arrive_at_cluster", R"(__device__ __forceinline__ void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
)"},
      {"wait_for_cluster", R"(// Until all threads of all blocks of the cluster have arrived.
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
)"},
      {"cluster_sync",
       R"(__device__ __forceinline__ void cluster_sync() {
  arrive_at_cluster();
  wait_for_cluster();
}
)",
       {"arrive_at_cluster", "wait_for_cluster"}},
      {"begin_barrier",
       R"(// In shared memory; one thread arrives for each phase, and says how many bytes come.
__device__ __forceinline__ void begin_barrier(unsigned long long* barrier) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(barrier);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(own) : "memory");
}
)"},
      {"expect_bytes",
       R"(__device__ __forceinline__ void expect_bytes(unsigned long long* barrier, unsigned bytes) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(barrier);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(own), "r"(bytes) : "memory");
}
)"},
      {"store_to_block",
       R"(// To where another block of the cluster has this place of its shared memory. Its barrier counts the bytes
// that came, so that nothing else that was stored needs to be waited for.
template <class T>
__device__ __forceinline__ void store_to_block(T* place, unsigned block, T value, unsigned long long* barrier) {
  unsigned there, its_barrier;
  const unsigned own = (unsigned)__cvta_generic_to_shared(place);
  const unsigned own_barrier = (unsigned)__cvta_generic_to_shared(barrier);
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its_barrier) : "r"(own_barrier), "r"(block));
  if constexpr (sizeof(T) == 8)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 :: "r"(there), "l"(*(const unsigned long long*)&value), "r"(its_barrier) : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :: "r"(there), "r"(*(const unsigned*)&value), "r"(its_barrier) : "memory");
}
)"},
      {"wait_for_phase", R"(// Until all bytes of a phase have come; phases are even and odd in turn.
__device__ __forceinline__ void wait_for_phase(unsigned long long* barrier, unsigned parity) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(barrier);
  unsigned came;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(came) : "r"(own), "r"(parity) : "memory");
  } while (!came);
}
)"},
      {"copy_async", R"(// From memory to shared memory, while other things are done.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(place), "l"(from), "n"(bytes) : "memory");
}
)"},
      {"copy_async_where", R"(// The same where a condition holds; else they are 0, and nothing is read.
template <int bytes>
__device__ __forceinline__ void copy_async_where(bool holds, void* to, const void* from) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to), count = holds ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place), "l"(from), "r"(count) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(place), "l"(from), "n"(bytes), "r"(count) : "memory");
}
)"},
      {"end_stage", R"(// What this thread copies from here on belongs to another stage.
__device__ __forceinline__ void end_stage() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
)"},
      {"wait_for_stage",
       R"(// Until this thread's copies have come, but for those of so many stages that ended last.
template <int later>
__device__ __forceinline__ void wait_for_stage() {
  asm volatile("cp.async.wait_group %0;" :: "n"(later) : "memory");
}
)"},
      {"wait_for_copies", R"(// Until all of this thread's copies have come.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
)"},
      {"load_matrices",
       R"(// 8 x 8 elements of 16 bits for each register: the lanes say where the rows are, and each gets two elements
// of the row that is a quarter of its number.
template <int count>
__device__ __forceinline__ void load_matrices(unsigned (&to)[count], const unsigned short* row) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(own));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(own));
}
)"},
      {"load_matrices_transposed", R"(// The same, of columns.
template <int count>
__device__ __forceinline__ void load_matrices_transposed(unsigned (&to)[count], const unsigned short* row) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(own));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(own));
}
)"},
      {"set_half", R"(// Of two elements of 16 bits that are set one after the other.
__device__ __forceinline__ void set_half(unsigned& word, int half, unsigned short bits) {
  word = half == 0 ? bits : word | (unsigned)bits << 16;
}
)"},
      {"pack_f16", R"(__device__ __forceinline__ unsigned pack_f16(float first, float second) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
)"},
      {"pack_bf16", R"(__device__ __forceinline__ unsigned pack_bf16(float first, float second) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
)"},
      {"multiply_add_bf16",
       R"(// 16 x 16 by 16 x 8 elements of a warp; each thread has two sums of row lane / 4 and two of the eighth after.
__device__ __forceinline__ void multiply_add_bf16(float& s0, float& s1, float& s2, float& s3,
                                                  const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)"},
      {"multiply_add_f16",
       R"(__device__ __forceinline__ void multiply_add_f16(float& s0, float& s1, float& s2, float& s3,
                                                 const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)"},
      {"swizzled",
       R"(// The 128-byte swizzle of elements of 16 bits: the 16-byte chunks of a row of 128 bytes are permuted by XOR with the
// row's number, so that 8 rows have no bank conflicts.
template <class T>
__device__ __forceinline__ T swizzled(T offset) {
  return offset ^ (offset >> 3 & 56);
}
)"},
      {"wgmma_descriptor",
       R"(// The descriptor of a matrix in swizzled shared memory: its address, the stride between panels, and that between
// groups of 8 rows.
__device__ __forceinline__ unsigned long long wgmma_descriptor(const unsigned short* from, unsigned long long panel_bytes) {
  const unsigned own = (unsigned)__cvta_generic_to_shared(from);
  return (own & 0x3ffff) >> 4 | panel_bytes >> 4 << 16 | 1024ULL >> 4 << 32 | 1ULL << 62;
}
)"},
      {"fence_proxy_async",
       R"(// Makes what this thread wrote to shared memory visible to wgmma after the next barrier.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
)"},
      {"wgmma_fence", R"(// Orders accesses to the accumulators before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
)"},
      {"wgmma_commit", R"(__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
)"},
      {"wait_for_wgmma",
       R"(// Until the wgmma that were committed have updated their accumulators, but for those of so many last groups.
template <int later>
__device__ __forceinline__ void wait_for_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(later) : "memory");
}
)"},
      {"infinity_f32",
       R"(__device__ __forceinline__ float infinity_f32() { return __int_as_float(0x7f800000); }
)"},
      {"nan_f32", R"(__device__ __forceinline__ float nan_f32() { return __int_as_float(0x7fc00000); }
)"},
      {"infinity_f64", R"(__device__ __forceinline__ double infinity_f64() {
  return __longlong_as_double(0x7ff0000000000000LL);
}
)"},
      {"nan_f64", R"(__device__ __forceinline__ double nan_f64() {
  return __longlong_as_double(0x7ff8000000000000LL);
}
)"},
      {"floor_div", R"(// Rounds towards minus infinity.
template <class T>
__device__ __forceinline__ T floor_div(T a, T b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
)"},
      {"floor_mod", R"(// Has the sign of b.
template <class T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  return a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
}
)"},
      {"minimum", R"(// NaN where either is.
template <class T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a != a || a < b ? a : b;
}
__device__ __forceinline__ float minimum(float a, float b) {
  float value;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
)"},
      {"maximum", R"(// NaN where either is.
template <class T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a != a || a > b ? a : b;
}
__device__ __forceinline__ float maximum(float a, float b) {
  float value;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
)"},
      {"f32_of_f16", R"(__device__ __forceinline__ float f32_of_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
)"},
      {"f16_of_f32", R"(__device__ __forceinline__ unsigned short f16_of_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
)"},
      {"round_to_f16",
       R"(__device__ __forceinline__ float round_to_f16(float value) { return f32_of_f16(f16_of_f32(value)); }
)",
       {"f32_of_f16", "f16_of_f32"}},
      {"f32_of_bf16", R"(__device__ __forceinline__ float f32_of_bf16(unsigned short bits) {
  return __uint_as_float((unsigned)bits << 16);
}
)"},
      {"bf16_of_f32", R"(__device__ __forceinline__ unsigned short bf16_of_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
)"},
      {"round_to_bf16",
       R"(__device__ __forceinline__ float round_to_bf16(float value) { return f32_of_bf16(bf16_of_f32(value)); }
)",
       {"f32_of_bf16", "bf16_of_f32"}},
      {"round_to_odd", R"(// As a float from which rounding to less gives what rounding the double would.
__device__ __forceinline__ float round_to_odd(double value) {
  const float shorter = __double2float_rz(value);
  return (double)shorter == value ? shorter : __int_as_float(__float_as_int(shorter) | 1);
}
)"},
      {"to_signed", R"(// Towards zero. NaN is 0; what is beyond 64 bits, the nearest.
template <class T>
__device__ __forceinline__ long long to_signed(T value) {
  if (value != value)
    return 0;
  return value >= (T)9223372036854775808.0    ? 0x7fffffffffffffffLL
         : value <= -(T)9223372036854775808.0 ? -0x7fffffffffffffffLL - 1
                                              : (long long)value;
}
)"},
      {"to_unsigned",
       R"(// The same; negative numbers wrap around.
template <class T>
__device__ __forceinline__ unsigned long long to_unsigned(T value) {
  const T half = (T)9223372036854775808.0;
  return value >= half ? (unsigned long long)to_signed(value - half) | 1ULL << 63
                       : (unsigned long long)to_signed(value);
}
)",
       {"to_signed"}},
      {"shift_left", R"(template <class T>
__device__ __forceinline__ T shift_left(T a, T b) {
  return (unsigned long long)b < 64 ? (T)((unsigned long long)a << b) : (T)0;
}
)"},
      {"shift_right", R"(template <class T>
__device__ __forceinline__ T shift_right(T a, T b) {
  const bool all = (unsigned long long)b >= 64;
  if ((T)-1 < (T)0)
    return (T)((long long)a >> (all ? 63 : b));
  return all ? (T)0 : (T)((unsigned long long)a >> b);
}
)"},
      {"divide_integers", R"(// By what is not 0. The one quotient that overflows wraps.
template <class T>
__device__ __forceinline__ T divide_integers(T a, T b) {
  return (T)-1 < (T)0 && b == (T)-1 ? (T)(0ULL - (unsigned long long)a) : (T)(a / b);
}
)"},
      {"remainder_integers", R"(// By what is not 0.
template <class T>
__device__ __forceinline__ T remainder_integers(T a, T b) {
  return (T)-1 < (T)0 && b == (T)-1 ? (T)0 : (T)(a % b);
}
)"},
      {"round_down_to_bf16", R"(__device__ __forceinline__ float round_down_to_bf16(float value) {
  return __uint_as_float(__float_as_uint(value) & 0xffff0000U);
}
)"},
      {"pack_bf16x2", R"(__device__ __forceinline__ int pack_bf16x2(float low, float high) {
  return (int)(__float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000U));
}
)"},
      {"dot_bf16x2", R"(__device__ __forceinline__ float dot_bf16x2(int a, int b, float sum) {
  sum = fmaf(__uint_as_float((unsigned)a << 16), __uint_as_float((unsigned)b << 16), sum);
  return fmaf(__uint_as_float(a & 0xffff0000U), __uint_as_float(b & 0xffff0000U), sum);
}
)"},
      {"pack_i8x4", R"(template <class T>
__device__ __forceinline__ T pack_i8x4(T a, T b, T c, T d) {
  return (T)(((unsigned)a & 0xff) | ((unsigned)b & 0xff) << 8 | ((unsigned)c & 0xff) << 16 | (unsigned)d << 24);
}
)"},
      {"philox4x32",
       R"(// Philox4x32-10: the random words of an element of a call.
__device__ __forceinline__ Vector<unsigned, 4> philox4x32(unsigned long long key, unsigned long long call,
                                                          unsigned long long element) {
  Vector<unsigned, 4> c = {{(unsigned)element, (unsigned)(element >> 32), (unsigned)call, (unsigned)(call >> 32)}};
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  #pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = c.at[0] * 0xD2511F53ULL, second = c.at[2] * 0xCD9E8D57ULL;
    c = {{(unsigned)(second >> 32) ^ c.at[1] ^ k0, (unsigned)second,
          (unsigned)(first >> 32) ^ c.at[3] ^ k1, (unsigned)first}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}
)",
       {"Vector"}},
      {"philox",
       R"(__device__ __forceinline__ unsigned long long philox(unsigned long long key,
                                                     unsigned long long call,
                                                     unsigned long long element) {
  const auto words = philox4x32(key, call, element);
  return words.at[0] | (unsigned long long)words.at[1] << 32;
}
)",
       {"philox4x32"}},
      {"philox_high",
       R"(__device__ __forceinline__ unsigned long long philox_high(unsigned long long key,
                                                          unsigned long long call,
                                                          unsigned long long element) {
  const auto words = philox4x32(key, call, element);
  return words.at[2] | (unsigned long long)words.at[3] << 32;
}
)",
       {"philox4x32"}},
      {"dot_i8x4", R"(// Bytes of a have no sign.
template <class T>
__device__ __forceinline__ T dot_i8x4(T a, T b, T sum) {
  for (int bits = 0; bits < 32; bits += 8)
    sum = (T)((unsigned)sum + ((unsigned)a >> bits & 0xff) * (unsigned)(int)(signed char)((unsigned)b >> bits));
  return sum;
}
)"},
  };
  return parts;
}

}  // namespace

std::string_view Preamble::use(std::string_view name) {
  const auto part = std::ranges::find(all_parts(), name, &Part::name);
  CHECK(part != all_parts().end(), "the preamble has no {}", name);
  for (const std::string_view need : part->needs)
    use(need);
  used_.insert(part->name);
  return part->name;
}

std::string_view Preamble::use_made(const std::string& name, std::string text) {
  return made_.emplace(name, std::move(text)).first->first;
}

std::vector<std::string_view> Preamble::names() {
  std::vector<std::string_view> names;
  for (const Part& part : all_parts())
    names.push_back(part.name);
  return names;
}

std::string Preamble::text() const {
  std::string text;
  for (const Part& part : all_parts())
    if (used_.contains(part.name))
      text.append(part.text).push_back('\n');
  for (const auto& [name, made] : made_)
    text.append(made).push_back('\n');
  return text;
}

}  // namespace tenon::codegen::cuda
