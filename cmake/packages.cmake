# packages.cmake — what cpack makes of a build: a Debian package of each component. What a package needs of libraries,
# dpkg-shlibdeps finds out; what is built against the static library needs its headers' packages, too.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_VENDOR Tenon)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Who answers for a package is who builds it, by the variables that Debian's tools read.
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if("$ENV{DEBFULLNAME}" STREQUAL "" OR "$ENV{DEBEMAIL}" STREQUAL "")
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "root <root@localhost>")
endif()
set(CPACK_PACKAGE_CONTACT "${CPACK_DEBIAN_PACKAGE_MAINTAINER}")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# Compressed when it is configured, without the time of that.
function(install_compressed file folder name component)
  execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${CMAKE_CURRENT_BINARY_DIR}/packages/${component}/${name}.gz
                  COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/packages/${component}/${name}.gz DESTINATION ${folder} COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endfunction()

# What the package of a shared library tells dpkg: that ldconfig is to run, and which version those need that are linked with it.
function(add_library_control component shlibs)
  string(TOUPPER ${component} upper)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/packages/${component})
  file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
  set(files ${folder}/triggers)
  if(shlibs)
    file(WRITE ${folder}/shlibs "${shlibs}\n")
    list(APPEND files ${folder}/shlibs)
  endif()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${files} PARENT_SCOPE)
endfunction()

# add_package(COMPONENT NAME SECTION SUMMARY DESCRIPTION [DEPENDS package...] [RECOMMENDS package...] [SUGGESTS package...])
function(add_package component name section summary description)
  cmake_parse_arguments(PARSE_ARGV 5 package "" "" "DEPENDS;RECOMMENDS;SUGGESTS")
  string(TOUPPER ${component} upper)
  macro(set_package variable)
    set(CPACK_DEBIAN_${upper}_${variable} ${ARGN} PARENT_SCOPE)
  endmacro()
  set_package(PACKAGE_NAME ${name})
  set_package(PACKAGE_SECTION ${section})
  set_package(DESCRIPTION "${summary}\n${description}")
  foreach(relation DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN package_${relation} ", " packages)
    set_package(PACKAGE_${relation} "${packages}")
  endforeach()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)

  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES cmake/packages/copyright DESTINATION ${documents} COMPONENT ${component} EXCLUDE_FROM_ALL)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(cmake/packages/changelog.in packages/${component}/changelog @ONLY)
  install_compressed(${CMAKE_CURRENT_BINARY_DIR}/packages/${component}/changelog ${documents} changelog.Debian ${component})
endfunction()

# install_manual(COMPONENT PAGE)
function(install_manual component page)
  install_compressed(${PROJECT_SOURCE_DIR}/cmake/packages/${page} ${CMAKE_INSTALL_MANDIR}/man1 ${page} ${component})
endfunction()

add_package(program tenon devel "compiler for machine-learning graphs"
            "Tenon reads models of ONNX and PyTorch, optimises and fuses their graphs,
compiles them for CPUs and NVIDIA GPUs, runs, verifies and measures them, and
shows what it does at every stage. It saves compiled models as programs that
libtenonrt runs."
            SUGGESTS "libtenonrt-dev ${same_version}" "tenon-run ${same_version}")
install_compressed(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${CMAKE_INSTALL_DATADIR}/doc/tenon changelog program)
install_manual(program tenon.1)

add_package(runtime libtenonrt0 libs "library that runs models saved by Tenon"
            "It opens models that Tenon has compiled and saved, picks the code for the
processor that it runs on, and runs them. It holds no compiler.")
add_library_control(runtime "libtenonrt 0 libtenonrt0 (>= ${PROJECT_VERSION})")
add_package(runtime_dev libtenonrt-dev libdevel "library that runs models saved by Tenon (development files)"
            "The header of Tenon's interface for C, and what CMake needs to link programs
with libtenonrt, and to compile models into them, for which the package tenon
is needed."
            DEPENDS "libtenonrt0 ${same_version}" SUGGESTS "tenon ${same_version}")
add_package(tenon_run tenon-run utils "runs models saved by Tenon"
            "A program that runs a model which Tenon has compiled and saved, reads its
inputs from a file of NumPy's, and shows or writes what comes out.")
install_manual(tenon_run tenon-run.1)

set(link_packages libfmt-dev zlib1g-dev libre2-dev libisl-dev)
if(TENON_LLVM)
  list(APPEND link_packages llvm-19-dev)
endif()
add_package(dev libtenon-dev libdevel "compiler for machine-learning graphs (static library)"
            "The whole of Tenon as a static library, with its interfaces for C++, by which
programs compile and run models, and add passes and rewrites of their own."
            DEPENDS "libtenonrt-dev ${same_version}" ${link_packages})
if(TARGET tenon_ep)
  add_package(plugin tenon-ep libs "ONNX Runtime plug-in that compiles models by Tenon"
              "An execution provider that ONNX Runtime loads, from version 1.23 on: whole
graphs are compiled and run by Tenon, in programs that stay as they are.")
  add_library_control(plugin "")
endif()
include(CPack)
