# static_libraries.cmake — the libraries that Tenon is linked with, as archives: for programs and libraries that need nothing of
# Tenon's to be installed where they run. Their CMake targets and pkg-config name the shared ones.
include_guard()
include(cmake/static_fmt.cmake)
set(static_libraries "")
foreach(name re2 isl gmp z zstd)
  find_library(STATIC_${name} lib${name}.a REQUIRED)
  list(APPEND static_libraries ${STATIC_${name}})
endforeach()
unset(llvm_libraries)
if(TENON_LLVM)
  # The one of this machine, also where LLVM_TOOLS_BINARY_DIR is that of another.
  find_program(STATIC_llvm_config NAMES llvm-config-${LLVM_VERSION_MAJOR} llvm-config PATHS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
  # Of the targets, the architecture's alone that the program is for.
  string(TOLOWER ${LLVM_NATIVE_ARCH} native)
  execute_process(COMMAND ${STATIC_llvm_config} --link-static --libnames orcjit ${native}codegen passes bitwriter
                  OUTPUT_VARIABLE llvm_libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(llvm_libraries)
  list(TRANSFORM llvm_libraries PREPEND ${LLVM_LIBRARY_DIR}/)
endif()
list(PREPEND static_libraries static_fmt ${llvm_libraries})
list(TRANSFORM rooms_so_far REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE room_files)
