// string.cpp — ONNX ops on text.
#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/vectors.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_string_concat(const NodeView& n) {
  return n.make("string_concat", {{"a", n.in(0)}, {"b", n.in(1)}});
}

std::vector<Value> convert_string_split(const NodeView& n) {
  return n.make("string_split", {{"x", n.in(0)}},
                {{"delimiter", n.text("delimiter", "")}, {"max_splits", n.integer("maxsplit", -1)}});
}

// Locales agree on upper and lower case, but for a few languages.
std::vector<Value> convert_string_normalizer(const NodeView& n) {
  const std::string change = n.translate<std::string>(
      "case_change_action", "NONE", {{"NONE", "none"}, {"LOWER", "lower"}, {"UPPER", "upper"}});
  const std::string language = n.text("locale", "en_US").substr(0, 2);
  if (language == "tr" || language == "az" || language == "lt")
    throw unsupported("StringNormalizer: locale {}, where upper and lower case are special",
                      n.text("locale"));
  return n.make("string_normalize", {{"x", n.in(0)}},
                {{"change_case", change},
                 {"drop", n.has("stopwords") ? n.texts("stopwords") : Attribute::Strings()},
                 {"case_sensitive", n.flag("is_case_sensitive", false)}});
}

std::vector<Value> convert_regex_full_match(const NodeView& n) {
  return n.make("regex_full_match", {{"x", n.in(0)}}, {{"pattern", n.text("pattern")}});
}

std::vector<Value> convert_tf_idf_vectorizer(const NodeView& n) {
  if (n.has("pool_strings") == n.has("pool_int64s"))
    throw user_error("TfIdfVectorizer: it needs either pool_strings or pool_int64s");
  const Tensor pool =
      n.has("pool_int64s") ? Tensor::of(n.integers("pool_int64s")) : string_vector(n.texts("pool_strings"));
  return n.make(
      "count_ngrams", {{"x", n.in(0)}},
      {{"pool", Literal(pool)},
       {"starts", n.integers("ngram_counts")},
       {"columns", n.integers("ngram_indexes")},
       {"weights", n.has("weights") ? n.reals("weights") : Attribute::Floats()},
       {"weighting", n.translate<std::string>("mode", {{"TF", "tf"}, {"IDF", "idf"}, {"TFIDF", "tfidf"}})},
       {"min_length", n.integer("min_gram_length")},
       {"max_length", n.integer("max_gram_length")},
       {"max_skips", n.integer("max_skip_count")}});
}

}  // namespace

const Conversions& string_conversions() {
  static const Conversions conversions = {
      {"RegexFullMatch", convert_regex_full_match},    {"StringConcat", convert_string_concat},
      {"StringNormalizer", convert_string_normalizer}, {"StringSplit", convert_string_split},
      {"TfIdfVectorizer", convert_tf_idf_vectorizer},
  };
  return conversions;
}

}  // namespace tenon::onnx
