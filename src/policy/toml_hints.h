// What people most often mean when a configuration file is no TOML, or has a key where none is.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

// About the line at which a syntax error was found: text that stands without quotes.
std::string missing_quotes(std::string_view file, std::size_t line);

// The table that a key at the top of the file belongs in: "it belongs in [sandbox]".
std::string own_table(std::string_view key);

}  // namespace belljar
