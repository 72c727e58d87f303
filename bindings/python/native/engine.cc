#include "engine.h"

#include <boost/asio/post.hpp>

#include "abi.h"
#include "base/signals.h"

namespace belljar::python {
namespace {

namespace json = boost::json;

constexpr const char* kSelf = "";  // the principal: whoever started us

json::object closed() { return error_json("closed", {.what = "there is no such session"}); }

}  // namespace

std::expected<std::unique_ptr<Engine>, json::object> Engine::start(const json::object& request) {
  std::unique_ptr<Engine> self(new Engine(read_caller(request)));
  Result<Asked> asked = read_policy(request, self->caller_);
  if (!asked) return std::unexpected(error_json("policy", asked.error()));
  Result<SessionSettings> settings = read_session(request, self->caller_);
  if (!settings) return std::unexpected(error_json("policy", settings.error()));
  self->settings_ = std::move(*settings);
  // They are the caller's threads' to take: Python waits for them there.
  const SignalsBlocked blocked;
  Result<std::unique_ptr<session::Engine>> engine =
      session::Engine::make(self->loop_, asked->policy, self->caller_, self->settings_);
  if (!engine)
    return std::unexpected(launch_error_json(engine.error(), asked->policy, self->caller_));
  self->engine_ = std::move(*engine);
  self->thread_ = std::thread([&loop = self->loop_] { loop.run(); });
  return self;
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  asio::post(loop_, [this] { end_all(); });
  thread_.join();
}

void Engine::end_all() {
  ending_ = true;
  // By copies: what is asked to stop may take itself away.
  const std::set<std::shared_ptr<Call>> running = calls_;
  for (const std::shared_ptr<Call>& call : running) call->cancel->ask();
  std::vector<std::string> open;
  for (const auto& [id, opened] : sessions_) open.push_back(id);
  for (const std::string& id : open) (void)close(id);  // it is known to be there
  end_when_idle();
}

// The engine goes after the last of those that use it.
void Engine::end_when_idle() {
  if (!ending_ || !calls_.empty()) return;
  engine_.reset();
  guard_.reset();
}

// ---- calls --------------------------------------------------------------------

void Engine::begin_call(std::shared_ptr<Call> call, json::object request, std::string data) {
  asio::post(loop_, [this, call = std::move(call), request = std::move(request),
                     data = std::move(data)]() mutable {
    begin(loop_, serve(*this, std::move(call), std::move(request), std::move(data)));
  });
}

Async<void> Engine::serve(Engine& self, std::shared_ptr<Call> call, json::object request,
                          std::string data) {
  if (self.ending_) {
    call->tell('d', json::serialize(closed()));
    co_return;
  }
  self.calls_.insert(call);
  Answer answer = co_await self.answer(call, std::move(request), std::move(data));
  call->tell('d', json::serialize(answer ? *answer : answer.error()));
  self.calls_.erase(call);
  // Not from within what is about to be taken down.
  if (self.ending_) asio::post(self.loop_, [&self] { self.end_when_idle(); });
}

Async<Engine::Answer> Engine::answer(std::shared_ptr<Call> call, json::object request,
                                     std::string data) {
  const std::string what = text_in(request, "op");
  const std::string session = text_in(request, "session");
  const std::string path = text_in(request, "path");
  if (what == "open") co_return co_await open(std::move(request));
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) co_return std::unexpected(closed());
  const std::shared_ptr<Opened> opened = found->second;
  if (what == "close") co_return close(session);
  if (what == "describe") co_return co_await describe(session);
  if (what == "tool") co_return co_await call_tool(opened, call, session, std::move(request));
  if (what == "read") co_return co_await read_file(call, session, path);
  if (what == "write") co_return co_await write_file(session, path, std::move(data));
  if (what == "list") co_return co_await list_files(session, path);
  Status done;
  if (what == "reset") {
    done = co_await engine_->reset(session);
  } else if (what == "interrupt") {
    done = engine_->interrupt(session);
  } else {
    done = fail("a session cannot " + what);
  }
  if (!done) co_return std::unexpected(error_json("failed", done.error()));
  co_return json::object();
}

Async<Engine::Answer> Engine::call_tool(std::shared_ptr<Opened> opened, std::shared_ptr<Call> call,
                                        std::string session, json::object request) {
  server::ToolCall tool;
  tool.session = session;
  tool.tool = text_in(request, "tool");
  tool.arguments = object_in(request, "arguments");
  tool.arguments.erase("session");  // there is one, and it was named
  tool.principal = kSelf;
  tool.cancel = call->cancel;
  tool.wants_whole = true;
  tool.on_approval = [call](const server::Approval& approval) {
    call->tell('a', json::serialize(approval.to_json(kSelf)));
  };
  if (flag_in(request, "stream"))
    tool.on_output = [call](OutputStream stream, std::string_view bytes) {
      call->tell(stream == OutputStream::out ? 'o' : 'e', bytes);
    };
  server::ToolAnswer done = co_await opened->dispatcher->call(std::move(tool));
  if (done.error_type == "failed") {
    std::optional<json::object> why = co_await unavailable(session, done.text);
    if (why) co_return std::unexpected(*std::move(why));
  }
  json::object answer;
  answer["is_error"] = done.is_error;
  answer["error_type"] = done.error_type;
  answer["text"] = done.text;
  answer["structured"] = std::move(done.structured);
  answer["whole"] = std::move(done.whole);
  json::array images;
  for (server::Image& image : done.images) {
    json::object one;
    one["mime"] = std::move(image.mime);
    one["base64"] = std::move(image.base64);
    images.push_back(std::move(one));
  }
  answer["images"] = std::move(images);
  json::array files;
  for (server::FileLink& file : done.files) {
    json::object one;
    one["name"] = std::move(file.name);
    one["mime"] = std::move(file.mime);
    one["size"] = file.size;
    files.push_back(std::move(one));
  }
  answer["files"] = std::move(files);
  co_return answer;
}

void Engine::decide(const std::shared_ptr<Call>& call, json::object decision) {
  asio::post(loop_, [this, call, decision = std::move(decision)] {
    const auto found = sessions_.find(text_in(decision, "session_id"));
    if (found == sessions_.end()) return;
    server::Decision said;
    said.approved = text_in(decision, "decision") == "approve";
    if (flag_in(decision, "remember_for_session")) said.scope = server::Scope::tool;
    said.message = text_in(decision, "message");
    said.by = "callback";
    // It may have been cancelled, or its time may be over.
    (void)found->second->dispatcher->approvals().decide(text_in(decision, "approval_id"), said);
  });
}

void Engine::cancel(const std::shared_ptr<Call>& call) {
  asio::post(loop_, [call] { call->cancel->ask(); });
}

}  // namespace belljar::python

// ---- the C functions ------------------------------------------------------------

using namespace belljar::python;

namespace {

struct CallHandle {
  Engine* engine;
  std::shared_ptr<Call> call;
};

}  // namespace

void* belljar_py_engine_start(const char* request, size_t size, void** engine, size_t* error_size) {
  const belljar::Result<boost::json::object> read = parse(request, size);
  if (!read) return give(error_json("failed", read.error()), error_size);
  auto started = Engine::start(*read);
  if (!started) return give(started.error(), error_size);
  *engine = started->release();
  return nullptr;
}

void belljar_py_engine_end(void* engine) { delete static_cast<Engine*>(engine); }

void belljar_py_call_begin(void* engine, const char* request, size_t size, const char* data,
                           size_t data_size, void** handle) {
  auto* made = new CallHandle{.engine = static_cast<Engine*>(engine), .call = Call::make()};
  *handle = made;
  belljar::Result<boost::json::object> read = parse(request, size);
  if (!read) {
    made->call->tell('d', boost::json::serialize(error_json("failed", read.error())));
    return;
  }
  made->engine->begin_call(made->call, std::move(*read), std::string(data, data_size));
}

int belljar_py_call_fd(void* handle) { return static_cast<CallHandle*>(handle)->call->fd(); }

void* belljar_py_call_next(void* handle, int* kind, size_t* size) {
  std::optional<News> news = static_cast<CallHandle*>(handle)->call->next();
  if (!news) return nullptr;
  *kind = news->kind;
  return give(news->bytes, size);
}

void belljar_py_call_decide(void* handle, const char* decision, size_t size) {
  const auto* call = static_cast<CallHandle*>(handle);
  belljar::Result<boost::json::object> read = parse(decision, size);
  if (read && !call->call->is_done()) call->engine->decide(call->call, std::move(*read));
}

void belljar_py_call_cancel(void* handle) {
  const auto* call = static_cast<CallHandle*>(handle);
  if (!call->call->is_done()) call->engine->cancel(call->call);
}

void belljar_py_call_end(void* handle) { delete static_cast<CallHandle*>(handle); }
