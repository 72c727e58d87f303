// What there is to know without running anything.
#include "abi.h"
#include "plan/explain.h"
#include "plan/findings.h"
#include "policy/keys.h"
#include "policy/profiles.h"
#include "request.h"
#include "tools/tool_table.h"

namespace belljar::python {
namespace {

namespace json = boost::json;

json::object about_keys() {
  json::array list;
  for (const Key& key : keys()) {
    json::object one;
    one["name"] = key.name;
    one["flag"] = key.flag;
    one["help"] = key.help;
    one["choices"] = json::array(key.choices.begin(), key.choices.end());
    one["is_list"] = std::holds_alternative<std::vector<std::string> Settings::*>(key.target);
    list.push_back(std::move(one));
  }
  json::object answer;
  answer["keys"] = std::move(list);
  return answer;
}

json::object about_plan(const json::object& request) {
  const Caller caller = read_caller(request);
  Result<Asked> asked = read_policy(request, caller);
  if (!asked) return error_json("policy", asked.error());
  if (asked->policy.mode == Mode::off)
    return error_json("policy", {.what = "mode is off: nothing would be enforced",
                                 .hint = "--sandbox=auto has a plan"});
  // A session's may be a fresh one, and is not where we are.
  if (request.contains("workdir")) asked->policy.files.workdir = text_in(request, "workdir");
  const Result<Plan> plan = resolve(asked->policy, probe_host(caller), caller, Purpose::explain);
  if (!plan) return error_json("failed", plan.error());
  const Status starts = refuse_lost_promises(*plan);
  json::object answer;
  answer["plan"] = explain_json(*plan);
  answer["text"] = explain(*plan);
  answer["starts"] = starts.has_value();
  answer["why_not"] = starts ? "" : starts.error().what;
  answer["hint"] = starts ? "" : starts.error().hint;
  json::object why;
  const Result<std::vector<std::string>> questions = texts_in(request, "why");
  if (questions)
    for (const std::string& question : *questions)
      why[question] = explain_why(*plan, question, caller);
  answer["why"] = std::move(why);
  return answer;
}

json::object about(const json::object& request) {
  const std::string subject = text_in(request, "about");
  json::object answer;
  if (subject == "keys") return about_keys();
  if (subject == "plan") return about_plan(request);
  if (subject == "doctor") {
    const Caller caller = read_caller(request);
    return doctor_json(probe_host(caller), caller);
  }
  if (subject == "version") {
    answer["version"] = BELLJAR_VERSION;
    return answer;
  }
  return error_json("failed", {.what = "nothing is known about " + subject});
}

}  // namespace
}  // namespace belljar::python

using namespace belljar::python;

void belljar_py_free(void* answer) { std::free(answer); }

void* belljar_py_ask(const char* request, size_t size, size_t* answer_size) {
  const belljar::Result<boost::json::object> read = parse(request, size);
  if (!read) return give(error_json("failed", read.error()), answer_size);
  return give(about(*read), answer_size);
}
