// What is taken out of a guest's thread while one of its calls waits. The caller then asks whether
// the call still waits: a thread that has ended may have left its number to another.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/fd.h"

namespace belljar::broker {

// Its descriptor of that number, duplicated. None: errno says why.
Fd take_descriptor(pid_t thread, int number);

// False: errno says why; EFAULT where only a part of it is there.
bool read_memory(pid_t thread, std::uint64_t from, void* into, std::size_t size);

}  // namespace belljar::broker
