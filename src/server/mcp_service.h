// What an MCP server offers, whoever carries the messages: the methods, over providers
// that have tools, resources and prompts. McpPeer is one client of it.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/loop.h"
#include "server/cancel.h"
#include "server/mcp_connection.h"
#include "session/aside.h"

namespace belljar::server {

class McpPeer;
class McpService;

// One request while it is worked on.
class McpExchange {
 public:
  McpExchange(std::shared_ptr<McpPeer> peer, McpConnection::Begin begin,
              std::shared_ptr<Cancel> cancel);

  const McpContext& context() const { return begin_.context; }
  const json::object& params() const { return begin_.request.params; }
  // Of a call, which can be long. They are there no longer.
  json::value take_arguments();
  const std::string& method() const { return begin_.request.method; }
  const json::value& id() const { return begin_.request.id; }
  const std::shared_ptr<McpPeer>& peer() const { return peer_; }
  const std::shared_ptr<Cancel>& cancel() const { return cancel_; }

  void progress(double done, std::optional<double> total, const std::string& message);
  void log(LogLevel level, json::value data);
  void notify(std::string_view method, json::object params);
  // A question to the client, in the stateful era. An error where the request is
  // cancelled before it is answered.
  Async<McpResult> ask(std::string method, json::object params);

 private:
  std::shared_ptr<McpPeer> peer_;
  McpConnection::Begin begin_;
  std::shared_ptr<Cancel> cancel_;
};

// Adds to what is offered. nullopt: this is none of mine.
class McpProvider {
 public:
  virtual ~McpProvider() = default;
  virtual void add_tools(json::array& into) = 0;
  virtual Async<std::optional<McpResult>> call_tool(McpExchange& exchange, std::string name,
                                                    json::object arguments) = 0;
  virtual void add_resources(const McpExchange& exchange, json::array& into) = 0;
  virtual void add_templates(json::array& into) = 0;
  virtual Async<std::optional<McpResult>> read(McpExchange& exchange, std::string uri) = 0;
  virtual void add_prompts(json::array& into) = 0;
  virtual Async<std::optional<McpResult>> prompt(McpExchange& exchange, std::string name,
                                                 json::object arguments) = 0;
  // Values for an argument of a prompt or of a template's URI.
  virtual Async<std::vector<std::string>> complete(McpExchange& exchange, std::string ref,
                                                   std::string argument, std::string begun) = 0;
  // The client has gone, and what was made for it alone goes too.
  virtual void forget(McpPeer& peer) { (void)peer; }
};

// Something that clients may want to know at once.
struct McpChange {
  enum class Kind { tools, prompts, resources, resource };
  Kind kind = Kind::resources;
  std::string uri;        // of one resource
  std::string principal;  // whose it is; the others do not hear of it
};

class McpService {
 public:
  McpService(Loop& loop, McpFacts facts);
  McpService(const McpService&) = delete;
  McpService& operator=(const McpService&) = delete;
  ~McpService();  // what the loop does not go on with may hold peers longer

  void add(std::shared_ptr<McpProvider> provider) { providers_.push_back(std::move(provider)); }
  Async<McpResult> handle(McpExchange& exchange);
  void tell(const McpChange& change);

  // Where it does what grows with what is sent; without it, on the loop.
  void work_beside(session::Aside& aside) { aside_ = &aside; }
  // Beside the loop if it is long.
  Async<std::string> text_of(std::string principal, json::value id, McpResult result);

  Loop& loop() { return loop_; }
  const McpFacts& facts() const { return facts_; }

 private:
  friend class McpPeer;
  struct Listening;
  Async<McpResult> route(McpExchange& exchange);
  Async<McpResult> call_tool(McpExchange& exchange);
  Async<McpResult> read(McpExchange& exchange);
  Async<McpResult> prompt(McpExchange& exchange);
  Async<McpResult> complete(McpExchange& exchange);
  Async<McpResult> listen(McpExchange& exchange);
  std::optional<McpResult> list(McpExchange& exchange);
  McpResult discover() const;
  static McpResult subscribe(McpExchange& exchange);

  Loop& loop_;
  session::Aside* aside_ = nullptr;
  McpFacts facts_;
  std::vector<std::shared_ptr<McpProvider>> providers_;
  std::set<McpPeer*> peers_;
  std::set<Listening*> listening_;
};

class McpPeer : public std::enable_shared_from_this<McpPeer> {
 public:
  using Out = std::function<void(McpConnection::Send)>;
  // `out` is called for every message, on the loop.
  static std::shared_ptr<McpPeer> make(McpService& service, std::string principal, Out out);
  McpPeer(const McpPeer&) = delete;
  McpPeer& operator=(const McpPeer&) = delete;
  ~McpPeer();

  void receive(std::string_view text);
  void receive(McpMessage message);
  // Nobody is there any more: what runs is cancelled, and nothing is sent.
  void close();
  // The client waits for this one no longer.
  void cancel(const std::string& key);
  // It is there for one request, and what comes next is another's.
  void require_stateless() { connection_.require_stateless(); }
  bool lasts() const { return !connection_.requires_stateless(); }
  bool busy() const { return !running_.empty(); }

  const std::string& principal() const { return principal_; }
  McpService& service() { return *service_; }
  std::string session;  // of its own; made by the first call
  std::set<std::string> subscribed;

 private:
  friend class McpExchange;
  friend class McpService;
  McpPeer(McpService& service, std::string principal, Out out);
  void take(std::vector<McpConnection::Step> steps);
  static Async<void> work(std::shared_ptr<McpPeer> self, McpConnection::Begin asked,
                          std::shared_ptr<Cancel> cancel);
  void send(std::optional<McpConnection::Send> message);

  struct Question {
    explicit Question(Loop& loop) : news(loop) {}
    Signal news;
    std::optional<McpResult> answer;
  };

  McpService* service_;  // null: it has gone before us
  std::string principal_;
  Out out_;
  McpConnection connection_;
  std::map<std::string, std::shared_ptr<Cancel>> running_;
  std::map<std::string, std::shared_ptr<Question>> questions_;
};

}  // namespace belljar::server
