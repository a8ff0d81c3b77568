#pragma once

#include <stdexcept>
#include <string>

namespace ddp::test {

/// The Failure that `work` throws; the test ends as failed when it throws none.
template <class Failure, class Work>
Failure thrown(Work&& work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure;
  }
  throw std::logic_error("nothing was thrown");
}

template <class Failure, class Work>
std::string message_of(Work&& work) {
  return thrown<Failure>(work).what();
}

}  // namespace ddp::test
