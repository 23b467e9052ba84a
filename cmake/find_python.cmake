# find_python.cmake — the Python that the binding is for: Python_EXECUTABLE, or the one at hand.
#
# What CMake found of a Python it keeps, whichever is asked for next: headers, suffixes of modules, the nanobind beside it. So
# that is forgotten where another is asked for, as by tools/wheel.
if(DEFINED TENON_FOUND_PYTHON AND DEFINED Python_EXECUTABLE AND NOT Python_EXECUTABLE STREQUAL TENON_FOUND_PYTHON)
  get_cmake_property(found CACHE_VARIABLES)
  list(FILTER found INCLUDE REGEX "^(_?Python_|nanobind_|NB_|SKBUILD_SOS?ABI$)")
  list(FILTER found EXCLUDE REGEX "^Python_(EXECUTABLE|ROOT_DIR|FIND_)")
  foreach(entry ${found})
    unset(${entry} CACHE)
    unset(${entry})
  endforeach()
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
set(TENON_FOUND_PYTHON ${Python_EXECUTABLE} CACHE INTERNAL "")
