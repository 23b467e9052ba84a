# static.cmake — static/tenon: the program with all libraries in it, glibc too, which runs on any Linux of this architecture;
# and portable/tenon, with all but glibc and libstdc++, which can load CUDA's libraries.
#
# It is linked from the objects of the ordinary program, so it takes little longer to have both.
include(cmake/static_libraries.cmake)
foreach(kind static portable)
  add_executable(tenon_${kind} src/cli/tenon.cpp)
  set_target_properties(tenon_${kind} PROPERTIES OUTPUT_NAME tenon RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${kind})
  target_compile_options(tenon_${kind} PRIVATE -O0)  # as the ordinary one, so that ccache has it
  target_include_directories(tenon_${kind} PRIVATE src include)
  target_compile_definitions(tenon_${kind} PRIVATE FMT_SHARED)
  add_dependencies(tenon_${kind} ${rooms_so_far})
  target_link_libraries(tenon_${kind} PRIVATE ${room_files} ${static_libraries})
  target_link_options(tenon_${kind} PRIVATE -s -Wl,--gc-sections -Wl,--no-warnings $<$<BOOL:${LLD}>:-Wl,--icf=all>)
endforeach()
target_link_options(tenon_static PRIVATE -static)
