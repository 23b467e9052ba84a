# page.cmake — makes page.html, the page of `tenon report`: scripts, styles and the libraries they use, in one file.

find_program(ESBUILD esbuild REQUIRED)
set(debian_scripts /usr/share/nodejs)
# tools/setup unpacks dagre without installing it, because Debian's package would bring a test framework along.
find_path(DAGRE dagre/dist/dagre.min.js PATHS ${debian_scripts} ${PROJECT_SOURCE_DIR}/build-packages${debian_scripts}
          NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)

set(page_sources ${PROJECT_SOURCE_DIR}/src/report/page)
set(page_folder ${CMAKE_CURRENT_BINARY_DIR}/page)
file(GLOB_RECURSE page_files CONFIGURE_DEPENDS ${page_sources}/*.js ${page_sources}/*.css)
add_custom_command(
  OUTPUT ${page_folder}/page.html
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${debian_scripts}:${DAGRE} ${ESBUILD} ${page_sources}/main.js ${page_sources}/main.css
          --bundle --minify --target=es2022 --charset=utf8 --legal-comments=inline --log-level=warning --outdir=${page_folder}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${page_folder} -D TEMPLATE=${page_sources}/index.html
          -P ${PROJECT_SOURCE_DIR}/cmake/assemble_page.cmake
  DEPENDS ${page_files} ${page_sources}/index.html ${PROJECT_SOURCE_DIR}/cmake/assemble_page.cmake
  COMMENT "Making page.html" VERBATIM)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/report/page.cpp PROPERTIES
  OBJECT_DEPENDS ${page_folder}/page.html COMPILE_OPTIONS -Wa,-I${page_folder})
