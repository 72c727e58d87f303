// Any lines as what an MCP client sends: whatever is answered is one line of JSON-RPC, a request is
// begun once and answered at most once, and what was stopped is not answered at all.
#include <boost/json.hpp>
#include <cstdlib>
#include <set>

#include "base/utf8.h"
#include "server/mcp_connection.h"

namespace belljar::server {
namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

class Talk {
 public:
  void hear(std::string_view line) {
    for (McpConnection::Step& step : connection_.receive(line))
      std::visit([this](auto& what) { act(what); }, step);
  }

  void finish_all() {
    for (const std::string& key : std::set(open_)) finish(key);
  }

 private:
  void act(McpConnection::Send& send) { check(send); }
  void act(McpConnection::Begin& begin) {
    require(open_.insert(begin.key).second);
    require(!begin.request.method.empty());
    if (const auto told = connection_.progress(begin.key, 1, 2, "begun")) check(*told);
    if (const auto told = connection_.log(begin.key, LogLevel::info, "begun")) check(*told);
    check(connection_.ask(begin.key, "elicitation/create", begin.request.params).second);
    // Some are answered at once, and some are still open when the next line comes.
    if (begin.key.size() % 2 == 0) finish(begin.key);
  }
  void act(McpConnection::Stop& stop) {
    require(open_.erase(stop.key) == 1);
    require(!connection_.finish(stop.key, json::object{}));
  }
  void act(McpConnection::Heard& heard) { require(!heard.question.empty()); }

  void finish(const std::string& key) {
    open_.erase(key);
    const auto answer = connection_.finish(key, json::object{{"key", key}});
    require(answer && answer->last && answer->about == key);
    check(*answer);
    require(!connection_.finish(key, json::object{}));
  }

  static void check(const McpConnection::Send& send) {
    if (send.text.empty()) return;  // no answer will come
    require(send.text.find('\n') == send.text.npos && is_utf8(send.text));
    boost::system::error_code error;
    const json::value value = json::parse(send.text, error);
    require(!error && value.is_object() && value.as_object().at("jsonrpc") == "2.0");
  }

  McpConnection connection_{McpFacts{.version = "1", .instructions = "", .capabilities = {}}};
  std::set<std::string> open_;
};

}  // namespace
}  // namespace belljar::server

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  belljar::server::Talk talk;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    talk.hear(line);
  }
  talk.finish_all();
  return 0;
}
