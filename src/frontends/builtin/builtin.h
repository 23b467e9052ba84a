// builtin.h — small models that come with Tenon, by name: builtin:resnet_block.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon::builtin {

struct Model {
  std::string_view name;
  std::string_view doc;
  std::unique_ptr<Graph> (*make)();
};

// By name.
const std::vector<Model>& all_models();

// A name that is not there is a user_error that lists those that are.
std::unique_ptr<Graph> make_model(std::string_view name);

using Models = std::vector<Model>;

// The subjects, one file each.
const Models& elementwise_models();
const Models& linear_models();
const Models& convolution_models();
const Models& control_models();

}  // namespace tenon::builtin
