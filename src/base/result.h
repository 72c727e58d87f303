// TRY: how a Result travels up. The types themselves are public: belljar/error.h.
#pragma once

#include "belljar/error.h"

// TRY(expr): the value of a Result, or return its error from this function.
// A statement expression, so it cannot be used across a co_await.
#define TRY(expr)                                            \
  __extension__({                                            \
    auto try_result = (expr);                                \
    if (!try_result.has_value()) [[unlikely]]                \
      return std::unexpected(std::move(try_result).error()); \
    *std::move(try_result);                                  \
  })
