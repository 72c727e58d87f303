# The seccomp layer. Its filters are compiled by a program that runs on the build
# machine and links libseccomp; belljar itself only loads the result.

set(seccomp_dir ${CMAKE_CURRENT_LIST_DIR})
set(seccomp_tables ${seccomp_dir}/syscall_groups.cc ${seccomp_dir}/syscall_arguments.cc)
set(seccomp_generated ${CMAKE_BINARY_DIR}/generated/layers/seccomp_filters.h)

if(CMAKE_CROSSCOMPILING)
  set(BELLJAR_HOST_CXX c++ CACHE STRING "A compiler for the build machine, with libseccomp")
  set(seccomp_compile ${CMAKE_BINARY_DIR}/seccomp_compile)
  add_custom_command(
    OUTPUT ${seccomp_compile}
    COMMAND ${BELLJAR_HOST_CXX} -std=c++23 -D_GNU_SOURCE
            -I${seccomp_dir}/.. -I${seccomp_dir}/../../include
            ${seccomp_dir}/seccomp_compile.cc ${seccomp_tables} -lseccomp -o ${seccomp_compile}
    DEPENDS ${seccomp_dir}/seccomp_compile.cc ${seccomp_tables} ${seccomp_dir}/syscall_groups.h
            ${seccomp_dir}/syscall_arguments.h ${seccomp_dir}/seccomp_variant.h
    VERBATIM)
else()
  set(seccomp_compile seccomp_compile)
  add_executable(seccomp_compile ${seccomp_dir}/seccomp_compile.cc ${seccomp_tables})
  target_include_directories(seccomp_compile PRIVATE
    ${seccomp_dir}/.. ${seccomp_dir}/../../include)
  target_link_libraries(seccomp_compile PRIVATE belljar_options seccomp)
endif()

add_custom_command(
  OUTPUT ${seccomp_generated}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated/layers
  COMMAND ${seccomp_compile} ${seccomp_generated}
  DEPENDS ${seccomp_compile}
  COMMENT "Compiling seccomp filters"
  VERBATIM)

set_source_files_properties(${seccomp_dir}/seccomp.cc PROPERTIES
  INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/generated
  OBJECT_DEPENDS ${seccomp_generated})

list(APPEND BELLJAR_LAYERS_SRC
  ${seccomp_dir}/seccomp.cc ${seccomp_tables} ${seccomp_generated})
