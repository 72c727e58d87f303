// caps: the guest has no capabilities, and can get none back.
//
// Defends against: using, inside the jar's namespaces, what the set-up needed.
// no_new_privs keeps set-uid programs and file capabilities from returning any.
// Needs Linux 3.5; the result is read back and checked.
#pragma once

namespace belljar {
class Child;
}

namespace belljar::caps {

void apply(const Child& child) noexcept;

}  // namespace belljar::caps
