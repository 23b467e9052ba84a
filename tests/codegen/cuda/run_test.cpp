#include <gtest/gtest.h>

#include "codegen/cuda/run_on_host.h"
#include "loops/interpret.h"
#include "sanitized.h"
#include "tensor/wide.h"

namespace tenon::codegen::cuda {
namespace {

using Order = HostKernels::Order;
using Copies = HostKernels::Copies;

struct Case {
  std::string name;
  std::string text;
  std::map<std::string, int64_t> sizes = {};
  double tolerance = 0;  // relative; 0: the same bits
};

const std::vector<Case>& all_cases() {
  static const std::vector<Case>& cases = *new std::vector<Case>{
      {"VectorsAndATail",
       R"(kernel k(x: f32[n], z: f32[n]) -> (y: f32[n]) {
         for b in 0..floor((n+511)/512) block(64) {
           for i in 512*b..min(512*b+512, n) thread { y[i] = x[i] * z[i] + 1 } } })",
       {{"n", 1543}}},
      {"FewerIterationsThanThreads", R"(kernel k(x: f32[3,5]) -> (y: f32[3,5]) {
         for r in 0..3 block(64) { for i in 0..5 thread { y[r,i] = 0 - x[r,i] } } })"},
      {"RestOfATrip", R"(kernel k(x: f32[3,1001]) -> (y: f32[3,1001]) {
         for r in 0..3 block(96) { for i in 0..1001 thread { y[r,i] = x[r,i] + x[r,1000-i] } } })"},
      {"RestOfAVector", R"(kernel k(x: f32[3,1004]) -> (y: f32[3,1004]) {
         for r in 0..3 block(64) { for i in 0..1002 thread { y[r,i] = x[r,i] }
                                   for i in 1002..1004 thread { y[r,i] = 2 * x[r,i] } } })"},
      {"ManyTrips", R"(kernel k(x: i32[20000]) -> (y: i32[20000]) {
         for b in 0..1 block(64) { for i in 0..20000 thread { y[i] = x[i] * 3 } } })"},
      {"DynamicLength",
       R"(kernel k(x: i16[m,n]) -> (y: i16[m,n]) {
         for r in 0..m block(64) { for i in 0..n thread { y[r,i] = x[r,i] + 1 } } })",
       {{"m", 3}, {"n", 777}}},
      {"DynamicVectors",
       R"(kernel k(x: i16[m,8*n]) -> (y: i16[m,8*n]) {
         for r in 0..m block(64) { for i in 0..8*n thread { y[r,i] = x[r,i] + 1 } } })",
       {{"m", 3}, {"n", 173}}},
      {"Steps", R"(kernel k(x: i32[100]) -> (y: i32[100]) {
         for b in 0..2 block(32) { for i in b..100 step 2 thread { y[i] = x[i] + i32(b) } } })"},
      {"MixedWidths",
       R"(kernel k(x: f16[2,256], z: f32[2,256], c: bool[2,256]) -> (y: f32[2,256], u: bf16[2,256]) {
         for r in 0..2 block(32) { for i in 0..256 thread {
           y[r,i] = select(c[r,i], f32(x[r,i]), z[r,i])
           u[r,i] = bf16(z[r,i]) } } })"},
      {"Misaligned", R"(kernel k(x: f32[4,67]) -> (y: f32[4,64]) {
         for r in 0..4 block(32) { for i in 0..64 thread { y[r,i] = x[r,i] + x[r,i+3] } } })"},
      {"Broadcasts", R"(kernel k(x: f32[8,64], s: f32[8], t: f32[64]) -> (y: f32[8,64]) {
         for b in 0..1 block(32) { for i in 0..512 thread {
           y[floor(i/64), mod(i,64)] = x[floor(i/64), mod(i,64)] * s[floor(i/64)] + t[mod(i,64)] } } })"},
      {"Gather", R"(kernel k(x: f32[64], at: i64[50]) -> (y: f32[50]) {
         for b in 0..1 block(32) { for i in 0..50 thread { y[i] = x[{and(at[i], 63)}] } } })"},
      {"ChosenWithinChosen", R"(kernel k(x: i32[9], low: i32[], high: i32[]) -> (y: i32[9]) {
         for b in 0..1 block(32) { for i in 0..9 thread {
           y[i] = select(high[] < select(x[i] < low[], low[], x[i]), high[],
                         select(x[i] < low[], low[], x[i])) } } })"},
      {"ChosenReads",
       R"(kernel k(x: f32[60]) -> (y: f32[64]) {
         for b in 0..1 block(32) { for i in 0..64 thread {
           y[i] = select(and(2 <= i, i < 62), x[i-2] / (abs(x[i-2]) + 3) + exp(x[i-2] / (abs(x[i-2]) + 3)), 7) } } })",
       {},
       1e-5},
      {"DrawsByCounter",
       R"(kernel k(key: u64[2], x: f32[n,40]) -> (y: f32[n,40], z: f64[n,40], u: f32[n,40]) {
         for b in 0..floor((40*n+511)/512) block(64) {
           for i in 512*b..min(512*b+512, 40*n) thread {
             y[floor(i/40), mod(i,40)] =
                 f32(i32(shift_right(philox(key[0], key[1], u64(i)), 40))) * 5.9604644775390625e-08
             z[floor(i/40), mod(i,40)] =
                 f64(shift_right(philox_high(key[0], key[1], u64(i)), 11)) * 1.1102230246251565e-16
             u[floor(i/40), mod(i,40)] =
                 select(shift_right(philox(key[0], key[1], u64(i)), 63) < 1, x[floor(i/40), mod(i,40)], 0) } } })",
       {{"n", 33}}},
      {"SumInMemory",
       R"(kernel k(x: f32[6,300]) -> (y: f32[6]) {
         for r in 0..6 block(128) { y[r] = 10  for i in 0..300 thread { y[r] += x[r,i] } } })",
       {},
       1e-4},
      {"SumInOneWarp",
       R"(kernel k(x: f32[6,300]) -> (y: f32[6]) {
         for r in 0..6 block(32) { y[r] = 10  for i in 0..300 thread { y[r] += x[r,i] } } })",
       {},
       1e-4},
      {"PackedRows",
       R"(kernel k(x: f32[n,12]) -> (y: f32[n,12]) {
         for r in 0..n block(8) {
           local e: f32[12] in private
           local m: f32[] in private
           local s: f32[] in private
           m[] = -inf  s[] = 0
           for j in 0..12 thread { m[] max= x[r,j] }
           for j in 0..12 thread { e[j] = exp(x[r,j] - m[]) }
           for j in 0..12 thread { s[] += e[j] }
           for j in 0..12 thread { y[r,j] = e[j] / s[] } } })",
       {{"n", 37}},
       1e-5},
      {"SoftmaxInRegisters",
       R"(kernel k(x: f32[n,1000]) -> (y: f32[n,1000]) {
         for r in 0..n block(128) {
           local e: f32[1000] in private
           local m: f32[] in private
           local s: f32[] in private
           m[] = -inf  s[] = 0
           for j in 0..1000 thread { m[] max= x[r,j] }
           for j in 0..1000 thread { e[j] = exp(x[r,j] - m[]) }
           for j in 0..1000 thread { s[] += e[j] }
           for j in 0..1000 thread { y[r,j] = e[j] / s[] } } })",
       {{"n", 3}},
       1e-5},
      {"NormInACluster",
       R"(kernel k(x: f32[n,2501]) -> (y: f32[n,2501]) {
         for r in 0..n block(1400) {
           local d: f32[2501] in private
           local s: f32[] in private
           local q: f32[] in private
           s[] = 0  q[] = 0
           for j in 0..2501 thread { s[] += x[r,j] }
           for j in 0..2501 thread { d[j] = x[r,j] - s[] / 2501 }
           for j in 0..2501 thread { q[] += d[j] * d[j] }
           for j in 0..2501 thread { y[r,j] = d[j] / sqrt(q[]) * 50 } } })",
       {{"n", 2}},
       1e-4},
      {"ArgMaxInACluster", R"(kernel k(x: f32[1,2500]) -> (best: f32[1], at: i64[1]) {
         combine unordered larger(m: f32, i: i64, v: f32, j: i64) =
           select(or(m < v, and(m == v, j < i)), v, m), select(or(m < v, and(m == v, j < i)), j, i)
         for r in 0..1 block(1025) {
           best[r], at[r] = -inf, 0
           for j in 0..2500 thread { best[r], at[r] larger= x[r,j], j } } })"},
      {"BitonicSort", R"(kernel k(x: f32[2,128]) -> (y: f32[2,128]) {
         for r in 0..2 block(64) {
           local v: f32[128] in shared
           for i in 0..128 thread { v[i] = x[r,i] }
           for s in 0..7 { for t in 0..s+1 { for i in 0..64 thread {
             local a: f32[] in private
             local b: f32[] in private
             local up: bool[] in private
             a[] = v[{index(i) + shift_left(shift_right(index(i), index(s-t)), index(s-t))}]
             b[] = v[{index(i) + shift_left(shift_right(index(i), index(s-t)), index(s-t)) +
                      shift_left(index(1), index(s-t))}]
             up[] = (a[] < b[]) ==
                    (and(shift_right(index(i) + shift_left(shift_right(index(i), index(s-t)), index(s-t)),
                                     index(s+1)), index(1)) == index(0))
             v[{index(i) + shift_left(shift_right(index(i), index(s-t)), index(s-t))}] =
               select(up[], a[], b[])
             v[{index(i) + shift_left(shift_right(index(i), index(s-t)), index(s-t)) +
                shift_left(index(1), index(s-t))}] = select(up[], b[], a[]) } } }
           for i in 0..128 thread { y[r,i] = v[127-i] } } })"},
      {"SpreadWithRows", R"(kernel k(x: i32[90,4]) -> (y: i32[90,4]) {
         for b in 0..1 block(64) {
           local e: i32[90,4] in private
           for i in 0..90 thread { for c in 0..4 unrolled { e[i,c] = x[i,c] + i32(c) } }
           for i in 0..90 thread { for c in 0..4 unrolled { y[i,c] = e[i,3-c] } } } })"},
      {"Folds",
       R"(kernel k(x: i32[4,200], z: bool[4,200]) -> (a: i32[4], b: i32[4], c: i32[4], d: i32[4], e: bool[4], f: bool[4]) {
         for r in 0..4 block(64) {
           a[r] = 5  b[r] = 1  c[r] = 100000  d[r] = -100000  e[r] = 1  f[r] = 0
           for i in 0..200 thread {
             a[r] += x[r,i]  b[r] *= x[r,i]  c[r] min= x[r,i]  d[r] max= x[r,i]
             e[r] and= z[r,i]  f[r] or= z[r,i] } } })"},
      {"FoldsOfBytes", R"(kernel k(x: i8[4,200]) -> (a: i8[4], b: i8[4], c: u8[4]) {
         for r in 0..4 block(16) {
           a[r] = 5  b[r] = -128 c[r] = 200
           for i in 0..200 thread { a[r] += x[r,i]  b[r] max= x[r,i]  c[r] min= u8(x[r,i]) } } })"},
      {"FoldsOfBytesInACluster", R"(kernel k(x: i8[1,2500]) -> (a: i8[1], b: i8[1], c: u8[1], d: bool[1]) {
         for r in 0..1 block(1025) {
           a[r] = 5  b[r] = -128 c[r] = 200 d[r] = 0
           for i in 0..2500 thread {
             a[r] += x[r,i]  b[r] max= x[r,i]  c[r] min= u8(x[r,i])  d[r] or= x[r,i] < 0 } } })"},
      {"ArgMax", R"(kernel k(x: f32[5,333]) -> (best: f32[5], at: i64[5]) {
         combine unordered larger(m: f32, i: i64, v: f32, j: i64) =
           select(or(m < v, and(m == v, j < i)), v, m), select(or(m < v, and(m == v, j < i)), j, i)
         for r in 0..5 block(96) {
           best[r], at[r] = -inf, 0
           for j in 0..333 thread { best[r], at[r] larger= x[r,j], j } } })"},
      {"ArgMaxOfFew", R"(kernel k(x: f32[9,5]) -> (best: f32[9], at: i64[9]) {
         combine unordered larger(m: f32, i: i64, v: f32, j: i64) =
           select(or(m < v, and(m == v, j < i)), v, m), select(or(m < v, and(m == v, j < i)), j, i)
         for r in 0..9 block(16) {
           best[r], at[r] = -inf, 0
           for j in 0..5 thread { best[r], at[r] larger= x[r,j], j } } })"},
      {"ColumnsInRegisters", R"(kernel k(x: i32[300,4]) -> (y: i32[4]) {
         for b in 0..1 block(64) {
           local s: i32[4] in private
           for c in 0..4 unrolled { s[c] = 1 }
           for i in 0..300 thread { for c in 0..4 unrolled { s[c] += x[i,c] } }
           for c in 0..4 thread { y[c] = 0 }
           for c in 0..4 { y[c] = s[c] } } })"},
      {"Matmul",
       R"(kernel k(a: f32[8,40], b: f32[40,64]) -> (y: f32[8,64]) {
         for i in 0..8 block(32) { for j in 0..64 thread {
           local s: f32[] in private
           s[] = 0
           for k in 0..40 { s[] += a[i,k] * b[k,j] }
           y[i,j] = max(s[], 0) } } })",
       {},
       1e-4},
      {"TilesInVectors",
       R"(kernel k(x: f32[m,20], z: f32[20,40]) -> (y: f32[m,40]) {
         for tile_m in 0..floor((m+15)/16) block(64) { for tile_n in 0..2 block {
           local a: f32[8,20] in shared
           local b: f32[8,32] in shared
           local next_a: f32[64,2] in private
           local next_b: f32[64,4] in private
           local sums: f32[64,2,4] in private
           for t in 0..64 thread { for i in 0..2 unrolled { for j in 0..4 unrolled { sums[t,i,j] = 0 } } }
           for step in 0..3 {
             for t in 0..64 thread {
               for row in 16*tile_m+floor(t/4)..16*tile_m+floor(t/4)+1 unrolled {
                 for k in 4*step+mod(t,4)..4*step+mod(t,4)+1 unrolled {
                   for lane in 0..2 vector { next_a[t,lane] = 0 }
                   if m - 1 - row >= 0 and 9 - k >= 0 {
                     for lane in 0..2 vector { next_a[t,lane] = x[row,2*k+lane] } } } }
               for k in 8*step+floor(t/8)..8*step+floor(t/8)+1 unrolled {
                 for column in 8*tile_n+mod(t,8)..8*tile_n+mod(t,8)+1 unrolled {
                   for lane in 0..4 vector { next_b[t,lane] = 0 }
                   if 19 - k >= 0 and 9 - column >= 0 {
                     for lane in 0..4 vector { next_b[t,lane] = z[k,4*column+lane] } } } } }
             for t in 0..64 thread {
               for lane in 0..2 vector { a[2*mod(t,4)+lane,floor(t/4)] = next_a[t,lane] }
               for lane in 0..4 vector { b[floor(t/8),4*mod(t,8)+lane] = next_b[t,lane] } }
             for t in 0..64 thread {
               for k in 0..8 unrolled {
                 local of_a: f32[2] in private
                 local of_b: f32[4] in private
                 for lane in 0..2 vector { of_a[lane] = a[k,2*floor(t/8)+lane] }
                 for lane in 0..4 vector { of_b[lane] = b[k,4*mod(t,8)+lane] }
                 for i in 0..2 unrolled { for j in 0..4 unrolled {
                   sums[t,i,j] += of_a[i] * of_b[j] } } } } }
           for t in 0..64 thread {
             for i in 0..2 unrolled {
               for row in 16*tile_m+2*floor(t/8)+i..16*tile_m+2*floor(t/8)+i+1 unrolled {
                 if m - 1 - row >= 0 and 9 - 8*tile_n - mod(t,8) >= 0 {
                   for lane in 0..4 vector {
                     y[row,32*tile_n+4*mod(t,8)+lane] = max(sums[t,i,lane], 0) } } } } } } } })",
       {{"m", 21}},
       1e-4},
      {"LanesOfVectorLoops", R"(kernel k(x: i32[64,8], s: i32[64]) -> (y: i32[64,8], z: i32[64,7]) {
         for b in 0..1 block(32) { for i in 0..64 thread {
           local t: i32[8] in private
           for c in 0..4 vector { t[c] = x[i,c+4] }
           for c in 4..8 vector { t[c] = x[i,c-4] + s[i] }
           for c in 0..4 vector { y[i,c] = t[c]  y[i,7-c] = t[c+4] }
           for c in 0..4 vector { z[i,c] = t[7-c] }
           for c in 4..7 vector { z[i,c] = t[c] } } } })"},
      {"OwnArrays", R"(kernel k(x: i32[64,4]) -> (y: i32[64,4]) {
         for b in 0..1 block(32) { for i in 0..64 thread {
           local t: i32[4]
           for c in 0..4 { t[c] = x[i,c] }
           for c in 0..4 { y[i,c] = t[3-c] + t[mod(c+1,4)] } } } })"},
      {"Transpose", R"(kernel k(x: f32[64,96]) -> (y: f32[96,64]) {
         for a in 0..2 block(256) { for b in 0..3 block {
           local tile: f32[32,33] in shared
           for t in 0..1024 thread { tile[floor(t/32), mod(t,32)] = x[32*a+floor(t/32), 32*b+mod(t,32)] }
           for t in 0..1024 thread { y[32*b+floor(t/32), 32*a+mod(t,32)] = tile[mod(t,32), floor(t/32)] } } } })"},
      {"SharedInALoop", R"(kernel k(x: i32[8,64]) -> (y: i32[8,64]) {
         for b in 0..1 block(64) {
           local row: i32[64] in shared
           for r in 0..8 {
             for i in 0..64 thread { row[i] = x[r,i] }
             for i in 0..64 thread { y[r,i] = row[63-i] } } } })"},
      {"SharedInPackedTeams",
       R"(kernel k(x: i32[n,16]) -> (y: i32[n,16]) {
         for r in 0..n block(16) {
           local row: i32[16] in shared
           local more: i32[3] in shared
           for i in 0..16 thread { row[i] = x[r,i] }
           more[2] = row[5]
           for i in 0..16 thread { y[r,i] = row[15-i] + more[2] } } })",
       {{"n", 21}}},
      {"SharedOfDynamicSize",
       R"(kernel k(x: f32[m,n]) -> (y: f32[m,n]) {
         for r in 0..m block(64) {
           local row: f16[n] in shared
           local other: f32[n] in shared
           for i in 0..n thread { row[i] = f16(x[r,i])  other[i] = x[r,i] }
           for i in 0..n thread { y[r,i] = f32(row[n-1-i]) + other[n-1-i] } } })",
       {{"m", 3}, {"n", 101}}},
      {"FoldsInALoop", R"(kernel k(x: i32[8,100]) -> (y: i32[8,100]) {
         for b in 0..1 block(64) {
           for r in 0..8 {
             local s: i32[] in private
             s[] = 0
             for i in 0..100 thread { s[] += x[r,i] }
             for i in 0..100 thread { y[r,i] = s[] - x[r,i] } } } })"},
      {"ReadsBackOutputs", R"(kernel k(x: i32[4,64]) -> (y: i32[64], z: i32[64]) {
         for b in 0..1 block(64) {
           for i in 0..64 thread { y[i] = 0 }
           for r in 0..4 { for i in 0..64 thread { y[i] += x[r,i] } }
           for i in 0..64 thread { z[i] = y[63-i] } } })"},
      {"BlockLevel", R"(kernel k(x: i32[4,8]) -> (y: i32[4,8]) {
         for r in 0..4 block(64) {
           local s: i32[] in private
           local t: i32[8] in shared
           s[] = 3
           for c in 0..8 { s[] += x[r,c] }
           for c in 0..8 { t[c] = s[] + i32(c) }
           t[2] = t[3] + t[4]
           for c in 0..8 thread { y[r,c] = t[7-c] } } })"},
      {"Guards",
       R"(kernel k(x: i32[m,n]) -> (y: i32[m,n]) {
         for r in 0..m block(64) {
           local s: i32[64] in shared
           if r - 2 >= 0 {
             for i in 0..64 thread { s[i] = x[r,0] + i32(i) }
             for i in 0..n thread { if n - 5 - i >= 0 { y[r,i] = s[63-i] } if i - n + 4 >= 0 { y[r,i] = x[r,i] } }
           }
           if 1 - r >= 0 { for i in 0..n thread { y[r,i] = x[r,i] } } } })",
       {{"m", 4}, {"n", 37}}},
      {"Regions", R"(kernel k(x: i32[1000]) -> (p: i32[10], y: i32[]) {
         for b in 0..10 block(32) {
           p[b] = 0
           for i in 100*b..100*b+100 thread { p[b] += x[i] } }
         y[] = 0
         for b in 0..10 { y[] += p[b] } })"},
      {"SingleThread", R"(kernel k(x: i32[30]) -> (y: i32[30]) {
         local t: i32[31]
         t[0] = 0
         for i in 0..30 { t[i+1] = t[i] + x[i] }
         for i in 0..30 { y[i] = t[i+1] } })"},
      {"ParallelLoops",
       R"(kernel k(x: i32[n,7]) -> (y: i32[n,7]) {
         for i in 0..n parallel { for j in 0..7 parallel { y[i,j] = x[i,j] + i32(i - j) } } })",
       {{"n", 45}}},
      {"OddThreads", R"(kernel k(x: i32[3,500]) -> (y: i32[3]) {
         for r in 0..3 block(100) { y[r] = 0  for i in 0..500 thread { y[r] += x[r,i] } } })"},
      {"CxxNames",
       R"(kernel k(float: i32[64], thread: i32[64], lane: i32[64]) -> (failure: i32[64], min: i32[64]) {
         for shared in 0..1 block(32) { for int in 0..64 thread {
           failure[int] = float[int] + thread[int]
           min[int] = lane[int] } } })"},
      {"LayerNorm",
       R"(kernel k(x: f16[n,768], g: f32[768]) -> (y: f16[n,768]) {
         for r in 0..n block(96) {
           local v: f32[768] in private
           local s: f32[] in private
           local q: f32[] in private
           s[] = 0  q[] = 0
           for j in 0..768 thread { v[j] = f32(x[r,j])  s[] += v[j]  q[] += v[j] * v[j] }
           s[] = s[] / 768
           q[] = 1 / sqrt(q[] / 768 - s[] * s[] + 0.00001)
           for j in 0..768 thread { y[r,j] = f16((v[j] - s[]) * q[] * g[j]) } } })",
       {{"n", 3}},
       2e-3},
      {"OnlineSoftmax",
       R"(kernel k(x: f32[4,700]) -> (y: f32[4,700]) {
         combine unordered softer(m: f32, s: f32, v: f32, t: f32) =
           max(m, v), s * exp(m - max(m, v)) + t * exp(v - max(m, v))
         for r in 0..4 block(128) {
           local m: f32[] in private
           local s: f32[] in private
           m[], s[] = -100, 0
           for j in 0..700 thread { m[], s[] softer= x[r,j], 1 }
           for j in 0..700 thread { y[r,j] = exp(x[r,j] - m[]) / s[] } } })",
       {},
       1e-5},
      {"TiledMatmul",
       R"(kernel k(a: f32[32,48], b: f32[48,32]) -> (y: f32[32,32]) {
         for i in 0..2 block(256) { for j in 0..2 block {
           local p: f32[16,16] in shared
           local q: f32[16,16] in shared
           local s: f32[256] in private
           for t in 0..256 thread { s[t] = 0 }
           for k in 0..3 {
             for t in 0..256 thread {
               p[floor(t/16),mod(t,16)] = a[16*i+floor(t/16),16*k+mod(t,16)]
               q[floor(t/16),mod(t,16)] = b[16*k+floor(t/16),16*j+mod(t,16)] }
             for t in 0..256 thread { for c in 0..16 { s[t] += p[floor(t/16),c] * q[c,mod(t,16)] } } }
           for t in 0..256 thread { y[16*i+floor(t/16),16*j+mod(t,16)] = s[t] } } } })",
       {},
       1e-4},
      {"LargeBlock",
       R"(kernel k(x: f64[2,5000]) -> (y: f64[2], z: i64[2]) {
         for r in 0..2 block(1024) {
           y[r] = 0  z[r] = 0
           for i in 0..5000 thread { y[r] += x[r,i]  z[r] max= select(x[r,i] < 0, i, 0) } } })",
       {},
       1e-12},
      {"CopiesOfBoxes",
       R"(kernel k(x: f32[n,24,32]) -> (y: f32[n,16,16]) {
         for r in 0..n block(64) {
           local t: f32[16,17] in shared
           copy(16,16) t[0,0] = x[r,4,8]
           for i in 0..256 thread { y[r,floor(i/16),mod(i,16)] = t[mod(i,16),floor(i/16)] } } })",
       {{"n", 3}}},
      {"CopiesOfFewBytes",
       R"(kernel k(x: bf16[n,67], z: i8[n,67]) -> (y: bf16[n,64], u: i8[n,67]) {
         for r in 0..n block(32) {
           local t: bf16[64] in shared
           local s: i8[67] in shared
           copy(64) t[0] = x[r,3]
           copy(67) s[0] = z[r,0]
           for i in 0..64 thread { y[r,i] = t[63-i] }
           for i in 0..67 thread { u[r,i] = s[66-i] } } })",
       {{"n", 3}}},
      {"PipelinedProduct",
       R"(kernel k(a: f32[32,56], b: f32[56,32]) -> (y: f32[32,32]) {
         for i in 0..2 block(64) { for j in 0..2 block {
           local s: f32[256] in private
           for t in 0..256 thread { s[t] = 0 }
           for k in 0..7 pipelined 3 {
             local p: f32[16,8] in shared
             local q: f32[8,16] in shared
             copy(16,8) p[0,0] = a[16*i,8*k]
             copy(8,16) q[0,0] = b[8*k,16*j]
             for t in 0..256 thread { for c in 0..8 { s[t] += p[floor(t/16),c] * q[c,mod(t,16)] } } }
           for t in 0..256 thread { y[16*i+floor(t/16),16*j+mod(t,16)] = s[t] } } } })",
       {},
       1e-4},
      // Copies by vectors, with zeros around, and by elements: these are loaded and stored.
      {"PipelinedVectorsWithPadding",
       R"(kernel k(x: f16[20,64], z: f16[64,32]) -> (y: f32[32,32]) {
         for b in 0..1 block(128) {
           local s: f32[1024] in private
           for t in 0..1024 thread { s[t] = 0 }
           for k in 0..8 pipelined 3 {
             local p: f16[32,8] in shared
             local q: f16[8,32] in shared
             for t in 0..32 thread { for l in 0..8 vector {
               p[t,l] = select(and(6 <= t, t < 26), x[t-6,8*k+l], 0) } }
             for t in 0..128 thread { for u in 0..2 unrolled {
               q[floor(t/16),2*mod(t,16)+u] = z[8*k+floor(t/16),2*mod(t,16)+u] } }
             for t in 0..1024 thread { for c in 0..8 {
               s[t] += f32(p[floor(t/32),c]) * f32(q[c,mod(t,32)]) } } }
           for t in 0..1024 thread { y[floor(t/32),mod(t,32)] = s[t] } } })",
       {},
       1e-4},
      // What says where the elements are is only known when the iteration comes.
      {"PipelinedByWhatIsComputed",
       R"(kernel k(x: i32[16,64]) -> (y: i32[8,64]) {
         for b in 0..1 block(64) {
           for r in 0..8 pipelined 2 {
             local at: i64[64] in private
             local t: i32[64] in shared
             for i in 0..64 thread { at[i] = 2*r+1 }
             for i in 0..64 thread { t[i] = x[{at[i]},i] }
             for i in 0..64 thread { y[r,i] = t[63-i] } } } })"},
      {"PipelinedTwice",
       R"(kernel k(x: i32[3,n,64]) -> (y: i32[3,n,64]) {
         for b in 0..1 block(64) {
           for r in 0..3 {
             for k in 0..n pipelined 2 {
               local t: i32[64] in shared
               copy(64) t[0] = x[r,k,0]
               for i in 0..64 thread { y[r,k,i] = t[63-i] } } } } })",
       {{"n", 5}}},
      {"PipelinedAhead",
       R"(kernel k(x: i32[2*n,64], z: i32[64]) -> (y: i32[n,64], u: i32[n]) {
         for b in 0..1 block(64) {
           for r in 0..2*n step 2 pipelined 4 {
             local t: i32[64] in shared
             local v: i32[64] in private
             copy(64) t[0] = x[r,0]
             for i in 0..64 thread { v[i] = t[63-i] }
             u[floor(r/2)] = 0
             for i in 0..64 thread { y[floor(r/2),i] = v[i] + z[i] } } } })",
       {{"n", 9}}},
      {"PipelinedWithoutCopiesAhead",
       R"(kernel k(x: i32[8,64]) -> (y: i32[9,64]) {
         for b in 0..1 block(64) {
           for i in 0..64 thread { y[0,i] = x[0,i] }
           for r in 0..8 pipelined 2 {
             local t: i32[64] in shared
             copy(64) t[0] = y[r,0]
             for i in 0..64 thread { y[r+1,i] = t[63-i] + 1 } } } })"},
      {"BlocksThatStay",
       R"(kernel k(x: f32[n,1000], z: f32[1000]) -> (y: f32[n,1000]) {
         for r in 0..n block(128) pipelined 2 {
           local row: f32[1000] in shared
           local e: f32[1000] in private
           local s: f32[] in private
           copy(1000) row[0] = x[r,0]
           for j in 0..1000 thread { e[j] = row[j] }
           s[] = 0
           for j in 0..1000 thread { s[] += e[j] * e[j] }
           for j in 0..1000 thread { y[r,j] = e[j] / s[] * z[j] * 1000 } } })",
       {{"n", 9}},
       1e-5},
      {"BlocksOfTwoLoopsThatStay",
       R"(kernel k(x: i32[3,m,16]) -> (y: i32[3,m,16]) {
         for r in 0..3 block(16) pipelined 2 { for c in 0..m block {
           local row: i32[16] in shared
           copy(16) row[0] = x[r,c,0]
           for j in 0..16 thread { y[r,c,j] = row[15-j] } } } })",
       {{"m", 4}}},
      {"BlocksThatStayWithoutCopies",
       R"(kernel k(x: i32[n,100]) -> (y: i32[n]) {
         for r in 0..n block(64) pipelined 2 {
           y[r] = 0
           for j in 0..100 thread { y[r] += x[r,j] } } })",
       {{"n", 5}}},
      {"ClustersThatStay",
       R"(kernel k(x: f32[n,2501], z: f32[n,2,1024]) -> (y: f32[n,2501], u: f32[n,2,1024]) {
         for r in 0..n block(1400) pipelined 2 {
           local row: f32[2501] in shared
           local other: f32[2,1024] in shared
           local d: f32[2501] in private
           local s: f32[] in private
           copy(2501) row[0] = x[r,0]
           copy(2,1024) other[0,0] = z[r,0,0]
           for j in 0..2501 thread { d[j] = row[j] }
           for j in 0..2048 thread {
             u[r,floor(j/1024),mod(j,1024)] = other[floor(j/1024),mod(j,1024)] }
           s[] = 0
           for j in 0..2501 thread { s[] += d[j] * d[j] }
           for j in 0..2501 thread { y[r,j] = d[j] / sqrt(s[]) * 5000 } } })",
       {{"n", 3}},
       1e-4},
      {"BlocksFromAnOffset", R"(kernel k(x: i32[40]) -> (y: i32[40]) {
         for r in 0..8 block(32) { for i in 0..1 thread { y[r+i] = x[r] } }
         for r in 8..40 step 4 block(64) { for i in r..r+4 thread { y[i] = x[47-i] } } })"},
      {"Empty",
       R"(kernel k(x: i32[n]) -> (y: i32[3]) {
         for b in 0..1 block(64) {
           for i in 0..3 thread { y[i] = 4 }
           for i in 0..n thread { y[0] += x[i] } } })",
       {{"n", 0}}},
  };
  return cases;
}

// Cases that need all of their barriers: the kernels without each of them follow.
constexpr std::string_view kNeedBarriers[] = {"SumInMemory",
                                              "Transpose",
                                              "SharedInALoop",
                                              "SharedInPackedTeams",
                                              "FoldsInALoop",
                                              "BlockLevel",
                                              "Guards",
                                              "ReadsBackOutputs",
                                              "ArgMax",
                                              "SharedOfDynamicSize",
                                              "TiledMatmul",
                                              "TilesInVectors",
                                              "NormInACluster",
                                              "BitonicSort",
                                              "CopiesOfBoxes",
                                              "CopiesOfFewBytes",
                                              "PipelinedProduct",
                                              "PipelinedTwice",
                                              "PipelinedAhead",
                                              "PipelinedWithoutCopiesAhead",
                                              "BlocksThatStay",
                                              "BlocksOfTwoLoopsThatStay",
                                              "BlocksThatStayWithoutCopies",
                                              "ClustersThatStay"};

std::vector<std::pair<Order, Copies>> runs_of(const loops::Kernel& kernel) {
  std::vector<std::pair<Order, Copies>> runs = {{Order::Ascending, Copies::Late},
                                                {Order::Descending, Copies::Late}};
  if (print(kernel).find("copy(") != std::string::npos) {
    runs.emplace_back(Order::Ascending, Copies::Early);
    runs.emplace_back(Order::Descending, Copies::Early);
  }
  return runs;
}

// The text without one line that waits for others, for each such line.
std::vector<CudaText> without_barriers(const CudaText& text) {
  std::vector<CudaText> results;
  for (const std::string_view barrier :
       {"__syncthreads();", "__syncwarp(", "cluster_sync();", "wait_for_stage<", "wait_for_copies();",
        "end_stage();", "wait_for_phase(&", "expect_bytes(&"})
    for (size_t at = text.text.find(barrier); at != std::string::npos; at = text.text.find(barrier, at + 1)) {
      results.push_back(text);
      results.back().text.erase(at, text.text.find('\n', at) - at);
    }
  return results;
}

class RunOnHost : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (kIsSanitized)
      return;
    kernels = new HostKernels();
    for (const Case& each : all_cases())
      numbers[each.name] = kernels->add(loops::parse_checked_kernel(each.text));
    for (const Case& each : all_cases())
      if (std::ranges::find(kNeedBarriers, each.name) != std::end(kNeedBarriers)) {
        const loops::Kernel kernel = loops::parse_checked_kernel(each.text);
        for (CudaText& text : without_barriers(emit_cuda(kernel)))
          broken[each.name].push_back(kernels->add(kernel, std::move(text)));
      }
    kernels->compile();
  }
  static void TearDownTestSuite() {
    delete kernels;
    kernels = nullptr;
  }
  void SetUp() override {
    if (kIsSanitized)
      GTEST_SKIP() << "fibres and sanitizers do not go together";
  }

  static HostKernels* kernels;
  static std::map<std::string, size_t> numbers;
  static std::map<std::string, std::vector<size_t>> broken;
};
HostKernels* RunOnHost::kernels = nullptr;
std::map<std::string, size_t> RunOnHost::numbers;
std::map<std::string, std::vector<size_t>> RunOnHost::broken;

TEST_F(RunOnHost, DoesWhatTheInterpreterDoes) {
  for (const Case& each : all_cases()) {
    SCOPED_TRACE(each.name);
    const loops::Kernel kernel = loops::parse_checked_kernel(each.text);
    const std::vector<Tensor> inputs = random_inputs(kernel, each.sizes);
    const std::vector<Tensor> expected = loops::interpret(kernel, inputs, each.sizes);
    for (const auto& [order, copies] : runs_of(kernel)) {
      const HostKernels::Result result =
          kernels->run(numbers.at(each.name), inputs, each.sizes, order, copies);
      ASSERT_FALSE(result.failed || result.is_deadlock) << emit_cuda(kernel).text;
      for (size_t i = 0; i < expected.size(); ++i)
        expect_close(result.outputs[i], expected[i], each.tolerance);
      if (HasFailure())
        FAIL() << (order == Order::Ascending ? "ascending\n" : "descending\n") << emit_cuda(kernel).text;
    }
  }
}

// So none is missing that these kernels need, and running them would show it.
TEST_F(RunOnHost, GoesWrongWithoutAnyOfTheBarriers) {
  for (const Case& each : all_cases()) {
    if (!broken.contains(each.name))
      continue;
    SCOPED_TRACE(each.name);
    const loops::Kernel kernel = loops::parse_checked_kernel(each.text);
    const std::vector<Tensor> inputs = random_inputs(kernel, each.sizes);
    const std::vector<Tensor> expected = loops::interpret(kernel, inputs, each.sizes);
    EXPECT_FALSE(broken.at(each.name).empty());
    for (size_t i = 0; i < broken.at(each.name).size(); ++i) {
      bool is_seen = false;
      for (const auto& [order, copies] : runs_of(kernel)) {
        if (is_seen)
          break;
        const HostKernels::Result result =
            kernels->run(broken.at(each.name)[i], inputs, each.sizes, order, copies);
        is_seen = is_seen || result.is_deadlock;
        for (size_t output = 0; output < expected.size(); ++output) {
          const std::vector<double> a = widen<double>(result.outputs[output]),
                                    b = widen<double>(expected[output]);
          for (size_t element = 0; element < a.size(); ++element)
            is_seen = is_seen || !(std::abs(a[element] - b[element]) <= 1e-3 * (1 + std::abs(b[element])));
        }
      }
      EXPECT_TRUE(is_seen) << "without barrier " << i << " of\n" << emit_cuda(kernel).text;
    }
  }
}

}  // namespace
}  // namespace tenon::codegen::cuda
