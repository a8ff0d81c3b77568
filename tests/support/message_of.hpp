#pragma once

#include <gtest/gtest.h>

#include <string>

namespace ddp::test {

/// The message of the Failure that `work` throws; the test fails when it throws none.
template <class Failure, class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace ddp::test
