// The file tools: in this process, on a thread beside the loop, on what the guest sees.
#include <stop_token>

#include "server/dispatch.h"
#include "server/host_trouble.h"
#include "server/session_files.h"
#include "tools/file_tools.h"

namespace belljar::server {

Async<ToolAnswer> Dispatcher::run_file(ToolCall& call) {
  Result<session::Look> look = engine_.look(call.session);
  if (!look) co_return failure(look.error());
  const auto stop = std::make_shared<std::stop_source>();
  const Cancel::Hearing hearing(call.cancel, [stop] { stop->request_stop(); });
  auto work = [look = *std::move(look), tool = call.tool, arguments = std::move(call.arguments),
               token = stop->get_token()]() -> tools::Result<tools::FileAnswer> {
    const Result<session::SessionView> view = look();
    if (!view) return tools::refuse(tools::Kind::failed, told(view.error()));
    tools::Result<tools::Workspace> files = workspace_of(*view);
    if (!files) return std::unexpected(files.error());
    return tools::call_file_tool(*files, tool, arguments, token);
  };
  tools::Result<tools::FileAnswer> done =
      co_await engine_.aside().run(loop_, call.principal, std::move(work));
  if (!done) co_return tool_error(std::string(name(done.error().kind)), done.error().message());
  ToolAnswer answer;
  answer.text = std::move(done->text);
  answer.structured = std::move(done->structured);
  if (done->image_mime && done->image_base64) {
    Image image;
    image.mime = *std::move(done->image_mime);
    image.base64 = *std::move(done->image_base64);
    answer.images.push_back(std::move(image));
  }
  co_return answer;
}

}  // namespace belljar::server
