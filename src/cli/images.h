// Pictures that a guest made, shown to a person: in the terminal where it can show them,
// and as files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar::cli {

class ImageFolder {
 public:
  // `png` is base64.
  Status show(std::string_view png);

 private:
  std::string folder_;  // made for the first one, and left to the person
  int count_ = 0;
};

}  // namespace belljar::cli
