// static_fmt.cpp — what libfmt.so holds. Debian has no libfmt.a, and to compile everything once more with fmt
// in its headers would take as long as Tenon itself.
#include <fmt/format-inl.h>

namespace fmt::detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float);
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double);
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);

}  // namespace fmt::detail
