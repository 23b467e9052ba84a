// source_tree.h — the checkout that the tests were built from, which holds their data and the documentation,
// and the folder they were built in, which holds the programs.
#pragma once

#include <filesystem>

namespace tenon {

std::filesystem::path source_tree();
std::filesystem::path build_folder();

}  // namespace tenon
