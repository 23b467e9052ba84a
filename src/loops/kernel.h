// kernel.h — a loop nest: what one kernel computes, element by element, and in which order.
//
//   kernel matvec(a: f32[100,100], x: f32[100]) -> (y: f32[100]) {
//     for i in 0..100 parallel {
//       y[i] = 0
//       for j in 0..100 {
//         y[i] += a[i,j] * x[j]
//       }
//     }
//   }
//
// Everything is a value: copying a kernel copies its statements, so that a transformation takes one and
// returns another. Statements speak of buffers and loop variables by name; a name means one thing in a
// kernel.
#pragma once

#include "loops/scalar.h"

namespace tenon::loops {

// Where a buffer is. What a kernel has for itself is seen by all, by the threads of one block, or by one
// thread. Outputs may be streamed: written past the caches, as they are too large to stay there.
enum class Space : uint8_t { Memory, Shared, Private, Streamed };

struct Buffer {
  std::string name;
  DType dtype = DType::F32;
  std::vector<Dim> sizes = {};
  Space space = Space::Memory;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// One element of a buffer.
struct Place {
  std::string buffer;
  std::vector<Scalar> at;

  friend bool operator==(const Place&, const Place&) = default;
};

// How several values that meet in one place become one: the function and what it is called in the text. What
// it makes of tuples is written with two variables for each element: of what is there, and of what comes.
struct Combine {
  std::string name;
  bool unordered = false;  // commutative and associative: the values may come in any order
  std::vector<std::pair<std::string, DType>> there = {}, coming = {};
  std::vector<Scalar> results = {};

  friend bool operator==(const Combine&, const Combine&) = default;
};

// Which run of which statement of an earlier form of the kernel a statement stands for: see order.h.
struct Origin {
  int64_t statement = -1;
  std::vector<Dim> at;  // the variables of the loops around it then, from those of now

  friend bool operator==(const Origin&, const Origin&) = default;
};

// y[i] = value; y[i] += value, where `combine` is "+"; or several places at once.
struct Assign {
  std::vector<Place> places;
  std::string combine;  // empty: what was there is lost. Else a built-in one, or one of Kernel::combines
  std::vector<Scalar> values;
  Origin origin = {};

  friend bool operator==(const Assign&, const Assign&) = default;
};

// A routine of the host, which reads and writes buffers from these places on.
struct Call {
  std::string routine;
  std::vector<Place> writes = {}, reads = {};
  Origin origin = {};

  friend bool operator==(const Call&, const Call&) = default;
};

// Brings a place that will be read nearer to the processor. It computes nothing, and the place may lie
// outside its buffer: who reads rows in turn need not know which one is the last.
struct Prefetch {
  Place place;

  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

// Brings a box of a buffer in memory to a shared one: sizes[i] elements along dimension i of `to`, which are
// as many along the last dimensions of `from`. Code generation may begin it earlier, where nothing can tell:
// see Loop::stages.
//
//   copy(16,8) tile[0,0] = a[16*i,8*k]
struct Copy {
  Place to, from;
  std::vector<Dim> sizes;
  Origin origin = {};

  friend bool operator==(const Copy&, const Copy&) = default;
};

// A buffer that lives from here to the end of the statements around it; it holds nothing at first.
struct Local {
  Buffer buffer;

  friend bool operator==(const Local&, const Local&) = default;
};

// Tile: rows of a block of sums; within are the loops of what is summed, then that of the lanes with one
// product. Instructions that multiply matrices take them together.
//
// Block and Thread are those of a GPU. Block loops stand outermost, perfectly nested, and each iteration of
// all of them together is one thread block. Within, the threads share out the iterations of each thread loop,
// whatever their number; other statements all threads run alike. The meaning stays sequential: a loop ends
// before the next begins. Code generation puts barriers where that needs them.
enum class Mark : uint8_t { Serial, Parallel, Vector, Unrolled, Tile, Block, Thread };

// Whether the iterations of a loop with this mark run at once, without anything in common.
constexpr bool is_parallel(Mark mark) { return mark == Mark::Parallel || mark == Mark::Block; }

struct Statement;

// variable = begin, begin + step, … below end.
struct Loop {
  std::string variable;
  Dim begin = 0, end = 0;
  int64_t step = 1;
  Mark mark = Mark::Serial;
  int64_t threads = 0;  // of each thread block, where this is an outermost block loop
  // So many iterations of a serial loop overlap (`pipelined 3`): while one computes, the copies of those
  // after it are under way. Where this is an outermost block loop, thread blocks stay for several iterations,
  // as many blocks as run at once, and those of each block overlap. 1: they do not. The meaning stays
  // sequential.
  int64_t stages = 1;
  std::vector<Statement> body;

  friend bool operator==(const Loop&, const Loop&) = default;
};

// Runs where all conditions are 0 or more.
struct Guard {
  std::vector<Dim> conditions;
  std::vector<Statement> body;

  friend bool operator==(const Guard&, const Guard&) = default;
};

struct Statement : std::variant<Assign, Loop, Guard, Local, Call, Prefetch, Copy> {
  using variant::variant;
};

struct Kernel {
  std::string name;
  std::vector<Buffer> inputs, outputs;       // in memory
  std::vector<std::string> more_sizes = {};  // that are given, though no input or output has them
  std::vector<Combine> combines;
  std::vector<Statement> body;

  friend bool operator==(const Kernel&, const Kernel&) = default;

  // Those named in sizes of inputs and outputs, and more; sorted.
  std::vector<std::string> size_symbols() const;
  // Null where the kernel has none of that name.
  const Combine* find_combine(std::string_view called) const;
};

// The function that a built-in combine stands for: +, *, min, max, and, or. Nothing for other names.
std::optional<Function> built_in_combine(std::string_view name);

// The statements within a loop or guard; null for others.
const std::vector<Statement>* body_of(const Statement& statement);
std::vector<Statement>* body_of(Statement& statement);

// Loop variables and sizes replaced everywhere in a statement; the loops keep their own variables.
Statement substitute(const Statement& statement, const std::map<std::string, Dim>& replacements);

std::string print(const Kernel& kernel);
// One statement of the kernel, without those within it.
std::string print(const Statement& statement, const Kernel& kernel);
// Bad text is the user's fault.
Kernel parse_kernel(std::string_view text);
// The same, and so is what `check` finds; it is named with its line.
Kernel parse_checked_kernel(std::string_view text);

// Everything that is wrong with a kernel, in words: names that mean nothing or two things, ranks and dtypes
// that do not fit.
std::vector<std::string> check(const Kernel& kernel);

}  // namespace tenon::loops
