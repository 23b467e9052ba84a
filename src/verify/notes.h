// notes.h — what is to be said about a check beside its verdict, in words.
#pragma once

#include "verify/verify.h"

namespace tenon {

std::vector<std::string> notes_of(const Check& check);

}  // namespace tenon
