// Allowance: how many descriptors of our process the connections of one jar may take.
//
// The process may serve many jars, and needs descriptors for itself. So a jar has at most a quarter
// of them, and however many jars there are, the last quarter is for no jar's connections.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

namespace belljar::broker {

class Allowance {
 public:
  // Descriptors that are counted for as long as this lives. It must not outlive its allowance.
  class Share {
   public:
    Share() = default;
    Share(Allowance& allowance, std::size_t count) : allowance_(&allowance), count_(count) {}
    Share(Share&& other) noexcept
        : allowance_(std::exchange(other.allowance_, nullptr)), count_(other.count_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(allowance_, other.allowance_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~Share() {
      if (allowance_ != nullptr) allowance_->taken_ -= count_;
    }

   private:
    Allowance* allowance_ = nullptr;
    std::size_t count_ = 0;
  };

  Allowance() = default;
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // For `count` descriptors, of which `newest_fd` is one. The kernel gives out the lowest number
  // that is free, so that one tells how many the process has. Nothing when they would be too many.
  std::optional<Share> take(std::size_t count, int newest_fd);
  std::size_t taken() const { return taken_; }

 private:
  std::size_t taken_ = 0;
};

}  // namespace belljar::broker
