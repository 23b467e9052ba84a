#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/child_process.h"
#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "base/write_file.h"
#include "base/zip_bytes.h"
#include "tensor/npy.h"
#include "tensor/npy_text.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

// Deflated, as numpy.savez_compressed does it.
std::string write_zip(const std::filesystem::path& path, const Entries& entries) {
  std::vector<ZipPart> parts;
  for (const auto& [name, content] : entries)
    parts.push_back({.name = name, .content = content, .deflated = true});
  write_file(path, zip_bytes(parts));
  return path.string();
}

void expect_refused(const std::filesystem::path& path, const std::string& message) {
  expect_error<UserError>([&] { read_npz(path); }, path.string() + ": " + message);
}

TEST(Npz, RoundTripsInOrder) {
  const TemporaryFolder folder;
  const NamedTensors written{{"z", Tensor::of<float>({1, 2, 3})},
                             {"/a/../b", Tensor::of<int64_t>({7, 8}).reshaped({2, 1})},
                             {"gr\xc3\xbc\xc3\x9f", Tensor::strings({"x", "yy"}, {2})},
                             {"truth", filled(DType::Bool, {2}, 1)},
                             {"empty", Tensor(DType::F64, {0, 4})},
                             {"", Tensor::scalar<int32_t>(5)}};
  write_npz(folder / "data.npz", written);
  const NamedTensors read = read_npz(folder / "data.npz");
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].first, written[i].first);
    EXPECT_TRUE(identical(read[i].second, written[i].second)) << read[i].first;
  }
}

TEST(Npz, ReadsCompressedEntries) {
  const TemporaryFolder folder;
  const Tensor zeros(DType::F32, {1000, 100});  // longer than a header can be
  write_zip(folder / "data.npz", {{"zeros.npy", format_npy(zeros)}});
  EXPECT_LT(std::filesystem::file_size(folder / "data.npz"), 10000u);
  EXPECT_TRUE(identical(read_npz(folder / "data.npz")[0].second, zeros));
}

TEST(Npz, EqualTensorsMakeEqualFilesAndNothingElseIsLeft) {
  const TemporaryFolder folder;
  for (const char* name : {"a.npz", "b.npz", "a.npz"})
    write_npz(folder / name, {{"x", Tensor::of<float>({1, 2})}});
  EXPECT_EQ(read_file(folder / "a.npz"), read_file(folder / "b.npz"));
  std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST(Npz, MayHoldNothing) {
  const TemporaryFolder folder;
  write_npz(folder / "data.npz", {});
  EXPECT_TRUE(read_npz(folder / "data.npz").empty());
}

TEST(Npz, AFailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("data.npz", "precious").string();
  const Tensor t = Tensor::scalar(1.0);
  expect_error<UserError>(
      [&] {
        write_npz(path, {{"x", t}, {"x", t}});
      },
      "cannot write " + path + ": array \"x\": there are two of this name");
  EXPECT_EQ(read_file(path), "precious");
}

TEST(Npz, WritesOnlyRegularFiles) {
  const TemporaryFolder folder;
  const Tensor t = Tensor::scalar(1.0);
  expect_error<UserError>(
      [&] {
        write_npz("/dev/null", {{"x", t}});
      },
      "cannot write /dev/null: not a regular file");
  expect_error<UserError>(
      [&] {
        write_npz(folder.path(), {{"x", t}});
      },
      "cannot write " + folder.path().string() + ": not a regular file");
  const std::string nowhere = (folder / "none/data.npz").string();
  expect_error<UserError>(
      [&] {
        write_npz(nowhere, {{"x", t}});
      },
      "cannot write " + nowhere + ": No such file or directory");
}

TEST(Npz, LeavesNothingWhereThereIsNoRoom) {
  const TemporaryFolder folder;
  const ChildEnd end = run_in_child(60, [&] {
    const rlimit small{100, 100};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      write_npz(folder / "data.npz", {{"x", Tensor(DType::F32, {100})}});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("it was written");
  });
  EXPECT_EQ(end.report, "cannot write " + (folder / "data.npz").string() + ": array \"x\": File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, RefusesWhatIsNoArchive) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing.npz").string();
  expect_error<UserError>([&] { read_npz(missing); },
                          "cannot open " + missing + ": No such file or directory");
  expect_refused(folder.write("empty.npz", ""),
                 "this is no zip archive: it has 0 bytes\n  hint: the file is empty");
  expect_refused(folder.write("one.npz", "\x93NUMPY\x01"),
                 "this is no zip archive: it has 7 bytes\n  hint: this is one array, an .npy, which "
                 "has no name; numpy.savez(FILE, NAME=ARRAY) writes an .npz");
  expect_refused(folder.write("text.npz", std::string(100, 'x')),
                 "this is no zip archive, or it is cut off: the directory at its end is missing");
  write_npz(folder / "data.npz", {{"x", Tensor::of<float>({1, 2})}});
  const std::string whole = read_file(folder / "data.npz");
  for (size_t size = 0; size < whole.size(); size += 5)
    EXPECT_THROW(read_npz(folder.write("part.npz", whole.substr(0, size))), UserError) << size;
}

TEST(Npz, RefusesBytesThatDoNotMatchTheirChecksum) {
  const TemporaryFolder folder;
  write_npz(folder / "data.npz", {{"x", Tensor::of<float>({1, 2})}});
  std::string bytes = read_file(folder / "data.npz");
  const size_t item = bytes.find("shape");
  ASSERT_NE(item, std::string::npos);
  bytes[item + 80] = static_cast<char>(bytes[item + 80] ^ 1);
  expect_refused(folder.write("bad.npz", bytes),
                 "array \"x\": the entry \"x.npy\" of the zip archive is damaged: its checksum does not fit");
}

TEST(Npz, RefusesEntriesThatAreNoArraysOrHaveOneName) {
  const TemporaryFolder folder;
  expect_refused(write_zip(folder / "a.npz", {{"readme.txt", "hello"}}),
                 "the entry \"readme.txt\" is no .npy file");
  expect_refused(write_zip(folder / "b.npz", {{"x.npy", "hello"}}),
                 "array \"x\": npy: this is no .npy file: it does not start with \\x93NUMPY");
  expect_refused(
      write_zip(folder / "c.npz", {{"x.npy", format_npy(Tensor())}, {"x.npy", format_npy(Tensor())}}),
      "two entries of the zip archive have the name \"x.npy\"");
}

TEST(Npz, ABombIsRefusedBeforeItIsUnpacked) {
  const TemporaryFolder folder;
  const std::string bomb = format_npy(Tensor::of<float>({1})) + std::string(5'000'000, '\0');
  const std::string path = write_zip(folder / "bomb.npz", {{"x.npy", bomb}});
  EXPECT_LT(std::filesystem::file_size(path), 50'000u);
  expect_refused(path, "array \"x\": npy: an array f32[1] takes 4 bytes, but 5000004 follow the header");
}

TEST(Npz, AShapeBeyondTheEntryIsRefused) {
  const TemporaryFolder folder;
  std::string text = format_npy(Tensor(DType::F32, {1}));
  text.replace(text.find("(1,), }         "), 16, "(1000000000,), }");
  expect_refused(
      write_zip(folder / "a.npz", {{"x.npy", text}}),
      "array \"x\": npy: an array f32[1000000000] takes 4000000000 bytes, but 4 follow the header");
}

}  // namespace
}  // namespace tenon
