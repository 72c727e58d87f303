# `cmake --install`: the program, its man pages and completions, and the library for
# other CMake projects: find_package(belljar), then link belljar::belljar.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The folders stay apart for the dependency rule; who installs the library gets one.
set(folders belljar_base belljar_policy belljar_layers belljar_broker belljar_plan belljar_launcher
    belljar_session)
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(belljar_merged STATIC ${objects})
set_target_properties(belljar_merged PROPERTIES
  OUTPUT_NAME belljar
  EXPORT_NAME belljar
  LINKER_LANGUAGE CXX)
target_compile_features(belljar_merged INTERFACE cxx_std_23)
# The export must not name what is only here: libraries of others are found by the config.
target_include_directories(belljar_merged INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS belljar RUNTIME)
install(TARGETS belljar_merged EXPORT belljarTargets ARCHIVE)
install(DIRECTORY include/belljar TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/belljar)
install(EXPORT belljarTargets NAMESPACE belljar:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/belljarConfig.cmake.in
  ${CMAKE_BINARY_DIR}/belljarConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/belljarConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/belljarConfig.cmake ${CMAKE_BINARY_DIR}/belljarConfigVersion.cmake
  DESTINATION ${package_dir})

# The program writes its own pages. One that cannot be run here (another architecture)
# or does not know how is installed without.
function(install_printed folder file)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:belljar>\" ${ARGN}
      OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE result)
    if(result EQUAL 0)
      message(STATUS \"Installing: \${folder}/${file}\")
      file(WRITE \"\${folder}/${file}\" \"\${text}\")
    else()
      message(STATUS \"Not installed: ${file} (belljar ${ARGN}: \${result})\")
    endif()")
endfunction()
install_printed(${CMAKE_INSTALL_MANDIR}/man1 belljar.1 man belljar)
install_printed(${CMAKE_INSTALL_MANDIR}/man1 belljar-exec.1 man belljar-exec)
install_printed(${CMAKE_INSTALL_MANDIR}/man5 belljar.toml.5 man belljar.toml)
install_printed(${CMAKE_INSTALL_DATADIR}/bash-completion/completions belljar completion bash)
install_printed(${CMAKE_INSTALL_DATADIR}/zsh/site-functions _belljar completion zsh)
install_printed(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d belljar.fish completion fish)
