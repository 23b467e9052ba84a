// Archives that are damaged, hostile, from the future, or say what we do not know: each is refused with its
// reason.
#include "frontends/torch_program.h"

namespace tenon::torch {
namespace {

using namespace write;

const Tensor kInput = f32({2}, {1, 2});

ProgramText sum() {
  ProgramText program = {
      .inputs = {{"x", meta_of(kInput)}},
      .nodes = {{"aten.add.Tensor", {{"self", tensor_name("x")}, {"other", tensor_name("p_w")}}}}};
  add_weight(program, "w", f32({2}, {10, 20}));
  return program;
}

TEST(TorchDamage, ThatCutsTheArchiveOffIsRefusedAnywhere) {
  register_ops();
  const TemporaryFolder folder;
  const std::string whole = zip_bytes(sum().parts());
  for (size_t size = 0; size < whole.size(); size += 7)
    EXPECT_THROW(read_torch(folder.write("m.pt2", whole.substr(0, size))), UserError) << size;
}

TEST(TorchDamage, ThatLosesAWeightIsRefused) {
  std::vector<ZipPart> parts = sum().parts();
  parts.pop_back();
  refuse_parts(parts, "node \"y\": weight \"w\": the archive has no data/weights/weight_0");
  ProgramText program = sum();
  program.weights[0].target = "other";
  std::vector<ZipPart> renamed = program.parts();
  renamed[1] = sum().parts()[1];
  refuse_parts(renamed, "node \"y\": weight \"other\": the archive has none of this name");
}

TEST(TorchDamage, ThatShortensAWeightIsRefused) {
  ProgramText program = sum();
  program.files[0].content.resize(7);
  write::refuse(program,
                "node \"y\": weight \"w\": f32[2] at offset 0 with strides [1] needs more than the 7 bytes "
                "of data/weights/weight_0");
  program = sum();
  program.weights[0].meta = meta(DType::F32, {2}, {int64_t{1} << 62});
  write::refuse(
      program,
      "node \"y\": weight \"w\": f32[2] at offset 0 with strides [4611686018427387904] needs more than the 8 "
      "bytes of data/weights/weight_0");
  program.weights[0].meta = meta(DType::F32, {-2});
  write::refuse(program,
                "node \"y\": weight \"w\": its sizes are [-2], but must be integers that are not negative");
}

TEST(TorchDamage, ThatPicklesAWeightIsRefused) {
  std::vector<ZipPart> parts = sum().parts();
  parts[1].content.replace(parts[1].content.find("\"use_pickle\":false"), 18, "\"use_pickle\":true ");
  refuse_parts<UnsupportedError>(
      parts, "node \"y\": weight \"w\": it is pickled, and pickles are programs, which we do not run");
}

// A little file that would unpack to a lot.
TEST(TorchDamage, ThatIsABombIsRefused) {
  ProgramText program = sum();
  program.files[0] = {"weight_0", std::string(70 << 20, '\0'), true};
  write::refuse(program, "node \"y\": weight \"w\": it would unpack to 73400320 bytes for a tensor of 8");
  std::vector<ZipPart> parts = sum().parts();
  const std::string blanks = std::string(70 << 20, ' ') + "{}";
  parts[0] = {"m/models/model.json", blanks, true};
  refuse_parts(parts,
               fmt::format("models/model.json: it would unpack from {} to {} bytes, which is no program",
                           deflate_bytes(blanks).size(), blanks.size()));
}

TEST(TorchDamage, ThatClimbsOutOfTheArchiveIsRefused) {
  std::vector<ZipPart> parts = sum().parts();
  parts.push_back({"m/../../etc/passwd", "x"});
  refuse_parts(parts, "the entry \"m/../../etc/passwd\" of the zip archive has a name that leads outside it");
  // Nor does a path in the index lead anywhere but to an entry.
  ProgramText program = sum();
  program.weights[0].path = "../../../etc/passwd";
  write::refuse(program, "node \"y\": weight \"w\": the archive has no data/weights/../../../etc/passwd");
}

TEST(TorchDamage, OfTheProgramIsRefused) {
  std::vector<ZipPart> parts = sum().parts();
  parts[0].name = "m/other.json";
  refuse_parts(parts, "this is no torch.export archive: it has no models/model.json");
  parts.push_back({"serialized_exported_program.json", "{}"});
  refuse_parts<UnsupportedError>(
      parts,
      "this archive was written by an older PyTorch, which lays it out otherwise\n  hint: export the model "
      "again with PyTorch 2.11 to 2.13");
  refuse_parts(sum().parts("{}"), "models/model.json: \"schema_version\" is missing");
  const auto broken = [](const auto& edit) {
    Json json = sum().json();
    edit(json);
    return sum().parts(json.dump());
  };
  refuse_parts(broken([](Json& json) { json["graph_module"].erase("signature"); }),
               "models/model.json: \"signature\" is missing");
  refuse_parts(broken([](Json& json) { json["graph_module"]["signature"]["input_specs"].erase(0); }),
               "models/model.json: the graph has 2 inputs and 1 outputs, but the signature 1 and 1");
  for (const char* text :
       {"", "{", "[]", "{\"schema_version\":3}", "{\"schema_version\":{\"major\":\"x\",\"minor\":1}}"}) {
    const TemporaryFolder folder;
    EXPECT_THROW(read_torch(folder.write("m.pt2", zip_bytes(sum().parts(text)))), UserError) << text;
  }
}

TEST(TorchDamage, FromTheFutureIsRefused) {
  ProgramText program = sum();
  program.major = 9;
  write::refuse<UnsupportedError>(program,
                                  "models/model.json: schema version 9.17, but the one we know is 8\n  hint: "
                                  "export the model again with PyTorch 2.11 to 2.13");
}

TEST(TorchDamage, ByAnotherOrderOfBytesIsRefused) {
  std::vector<ZipPart> parts = sum().parts();
  parts.push_back({"m/byteorder", "big"});
  refuse_parts<UnsupportedError>(parts, "the numbers in the archive have their highest byte first");
}

TEST(TorchDamage, OfUnknownOpsIsRefusedAllAtOnce) {
  ProgramText program = sum();
  program.nodes[0].target = "aten.frobnicate.default";
  program.nodes[0].module = "layer.1";
  program.nodes.push_back({"mine.thing.default", {}, Json::array({tensor_name("z")})});
  write::refuse<UnsupportedError>(
      program,
      "2 of its ops are not supported\n  frobnicate.default: 1 node, \"layer.1/y\"\n"
      "  mine.thing.default: 1 node, \"z\"");
}

TEST(TorchDamage, OfNamesIsRefused) {
  ProgramText program = sum();
  program.nodes[0].arguments[0].second = tensor_name("nobody");
  write::refuse(program, "node \"y\": \"nobody\" is made by no node, and is no input of the graph");
  program = sum();
  program.nodes.push_back(program.nodes[0]);
  write::refuse(program, "node \"y\": \"y\" is made twice");
}

// What PyTorch says a result is, and what we make of the op, must agree.
TEST(TorchDamage, OfTypesIsRefused) {
  Json json = sum().json();
  json["graph_module"]["graph"]["tensor_values"]["y"] = meta(DType::F32, {3});
  refuse_parts<UnsupportedError>(sum().parts(json.dump()),
                                 "node \"y\" gives f32[2], but the file says that \"y\" is f32[3]");
  json["graph_module"]["graph"]["tensor_values"]["y"] = meta(DType::I64, {2});
  refuse_parts<UnsupportedError>(sum().parts(json.dump()),
                                 "node \"y\" gives f32[2], but the file says that \"y\" is i64[2]");
}

}  // namespace
}  // namespace tenon::torch
