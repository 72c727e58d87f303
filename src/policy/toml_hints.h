// What people most often mean when a configuration file is no TOML, or has a key where none is.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace belljar {

// About the line at which a syntax error was found: text that stands without quotes.
std::string missing_quotes(std::string_view file, std::size_t line);

// The table that a key at the top of the file belongs in: "it belongs in [sandbox]".
std::string own_table(std::string_view key);

// "did you mean NAME?", or what is said where none is near.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names,
                         const std::string& otherwise = {});

inline std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace belljar
