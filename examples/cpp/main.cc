// Runs a Python program that a model wrote, and looks at what came of it.
//   cmake -B build -DCMAKE_PREFIX_PATH=<where belljar was installed> && cmake --build build
//   build/example FOLDER        the one folder that the program may write
#include <belljar/belljar.h>

#include <cstdio>
#include <filesystem>

using namespace std::chrono_literals;

int main(int, char** argv) {
  // A policy is a plain value: start from a profile, then say what is different.
  belljar::Policy policy = belljar::profile("restricted").value();
  policy.files.workdir = std::filesystem::absolute(argv[1] != nullptr ? argv[1] : ".");
  policy.limits.memory_mb = 256;
  policy.limits.timeout = 10s;

  // One command in a sandbox of its own.
  auto outcome = belljar::run(policy, {.arguments = {"python3", "-"},
                                       .input = "open('answer', 'w').write(str(6 * 7))\n"
                                                "print(open('/etc/hostname').read())\n"
                                                "open('/etc/hostname', 'w')\n"});
  if (!outcome) {  // the sandbox could not be made: nothing has run
    std::fprintf(stderr, "%s\n", outcome.error().message().c_str());
    return 1;
  }
  std::printf("ended with %d\n%s%s", outcome->exit_code(), outcome->out.c_str(),
              outcome->err.c_str());
  for (const belljar::Loss& loss : outcome->losses)
    std::printf("less than asked for: %s\n", loss.what.c_str());

  // Several commands in one sandbox: they see the same files and one another.
  auto jar = belljar::Jar::start(policy);
  if (!jar) return 1;
  auto server = jar->spawn({.arguments = {"python3", "-m", "http.server", "8000"}});
  auto client =
      jar->spawn({.arguments = {"sh", "-c",
                                "sleep 1; python3 -c 'import urllib.request as u; "
                                "print(u.urlopen(\"http://127.0.0.1:8000/answer\").read())'"}});
  if (!server || !client) return 1;
  std::printf("the client inside read %s", client->wait().value().out.c_str());
  return 0;  // with the jar the server ends
}
