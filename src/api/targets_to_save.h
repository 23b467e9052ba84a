// targets_to_save.h — what programs are compiled for that are saved, as callers name it.
#pragma once

#include <optional>

#include "api/default_context.h"
#include "compiler/save_program.h"

namespace tenon::api {

// As this machine would compile it for itself.
constexpr const char* kNativeTarget = "native";

// "native,x86-64-v3": names of compile_targets.h, or that. What cannot be is a user_error.
std::vector<compiler::TargetToSave> targets_to_save(std::string_view names, const ContextOptions& options);

// One more, for a machine that is described, or for this one.
void add_target(std::vector<compiler::TargetToSave>& targets, std::string name,
                const std::optional<Target>& machine, const ContextOptions& options);

}  // namespace tenon::api
