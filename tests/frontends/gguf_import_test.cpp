// Models in GGUF files. Python compares their logits with numpy's; here is what they take and give, and what
// is refused.
#include "frontends/gguf_file.h"
#include "frontends/read_model.h"

namespace tenon::gguf {
namespace {

using namespace write;

Data run(const Graph& graph, const std::vector<int64_t>& tokens, Data pasts) {
  Data inputs = {Tensor::of<int64_t>(tokens, {1, static_cast<int64_t>(tokens.size())})};
  inputs.insert(inputs.end(), pasts.begin(), pasts.end());
  return evaluate(graph, inputs);
}

TEST(GgufImport, TakesTokensAndPastsAndGivesLogitsAndPresents) {
  const auto graph = import(llama().bytes());
  EXPECT_EQ(graph->name(), "llama");
  std::vector<std::string> interface;
  for (Value each : graph->inputs())
    interface.push_back(each.name() + " " + to_string(each.type()));
  for (Value each : graph->outputs())
    interface.push_back(each.name() + " " + to_string(each.type()));
  EXPECT_EQ(interface,
            (std::vector<std::string>{"input_ids i64[1,length]", "past_key_values.0.key f32[1,1,past,2]",
                                      "past_key_values.0.value f32[1,1,past,2]", "logits f32[1,length,3]",
                                      "present.0.key f32[1,1,length+past,2]",
                                      "present.0.value f32[1,1,length+past,2]"}));
}

TEST(GgufImport, StepByStepIsAsAtOnce) {
  const auto graph = import(llama().bytes());
  const Tensor none(DType::F32, {1, 1, 0, 2});
  const Data whole = run(*graph, {2, 0, 1, 1}, {none, none});
  const std::vector<double> logits = widen<double>(whole[0].tensor());
  EXPECT_NE(std::vector(logits.begin(), logits.begin() + 3),
            std::vector(logits.begin() + 3, logits.begin() + 6));
  Data steps = run(*graph, {2, 0}, {none, none});
  for (const int64_t token : {1, 1})
    steps = run(*graph, {token}, {steps[1], steps[2]});
  expect_tensor(steps[0], f32({1, 1, 3}, {logits.end() - 3, logits.end()}));
  expect_tensor(steps[1], whole[1].tensor());
}

TEST(GgufImport, EmbeddingsServeAsHeadWhereThereIsNone) {
  FileText file = llama();
  file.tensor("output.weight").data = file.tensor("token_embd.weight").data;
  const Tensor none(DType::F32, {1, 1, 0, 2});
  const Data separate = run(*import(file.bytes()), {2, 0}, {none, none});
  file.remove("output.weight");
  expect_tensor(run(*import(file.bytes()), {2, 0}, {none, none})[0], separate[0].tensor());
}

TEST(GgufImport, IsToldByHowTheFileStarts) {
  register_ops();
  const TemporaryFolder folder;
  for (const char* name : {"m.gguf", "m.onnx", "m.tenon"})
    EXPECT_EQ(read_model(folder.write(name, llama().bytes()).string())->name(), "llama");
  const auto path = folder.write("n.gguf", "graph main() { return }");
  expect_error<UserError>([&] { read_model(path.string()); },
                          path.string() + ": this is no GGUF file: it does not begin with \"GGUF\"");
}

TEST(GgufImport, OtherArchitecturesAreRefusedByName) {
  FileText file = llama();
  file.keys["general.architecture"] = value("mamba");
  refuse<UnsupportedError>(file,
                           "the architecture \"mamba\"\n  hint: those that are read are llama qwen2 qwen3");
  file.keys["general.architecture"] = value(1U);
  refuse(file, "key \"general.architecture\" is missing or not a string");
  file.keys.erase("general.architecture");
  refuse(file, "key \"general.architecture\" is missing or not a string");
}

TEST(GgufImport, PartsOfSplitModelsAreRefused) {
  FileText file = llama();
  file.keys["split.count"] = number(2U) + number<uint16_t>(3);
  refuse<UnsupportedError>(
      file,
      "this is one of 3 files that a model was split into\n  hint: llama-gguf-split --merge "
      "joins them");
  file.keys["split.count"] = number(2U) + number<uint16_t>(1);
  import(file.bytes());
}

TEST(GgufImport, MissingKeysAreRefused) {
  for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    FileText file = llama();
    file.keys.erase(key);
    refuse(file, "key \"" + std::string(key) + "\" is missing");
  }
}

TEST(GgufImport, KeysThatMakeNoModelAreRefused) {
  const auto with = [](const std::string& key, const Bytes& value) {
    FileText file = llama();
    file.keys[key] = value;
    return file;
  };
  refuse(with("llama.block_count", value("two")),
         "key \"llama.block_count\": it is \"two\", but must be an integer from 1 to 2147483648");
  refuse(with("llama.block_count", value(0U)),
         "key \"llama.block_count\": it is 0, but must be an integer from 1 to 2147483648");
  refuse(with("llama.block_count", value(2000000000U)), "there are 2000000000 layers, but 12 tensors");
  refuse(with("llama.block_count", value(2U)), "tensor \"blk.1.attn_norm.weight\" is missing");
  refuse(with("llama.attention.head_count", number(9U) + number(4U) + number<uint64_t>(1) + number(2U)),
         "key \"llama.attention.head_count\": it is an array of 1 elements, u32, but must be an integer from "
         "1 to "
         "2147483648");
  refuse(with("llama.attention.head_count", value(3U)), "a width of 4 does not divide into 3 heads");
  refuse(with("llama.attention.head_count_kv", value(3U)), "2 heads cannot share 3 key heads evenly");
  refuse(with("llama.attention.key_length", value(2000000000U)),
         "tensor \"blk.0.attn_q.weight\": it is [4,4], but must be [4000000000,4]");
  refuse(with("llama.rope.dimension_count", value(3U)),
         "rope.dimension_count is 3, but must be even and at most the head size, 2");
  refuse(with("llama.vocab_size", value(4U)), "there are 4 tokens, but 3 embeddings");
  refuse(with("llama.attention.layer_norm_rms_epsilon", value(-1.0F)),
         "key \"llama.attention.layer_norm_rms_epsilon\": it is -1, but must be a float above 0");
  refuse<UnsupportedError>(
      with("llama.rope.scaling.type", value("yarn")),
      "rotary embeddings scaled by \"yarn\"\n  hint: those that are read are none and linear");
  refuse(with("llama.rope.scaling.type", value("linear")), "key \"llama.rope.scaling.factor\" is missing");
  // What nobody reads could change what is computed.
  refuse<UnsupportedError>(with("llama.expert_count", value(8U)), "key \"llama.expert_count\", which is 8");
  import(with("tokenizer.ggml.model", value("gpt2")).bytes());
}

TEST(GgufImport, TensorsThatMakeNoModelAreRefused) {
  for (const TensorText& tensor : llama().tensors)
    if (tensor.name != "output.weight") {
      FileText file = llama();
      file.remove(tensor.name);
      refuse(file, "tensor \"" + tensor.name + "\" is missing");
    }
  FileText file = llama();
  file.tensors.push_back(floats("blk.0.attn_sinks.weight", {2}));
  refuse<UnsupportedError>(file,
                           "tensor \"blk.0.attn_sinks.weight\" is none of those of the architecture llama");
  file = llama();
  file.tensor("blk.0.ffn_up.weight") = floats("blk.0.ffn_up.weight", {6, 4});
  refuse(file, "tensor \"blk.0.ffn_up.weight\": it is [4,6], but must be [6,4]");
  file = llama();
  file.tensor("token_embd.weight") = floats("token_embd.weight", {12});
  refuse(file, "tensor \"token_embd.weight\": it is [12], but must be [?,4]");
}

TEST(GgufImport, BiasesOfQwenMustBeThereAndOthersMay) {
  FileText file = llama();
  file.keys["general.architecture"] = value("qwen2");
  for (const auto& [key, value] : llama().keys)
    if (key.starts_with("llama."))
      file.keys["qwen2." + key.substr(6)] = value;
  refuse(file, "tensor \"blk.0.attn_q.bias\" is missing");
  const Tensor none(DType::F32, {1, 1, 0, 2});
  file = llama();
  const Data without = run(*import(file.bytes()), {2}, {none, none});
  file.tensors.push_back(floats("blk.0.attn_v.bias", {2}));
  const Data with = run(*import(file.bytes()), {2}, {none, none});
  const std::vector<double> before = widen<double>(without[2].tensor()),
                            after = widen<double>(with[2].tensor());
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(after[i] - before[i], std::sin(static_cast<double>(i) + 17), 1e-6);
}

}  // namespace
}  // namespace tenon::gguf
