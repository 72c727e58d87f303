#include "server/multipart.h"

#include <algorithm>
#include <cctype>

namespace belljar::server {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// `name="value"` or `name=value` in a header.
std::string parameter_in(std::string_view header, std::string_view name) {
  std::size_t at = header.find(';');
  while (at != header.npos) {
    header.remove_prefix(at + 1);
    while (header.starts_with(' ')) header.remove_prefix(1);
    const std::size_t equals = header.find('=');
    if (equals == header.npos) return {};
    const bool is_it = same_word(header.substr(0, equals), name);
    std::string_view value = header.substr(equals + 1);
    if (value.starts_with('"')) {
      std::string text;
      std::size_t i = 1;
      for (; i < value.size() && value[i] != '"'; ++i) {
        if (value[i] == '\\' && i + 1 < value.size()) ++i;
        text.push_back(value[i]);
      }
      if (is_it) return text;
      header = value.substr(std::min(i, value.size()));
      at = header.find(';');
      continue;
    }
    if (is_it) return std::string(value.substr(0, value.find(';')));
    header = value;
    at = header.find(';');
  }
  return {};
}

Part parse_part(std::string_view head, std::string_view content) {
  Part part;
  part.content = content;
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (!same_word(line.substr(0, colon), "content-disposition")) continue;
    part.name = parameter_in(line, "name");
    part.filename = parameter_in(line, "filename");
  }
  return part;
}

}  // namespace

std::string boundary_in(std::string_view content_type) {
  if (!same_word(content_type.substr(0, content_type.find(';')), "multipart/form-data")) return {};
  return parameter_in(content_type, "boundary");
}

Result<std::vector<Part>> parse_multipart(std::string_view body, std::string_view boundary) {
  const std::string mark = "\r\n--" + std::string(boundary);
  if (boundary.empty() || boundary.size() > 70) return fail("the form has no boundary");
  // The first stands at the beginning, without the line break that belongs to it.
  if (!body.starts_with(std::string_view(mark).substr(2)))
    return fail("the form does not begin with its boundary");
  body.remove_prefix(mark.size() - 2);
  std::vector<Part> parts;
  while (true) {
    if (body.starts_with("--")) return parts;
    if (!body.starts_with("\r\n")) return fail("a boundary of the form is followed by something");
    body.remove_prefix(2);
    const std::size_t end = body.find(mark);
    if (end == body.npos) return fail("the form does not end with its boundary");
    const std::string_view part = body.substr(0, end);
    const std::size_t gap = part.find("\r\n\r\n");
    if (gap == part.npos) return fail("a part of the form has no head");
    if (parts.size() >= kMaxParts) return fail("the form has too many parts");
    parts.push_back(parse_part(part.substr(0, gap), part.substr(gap + 4)));
    body.remove_prefix(end + mark.size());
  }
}

}  // namespace belljar::server
