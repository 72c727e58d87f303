# The benchmarks. Measure the release preset: cmake --preset release.
add_executable(bench_launch bench/launch.cc bench/bubblewrap.cc bench/library.cc bench/profile.cc
                            bench/samples.cc bench/spawn.cc)
target_link_libraries(bench_launch PRIVATE belljar_launcher)
