// Which socket files of a layout a guest may call, where its connects are made for it.
#pragma once

#include "broker/own_sockets.h"
#include "layers/layout.h"

namespace belljar::launcher {

Result<broker::OwnSockets> granted_sockets(const Layout& layout);

}  // namespace belljar::launcher
