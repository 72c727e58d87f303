#include "server/mcp_facts.h"

namespace belljar::server {

McpFacts mcp_facts() {
  McpFacts facts;
  facts.version = BELLJAR_VERSION;
  facts.title = "belljar: run code under glass";
  facts.instructions =
      "Runs Python and shell commands in a sandbox. State lasts between calls: variables, the "
      "shell's folder, files. The description of each tool says where can be written, which "
      "network there is and which limits hold. Without a `session` argument a connection has a "
      "session of its own; name one to have several. Where an answer ends with `session: NAME`, "
      "there is no connection: pass that name on to go on in the same state. What a call draws or "
      "writes comes back as "
      "images and as links to files. What the sandbox or a person denies stays denied: say so "
      "instead of trying another way.";
  facts.capabilities = {{"tools", json::object()},
                        {"resources", {{"subscribe", true}, {"listChanged", true}}},
                        {"prompts", json::object()},
                        {"completions", json::object()}};
  return facts;
}

}  // namespace belljar::server
