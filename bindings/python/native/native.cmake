# The library that the Python package loads: everything in one file, but for RE2, which lies
# beside it; it shows nothing but its own few functions.

set(native_dir ${CMAKE_CURRENT_LIST_DIR})
file(GLOB native_src CONFIGURE_DEPENDS ${native_dir}/*.cc)
add_library(belljar_python MODULE ${native_src})
target_include_directories(belljar_python PRIVATE ${native_dir})
target_compile_definitions(belljar_python PRIVATE BELLJAR_VERSION="${PROJECT_VERSION}")
target_link_libraries(belljar_python PRIVATE belljar_calls)
set_target_properties(belljar_python PROPERTIES PREFIX "lib" OUTPUT_NAME belljar
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
target_link_options(belljar_python PRIVATE
  # Bound when it is loaded: between clone and exec nothing may be looked up.
  -Wl,-z,relro,-z,now,-z,noexecstack
  # Debian's static libraries are compiled for programs; in one that binds its own symbols to
  # itself they can be linked too.
  -Wl,-Bsymbolic -Wl,--version-script=${native_dir}/exports.map -Wl,--gc-sections -Wl,-z,defs)
set_target_properties(belljar_python PROPERTIES LINK_DEPENDS ${native_dir}/exports.map)
install(TARGETS belljar_python LIBRARY DESTINATION belljar/_lib COMPONENT python EXCLUDE_FROM_ALL)
include(${native_dir}/re2.cmake)
