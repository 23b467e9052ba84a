// source_tree.h — the checkout that the tests were built from, which holds their data and the documentation.
#pragma once

#include <filesystem>

namespace tenon {

std::filesystem::path source_tree();

}  // namespace tenon
