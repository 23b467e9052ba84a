# runtime.cmake — libtenonrt.so, which opens and runs saved programs, and tenon-run, the program that does. They need libc, libm
# and libstdc++ alone: of these rooms, the linker takes what the two use, in which there are no graphs, no ops and no LLVM.
include(cmake/static_fmt.cmake)
set(runtime_rooms tenon_api tenon_runtime tenon_schedule tenon_ir tenon_tensor tenon_target tenon_base)
list(TRANSFORM runtime_rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE runtime_files)
set(symbols ${PROJECT_SOURCE_DIR}/cmake/libtenonrt.map)

# Archives give what is asked for: of the C interface, besides what open.cpp needs, the files of these functions.
add_library(tenonrt SHARED src/deploy/open.cpp)
set_target_properties(tenonrt PROPERTIES SOVERSION 0 VERSION ${PROJECT_VERSION} LINK_DEPENDS "${symbols};${runtime_files}")
target_link_options(tenonrt PRIVATE -Wl,--version-script=${symbols} -Wl,-Bsymbolic $<$<NOT:$<BOOL:${TENON_SANITIZE}>>:-Wl,-z,defs>
                    -Wl,-u,tenon_run -Wl,-u,tenon_version -Wl,-u,tenon_open)

find_library(STATIC_z libz.a REQUIRED)
add_executable(tenon-run src/deploy/open.cpp src/deploy/tenon_run.cpp)
set_target_properties(tenon-run PROPERTIES LINK_DEPENDS "${runtime_files}")

foreach(target tenonrt tenon-run)
  target_include_directories(${target} PRIVATE src include)
  target_compile_definitions(${target} PRIVATE FMT_SHARED)
  add_dependencies(${target} ${runtime_rooms})
  target_link_libraries(${target} PRIVATE ${runtime_files} static_fmt)
  target_link_options(${target} PRIVATE -s -Wl,--gc-sections -Wl,--as-needed $<$<BOOL:${LLD}>:-Wl,--icf=all>)
endforeach()
target_link_libraries(tenon-run PRIVATE ${STATIC_z})

install(TARGETS tenonrt LIBRARY OPTIONAL COMPONENT runtime NAMELINK_COMPONENT runtime_dev)
install(TARGETS tenon-run RUNTIME OPTIONAL COMPONENT tenon_run)
