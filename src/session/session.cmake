# The programs that run inside a session's jar are carried in the binary.
set(session_dir ${CMAKE_CURRENT_LIST_DIR})
set(session_programs ${session_dir}/worker.py ${session_dir}/worker_display.py
    ${session_dir}/warm.py)
set_source_files_properties(${session_dir}/sources.S PROPERTIES
  OBJECT_DEPENDS "${session_programs}"
  COMPILE_DEFINITIONS
    "WORKER=\"${session_dir}/worker.py\";WORKER_DISPLAY=\"${session_dir}/worker_display.py\";WARM=\"${session_dir}/warm.py\"")
set(BELLJAR_SESSION_SOURCES ${session_dir}/sources.S)
