#include "target/processor_flags.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "target/processor.h"
#include "target/target.h"

namespace tenon {
namespace {

// The processor says what the kernel says of it.
TEST(ProcessorFlags, AreThoseOfProc) {
  std::ifstream file("/proc/cpuinfo");
  const std::string cpuinfo{std::istreambuf_iterator<char>(file), {}};
  if (cpuinfo.empty())
    GTEST_SKIP() << "there is no /proc/cpuinfo";
  const Architecture architecture = this_machine().architecture;
  const Target asked = parse_processor(architecture, processor_flags()),
               read = parse_processor(architecture, cpuinfo);
  EXPECT_EQ(asked.features, read.features);
  EXPECT_EQ(asked.cpu, read.cpu);
  EXPECT_EQ(asked.matrix_tiles, read.matrix_tiles);
}

}  // namespace
}  // namespace tenon
