#include "mcp_fixtures.h"

namespace belljar::server {
namespace {

// One red pixel, and a moment of silence.
constexpr const char* kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg"
    "==";
constexpr const char* kWav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

json::object text_part(std::string text) {
  json::object part{{"type", "text"}};
  part["text"] = std::move(text);
  return part;
}
json::object image_part() { return {{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}}; }
json::object resource_part(const std::string& uri, const std::string& mime,
                           const std::string& text) {
  json::object resource{{"uri", uri}, {"mimeType", mime}, {"text", text}};
  json::object part{{"type", "resource"}};
  part["resource"] = std::move(resource);
  return part;
}
McpResult parts(json::array content) {
  json::object result;
  result["content"] = std::move(content);
  return result;
}
McpResult says(std::string text) {
  json::array content;
  content.push_back(text_part(std::move(text)));
  return parts(std::move(content));
}

json::object form(json::object properties, json::array required) {
  json::object schema{{"type", "object"}};
  schema["properties"] = std::move(properties);
  schema["required"] = std::move(required);
  return schema;
}
json::object text_field() { return {{"type", "string"}}; }

json::object elicitation(std::string message, json::object schema) {
  json::object params;
  params["message"] = std::move(message);
  params["requestedSchema"] = std::move(schema);
  return params;
}
json::object request(std::string_view method, json::object params) {
  json::object one;
  one["method"] = method;
  one["params"] = std::move(params);
  return one;
}
json::object sampling(const std::string& text, int tokens) {
  json::object message{{"role", "user"}};
  message["content"] = text_part(text);
  json::object params;
  params["messages"] = json::array{message};
  params["maxTokens"] = tokens;
  return params;
}
json::object ask_name() {
  return request("elicitation/create",
                 elicitation("What is your name?", form({{"name", text_field()}}, {"name"})));
}
json::object ask_ok(std::string message) {
  json::object ok{{"type", "boolean"}};
  return request("elicitation/create", elicitation(std::move(message), form({{"ok", ok}}, {"ok"})));
}

json::object enums() {
  auto titled = [](const char* value, const char* title) {
    return json::object{{"const", value}, {"title", title}};
  };
  json::array choices{titled("value1", "First"), titled("value2", "Second"),
                      titled("value3", "Third")};
  json::array plain{"option1", "option2", "option3"};
  json::object untitled{{"type", "string"}, {"enum", plain}};
  json::object single{{"type", "string"}, {"oneOf", choices}};
  json::object legacy{{"type", "string"},
                      {"enum", {"opt1", "opt2", "opt3"}},
                      {"enumNames", {"Option One", "Option Two", "Option Three"}}};
  json::object items;
  items["type"] = "string";
  items["enum"] = plain;
  json::object multi{{"type", "array"}, {"items", items}};
  json::object any;
  any["anyOf"] = choices;
  json::object titled_multi{{"type", "array"}, {"items", any}};
  return form({{"untitledSingle", untitled},
               {"titledSingle", single},
               {"legacyEnum", legacy},
               {"untitledMulti", multi},
               {"titledMulti", titled_multi}},
              {});
}
json::object defaults() {
  return form(
      {{"name", {{"type", "string"}, {"default", "John Doe"}}},
       {"age", {{"type", "integer"}, {"default", 30}}},
       {"score", {{"type", "number"}, {"default", 95.5}}},
       {"status",
        {{"type", "string"}, {"enum", {"active", "inactive", "pending"}}, {"default", "active"}}},
       {"verified", {{"type", "boolean"}, {"default", true}}}},
      {});
}

constexpr std::string_view kPlain[] = {"test_simple_text",
                                       "test_image_content",
                                       "test_audio_content",
                                       "test_embedded_resource",
                                       "test_multiple_content_types",
                                       "test_tool_with_logging",
                                       "test_logging_tool",
                                       "test_error_handling",
                                       "test_tool_with_progress",
                                       "test_missing_capability",
                                       "test_streaming_elicitation",
                                       "test_trigger_tool_change",
                                       "test_trigger_prompt_change",
                                       "test_elicitation_sep1034_defaults",
                                       "test_elicitation_sep1330_enums",
                                       "test_input_required_result_elicitation",
                                       "test_input_required_result_sampling",
                                       "test_input_required_result_list_roots",
                                       "test_input_required_result_request_state",
                                       "test_input_required_result_multiple_inputs",
                                       "test_input_required_result_multi_round",
                                       "test_input_required_result_tampered_state",
                                       "test_input_required_result_capabilities"};

json::object contents(const std::string& uri, const char* mime, std::string_view kind,
                      std::string value) {
  json::object one{{"uri", uri}, {"mimeType", mime}};
  one[kind] = std::move(value);
  json::object result;
  result["contents"] = json::array{one};
  return result;
}
json::object messages(json::array contents) {
  json::array list;
  for (json::value& content : contents) {
    json::object one{{"role", "user"}};
    one["content"] = std::move(content);
    list.push_back(std::move(one));
  }
  json::object result;
  result["messages"] = std::move(list);
  return result;
}

}  // namespace

void Fixtures::add_tools(json::array& into) {
  auto add = [&](std::string_view name, json::object schema) {
    json::object tool{{"name", name}, {"description", "for the conformance suite"}};
    tool["inputSchema"] = std::move(schema);
    into.push_back(std::move(tool));
  };
  for (std::string_view name : kPlain) add(name, form({}, {}));
  add("test_sampling", form({{"prompt", text_field()}}, {"prompt"}));
  add("test_elicitation", form({{"message", text_field()}}, {"message"}));
}

Async<void> Fixtures::pause(int ms) {
  asio::steady_timer timer(service_.loop(), std::chrono::milliseconds(ms));
  co_await timer.async_wait(kAwait);
}

Async<McpResult> Fixtures::ask(McpExchange& exchange, std::string method, json::object params,
                               std::string capability, std::string label) {
  if (!exchange.context().client_has(capability))
    co_return mcp_fail(mcp_code::invalid_params, "the client has no " + capability);
  const McpResult answer = co_await exchange.ask(std::move(method), std::move(params));
  if (!answer) co_return answer;
  co_return says(label + json::serialize(*answer));
}

std::optional<McpResult> Fixtures::content(const std::string& name) {
  if (name == "test_simple_text") return says("This is a simple text response for testing.");
  if (name == "test_image_content") return parts({image_part()});
  if (name == "test_audio_content")
    return parts({json::object{{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}}});
  if (name == "test_embedded_resource")
    return parts({resource_part("test://embedded-resource", "text/plain", "embedded")});
  if (name == "test_multiple_content_types")
    return parts({text_part("several"), image_part(),
                  resource_part("test://mixed-content-resource", "application/json",
                                R"({"test":"data","value":123})")});
  if (name != "test_error_handling") return std::nullopt;
  McpResult failed = says("This tool intentionally returns an error for testing");
  (*failed)["isError"] = true;
  return failed;
}

Async<std::optional<McpResult>> Fixtures::call_tool(McpExchange& exchange, std::string name,
                                                    json::object arguments) {
  if (!name.starts_with("test_")) co_return std::nullopt;
  const std::optional<McpResult> ready = content(name);
  if (ready) co_return ready;
  if (name == "test_tool_with_logging" || name == "test_logging_tool") {
    for (const char* text :
         {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
      exchange.log(LogLevel::info, text);
      co_await pause(50);
    }
    co_return says("logged");
  }
  if (name == "test_tool_with_progress") {
    for (int done : {0, 50, 100}) {
      exchange.progress(done, 100, "");
      co_await pause(50);
    }
    co_return says("progressed");
  }
  if (name == "test_sampling") {
    json::object params = sampling(text_at(arguments, "prompt"), 100);
    co_return co_await ask(exchange, "sampling/createMessage", std::move(params), "sampling",
                           "LLM response: ");
  }
  if (name == "test_elicitation") {
    json::object schema =
        form({{"username", text_field()}, {"email", text_field()}}, {"username", "email"});
    json::object params = elicitation(text_at(arguments, "message"), std::move(schema));
    co_return co_await ask(exchange, "elicitation/create", std::move(params), "elicitation",
                           "User response: ");
  }
  if (name == "test_elicitation_sep1034_defaults" || name == "test_elicitation_sep1330_enums") {
    json::object schema = name.ends_with("enums") ? enums() : defaults();
    json::object params = elicitation("please", std::move(schema));
    co_return co_await ask(exchange, "elicitation/create", std::move(params), "elicitation",
                           "Elicitation completed: ");
  }
  if (name == "test_missing_capability") {
    if (exchange.context().client_has("sampling")) co_return says("it has it");
    json::object missing;
    missing["requiredCapabilities"] = json::object{{"sampling", json::object()}};
    co_return mcp_fail(mcp_code::missing_capability, "sampling is needed", std::move(missing));
  }
  if (name == "test_trigger_tool_change" || name == "test_trigger_prompt_change") {
    McpChange change;
    change.kind =
        name == "test_trigger_tool_change" ? McpChange::Kind::tools : McpChange::Kind::prompts;
    service_.tell(change);
    co_return says("changed");
  }
  if (name == "test_streaming_elicitation" || name.starts_with("test_input_required_result_"))
    co_return input_required(exchange, name);
  co_return std::nullopt;
}

McpResult Fixtures::input_required(McpExchange& exchange, const std::string& tool) {
  const json::object& params = exchange.params();
  const json::value* given = params.if_contains("inputResponses");
  if (given != nullptr && !given->is_object())
    return mcp_fail(mcp_code::invalid_params, "inputResponses must be an object");
  const json::object none;
  const json::object& said = given != nullptr ? given->get_object() : none;
  const std::string state = text_at(params, "requestState");
  const auto signed_state = [&](const std::string& step) { return step + "." + sign(key_, step); };
  if (!state.empty() && state != signed_state(state.substr(0, state.find('.'))))
    return mcp_fail(mcp_code::invalid_params, "requestState was changed");
  json::object asked;
  std::string next;
  const McpContext& context = exchange.context();
  if (tool.ends_with("_sampling"))
    asked["capital_question"] =
        request("sampling/createMessage", sampling("What is the capital of France?", 100));
  else if (tool.ends_with("_list_roots"))
    asked["client_roots"] = request("roots/list", {});
  else if (tool.ends_with("_request_state") || tool.ends_with("_tampered_state"))
    asked["confirm"] = ask_ok("Please confirm"), next = signed_state("one");
  else if (tool.ends_with("_multi_round")) {
    const bool second = !state.empty() && object_at(said, "step1") != nullptr;
    if (!state.empty() && object_at(said, "step2") != nullptr) return says("both steps");
    asked[second ? "step2" : "step1"] = ask_name();
    next = signed_state(second ? "two" : "one");
    json::object result{{"resultType", "input_required"}, {"requestState", next}};
    result["inputRequests"] = std::move(asked);
    return result;
  } else {
    const bool many = tool.ends_with("_multiple_inputs") || tool.ends_with("_capabilities");
    const bool any = !tool.ends_with("_capabilities");
    if (any || context.client_has("elicitation")) asked["user_name"] = ask_name();
    if (many && (any || context.client_has("sampling")))
      asked["greeting"] = request("sampling/createMessage", sampling("Generate a greeting", 50));
    if (many && (any || context.client_has("roots")))
      asked["client_roots"] = request("roots/list", {});
    if (many) next = signed_state("one");
  }
  bool complete = true;
  for (const auto& question : asked)
    complete = complete && object_at(said, question.key()) != nullptr;
  if (complete) return says("state-ok " + json::serialize(said));
  json::object result{{"resultType", "input_required"}};
  result["inputRequests"] = std::move(asked);
  if (!next.empty()) result["requestState"] = next;
  return result;
}

// ---- resources and prompts ----------------------------------------------------

void Fixtures::add_resources(const McpExchange&, json::array& into) {
  into.push_back({{"uri", "test://static-text"}, {"name", "text"}, {"mimeType", "text/plain"}});
  into.push_back({{"uri", "test://static-binary"}, {"name", "binary"}, {"mimeType", "image/png"}});
  into.push_back({{"uri", "test://watched-resource"}, {"name", "watched"}});
}

void Fixtures::add_templates(json::array& into) {
  into.push_back({{"uriTemplate", "test://template/{id}/data"}, {"name", "template"}});
}

Async<std::optional<McpResult>> Fixtures::read(McpExchange&, std::string uri) {
  if (uri == "test://static-text" || uri == "test://watched-resource")
    co_return contents(uri, "text/plain", "text",
                       "This is the content of the static text resource.");
  if (uri == "test://static-binary") co_return contents(uri, "image/png", "blob", kPng);
  const std::string begin = "test://template/";
  const std::string end = "/data";
  if (!uri.starts_with(begin) || !uri.ends_with(end)) co_return std::nullopt;
  const std::string id = uri.substr(begin.size(), uri.size() - begin.size() - end.size());
  co_return contents(
      uri, "application/json", "text",
      R"({"id":")" + id + R"(","templateTest":true,"data":"Data for ID: )" + id + "\"}");
}

void Fixtures::add_prompts(json::array& into) {
  auto add = [&](const char* name, const std::vector<const char*>& arguments) {
    json::array list;
    for (const char* argument : arguments)
      list.push_back({{"name", argument}, {"description", "a value"}, {"required", true}});
    json::object prompt{{"name", name}, {"description", "for the conformance suite"}};
    if (!list.empty()) prompt["arguments"] = std::move(list);
    into.push_back(std::move(prompt));
  };
  add("test_simple_prompt", {});
  add("test_prompt_with_arguments", {"arg1", "arg2"});
  add("test_prompt_with_embedded_resource", {"resourceUri"});
  add("test_prompt_with_image", {});
  add("test_input_required_result_prompt", {});
}

Async<std::optional<McpResult>> Fixtures::prompt(McpExchange& exchange, std::string name,
                                                 json::object arguments) {
  if (name == "test_simple_prompt")
    co_return messages({text_part("This is a simple prompt for testing.")});
  if (name == "test_prompt_with_arguments")
    co_return messages({text_part("arg1='" + text_at(arguments, "arg1") + "', arg2='" +
                                  text_at(arguments, "arg2") + "'")});
  if (name == "test_prompt_with_embedded_resource")
    co_return messages({resource_part(text_at(arguments, "resourceUri"), "text/plain", "embedded"),
                        text_part("Please process the embedded resource above.")});
  if (name == "test_prompt_with_image")
    co_return messages({image_part(), text_part("Please analyze the image above.")});
  if (name != "test_input_required_result_prompt") co_return std::nullopt;
  const json::object* said = object_at(exchange.params(), "inputResponses");
  if (said != nullptr && object_at(*said, "user_context") != nullptr)
    co_return messages({text_part("with " + json::serialize(*said))});
  json::object asked;
  asked["user_context"] =
      request("elicitation/create",
              elicitation("What is it about?", form({{"context", text_field()}}, {"context"})));
  json::object result{{"resultType", "input_required"}};
  result["inputRequests"] = std::move(asked);
  co_return result;
}

}  // namespace belljar::server
