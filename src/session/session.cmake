# Python sources that travel inside the program.

set(session_dir ${CMAKE_CURRENT_LIST_DIR})
set_source_files_properties(${session_dir}/warm_source.S PROPERTIES
  OBJECT_DEPENDS ${session_dir}/warm.py
  COMPILE_DEFINITIONS "WARM_SOURCE=\"${session_dir}/warm.py\"")

set(BELLJAR_SESSION_SRC ${session_dir}/warm.cc ${session_dir}/warm_source.S)
