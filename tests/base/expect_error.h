// expect_error.h — asserts that work fails with just this kind of error and just this message.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <typeinfo>

#include "base/error.h"

namespace tenon {

template <class Error, class Work>
void expect_error(Work&& work, const std::string& message) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_TRUE(typeid(error) == typeid(Error)) << "a more special error: " << typeid(error).name();
    EXPECT_EQ(error.what(), message);
    return;
  }
  FAIL() << "no error, but expected: " << message;
}

}  // namespace tenon
