#include <linear_ddp/data/resident_rows.hpp>

#include <algorithm>

#include <linear_ddp/data/row_weights.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/data/upload_rows.hpp>

namespace ddp {

ResidentRows::ResidentRows(Device& device, const Dataset& data, const std::vector<float>& class_weight, int rank,
                           int ranks, std::span<const int> part) {
  BatchOptions options;
  options.class_weight = class_weight;
  const RowWeights weights(data, options);
  std::vector<std::vector<std::int64_t>> rows_of(
      part.empty() ? 1 : static_cast<std::size_t>(*std::max_element(part.begin(), part.end())) + 1);
  for (std::int64_t row = 0; row < data.rows; ++row) {
    rows_of[part.empty() ? 0 : static_cast<std::size_t>(part[static_cast<std::size_t>(row)])].push_back(row);
  }
  for (const auto& rows : rows_of) {
    Part& one = parts_.emplace_back();
    one.rows = std::ssize(rows);
    one.weight = 0;
    for (const std::int64_t row : rows) one.weight += weights.of(row);
    const std::int64_t begin = share_begin(one.rows, rank, ranks), end = share_begin(one.rows, rank + 1, ranks);
    const auto own = std::span(rows).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    one.x = upload_rows(device, own, data.in, [&](auto some, float* to) { data.copy_x(some, to); });
    one.target = upload_rows(device, own, data.out, [&](auto some, float* to) { data.copy_y(some, to); });
    if (!data.weights.empty()) {
      one.row_weight = upload_rows(device, own, 1, [&](auto some, float* to) { weights.write(some, 1, to); });
    }
    one.batch = {end - begin, one.x.data(), one.target.data(), one.row_weight.data()};
  }
}

FullBatch ResidentRows::without(int part) const {
  FullBatch all;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (std::cmp_equal(i, part)) continue;
    all.pieces.push_back(parts_[i].batch);
    all.rows += parts_[i].rows;
    all.weight += parts_[i].weight;
  }
  return all;
}

}  // namespace ddp
