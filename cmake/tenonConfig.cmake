# tenonConfig.cmake — what find_package(tenon) reads: it defines the target tenon::tenon.
set(TENON_LLVM @TENON_LLVM@)
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/tenonTargets.cmake)
