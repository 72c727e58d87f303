// The media type of a file, by its name.
#pragma once

#include <string>
#include <string_view>

namespace belljar::session {

std::string mime_of(std::string_view name, bool is_text);

}  // namespace belljar::session
