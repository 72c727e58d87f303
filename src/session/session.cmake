# The programs that run inside a session's jar are carried in the binary.
set(session_dir ${CMAKE_CURRENT_LIST_DIR})
set_source_files_properties(${session_dir}/worker_source.S PROPERTIES
  OBJECT_DEPENDS ${session_dir}/worker.py
  COMPILE_DEFINITIONS "WORKER_SOURCE=\"${session_dir}/worker.py\"")
set(BELLJAR_SESSION_SOURCES ${session_dir}/worker_source.S)
