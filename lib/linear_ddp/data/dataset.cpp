#include <linear_ddp/data/dataset.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

std::vector<float> to_float(const std::vector<double>& values, std::int64_t first_row,
                            const std::vector<std::string>& names) {
  std::vector<float> narrowed(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    narrowed[i] = static_cast<float>(values[i]);
    if (!std::isfinite(narrowed[i])) {
      const std::size_t columns = names.size();
      throw UseError(fmt::format("column {} of data row {} is {:g}, beyond the range of float (3.4e38): rescale it",
                                 names[i % columns], first_row + static_cast<std::int64_t>(i / columns) + 1,
                                 values[i]));
    }
  }
  return narrowed;
}

/// A rank without rows must not disturb a minimum.
constexpr double nothing = std::numeric_limits<double>::infinity();

}  // namespace

Dataset gather_dataset(const World& world, const TableShare& share) {
  struct Columns {
    std::vector<float> x, y;
  };
  const auto own = agree(world, [&] {
    return Columns{to_float(share.features, share.first_row, share.feature_names),
                   to_float(share.targets, share.first_row, share.target_names)};
  });
  Dataset data;
  data.rows = share.total_rows;
  data.in = static_cast<std::int64_t>(share.feature_names.size());
  data.out = static_cast<std::int64_t>(share.target_names.size());
  data.x = all_gather(world, std::span<const float>(own.x));
  data.y = all_gather(world, std::span<const float>(own.y));
  return data;
}

Standardizer::Standardizer(const World& world, const TableShare& share) {
  const std::size_t columns = share.feature_names.size();
  const auto each_value = [&](auto&& visit) {
    for (std::size_t i = 0; i < share.features.size(); ++i) visit(i % columns, share.features[i]);
  };
  const auto rows = static_cast<double>(share.total_rows);

  mean_.assign(columns, 0.0);
  std::vector<double> low(columns, nothing), high(columns, -nothing);
  each_value([&](std::size_t column, double value) {
    mean_[column] += value;
    low[column] = std::min(low[column], value);
    high[column] = std::max(high[column], value);
  });
  all_reduce_sum(world, std::span(mean_));
  all_reduce_min(world, low);
  all_reduce_max(world, high);
  for (std::size_t column = 0; column < columns; ++column) {
    // The sum of equal values rounds; their mean may not.
    mean_[column] = low[column] == high[column] ? low[column] : mean_[column] / rows;
  }

  // A second pass over the deviations: sums of squares of raw values would cancel.
  scale_.assign(columns, 0.0);
  each_value(
      [&](std::size_t column, double value) { scale_[column] += (value - mean_[column]) * (value - mean_[column]); });
  all_reduce_sum(world, std::span(scale_));
  for (std::size_t column = 0; column < columns; ++column) {
    scale_[column] = low[column] == high[column] ? 1.0 : std::sqrt(scale_[column] / rows);
  }
}

void Standardizer::apply(TableShare& share) const {
  const std::size_t columns = mean_.size();
  for (std::size_t i = 0; i < share.features.size(); ++i) {
    share.features[i] = (share.features[i] - mean_[i % columns]) / scale_[i % columns];
  }
}

void Standardizer::require_bias(const std::vector<float>& bias) const {
  if (bias.empty() && std::any_of(mean_.begin(), mean_.end(), [](double mean) { return mean != 0; })) {
    throw UseError("a model without bias cannot hold the means of --standardize; leave out --no-bias or --standardize");
  }
}

void Standardizer::fold_into(std::vector<float>& weight, std::vector<float>& bias) const {
  require_bias(bias);
  const std::size_t columns = mean_.size();
  for (std::size_t o = 0; o * columns < weight.size(); ++o) {
    double shift = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double raw = static_cast<double>(weight[o * columns + i]) / scale_[i];
      shift += raw * mean_[i];
      weight[o * columns + i] = static_cast<float>(raw);
    }
    if (!bias.empty()) bias[o] = static_cast<float>(static_cast<double>(bias[o]) - shift);
  }
}

void Standardizer::unfold(std::vector<float>& weight, std::vector<float>& bias) const {
  require_bias(bias);
  const std::size_t columns = mean_.size();
  for (std::size_t o = 0; o * columns < weight.size(); ++o) {
    double shift = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double raw = static_cast<double>(weight[o * columns + i]);
      shift += raw * mean_[i];
      weight[o * columns + i] = static_cast<float>(raw * scale_[i]);
    }
    if (!bias.empty()) bias[o] = static_cast<float>(static_cast<double>(bias[o]) + shift);
  }
}

}  // namespace ddp
