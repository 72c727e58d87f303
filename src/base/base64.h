// Base64, as JSON carries bytes.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

std::string to_base64(std::string_view bytes);

}  // namespace belljar
