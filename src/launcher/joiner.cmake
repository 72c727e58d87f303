# The joiner is a library without a C library, loaded into interpreters of any kind.

set(joiner_dir ${CMAKE_CURRENT_LIST_DIR})
set(joiner_library ${CMAKE_BINARY_DIR}/generated/launcher/belljar-join.so)

add_custom_command(
  OUTPUT ${joiner_library}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated/launcher
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 -O2 -Wall -Wextra -Werror -I${joiner_dir}/..
          -ffreestanding -fno-exceptions -fno-rtti -fno-stack-protector
          -fno-asynchronous-unwind-tables -fvisibility=hidden -fpic -shared -nostdlib
          -Wl,-z,noexecstack,-z,now,-z,defs,--build-id=none,-s
          -o ${joiner_library} ${joiner_dir}/joiner.cc
  DEPENDS ${joiner_dir}/joiner.cc ${joiner_dir}/join_protocol.h ${joiner_dir}/raw_syscall.h
  COMMENT "Building the joiner"
  VERBATIM)

set_source_files_properties(${joiner_dir}/joiner_image.S PROPERTIES
  OBJECT_DEPENDS ${joiner_library}
  COMPILE_DEFINITIONS "JOINER_LIBRARY=\"${joiner_library}\"")

set(BELLJAR_JOINER_SRC ${joiner_dir}/joiner_image.S)
