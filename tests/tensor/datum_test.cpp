#include "tensor/datum.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Datum, IsATensorASequenceOrAnOptional) {
  const Datum tensor = Tensor::scalar(1.5);
  const Datum sequence = Sequence{{tensor, Sequence{}}};
  const Datum full = Optional{std::make_shared<const Datum>(sequence)};
  EXPECT_EQ(tensor.tensor().data<double>()[0], 1.5);
  EXPECT_EQ(sequence.sequence().elements.size(), 2u);
  EXPECT_EQ(full.optional().element->sequence().elements[0].tensor().dtype(), DType::F64);
  EXPECT_EQ(Datum(Optional{}).optional().element, nullptr);
}

TEST(Datum, IsNothingButWhatItIs) {
  EXPECT_THROW(Datum(Tensor()).sequence(), InternalError);
  EXPECT_THROW(Datum(Sequence{}).optional(), InternalError);
  EXPECT_THROW(Datum(Optional{}).tensor(), InternalError);
}

}  // namespace
}  // namespace tenon
