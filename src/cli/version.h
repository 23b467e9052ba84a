// version.h — what tenon --version prints.
#pragma once

#include <string>

namespace tenon::cli {

// The version, the code generators that are built in, and the libraries this runs with.
std::string describe_build();

}  // namespace tenon::cli
