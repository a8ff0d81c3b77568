#include <linear_ddp/data/dataset.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// "data.csv: column 'age'"
std::string name_column(const TableShare& share, const std::string& name) {
  return fmt::format("{}column {}", share.path.empty() ? "" : share.path + ": ", excerpt(name));
}

std::vector<float> to_float(const TableShare& share, const std::vector<double>& values,
                            const std::vector<std::string>& names) {
  std::vector<float> narrowed(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    narrowed[i] = static_cast<float>(values[i]);
    if (!std::isfinite(narrowed[i])) {
      const std::size_t columns = names.size();
      throw UseError(fmt::format("{}, data row {}: {:g} is beyond the range of float (3.4e38): rescale it",
                                 name_column(share, names[i % columns]),
                                 share.first_row + static_cast<std::int64_t>(i / columns) + 1, values[i]));
    }
  }
  return narrowed;
}

/// A rank without rows must not disturb a minimum.
constexpr double nothing = std::numeric_limits<double>::infinity();

/// Mean and scale of a feature. A float weight for it, which is divided by its scale, stays far from float's limits.
constexpr double largest = 1e30;

}  // namespace

Dataset gather_dataset(const World& world, const TableShare& share) {
  struct Columns {
    std::vector<float> x, y;
  };
  const auto own = agree(world, [&] {
    return Columns{to_float(share, share.features, share.feature_names),
                   to_float(share, share.targets, share.target_names)};
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
    // Squares of 1e200 overflow, those of 1e-200 vanish. What float weights cannot make good is refused before, and by
    // all ranks, which have the same sums.
    if (std::abs(mean_[column]) <= largest && 1 / largest <= scale_[column] && scale_[column] <= largest) continue;
    throw AgreedError(
        Status::wrong_use,
        fmt::format("{}: values from {:g} to {:g} cannot be standardised: their mean must be within {:g}, "
                    "and their standard deviation between {:g} and {:g}; rescale them",
                    name_column(share, share.feature_names[column]), low[column], high[column], largest, 1 / largest,
                    largest));
  }
}

void Standardizer::apply(TableShare& share) const {
  const std::size_t columns = mean_.size();
  for (std::size_t i = 0; i < share.features.size(); ++i) {
    share.features[i] = (share.features[i] - mean_[i % columns]) / scale_[i % columns];
  }
}

void Standardizer::transform(std::vector<float>& weight, std::vector<float>& bias, bool folds) const {
  if (bias.empty() && std::any_of(mean_.begin(), mean_.end(), [](double mean) { return mean != 0; })) {
    throw UseError("a model without bias cannot hold the means of --standardize; leave out --no-bias or --standardize");
  }
  const std::size_t columns = mean_.size();
  for (std::size_t o = 0; o * columns < weight.size(); ++o) {
    double shift = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      float& value = weight[o * columns + i];
      const double given = static_cast<double>(value);
      const double other = folds ? given / scale_[i] : given * scale_[i];
      shift += (folds ? other : given) * mean_[i];  // the weight for the raw feature
      value = static_cast<float>(other);
    }
    if (!bias.empty()) bias[o] = static_cast<float>(static_cast<double>(bias[o]) + (folds ? -shift : shift));
  }
}

void Standardizer::fold_into(std::vector<float>& weight, std::vector<float>& bias) const {
  transform(weight, bias, true);
}

void Standardizer::unfold(std::vector<float>& weight, std::vector<float>& bias) const {
  transform(weight, bias, false);
}

}  // namespace ddp
