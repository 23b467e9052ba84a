// scalars.h — expressions of a kernel, and the elements they read and write, as lines of CUDA C++: one
// element at a time, or those of a vector of iterations that one thread runs together.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "codegen/cuda/elements.h"
#include "codegen/cuda/indices.h"
#include "codegen/cuda/layouts.h"
#include "codegen/cuda/quads.h"
#include "codegen/cuda/writer.h"
#include "loops/kernel.h"

namespace tenon::codegen::cuda {

struct Storage {
  enum class Kind : uint8_t {
    Pointer,       // to memory or shared memory
    Registers,     // of each thread, that has all of it
    Lanes,         // the same, for each iteration of a vector
    Spread,        // of each thread, that has a part of it
    SpreadShared,  // the same in shared memory: the name points to the thread's first element
    Exchanged,     // of each thread, which others of its quad read
    Fragments,     // of each thread, packed in pairs
  };
  Kind kind;
  std::string name;
  loops::Buffer buffer;
  const Spread* spread = nullptr;
  int64_t trip_stride =
      0;  // elements between those of one trip and the next, where it is spread in shared memory
  bool is_swizzled = false;  // of a pointer to shared memory: elements of 16 bits, in rows of 64

  // Whether its elements lie there as in the buffer, and not as in registers.
  bool is_in_memory() const {
    return kind == Kind::Pointer || kind == Kind::SpreadShared || kind == Kind::Fragments;
  }
};

// The vector of iterations that a thread is at.
struct Iterations {
  const loops::Loop* loop;
  int64_t vector;    // as many
  std::string trip;  // how many vectors came before; a number or a variable
  std::string lane;  // which of them, where they run one by one
  bool is_whole;     // a statement runs for all of them before the next
};

// What the statements of a kernel are made of; emit.cpp sets what they stand in.
class ScalarText {
 protected:
  ScalarText() : writer_(names_), indices_(preamble_), elements_(preamble_) {}

  // --- statements ---

  // Forgets what was computed for the statement before.
  void begin_statement(const std::vector<loops::Scalar>& values);
  // Loads the vectors that the statement reads in any case, and those of its places if it combines.
  void load_vectors(const loops::Assign& assign);
  // Whether the iterations at hand write a vector at once.
  bool is_vector(const loops::Place& place) const;
  std::string vector_type(DType dtype) const;
  std::string vector_at(const Storage& storage, const std::vector<loops::Scalar>& at);

  // for (int lane = 0; …): f runs for each iteration of the vector.
  template <class F>
  void for_each_lane(F&& f) {
    writer_.write("#pragma unroll");
    const std::string lane = writer_.open_loop("lane", "for (int {0} = 0; {0} < {1}; ++{0})", at_->vector);
    const Iterations around = *at_;
    const IndexText::Symbol first = indices_.symbol(at_->loop->variable);
    at_->lane = lane;
    indices_.set(at_->loop->variable,
                 first.text.text == "0"
                     ? Expression{lane}
                     : Expression{fmt::format("{} + {}", first.text.text, lane), Binding::Sum},
                 first.range);
    f();
    indices_.set(at_->loop->variable, first.text, first.range);
    at_ = around;
    writer_.close();
  }

  // --- values ---

  Expression value_of(const loops::Scalar& scalar);
  // As it lies in the memory of a buffer of its dtype.
  Expression stored_value_of(const loops::Scalar& scalar);
  Expression load(const std::string& name, const std::vector<loops::Scalar>& at);
  // The element as it lies there.
  Expression element(const Storage& storage, const std::vector<loops::Scalar>& at);
  void store(const loops::Place& place, const Expression& value);
  // Two elements of fragments, at the row and the fragment of the loops at hand.
  std::string word_of_fragments(const std::string& buffer);
  // Given a name, unless it is one.
  Expression named(DType dtype, const Expression& value, std::string_view base = "t");
  // Ends this thread where the condition does not hold.
  void require(const Expression& condition);

  Names names_;
  Preamble preamble_;
  Writer writer_;
  IndexText indices_;
  ElementText elements_;
  std::map<std::string, Storage> storage_;
  std::set<std::string> swizzled_;               // shared buffers of the region at hand
  std::map<std::string, QuadBuffer> quads_;      // those that are in registers
  std::optional<Iterations> at_;                 // within a thread loop
  std::map<std::string, Expression> variables_;  // of the combine that is being computed

 private:
  void count_uses(const loops::Scalar& scalar);
  Expression compute(const loops::Scalar& scalar);
  // Before it is fitted to its dtype.
  Expression apply(const loops::Scalar& scalar);
  static bool needs_fit(const loops::Scalar& scalar);
  // Whether something must not be computed where it is not chosen.
  static bool needs_care(const loops::Scalar& scalar);
  Expression choose(const loops::Scalar& scalar);
  std::string offset_text(const loops::Buffer& buffer, const std::vector<loops::Scalar>& at);
  std::string place_text(const Storage& storage, const std::string& offset);
  // Of the vector of this trip, where the buffer is spread in shared memory.
  std::string trip_offset(const Storage& storage) const;
  // Which of a thread's rows the loops at hand are at.
  std::string row_of_quad(const QuadBuffer& quad);
  Expression load_stored(const Storage& storage, const std::vector<loops::Scalar>& at);
  void load_vectors(const loops::Scalar& scalar, std::unordered_set<const void*>& seen);
  void load_vector(const loops::Scalar& load);

  std::unordered_map<const void*, int> uses_;
  std::unordered_map<const void*, Expression> known_;
  std::vector<std::pair<loops::Scalar, std::string>> vectors_;  // that were loaded
};

}  // namespace tenon::codegen::cuda
