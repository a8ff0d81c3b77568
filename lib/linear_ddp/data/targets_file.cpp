#include <fmt/format.h>

#include <cstring>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// Of all ranks, in the order of the rows. A text file is shared out by its bytes, so a rank has other rows of it.
std::vector<double> all_targets(const World& world, const TableShare& share) {
  std::string bytes(share.targets.size() * sizeof(double), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), share.targets.data(), bytes.size());
  std::vector<double> all;
  for (const auto& part : all_gather(world, bytes)) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(double));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

}  // namespace

void take_targets(const World& world, TableShare& share, const TableShare& targets) {
  agree(world, [&] {
    if (targets.total_rows == share.total_rows) return;
    throw UseError(fmt::format("{} has {} rows but {} has {}; each row needs its target", targets.path,
                               targets.total_rows, share.path, share.total_rows));
  });
  const auto all = all_targets(world, targets);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(share.first_row);
  share.targets.assign(begin, begin + static_cast<std::ptrdiff_t>(share.rows));
  share.target_names = targets.target_names;
  share.labels = targets.labels;
}

}  // namespace ddp
