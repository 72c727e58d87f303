// Names that nobody guesses.
#pragma once

#include <cstddef>
#include <string>

namespace belljar {

// Two digits for each byte. Without randomness there is nothing left to do: it aborts.
std::string random_hex(std::size_t bytes);

}  // namespace belljar
