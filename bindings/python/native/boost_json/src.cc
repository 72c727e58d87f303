// Boost.JSON, compiled here: Debian's libboost_json.a can be linked into programs only.
#include <boost/json/src.hpp>
