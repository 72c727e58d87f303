# The benchmarks. Measure the release preset: cmake --preset release.
add_library(bench_common STATIC bench/identity.cc bench/samples.cc bench/program.cc)
target_link_libraries(bench_common PUBLIC belljar_options)

add_executable(bench_launch bench/launch.cc bench/bubblewrap.cc bench/library.cc bench/profile.cc)
target_link_libraries(bench_launch PRIVATE bench_common belljar_launcher)

add_executable(bench_steady bench/steady.cc)
target_link_libraries(bench_steady PRIVATE bench_common)

find_package(OpenSSL REQUIRED)
add_executable(bench_broker bench/broker.cc bench/traffic.cc bench/wires.cc)
target_link_libraries(bench_broker PRIVATE bench_common OpenSSL::SSL)

add_executable(bench_warm bench/warm.cc bench/profile.cc)
target_link_libraries(bench_warm PRIVATE bench_common belljar_session)

add_executable(bench_tools bench/tools.cc)
target_link_libraries(bench_tools PRIVATE bench_common belljar_tools)
