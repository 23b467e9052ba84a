# tenonModel.cmake — tenon_add_model: models that are compiled when a project is built, and linked into its programs.

# tenon_add_model(TARGET MODEL [NAME name] [TARGETS processor...] [OPTIONS option...] [DEPENDS file...])
#
# Compiles the model by `tenon compile --as object`, and links the object and libtenonrt into TARGET, whose sources include
# NAME.h and call NAME_open; NAME is that of the file without its extension, unless it is given. TARGETS are the processors that
# there is code for, by default the one it is built on; OPTIONS are those of tenon compile. The model is compiled again where it
# changes, or one of the files of DEPENDS, such as its weights.
function(tenon_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "TARGETS;OPTIONS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_model: '${arg_UNPARSED_ARGUMENTS}' is not understood; there are NAME, TARGETS, OPTIONS and DEPENDS")
  elseif(NOT TARGET ${target})
    message(FATAL_ERROR "tenon_add_model: there is no target ${target}")
  elseif(NOT TENON_PROGRAM)
    message(FATAL_ERROR "tenon_add_model: the program tenon is not found; TENON_PROGRAM says where it is")
  elseif(CMAKE_CROSSCOMPILING AND NOT arg_TARGETS)
    message(FATAL_ERROR "tenon_add_model: TARGETS must say for which processors ${model} is compiled, as it does not run here")
  endif()
  if(model MATCHES "^builtin:(.+)")
    set(name ${CMAKE_MATCH_1})
  else()
    cmake_path(ABSOLUTE_PATH model NORMALIZE)
    get_source_file_property(is_generated ${model} GENERATED)
    if(NOT EXISTS ${model} AND NOT is_generated)
      message(FATAL_ERROR "tenon_add_model: there is no ${model}")
    endif()
    list(APPEND arg_DEPENDS ${model})
    cmake_path(GET model STEM LAST_ONLY name)
  endif()
  if(arg_NAME)
    set(name ${arg_NAME})
  endif()
  set(processors "")
  if(arg_TARGETS)
    list(JOIN arg_TARGETS "," processors)
    set(processors --target ${processors})
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_models)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${folder}/${name}.o ${folder}/${name}.h
                     COMMAND ${TENON_PROGRAM} compile ${model} --as object -o ${folder}/${name}.o ${processors} ${arg_OPTIONS}
                     DEPENDS ${arg_DEPENDS} ${TENON_PROGRAM} COMMENT "Compiling ${model}" VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.o ${folder}/${name}.h)
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE tenon::runtime)
endfunction()
