#include "request.h"

#include <cstdlib>
#include <cstring>

#include "base/json.h"
#include "plan/plan.h"
#include "policy/keys.h"
#include "policy/profiles.h"
#include "policy/session_keys.h"
#include "policy/validate.h"

namespace belljar::python {
namespace {

namespace json = boost::json;

// A value of a key, as texts: a list has several.
Result<std::vector<std::string>> texts_of(std::string_view name, const json::value& value) {
  std::vector<std::string> texts;
  if (value.is_string()) texts.emplace_back(value.get_string());
  if (value.is_bool()) texts.emplace_back(value.get_bool() ? "true" : "false");
  if (value.is_int64()) texts.push_back(std::to_string(value.get_int64()));
  if (const json::array* list = value.if_array())
    for (const json::value& item : *list) {
      if (!item.is_string()) return fail(std::string(name) + ": must be a list of texts");
      texts.emplace_back(item.get_string());
    }
  if (texts.empty() && !value.is_array())
    return fail(std::string(name) + ": a value of this kind is not understood");
  return texts;
}

Error unknown_key(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Key& key : keys()) names.push_back(key.name);
  const std::string_view near = nearest(name, names);
  return {.what = "there is no key \"" + std::string(name) + "\" of a policy",
          .err = 0,
          .hint = near.empty() ? "" : "did you mean " + std::string(near) + "?"};
}

// As `belljar exec` does: a program may use the CPU for as long as it may run.
void raise_cpu_limit(Limits& limits) {
  if (!limits.timeout || !limits.cpu_secs) return;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(*limits.timeout).count();
  limits.cpu_secs = std::max(*limits.cpu_secs, static_cast<std::uint64_t>(seconds));
}

}  // namespace

Result<json::object> parse(const char* text, std::size_t size) {
  boost::system::error_code error;
  json::value value = json::parse({text, size}, error);
  if (error || !value.is_object())
    return fail("a value cannot be written as UTF-8, or is nested too deeply");
  return std::move(value.get_object());
}

const json::object& object_in(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::int64_t number_in(const json::object& object, std::string_view name, std::int64_t otherwise) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}

bool flag_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

Result<std::vector<std::string>> texts_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return std::vector<std::string>();
  return texts_of(name, *value);
}

Caller read_caller(const json::object& request) {
  const json::object& asked = object_in(request, "caller");
  Caller caller{.home = text_in(asked, "home"), .cwd = text_in(asked, "cwd"), .environment = {}};
  for (const auto& member : object_in(asked, "environment"))
    if (member.value().is_string())
      caller.environment.push_back(std::string(member.key()) + "=" +
                                   std::string(member.value().get_string()));
  return caller;
}

Result<Asked> read_policy(const json::object& request, const Caller& caller) {
  Asked asked;
  const Origin origin{.folder = caller.cwd, .home = caller.home};
  for (const auto& member : object_in(request, "sandbox")) {
    const Key* key = find_key(member.key());
    if (key == nullptr) return std::unexpected(unknown_key(member.key()));
    for (const std::string& text : TRY(texts_of(member.key(), member.value())))
      TRY(set(asked.settings, *key, text, origin));
  }
  asked.policy = TRY(make_policy(asked.settings, {.cwd = caller.cwd, .home = caller.home}));
  TRY(validate(asked.policy));
  raise_cpu_limit(asked.policy.limits);
  return asked;
}

Result<Command> read_command(const json::object& request, std::string input) {
  const json::object& asked = object_in(request, "command");
  Command command;
  command.arguments = TRY(texts_in(asked, "arguments"));
  if (command.arguments.empty()) return fail("no command to run");
  for (const std::string& argument : command.arguments)
    if (argument.find('\0') != argument.npos) return fail("an argument holds a NUL byte");
  command.folder = text_in(asked, "folder");
  command.input = std::move(input);
  command.in_fd = static_cast<int>(number_in(asked, "in_fd", -1));
  command.out_fd = static_cast<int>(number_in(asked, "out_fd", -1));
  command.err_fd = static_cast<int>(number_in(asked, "err_fd", -1));
  command.max_output =
      static_cast<std::size_t>(std::max<std::int64_t>(0, number_in(asked, "max_output", 1 << 20)));
  return command;
}

Result<SessionSettings> read_session(const json::object& request, const Caller& caller) {
  SessionSettings settings;
  const Origin origin{.folder = caller.cwd, .home = caller.home};
  for (const auto& member : object_in(request, "session")) {
    const SessionKey* key = find_session_key(member.key());
    if (key == nullptr)
      return fail("there is no key \"" + std::string(member.key()) + "\" of a session");
    const std::vector<std::string> texts = TRY(texts_of(member.key(), member.value()));
    TRY(set(settings, *key, texts, origin));
  }
  return settings;
}

Result<std::vector<Permissions>> read_permissions(const json::object& request) {
  std::vector<Permissions> all;
  const json::value* list = request.if_contains("permissions");
  if (list == nullptr || !list->is_array()) return all;
  auto parse_one = [](const json::value& value) -> Result<Permission> {
    if (value.is_string())
      if (const auto permission = parse_permission(value.get_string())) return *permission;
    return fail("a permission must be auto, ask or deny");
  };
  for (const json::value& item : list->get_array()) {
    const json::object& asked = item.as_object();
    Permissions permissions;
    if (const json::value* otherwise = asked.if_contains("otherwise"))
      permissions.otherwise = TRY(parse_one(*otherwise));
    for (const auto& member : object_in(asked, "tools"))
      permissions.tools[std::string(member.key())].push_back(
          {.pattern = "*", .permission = TRY(parse_one(member.value()))});
    all.push_back(std::move(permissions));
  }
  return all;
}

json::object error_json(std::string_view kind, const Error& error) {
  json::object inner;
  inner["kind"] = kind;
  inner["what"] = error.what;
  inner["errno"] = error.err;
  inner["hint"] = error.hint;
  json::object object;
  object["error"] = std::move(inner);
  return object;
}

json::object launch_error_json(const Error& error, const Policy& policy, const Caller& caller) {
  // A launch plans for what it supposes of the host, then for what it finds.
  for (const Host& host : {assume_host(), probe_host(caller)}) {
    const Result<Plan> plan = resolve(policy, host, caller, Purpose::explain);
    if (!plan) continue;
    const Status refused = refuse_lost_promises(*plan);
    if (refused || refused.error() != error) continue;
    json::object object = error_json("unavailable", error);
    object["error"].as_object()["losses"] = losses_to_json(plan->losses);
    return object;
  }
  return error_json("failed", error);
}

void* give(std::string_view bytes, std::size_t* size) {
  void* memory = std::malloc(bytes.size() + 1);
  if (memory == nullptr) std::abort();  // as operator new would have
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  static_cast<char*>(memory)[bytes.size()] = '\0';
  *size = bytes.size();
  return memory;
}

void* give(const json::object& object, std::size_t* size) {
  return give(json::serialize(object), size);
}

}  // namespace belljar::python
