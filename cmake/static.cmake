# static.cmake — static/tenon: the program with all libraries in it, glibc too, which runs on any Linux of this architecture.
#
# It is linked from the objects of the ordinary program, so it takes little longer to have both.
include(cmake/static_libraries.cmake)
add_executable(tenon_static src/cli/tenon.cpp)
set_target_properties(tenon_static PROPERTIES OUTPUT_NAME tenon RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static)
target_compile_options(tenon_static PRIVATE -O0)  # as the ordinary one, so that ccache has it
target_include_directories(tenon_static PRIVATE src include)
target_compile_definitions(tenon_static PRIVATE FMT_SHARED)
add_dependencies(tenon_static ${rooms_so_far})
target_link_libraries(tenon_static PRIVATE ${room_files} ${static_libraries})
target_link_options(tenon_static PRIVATE -static -s -Wl,--gc-sections -Wl,--no-warnings $<$<BOOL:${LLD}>:-Wl,--icf=all>)
