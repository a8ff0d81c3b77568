#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include "support/data_path.hpp"
#include "support/mpi_test_world.hpp"
#include "support/temporary_folder.hpp"

namespace ddp::test {

/// A file of the tests that all ranks can read, in a folder of its own on rank 0; collective. Removed at the end.
class SharedFile {
 public:
  SharedFile(const std::string& name, const std::string& content) {
    if (world().rank() == 0) {
      folder_.emplace();
      path_ = *folder_ / name;
      std::ofstream(path_, std::ios::binary) << content;
    }
    path_ = broadcast(world(), path_, 0);
  }
  ~SharedFile() { MPI_Barrier(world().comm()); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> folder_;
  std::string path_;
};

inline std::string case_path(const std::string& name) {
  return data_path("cases/" + name);
}
inline std::string dataset_path(const std::string& name) {
  return data_path("datasets/" + name);
}

/// A table of the cases.
inline TableShare read_case(const std::string& name, const ColumnSelection& selection = {},
                            const TextFormat& format = {}) {
  return read_table(world(), case_path(name), format, selection);
}

/// The target's values are names of classes.
inline ColumnSelection labels_of(const std::string& target = {}, Missing missing = Missing::error) {
  ColumnSelection selection{.target_kind = TargetKind::labels, .missing = missing};
  if (!target.empty()) selection.targets = {target};
  return selection;
}

inline std::vector<double> joined(const std::vector<double>& own) {
  std::string bytes(own.size() * sizeof(double), '\0');
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), bytes.size());
  std::string all;
  for (const auto& part : all_gather(world(), bytes)) all += part;
  std::vector<double> values(all.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), all.data(), all.size());
  return values;
}

/// The shares of all ranks one after the other, on every rank.
struct WholeTable {
  std::vector<double> features, targets;
  std::int64_t rows = 0;
};

/// Checks on the way that the shares follow each other without a gap.
inline WholeTable whole(const TableShare& share) {
  EXPECT_EQ(share.features.size(), static_cast<std::size_t>(share.rows) * share.feature_names.size());
  EXPECT_EQ(share.targets.size(), static_cast<std::size_t>(share.rows) * share.target_names.size());
  std::int64_t rows = 0;
  const auto begins = all_gather(world(), share.first_row);
  const auto counts = all_gather(world(), share.rows);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    EXPECT_EQ(begins[rank], rows);
    rows += counts[rank];
  }
  EXPECT_EQ(share.total_rows, rows);
  return {joined(share.features), joined(share.targets), rows};
}

/// What the ranks refuse with; all must throw the same.
template <class Read>
std::string refusal(Read&& read) {
  std::string message = "no error";
  Status status = Status::wrong_use;
  try {
    static_cast<void>(read());
  } catch (const AgreedError& error) {
    message = error.what();
    status = error.status();
  }
  for (const auto& other : all_gather(world(), message)) EXPECT_EQ(other, message);
  EXPECT_EQ(status, Status::wrong_use);
  return message;
}

/// Damages a file of the cases by `mutate(random, content)`, in many ways, and expects that what comes out is read, or
/// refused as wrong use: by all ranks alike, and without a crash.
template <class Mutate>
void expect_read_or_refused(const std::string& name, const std::vector<std::string>& extensions, Mutate&& mutate) {
  std::mt19937 random(7);  // the same on every rank
  std::ifstream source(case_path(name), std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(source), {}};
  for (std::size_t round = 0; round < 40; ++round) {
    std::string content = original;
    mutate(random, content);
    const SharedFile file("mutated" + extensions[round % extensions.size()], content);
    try {
      static_cast<void>(whole(read_table(world(), file.path(), {}, {})));
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.status(), Status::wrong_use) << error.what();
    }
  }
}

/// y = 1 + 2a - 3b on the 8 rows of BASE.csv.
inline void expect_base(const TableShare& share, std::size_t first_rows = 8) {
  const std::vector<double> features{0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0.5, 0.25};
  const std::vector<double> targets{1, 3, -2, 0, 2, 10, -7, 1.25};
  const auto table = whole(share);
  EXPECT_EQ(table.features,
            std::vector<double>(features.begin(), features.begin() + static_cast<std::ptrdiff_t>(2 * first_rows)));
  EXPECT_EQ(table.targets,
            std::vector<double>(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(first_rows)));
}

}  // namespace ddp::test
