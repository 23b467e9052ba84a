// words.h — attributes whose words stand for something: a filter, a padding, a reduction.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace tenon {

// OP: ATTRIBUTE is "other", but must be this, that or those.
UserError unknown_word(const Node& n, std::string_view attribute, std::span<const std::string_view> known);

// What the word in an attribute stands for, by a table of words; one that is not there is the user's fault.
template <class T, size_t N>
T named(const Node& n, std::string_view attribute, const std::pair<std::string_view, T> (&meanings)[N]) {
  const std::string& wanted = n.attr(attribute);
  std::vector<std::string_view> words;
  for (const auto& [word, meaning] : meanings) {
    if (word == wanted)
      return meaning;
    words.push_back(word);
  }
  throw unknown_word(n, attribute, words);
}

}  // namespace tenon
