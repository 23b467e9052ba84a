#include "ir/attribute.h"

#include <bit>
#include <cmath>

#include "base/hash.h"

namespace tenon {

std::string_view name(AttributeKind kind) {
  constexpr std::string_view names[] = {"bool",   "int",     "float", "string", "ints",
                                        "floats", "strings", "dtype", "type",   "literal"};
  return names[static_cast<size_t>(kind)];
}

namespace {

uint64_t hash_of(bool v) { return v; }
uint64_t hash_of(int64_t v) { return static_cast<uint64_t>(v); }
uint64_t hash_of(double v) { return std::isnan(v) ? 1 : std::bit_cast<uint64_t>(v); }
uint64_t hash_of(const std::string& v) { return hash_string(v); }
uint64_t hash_of(DType v) { return static_cast<uint64_t>(v); }
uint64_t hash_of(const Type& v) { return hash(v); }
uint64_t hash_of(const Literal& v) { return v.content_hash(); }
template <class T>
uint64_t hash_of(const std::vector<T>& values) {
  uint64_t h = values.size();
  for (const T& v : values)
    h = hash_combine(h, hash_of(v));
  return h;
}

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const double& a, const double& b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
bool same(const Attribute::Floats& a, const Attribute::Floats& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same(x, y); });
}

}  // namespace

uint64_t Attribute::hash() const {
  return hash_combine(value_.index(), std::visit([](const auto& v) { return hash_of(v); }, value_));
}

bool operator==(const Attribute& a, const Attribute& b) {
  return a.value_.index() == b.value_.index() &&
         std::visit([&](const auto& v) { return same(v, std::get<std::decay_t<decltype(v)>>(b.value_)); },
                    a.value_);
}

}  // namespace tenon
