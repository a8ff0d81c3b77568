// The case of HDF5 files that many ranks read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <iterator>

#include "support/fit.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ArrayKeys in_group{"X", "grp/y"};

TEST(Cases, P50_AllRanksReadAndNoneLocks) {
  const std::string path = case_path("P50-gzip-be.h5");
  const auto share = read_hdf5_table(world(), path, in_group, {});
  EXPECT_THAT(share.feature_names, ElementsAre("X#0", "X#1"));
  EXPECT_THAT(share.target_names, ElementsAre("grp/y"));
  expect_base_case(share);
  expect_base_case(read_case("P50-int-1d.h5"), 7);
  EXPECT_THAT(refusal([] { return read_case("P50-gzip-be.h5"); }),
              AllOf(HasSubstr("no dataset 'y'"), HasSubstr("it has "), HasSubstr("'X'"), HasSubstr("'grp/y'")));

  // As where a file system gives no locks: a lock of another's is in the way of those who ask for one.
  std::ifstream source(path, std::ios::binary);
  const SharedFile locked("locked.h5", {std::istreambuf_iterator<char>(source), {}});
  const int descriptor = world().rank() == 0 ? open(locked.path().c_str(), O_RDONLY) : -1;
  if (descriptor >= 0) {
    EXPECT_EQ(flock(descriptor, LOCK_EX), 0);
  }
  MPI_Barrier(world().comm());
  expect_base(read_hdf5_table(world(), locked.path(), in_group, {}));
  MPI_Barrier(world().comm());
  if (descriptor >= 0) close(descriptor);
}

}  // namespace
}  // namespace ddp::test
