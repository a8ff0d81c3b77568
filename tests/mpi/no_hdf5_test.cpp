// A build without HDF5 says so.
#include <gmock/gmock.h>

#include "support/table_file.hpp"

namespace ddp {
namespace {

TEST(NoHdf5, IsToldByName) {
  EXPECT_THAT(test::refusal([] { return test::read_case("P50-int-1d.h5"); }),
              ::testing::AllOf(::testing::HasSubstr("P50-int-1d.h5"), ::testing::HasSubstr("built without HDF5")));
}

}  // namespace
}  // namespace ddp
