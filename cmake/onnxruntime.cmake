# onnxruntime.cmake — libtenon_ep.so, the plug-in for ONNX Runtime. Of that, the headers alone are needed; it shows no symbols but
# the two that ONNX Runtime asks for. It stays loaded where it is unregistered, as its threads do.
set(symbols ${PROJECT_SOURCE_DIR}/cmake/libtenon_ep.map)
file(GLOB sources CONFIGURE_DEPENDS src/onnxruntime/*.cpp)
add_library(tenon_ep SHARED ${sources})
set_target_properties(tenon_ep PROPERTIES LINK_DEPENDS "${symbols}")
target_include_directories(tenon_ep PRIVATE src)
target_include_directories(tenon_ep SYSTEM PRIVATE ${ONNXRUNTIME_HEADERS})
target_link_libraries(tenon_ep PRIVATE ${rooms_up_to_api})
target_link_options(tenon_ep PRIVATE -s -Wl,--version-script=${symbols} -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--as-needed
                    -Wl,-z,defs -Wl,-z,nodelete $<$<BOOL:${LLD}>:-Wl,--icf=all>)
install(TARGETS tenon_ep LIBRARY OPTIONAL COMPONENT plugin)
