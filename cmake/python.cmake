# python.cmake — the Python package: libtenon.so, which knows nothing of Python, and the binding for the Python at hand.
#
# libtenon.so has all that it is linked with inside, LLVM too, and shows no symbols but Tenon's own: other packages bring
# an LLVM of theirs into the same process.
include(cmake/static_libraries.cmake)
include(cmake/find_python.cmake)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_folder
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind 3.0 CONFIG REQUIRED PATHS ${nanobind_folder} NO_DEFAULT_PATH)

set(symbols ${PROJECT_SOURCE_DIR}/cmake/libtenon.map)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libtenon.cpp CONTENT "")  # a library has a source of its own
add_library(tenon_shared SHARED ${CMAKE_BINARY_DIR}/libtenon.cpp)
set_target_properties(tenon_shared PROPERTIES OUTPUT_NAME tenon LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/tenon
                      LINK_DEPENDS "${symbols};${room_files}" EXCLUDE_FROM_ALL TRUE BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
add_dependencies(tenon_shared ${rooms_so_far})
list(TRANSFORM room_files REPLACE "(.+)" "-Wl,--whole-archive,\\1,--no-whole-archive")
# Debian's archives of these are not for shared libraries, so that the shared ones go along. They are found beside libtenon.so,
# also by each other, as RPATH says and RUNPATH would not.
set(libraries_along "")
foreach(name re2 isl gmp)
  list(REMOVE_ITEM static_libraries ${STATIC_${name}})
  find_library(SHARED_${name} ${name} REQUIRED)
  list(APPEND libraries_along ${SHARED_${name}})
  file(REAL_PATH ${SHARED_${name}} file)
  execute_process(COMMAND readelf -d ${file} OUTPUT_VARIABLE header COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "soname: \\[([^]]+)\\]" unused "${header}")
  install(FILES ${file} DESTINATION tenon RENAME ${CMAKE_MATCH_1} COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
target_link_libraries(tenon_shared PRIVATE ${room_files} ${static_libraries} ${libraries_along})
target_link_options(tenon_shared PRIVATE -s -Wl,--version-script=${symbols} -Wl,-Bsymbolic -Wl,--gc-sections
                    -Wl,-z,defs -Wl,--disable-new-dtags $<$<BOOL:${LLD}>:-Wl,--icf=all>)

file(GLOB sources CONFIGURE_DEPENDS python/binding/*.cpp)
nanobind_add_module(_tenon STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE ${sources})
set_target_properties(_tenon PROPERTIES EXCLUDE_FROM_ALL TRUE LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/tenon
                      BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
foreach(target _tenon nanobind-static nanobind-static-abi3)
  if(TARGET ${target})
    target_compile_definitions(${target} PRIVATE NDEBUG)  # or each handle of Python's asks whether the GIL is held
  endif()
endforeach()
target_include_directories(_tenon PRIVATE src include python)
target_compile_definitions(_tenon PRIVATE FMT_HEADER_ONLY)
target_link_libraries(_tenon PRIVATE tenon_shared nlohmann_json::nlohmann_json)

install(TARGETS tenon_shared _tenon LIBRARY DESTINATION tenon COMPONENT python EXCLUDE_FROM_ALL)
