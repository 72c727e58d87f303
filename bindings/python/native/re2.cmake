# RE2 beside the Python package's library, under the name that the library asks for.

find_library(RE2_FOR_PYTHON NAMES libre2.so REQUIRED)
execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${RE2_FOR_PYTHON} OUTPUT_VARIABLE re2_headers
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "SONAME +([^ \n]+)" re2_soname "${re2_headers}")
set(re2_soname ${CMAKE_MATCH_1})
file(REAL_PATH ${RE2_FOR_PYTHON} re2_file)
install(PROGRAMS ${re2_file} DESTINATION belljar/_lib RENAME ${re2_soname} COMPONENT python EXCLUDE_FROM_ALL)
