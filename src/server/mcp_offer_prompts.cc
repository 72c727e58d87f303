#include "server/mcp_offer.h"

namespace belljar::server {
namespace {

json::object message(const std::string& text) {
  json::object content{{"type", "text"}};
  content["text"] = text;
  json::object one{{"role", "user"}};
  one["content"] = std::move(content);
  return one;
}

json::object prompt_of(const std::string& description, const std::string& text) {
  json::object result;
  result["description"] = description;
  json::array messages;
  messages.push_back(message(text));
  result["messages"] = std::move(messages);
  return result;
}

std::string words(const tools::Facts& facts) {
  std::string text = "Working directory: " + facts.workdir + "\nWritable:";
  for (const std::string& place : facts.writable) text += " " + place;
  text += "\nNetwork: " + facts.network + "\nLimits:";
  for (const std::string& limit : facts.limits) text += " " + limit + ";";
  if (facts.limits.empty()) text += " none";
  return text + "\n";
}

}  // namespace

void McpOffer::add_prompts(json::array& into) {
  json::array arguments;
  arguments.push_back({{"name", "path"},
                       {"description", "where the data is, as the session sees it"},
                       {"required", true}});
  json::object explore{{"name", "explore_dataset"}, {"title", "Explore this dataset"}};
  explore["description"] = "look at a file of data, describe it, and draw what is in it";
  explore["arguments"] = std::move(arguments);
  into.push_back(std::move(explore));
  into.push_back({{"name", "what_may_i_do"},
                  {"title", "What may I do here?"},
                  {"description", "say what the sandbox of this session allows and what not"}});
}

Async<std::optional<McpResult>> McpOffer::prompt(McpExchange&, std::string name,
                                                 json::object arguments) {
  if (name == "what_may_i_do")
    co_return prompt_of("what the sandbox allows",
                        "Code here runs in a sandbox. This is what it enforces:\n\n" +
                            words(facts()) +
                            "\nSay in a few sentences what can be done here and what cannot.");
  if (name != "explore_dataset") co_return std::nullopt;
  const std::string path = text_at(arguments, "path");
  if (path.empty()) co_return mcp_fail(mcp_code::invalid_params, "the argument path is missing");
  co_return prompt_of("explore a dataset",
                      "Explore the dataset at " + path +
                          " with the python tool. First look at its size, its columns and a few "
                          "rows. Then describe what it holds, which values are missing or strange, "
                          "and draw two or three plots that show what is in it.");
}

}  // namespace belljar::server
