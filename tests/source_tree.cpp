#include "source_tree.h"

namespace tenon {

std::filesystem::path source_tree() { return TENON_ROOT; }
std::filesystem::path build_folder() { return TENON_FOLDER; }

}  // namespace tenon
