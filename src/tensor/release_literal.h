// release_literal.h — memory of constants that lie in files.
#pragma once

#include "base/pages.h"
#include "tensor/literal.h"

namespace tenon {

// What was read of a file, and is not needed soon, takes no memory until it is read again.
inline void release(const Literal& literal) {
  if (const auto* slice = std::get_if<Literal::FileSlice>(&literal.form()))
    release_pages(slice->file->bytes().subspan(slice->offset, slice->size));
}

}  // namespace tenon
