// Base64, as JSON carries bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belljar {

std::string to_base64(std::string_view bytes);
// nullopt: it is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace belljar
