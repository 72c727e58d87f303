// Engine: sessions on a thread of their own, with a loop. Each session has a dispatcher, since
// each has permissions of its own; what they cost to start they share.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/loop.h"
#include "call.h"
#include "links.h"
#include "request.h"
#include "server/dispatch.h"
#include "session/engine.h"

namespace belljar::python {

class Engine {
 public:
  static std::expected<std::unique_ptr<Engine>, boost::json::object> start(
      const boost::json::object& request);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Blocks until nothing is left of it. In a fork of the process that started it: nothing.
  ~Engine();

  void begin_call(std::shared_ptr<Call> call, boost::json::object request, std::string data);
  void decide(const std::shared_ptr<Call>& call, boost::json::object decision);
  void cancel(const std::shared_ptr<Call>& call);

 private:
  struct Opened {
    std::unique_ptr<server::Dispatcher> dispatcher;
    Links links;
  };
  explicit Engine(Caller caller) : caller_(std::move(caller)) {}

  using Answer = std::expected<boost::json::object, boost::json::object>;  // or an error's
  static Async<void> serve(Engine& self, std::shared_ptr<Call> call, boost::json::object request,
                           std::string data);
  Async<Answer> answer(std::shared_ptr<Call> call, boost::json::object request, std::string data);
  Async<Answer> call_tool(std::shared_ptr<Opened> opened, std::shared_ptr<Call> call,
                          std::string session, boost::json::object request);
  Async<Answer> open(boost::json::object request);
  Async<std::optional<boost::json::object>> unavailable(std::string session, std::string message);
  Answer close(const std::string& session);
  Async<Answer> describe(std::string session);
  Async<Answer> read_file(std::shared_ptr<Call> call, std::string session, std::string path);
  Async<Answer> write_file(std::string session, std::string path, std::string data);
  Async<Answer> list_files(std::string session, std::string path);
  void end_all();
  void end_when_idle();

  const pid_t owner_ = ::getpid();
  Caller caller_;
  SessionSettings settings_;
  Loop loop_;
  asio::executor_work_guard<Loop::executor_type> guard_ = asio::make_work_guard(loop_);
  const Host supposed_ = assume_host();
  std::optional<Host> host_;  // as it was found, from when that was needed
  std::unique_ptr<session::Engine> engine_;
  std::map<std::string, std::shared_ptr<Opened>> sessions_;
  std::set<std::shared_ptr<Call>> calls_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace belljar::python
