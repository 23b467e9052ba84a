#include "report/ceilings.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Ceilings, BytesComeFromTheLevelThatHoldsThem) {
  const Ceilings ceilings{.flops_per_second = 1,
                          .bandwidths = {{"L1", 10, 4}, {"L2", 100, 3}, {"memory", 0, 2}}};
  EXPECT_EQ(ceilings.bandwidth_for(5), 3);  // another thread may have made them, so not from L1
  EXPECT_EQ(ceilings.bandwidth_for(100), 3);
  EXPECT_EQ(ceilings.bandwidth_for(101), 2);
}

TEST(CeilingMeter, MeasuresEveryLevel) {
  CeilingMeter meter(this_machine(), 2);
  meter.measure();
  const Ceilings ceilings = meter.ceilings();
  EXPECT_GT(ceilings.flops_per_second, 1e6);
  EXPECT_LT(ceilings.dispatch_seconds, 1);
  ASSERT_EQ(ceilings.bandwidths.size(), 3U);
  EXPECT_EQ(ceilings.bandwidths[0].name, "L1");
  EXPECT_EQ(ceilings.bandwidths[1].name, "L2");
  EXPECT_EQ(ceilings.bandwidths[2].name, "memory");
  for (const Ceilings::Bandwidth& level : ceilings.bandwidths)
    EXPECT_GT(level.bytes_per_second, 1e6) << level.name;
}

TEST(CeilingMeter, TheBestOfAllCallsCounts) {
  CeilingMeter meter(this_machine(), 1);
  meter.measure();
  const Ceilings first = meter.ceilings();
  meter.measure();
  EXPECT_GE(meter.ceilings().flops_per_second, first.flops_per_second);
  for (size_t i = 0; i < first.bandwidths.size(); ++i)
    EXPECT_GE(meter.ceilings().bandwidths[i].bytes_per_second, first.bandwidths[i].bytes_per_second);
  EXPECT_LE(meter.ceilings().dispatch_seconds, first.dispatch_seconds);
}

}  // namespace
}  // namespace tenon
