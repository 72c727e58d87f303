// Capture: the output of a process that lives over many calls. Its two pipes are always
// read, so that it never waits for us; what it writes between two calls stands at the
// beginning of the next one's output. Only who writes very much while no call runs has to
// wait: then a little is read at a time.
#pragma once

#include <array>
#include <memory>

#include "base/loop.h"
#include "belljar/session.h"
#include "session/output.h"

namespace belljar::session {

class Capture {
 public:
  // `guests_ends` become what the process writes to.
  // `limit`: of what is written between calls.
  static Result<std::unique_ptr<Capture>> make(Loop& loop, std::size_t limit,
                                               std::array<Fd, 2>& guests_ends);
  // Of one stream, which `fd` is: a terminal's other side.
  static std::unique_ptr<Capture> of(Loop& loop, std::size_t limit, Fd fd);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();

  // A call begins: it keeps `limit` of each stream, and `listener` hears all until `take`.
  void begin_call(std::size_t limit, const OnOutput& listener);

  struct Taken {
    Output out, err;
  };
  // What there is, with everything that has been written up to this moment.
  Taken take();

 private:
  struct Pipe {
    Pipe(Loop& loop, OutputStream kind, std::size_t limit)
        : which(kind), stream(loop), output(limit), call_begins(loop) {}
    OutputStream which;
    Stream stream;
    Output output;
    OnOutput listener;
    bool in_call = false;
    std::size_t idle_bytes = 0;  // since the last call
    Signal call_begins;
  };
  Capture(Loop& loop, std::size_t limit);
  static Async<void> read(std::shared_ptr<Pipe> pipe);
  static bool read_once(Pipe& pipe, std::size_t at_most);
  static void drain(Pipe& pipe);

  std::size_t limit_;
  std::array<std::shared_ptr<Pipe>, 2> pipes_;
};

}  // namespace belljar::session
