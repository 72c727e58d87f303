// An engine for tests: takes requests as lines of JSON, each with an id, and answers each
// with a line that has its id. Requests run at the same time. The part of a session's id before a
// colon is its owner.
//   session_driver {"profile": …, "settings": {…}}
#include <unistd.h>

#include <boost/json.hpp>
#include <iostream>

#include "base/base64.h"
#include "base/syscall.h"
#include "policy/profiles.h"
#include "session/engine.h"
#include "session/report.h"

namespace {

namespace json = boost::json;
using namespace belljar;
using std::chrono::milliseconds;

void print(const json::object& object) {
  const std::string line = json::serialize(object) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = retry([&] { return ::write(1, rest.data(), rest.size()); });
    if (n <= 0) std::exit(1);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string text(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::string> optional_text(const json::object& object, const char* name) {
  return object.contains(name) ? std::optional(text(object, name)) : std::nullopt;
}

std::vector<std::string> texts(const json::object& object, const char* name) {
  std::vector<std::string> result;
  if (const json::value* list = object.if_contains(name))
    for (const json::value& one : list->as_array()) result.emplace_back(one.as_string());
  return result;
}

std::optional<std::int64_t> number(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

std::optional<milliseconds> timeout(const json::object& request) {
  const auto ms = number(request, "timeout_ms");
  return ms ? std::optional(milliseconds(*ms)) : std::nullopt;
}

template <class T>
void answer(const json::object& request, const Result<T>& result) {
  json::object object;
  if (!result) {
    object["error"] = result.error().message();
  } else if constexpr (!std::is_void_v<T>) {
    if constexpr (std::is_same_v<T, std::string>)
      object["session"] = *result;
    else
      object = session::to_json(*result);
  }
  object["id"] = request.at("id");
  print(object);
}

OnOutput listener(const json::object& request) {
  if (!request.contains("stream")) return {};
  return [id = request.at("id")](OutputStream stream, std::string_view bytes) {
    print({{"id", id},
           {"stream", stream == OutputStream::out ? "stdout" : "stderr"},
           {"bytes", to_base64(bytes)}});
  };
}

SessionSettings settings_from(const json::object& object) {
  SessionSettings settings;
  auto time = [&](const char* name, milliseconds& to) {
    if (const auto ms = number(object, name)) to = milliseconds(*ms);
  };
  auto size = [&](const char* name, std::size_t& to) {
    if (const auto n = number(object, name)) to = static_cast<std::size_t>(*n);
  };
  auto word = [&](const char* name, std::string& to) {
    if (object.contains(name)) to = text(object, name);
  };
  time("python_timeout", settings.python_timeout);
  time("shell_timeout", settings.shell_timeout);
  time("max_timeout", settings.max_timeout);
  time("grace", settings.grace);
  time("idle", settings.idle);
  time("reap_every", settings.reap_every);
  size("max_sessions", settings.max_sessions);
  size("max_output", settings.max_output);
  size("max_file", settings.max_file);
  word("python", settings.python);
  word("shell", settings.shell);
  word("workdir", settings.workdir);
  if (const auto mb = number(object, "max_total_memory_mb"))
    settings.max_total_memory_mb = static_cast<std::uint64_t>(*mb);
  if (object.contains("preload")) settings.preload = texts(object, "preload");
  return settings;
}

Policy policy_from(const json::object& object) {
  Policy policy =
      find_profile(object.contains("profile") ? text(object, "profile") : "developer")->policy;
  auto limit = [&](const char* name, std::optional<std::uint64_t>& to) {
    if (const auto n = number(object, name)) to = static_cast<std::uint64_t>(*n);
  };
  if (text(object, "mode") == "off") policy.mode = Mode::off;
  for (std::string& path : texts(object, "hide"))
    policy.files.grants.push_back(
        {.path = std::move(path), .access = Access::hide, .from = "hide"});
  limit("max_memory_mb", policy.limits.memory_mb);
  limit("max_cpu_secs", policy.limits.cpu_secs);
  limit("max_procs", policy.limits.procs);
  limit("max_file_sz_mb", policy.limits.file_sz_mb);
  return policy;
}

class Driver {
 public:
  Driver(Loop& loop, session::Engine& engine) : loop_(loop), engine_(engine), in_(loop, ::dup(0)) {}

  Async<void> serve() {
    std::string pending;
    char chunk[65536];
    for (;;) {
      const bool waited = co_await readable(in_);
      const ssize_t n = waited ? ::read(0, chunk, sizeof chunk) : 0;
      if (n <= 0) break;
      pending.append(chunk, static_cast<std::size_t>(n));
      for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
        const json::object request = json::parse(pending.substr(0, end)).as_object();
        pending.erase(0, end + 1);
        begin(loop_, handle(request));
      }
    }
    loop_.stop();
  }

 private:
  Async<void> handle(json::object request) {
    const std::string op = text(request, "op");
    const std::string session = text(request, "session");
    if (op == "python") {
      PythonCall call{.code = text(request, "code"),
                      .timeout = timeout(request),
                      .outputs = texts(request, "outputs"),
                      .output_file = optional_text(request, "output_file"),
                      .on_output = listener(request)};
      answer(request, co_await engine_.python(session, std::move(call)));
    } else if (op == "shell") {
      ShellCall call;
      call.commands = texts(request, "commands");
      call.one_shot = request.contains("one_shot");
      call.timeout = timeout(request);
      call.outputs = texts(request, "outputs");
      call.output_file = optional_text(request, "output_file");
      call.on_output = listener(request);
      if (const auto most = number(request, "max_output"))
        call.max_output = static_cast<std::size_t>(*most);
      answer(request, co_await engine_.shell(session, std::move(call)));
    } else if (op == "spawn") {
      ProgramCall call{.arguments = texts(request, "arguments"),
                       .folder = {},
                       .environment = {},
                       .terminal = request.contains("terminal"),
                       .on_output = listener(request)};
      Result<std::shared_ptr<session::Program>> program =
          co_await engine_.spawn(session, std::move(call));
      if (program) programs_[++last_program_] = *program;
      if (program)
        print({{"id", request.at("id")}, {"program", last_program_}});
      else
        print({{"id", request.at("id")}, {"error", program.error().message()}});
    } else if (op == "program") {
      co_await on_program(request);
    } else if (op == "reset") {
      answer(request, co_await engine_.reset(session));
    } else if (op == "open") {
      std::optional<Policy> policy;
      if (request.contains("profile")) policy = policy_from(request);
      answer(request, engine_.open(session, policy));
    } else if (op == "interrupt") {
      answer(request, engine_.interrupt(session));
    } else if (op == "close") {
      answer(request, engine_.close(session));
    } else if (op == "list") {
      co_await engine_.measure();
      json::array sessions;
      for (const SessionInfo& info : engine_.list())
        sessions.push_back({{"id", info.id}, {"busy", info.busy}, {"memory_kb", info.memory_kb}});
      print({{"id", request.at("id")}, {"sessions", std::move(sessions)}});
    } else {
      print({{"id", request.at("id")}, {"error", "no such op"}});
    }
  }

  Async<void> on_program(json::object request) {
    const std::shared_ptr<session::Program> program =
        programs_[number(request, "program").value_or(0)];
    if (request.contains("write")) answer(request, program->write(text(request, "write")));
    if (request.contains("close")) answer(request, program->close_input());
    if (const auto rows = number(request, "rows"))
      answer(request, program->resize(static_cast<std::uint16_t>(*rows), 100));
    if (const auto signal = number(request, "signal")) {
      program->signal(static_cast<int>(*signal));
      answer(request, Status());
    }
    if (const auto ms = number(request, "wait_ms")) {
      const Clock::time_point until = Clock::now() + milliseconds(*ms);
      const ProgramState state = co_await program->wait(until);
      json::object object{{"id", request.at("id")},
                          {"running", state.running},
                          {"stdout", state.out},
                          {"stderr", state.err},
                          {"exit_code", nullptr}};
      if (state.exit_code) object["exit_code"] = *state.exit_code;
      print(object);
    }
  }

  Loop& loop_;
  session::Engine& engine_;
  Stream in_;
  std::map<std::int64_t, std::shared_ptr<session::Program>> programs_;
  std::int64_t last_program_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const json::object setup = json::parse(argc > 1 ? argv[1] : "{}").as_object();
  const json::value* given = setup.if_contains("settings");
  Loop loop;
  auto engine =
      session::Engine::make(loop, policy_from(setup), this_process(),
                            settings_from(given != nullptr ? given->as_object() : json::object{}));
  if (!engine) {
    std::cerr << engine.error().message() << "\n";
    return 125;
  }
  (*engine)->know_owners([](const std::string& id) {
    const std::size_t colon = id.find(':');
    return colon == id.npos ? std::string() : id.substr(0, colon);
  });
  Driver driver(loop, **engine);
  begin(loop, driver.serve());
  loop.run();
}
