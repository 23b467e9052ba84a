#include "source_tree.h"

namespace tenon {

std::filesystem::path source_tree() { return TENON_ROOT; }

}  // namespace tenon
