// Names of sessions and skills. Each token has names of its own: two tokens may both have a
// session `main`. A plain name is always one's own; NAME@TOKEN names another's, for who may use
// that. The engine knows a session by its whole name, so no name leads into another's session.
#pragma once

#include <string>
#include <string_view>

namespace belljar::server {

// NAME@OWNER. Without an owner, as where one person has everything, NAME.
std::string whole_name(std::string_view name, std::string_view owner);
// The whole name of what `asker` calls so. Whether it is his to use is asked elsewhere.
std::string whole_name_for(std::string_view asker, std::string_view called);
// How `asker` calls it: his own by its plain name.
std::string called_by(std::string_view asker, std::string_view whole);

std::string_view name_in(std::string_view whole);
std::string_view owner_in(std::string_view whole);  // empty: none is said

}  // namespace belljar::server
