// What a program of macOS needs before and beside its files: the allowances that a start takes,
// each with its reason, and the folders of the system.
//
// Kept narrow: no IOKit, no LaunchServices and no Apple events (by which other programs could be
// started outside), no keychain, no preferences of other programs.
#pragma once

#include <span>

#include "belljar/policy.h"
#include "layers/seatbelt_text.h"

namespace belljar::seatbelt {

// The same for every policy, before any grant.
std::vector<Rule> startup_rules();

// Devices that every program may use; after all other rules about files.
std::vector<Rule> device_rules();

std::vector<Rule> network_rules(const Policy& policy);

// Folders that are readable before any grant.
std::span<const char* const> system_folders(Reads reads);

// Parts of them that are not: what others keep there.
std::span<const char* const> system_secrets();

// With Reads::everything: what is a person's own, or another's.
std::span<const char* const> personal_folders();

}  // namespace belljar::seatbelt
