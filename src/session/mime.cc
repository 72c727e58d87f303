#include "session/mime.h"

namespace belljar::session {
namespace {

struct Mime {
  std::string_view ending, type;
};
constexpr Mime kMimes[] = {
    {".csv", "text/csv"},
    {".css", "text/css"},
    {".gif", "image/gif"},
    {".gz", "application/gzip"},
    {".htm", "text/html"},
    {".html", "text/html"},
    {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript"},
    {".json", "application/json"},
    {".md", "text/markdown"},
    {".mp3", "audio/mpeg"},
    {".mp4", "video/mp4"},
    {".parquet", "application/vnd.apache.parquet"},
    {".pdf", "application/pdf"},
    {".png", "image/png"},
    {".py", "text/x-python"},
    {".sh", "text/x-shellscript"},
    {".svg", "image/svg+xml"},
    {".tar", "application/x-tar"},
    {".toml", "application/toml"},
    {".tsv", "text/tab-separated-values"},
    {".txt", "text/plain"},
    {".wav", "audio/wav"},
    {".webp", "image/webp"},
    {".xml", "application/xml"},
    {".yaml", "application/yaml"},
    {".yml", "application/yaml"},
    {".zip", "application/zip"},
    {".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
};

}  // namespace

std::string mime_of(std::string_view name, bool is_text) {
  for (const Mime& mime : kMimes)
    if (name.ends_with(mime.ending)) return std::string(mime.type);
  return is_text ? "text/plain" : "application/octet-stream";
}

}  // namespace belljar::session
