#include <gtest/gtest.h>

#include "base/shared_library.h"
#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Devices = CommandLine;

TEST_F(Devices, AreListed) {
  const Outcome outcome = shell("tenon devices | grep -o '^[a-z]*:' | uniq");
  EXPECT_EQ(outcome.out, "cpu:\ncuda:\nnvrtc:\n");
  EXPECT_EQ(outcome.error, "");
}

// A library that is neither stands in for both, so that this is the same where there is a GPU.
TEST_F(Devices, SayWhyTheyAreMissing) {
  for (const char* name : {"libcuda.so.1", "libnvrtc.so.13"})
    std::filesystem::copy_file(SharedLibrary({.names = {"libm.so.6"}}).path(), folder_ / name);
  expect_done("TENON_CUDA_PATH=. tenon devices | grep -v '^cpu: '",
              "cuda: none: ./libcuda.so.1 has no function cuInit: its version is too old\n"
              "nvrtc: none: ./libnvrtc.so.13 has no function nvrtcVersion: its version is too old\n");
}

}  // namespace
}  // namespace tenon::cli
