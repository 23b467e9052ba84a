# static_fmt.cmake — fmt as an archive, which Debian does not have.
include_guard()
add_library(static_fmt STATIC cmake/static_fmt.cpp)
