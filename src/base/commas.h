// Names in a sentence: "a, b, c".
#pragma once

#include <string>
#include <string_view>

namespace belljar {

template <class Names>
std::string with_commas(const Names& names) {
  std::string text;
  for (const auto& name : names)
    text.append(text.empty() ? "" : ", ").append(std::string_view(name));
  return text;
}

}  // namespace belljar
