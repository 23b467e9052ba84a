# static.cmake — static/tenon: the program with all libraries in it, glibc too, which runs on any Linux of this architecture.
#
# It is linked from the objects of the ordinary program, so it takes little longer to have both.
add_library(static_fmt STATIC cmake/static_fmt.cpp)
add_executable(tenon_static src/cli/tenon.cpp)
set_target_properties(tenon_static PROPERTIES OUTPUT_NAME tenon RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static)
target_compile_options(tenon_static PRIVATE -O0)  # as the ordinary one, so that ccache has it
target_include_directories(tenon_static PRIVATE src include)
target_compile_definitions(tenon_static PRIVATE FMT_SHARED)
add_dependencies(tenon_static ${rooms_so_far})

# The libraries by the files that hold them: their CMake targets and pkg-config name the shared ones.
unset(llvm_libraries)
set(static_libraries "")
foreach(name re2 isl gmp z zstd)
  find_library(STATIC_${name} lib${name}.a REQUIRED)
  list(APPEND static_libraries ${STATIC_${name}})
endforeach()
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
list(TRANSFORM rooms_so_far REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE room_files)
target_link_libraries(tenon_static PRIVATE ${room_files} static_fmt ${llvm_libraries} ${static_libraries})
target_link_options(tenon_static PRIVATE -static -s -Wl,--gc-sections -Wl,--no-warnings $<$<BOOL:${LLD}>:-Wl,--icf=all>)
