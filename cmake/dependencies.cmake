# dependencies.cmake — finds what the rooms of Tenon are linked with: when Tenon is built, and, installed beside
# tenonConfig.cmake, when a program is linked with it.
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
if(TENON_LLVM)
  # LLVM also looks for libedit, which we do without, and where it is installed tries to compile C with it, which fails in a
  # project of C++ alone.
  set(CMAKE_DISABLE_FIND_PACKAGE_LibEdit TRUE)
  find_package(LLVM 19.1 REQUIRED CONFIG)
  unset(CMAKE_DISABLE_FIND_PACKAGE_LibEdit)
endif()

# Debian's packages of re2 and isl have no CMake file.
function(find_by_hand target variable header library)
  find_path(${variable}_INCLUDE ${header} REQUIRED)
  find_library(${variable}_LIBRARY ${library} REQUIRED)
  if(NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${variable}_LIBRARY}"
                          INTERFACE_INCLUDE_DIRECTORIES "${${variable}_INCLUDE}")
  endif()
endfunction()
find_by_hand(re2::re2 RE2 re2/re2.h re2)
find_by_hand(isl::isl ISL isl/ctx.h isl)
