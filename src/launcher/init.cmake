# Init is a program of its own, without a C library, carried inside the launcher.

set(init_dir ${CMAKE_CURRENT_LIST_DIR})
set(init_program ${CMAKE_BINARY_DIR}/generated/launcher/belljar-init)

# A custom command, since none of the flags of the rest apply: no sanitizers, no
# stack protector, no position-independent code.
add_custom_command(
  OUTPUT ${init_program}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated/launcher
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 -O2 -Wall -Wextra -Werror -I${init_dir}/..
          -ffreestanding -fno-exceptions -fno-rtti -fno-stack-protector
          -fno-asynchronous-unwind-tables -fno-pic -static -nostdlib
          -Wl,-z,noseparate-code,-z,noexecstack,--build-id=none,-s
          -o ${init_program} ${init_dir}/init.cc
  DEPENDS ${init_dir}/init.cc ${init_dir}/protocol.h ${init_dir}/raw_syscall.h
  COMMENT "Building the jar's init"
  VERBATIM)

set_source_files_properties(${init_dir}/init_image.S PROPERTIES
  OBJECT_DEPENDS ${init_program}
  COMPILE_DEFINITIONS "INIT_PROGRAM=\"${init_program}\"")

set(BELLJAR_INIT_SRC ${init_dir}/init_image.S)
