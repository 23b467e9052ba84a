// tensor_table.h — the tensors that a graph's names stand for, while the graph is read.
//
// PyTorch's tensors can be changed in place, and share memory with their views; ours cannot. So a name is
// bound to another value when an op changes its tensor, and a view remembers how it was made of what, and how
// it is written back to it:
//
//   y = slice(x, …)     y is a view of x
//   y.add_(1)           y and then x are bound to new values: y + 1, and x with that put in its place
//   z = x * 2           sees the new x; other views of x are made again when they are next asked for
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tenon::torch {

struct View {
  std::string base;
  std::function<Value(Value base)> read;  // the view of another value of the base
  std::function<Value(Value base, Value updated)>
      write;            // the base with this in place of the view; null: we cannot
  bool certain = true;  // else PyTorch decides by the strides whether memory is shared
};

class TensorTable {
 public:
  void define(const std::string& name, Value value);
  void define_view(const std::string& name, Value value, View view);
  // A weight, which is made when it is first asked for.
  void define_weight(const std::string& name, std::function<Value()> make);
  // A result that we cannot give: using it is an error, which says `why`.
  void define_missing(const std::string& name, const std::string& why) { missing_.emplace(name, why); }

  bool is_defined(std::string_view name) const { return entries_.contains(name); }

  // The value of a tensor as it is now.
  Value get(std::string_view name);
  // The tensor of that name has these elements from now on, and so do all that share its memory.
  void change(const std::string& name, Value value);
  // Whether a tensor that is no view was changed since it was defined.
  bool was_changed(std::string_view name) const {
    const auto it = entries_.find(name);
    return it != entries_.end() && it->second.version != 0;
  }

 private:
  struct Entry {
    Value value;
    std::optional<View> view = {};
    uint64_t version = 0;    // of a tensor that is no view: which change it has come through
    uint64_t seen = 0;       // of a view: the version of the tensor behind it when `value` was made
    std::string doubt = {};  // a perhaps-view that was changed: nobody knows whether this changed with it
  };

  Entry& entry(std::string_view name);
  Entry& root(std::string_view name);

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::function<Value()>, std::less<>> weights_;  // that nobody has asked for yet
  std::map<std::string, std::string, std::less<>> missing_;
  uint64_t changes_ = 0;
};

}  // namespace tenon::torch
