// The server as a process has it: listeners, signals, its beginning and its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/app.h"
#include "server/listeners.h"

namespace belljar::server {

struct ServeOptions {
  std::vector<ListenAddress> addresses;
  std::function<Result<Setup>()> reload;             // on SIGHUP: tokens and names
  std::function<void(const std::string& what)> say;  // for the log
  std::string notify_socket;                         // systemd's; empty: none
  std::string approval_socket;                       // for `belljar approvals`; empty: none
  std::string key_folder;  // for the owner's keys; empty: local sockets need a token too
};

// Until it is told to stop (SIGTERM, SIGINT), which lets requests that run come to their
// end. A second one does not.
Status serve(Setup setup, ServeOptions options);

}  // namespace belljar::server
