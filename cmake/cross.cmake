# cross.cmake — toolchain file: compiles with Clang for CMAKE_SYSTEM_PROCESSOR, with the headers and static libraries that
# tools/cross_static unpacked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_SYSTEM_PROCESSOR)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-packages/${CMAKE_SYSTEM_PROCESSOR})
cmake_path(NORMAL_PATH CMAKE_SYSROOT)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static --ld-path=ld.lld-19")

# Programs are run here, everything else is taken from there.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
