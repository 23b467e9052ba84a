// pages.h — memory that the system may have back.
#pragma once

#include <cstddef>
#include <span>

namespace tenon {

// The pages that lie wholly within these bytes of a mapped file take no memory until they are read again.
void release_pages(std::span<const std::byte> mapped);

}  // namespace tenon
