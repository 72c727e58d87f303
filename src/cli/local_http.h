// Requests to a server of one's own over its local socket, with the key that it leaves there for
// its owner. HTTP/1.0: an answer ends with its connection, so that nothing has to be decoded.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>

#include "base/result.h"

namespace belljar::cli {

class LocalHttp {
 public:
  explicit LocalHttp(std::string socket) : socket_(std::move(socket)) {}
  const std::string& socket() const { return socket_; }

  struct Answer {
    int status = 0;
    std::string body;
    std::string call;  // by which name it can be asked to stop, where it is a stream
  };
  Result<Answer> request(const std::string& method, const std::string& path,
                         const boost::json::object* body = nullptr) const;

  // An answer that is a stream of events: each is given with its data. `interrupted` is called
  // when a signal has come meanwhile, once the stream has begun, with its name. What is no stream
  // is returned as it is.
  using OnEvent = std::function<void(std::string_view event, const boost::json::object& data)>;
  using OnInterrupt = std::function<void(const std::string& call)>;
  Result<Answer> stream(const std::string& path, const boost::json::object& body,
                        const OnEvent& on_event, const OnInterrupt& interrupted) const;

 private:
  std::string socket_;
};

// The error of an answer that is one, as its server words it.
std::unexpected<Error> error_of(const LocalHttp::Answer& answer);

}  // namespace belljar::cli
