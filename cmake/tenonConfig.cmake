# tenonConfig.cmake — what find_package(tenon) reads: it defines tenon::tenon, and tenon::runtime, libtenonrt. With COMPONENTS
# runtime, the latter alone, and nothing is wanted that the former is linked with.
set(TENON_LLVM @TENON_LLVM@)
cmake_path(SET tenon_libraries NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
if(EXISTS ${tenon_libraries}/libtenonrt.so AND NOT TARGET tenon::runtime)
  add_library(tenon::runtime SHARED IMPORTED)
  set_target_properties(tenon::runtime PROPERTIES IMPORTED_LOCATION ${tenon_libraries}/libtenonrt.so
                        INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/@package_to_include@)
endif()
if(NOT "${tenon_FIND_COMPONENTS}" STREQUAL "runtime")
  include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)
  include(${CMAKE_CURRENT_LIST_DIR}/tenonTargets.cmake)
endif()
