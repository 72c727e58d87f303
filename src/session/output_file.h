// OutputFile: all that a call writes, in a file of its workdir.
//
// The engine writes it from outside, where nothing that the policy protects is protected
// from it, and the name may be a model's. So it is always a new file, at the top of the
// workdir, and has a plain name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "belljar/policy.h"

namespace belljar::session {

class OutputFile {
 public:
  // Up to 128 letters, digits and - _ . and no dot at the beginning.
  static bool is_name(std::string_view name);
  static Result<std::shared_ptr<OutputFile>> make(int workdir_fd, const Policy& policy,
                                                  const std::string& name);

  void append(std::string_view bytes);
  // What it could not take.
  std::uint64_t left_out() const { return left_out_; }

 private:
  OutputFile(Fd file, std::uint64_t room) : file_(std::move(file)), room_(room) {}

  Fd file_;
  std::uint64_t room_;
  std::uint64_t left_out_ = 0;
};

}  // namespace belljar::session
