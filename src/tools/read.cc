#include "tools/read.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/base64.h"
#include "base/printable.h"
#include "base/syscall.h"
#include "base/utf8.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kBinaryHead = 8000;

// Bytes of a line that can matter: no character is longer than 4.
constexpr std::size_t kMaxLineBytes = kMaxLineCharacters * 4;

// Takes chunks, gives the text with numbers. Memory is bounded however long a line is.
class Lines {
 public:
  Lines(std::uint64_t first, std::uint64_t count, ReadResult& result)
      : first_(first), end_(first + count), result_(result) {}

  void feed(std::string_view chunk) {
    while (!chunk.empty()) {
      const std::size_t newline = chunk.find('\n');
      take(chunk.substr(0, newline));
      if (newline == chunk.npos) return;
      end_line();
      chunk.remove_prefix(newline + 1);
    }
  }
  void finish() {
    if (in_line_) end_line();
  }
  std::uint64_t seen() const { return number_ - 1; }  // whole lines
  bool full() const { return full_; }

 private:
  bool wanted() const { return number_ >= first_ && number_ < end_ && !full_; }

  void take(std::string_view piece) {
    in_line_ = true;
    length_ += piece.size();
    if (wanted()) line_.append(piece.substr(0, kMaxLineBytes + 1 - line_.size()));
  }

  void end_line() {
    if (wanted()) show();
    line_.clear();
    length_ = 0;
    in_line_ = false;
    ++number_;
  }

  void show() {
    if (number_ == 1 && line_.starts_with("\xef\xbb\xbf")) line_.erase(0, 3);
    if (line_.size() == length_ && line_.ends_with('\r')) line_.pop_back();
    std::string text = std::to_string(number_) + ": " + cut(line_) + "\n";
    if (result_.text.size() + text.size() > kMaxReadBytes) {
      full_ = true;
      return;
    }
    result_.text += text;
    ++result_.lines;
  }

  std::string cut(std::string_view line) {
    std::size_t end = 0;
    for (std::size_t characters = 0; end < line.size() && characters < kMaxLineCharacters;
         ++characters)
      end += std::max<std::size_t>(1, utf8_length(line.substr(end)));
    if (end >= line.size()) return repair_utf8(line);
    result_.truncated = true;
    return repair_utf8(line.substr(0, end)) + "… (cut: the line has " + std::to_string(length_) +
           " bytes)";
  }

  std::uint64_t first_, end_;
  ReadResult& result_;
  std::uint64_t number_ = 1;
  std::uint64_t length_ = 0;  // of the line so far
  bool in_line_ = false;
  bool full_ = false;
  std::string line_;
};

Result<std::string_view> read_chunk(int fd, std::vector<char>& buffer, const std::string& what) {
  const ssize_t n = retry([&] { return ::read(fd, buffer.data(), buffer.size()); });
  if (n < 0) return refuse_errno("read " + what, errno);
  return std::string_view(buffer.data(), static_cast<std::size_t>(n));
}

Result<ReadResult> read_image(const OpenFile& file, std::string_view head, std::string_view type) {
  const std::string what = printable(file.inside);
  auto too_large = [&] {
    return refuse(Kind::too_large,
                  what + " is an image of more than " + std::to_string(kMaxImageBytes) + " bytes",
                  "make a smaller copy of it first, for example with Python");
  };
  if (static_cast<std::uint64_t>(file.st.st_size) > kMaxImageBytes) return too_large();
  std::string bytes(head);
  std::vector<char> buffer(kChunk);
  for (;;) {
    const std::string_view chunk = TRY(read_chunk(file.fd.get(), buffer, what));
    if (chunk.empty()) break;
    bytes.append(chunk);
    if (bytes.size() > kMaxImageBytes) return too_large();  // it has grown
  }
  ReadResult result{
      .text = what + ": " + std::string(type) + ", " + std::to_string(bytes.size()) + " bytes",
      .path = file.inside,
      .image_mime = std::string(type),
      .image_base64 = to_base64(bytes)};
  return result;
}

void say_what_is_left(ReadResult& result, std::uint64_t first) {
  const std::uint64_t last = first + result.lines - 1;
  const bool more = !result.total || last < *result.total;
  if (!more) return;
  result.truncated = true;
  result.text += "(lines " + std::to_string(first) + " to " + std::to_string(last) +
                 (result.total ? " of " + std::to_string(*result.total) : std::string()) +
                 "; to go on, read with offset " + std::to_string(last + 1) + ")\n";
}

}  // namespace

std::string_view image_type(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x89PNG\r\n\x1a\n"sv)) return "image/png";
  if (head.starts_with("\xff\xd8\xff"sv)) return "image/jpeg";
  if (head.starts_with("GIF87a"sv) || head.starts_with("GIF89a"sv)) return "image/gif";
  if (head.starts_with("RIFF"sv) &&
      head.substr(std::min<std::size_t>(8, head.size())).starts_with("WEBP"sv))
    return "image/webp";
  return {};
}

bool looks_binary(std::string_view head) {
  return head.substr(0, kBinaryHead).find('\0') != std::string_view::npos;
}

Result<ReadResult> read(const Workspace& workspace, const ReadCall& call) {
  const std::uint64_t first = call.offset.value_or(1);
  const std::uint64_t count = std::min(call.limit.value_or(kMaxReadLines), kMaxReadLines);
  if (first == 0) return refuse(Kind::bad_argument, "offset is 0", "lines are counted from 1");
  if (count == 0) return refuse(Kind::bad_argument, "limit is 0", "ask for a line at least");
  const OpenFile file = TRY(workspace.open_file("read", call.path));
  const std::string what = printable(file.inside);

  std::vector<char> buffer(kChunk);
  std::string_view chunk = TRY(read_chunk(file.fd.get(), buffer, what));
  if (const std::string_view type = image_type(chunk); !type.empty())
    return read_image(file, chunk, type);
  if (looks_binary(chunk))
    return refuse(
        Kind::binary,
        what + " is not text: it has " + std::to_string(file.st.st_size) + " bytes of another kind",
        "look at it with Python or the shell");

  ReadResult result{.path = file.inside};
  Lines lines(first, std::min(count, ~first), result);
  std::uint64_t scanned = 0;
  while (!chunk.empty() && scanned < kMaxScanned) {
    lines.feed(chunk);
    scanned += chunk.size();
    chunk = TRY(read_chunk(file.fd.get(), buffer, what));
  }
  if (chunk.empty()) {
    lines.finish();
    result.total = lines.seen();
  }
  if (result.total == 0 && first == 1) {
    result.text = "(the file is empty)\n";
    return result;
  }
  if (result.lines == 0 && result.total)
    return refuse(Kind::bad_argument,
                  what + " has only " + std::to_string(*result.total) + " lines",
                  "use an offset up to that");
  if (result.lines == 0)
    return refuse(
        Kind::too_large,
        "the line is not in the first " + std::to_string(kMaxScanned) + " bytes of " + what,
        "use grep, or the shell");
  say_what_is_left(result, first);
  return result;
}

}  // namespace belljar::tools
