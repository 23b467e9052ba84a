#include "frontends/torch/tensor_table.h"

#include "base/error.h"

namespace tenon::torch {

void TensorTable::define(const std::string& name, Value value) {
  if (weights_.contains(name) || !entries_.emplace(name, Entry{.value = value}).second)
    throw user_error("\"{}\" is made twice", name);
}

void TensorTable::define_weight(const std::string& name, std::function<Value()> make) {
  if (entries_.contains(name) || !weights_.emplace(name, std::move(make)).second)
    throw user_error("\"{}\" is made twice", name);
}

void TensorTable::define_view(const std::string& name, Value value, View view) {
  const uint64_t seen = root(view.base).version;
  if (!entries_.emplace(name, Entry{.value = value, .view = std::move(view), .seen = seen}).second)
    throw user_error("\"{}\" is made twice", name);
}

TensorTable::Entry& TensorTable::entry(std::string_view name) {
  auto it = entries_.find(name);
  if (const auto weight = weights_.find(name); weight != weights_.end()) {
    it = entries_.emplace(weight->first, Entry{.value = weight->second()}).first;
    weights_.erase(weight);
  }
  if (const auto missing = missing_.find(name); missing != missing_.end())
    throw unsupported("{}", missing->second);
  if (it == entries_.end())
    throw user_error("\"{}\" is made by no node, and is no input of the graph", name);
  return it->second;
}

TensorTable::Entry& TensorTable::root(std::string_view name) {
  Entry* each = &entry(name);
  while (each->view)
    each = &entry(each->view->base);
  return *each;
}

Value TensorTable::get(std::string_view name) {
  Entry& wanted = entry(name);
  const Entry& whole = root(name);
  if (!whole.doubt.empty())
    throw unsupported(
        "\"{}\" is used after \"{}\" was changed in place, and only PyTorch knows whether they share memory",
        name, whole.doubt);
  if (!wanted.view || wanted.seen == whole.version)
    return wanted.value;
  if (!wanted.view->certain)
    throw unsupported(
        "\"{}\" is used after \"{}\" was changed in place, and only PyTorch knows whether they share memory",
        name, wanted.view->base);
  wanted.value = wanted.view->read(get(wanted.view->base));
  wanted.seen = whole.version;
  return wanted.value;
}

void TensorTable::change(const std::string& name, Value value) {
  Entry& changed = entry(name);
  if (!changed.view) {
    changed.value = value;
    changed.version = ++changes_;
    return;
  }
  if (!changed.view->certain) {
    root(name).doubt = name;
    changed.view.reset();
    changed.value = value;
    changed.version = ++changes_;
    return;
  }
  if (!changed.view->write)
    throw unsupported("\"{}\", a view of \"{}\", is changed in place", name, changed.view->base);
  const std::string base = changed.view->base;
  change(base, changed.view->write(get(base), value));
  changed.value = value;
  changed.seen = root(name).version;
}

}  // namespace tenon::torch
