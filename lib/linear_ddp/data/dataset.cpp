#include <linear_ddp/data/dataset.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include <linear_ddp/base/available_memory.hpp>
#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// "data.csv: column 'age'"
std::string name_column(const TableShare& share, const std::string& name) {
  return fmt::format("{}column {}", share.path.empty() ? "" : share.path + ": ", excerpt(name));
}

/// Row of the table that the rank's row is.
std::int64_t row_of_table(const TableShare& share, std::int64_t row) {
  for (const RowRange& piece : share.ranges()) {
    if (row < piece.count) return piece.first + row;
    row -= piece.count;
  }
  return row;
}

void require_float(const TableShare& share, const std::vector<double>& values, const std::vector<std::string>& names) {
  const auto bad = std::find_if(values.begin(), values.end(),
                                [](double value) { return !std::isfinite(static_cast<float>(value)); });
  if (bad == values.end()) return;
  const auto index = static_cast<std::size_t>(bad - values.begin());
  throw UseError(fmt::format("{}, data row {}: {:g} is beyond the range of float (3.4e38): rescale it",
                             name_column(share, names[index % names.size()]),
                             row_of_table(share, static_cast<std::int64_t>(index / names.size())) + 1, *bad));
}

/// Collective. The ranks' values as float at their rows' places.
SharedArray gather(const World& world, const TableShare& share, const std::vector<double>& values,
                   std::size_t columns) {
  const auto width = static_cast<std::int64_t>(columns);
  SharedArray all(world, checked_product(share.total_rows, width, "the values of a table, rows times columns"));
  std::vector<SharedArray::Range> own;
  const double* from = values.data();
  for (const RowRange& piece : share.ranges()) {
    const SharedArray::Range range{piece.first * width, piece.count * width};
    std::transform(from, from + range.count, all.data() + range.first,
                   [](double value) { return static_cast<float>(value); });
    from += range.count;
    own.push_back(range);
  }
  all.exchange(world, own);
  return all;
}

/// Collective. The same of features, a block at a time: no rank holds its share twice.
SharedArray gather_features(const World& world, const TableShare& share) {
  const auto width = std::ssize(share.feature_names);
  SharedArray all(world, checked_product(share.total_rows, width, "the values of a table, rows times columns"));
  std::vector<SharedArray::Range> own;
  agree(world, [&] {
    const std::int64_t most = rows_of_block(share);
    std::vector<std::int64_t> rows;
    for (const RowRange& piece : share.ranges()) {
      own.push_back({piece.first * width, piece.count * width});
      for (std::int64_t row = piece.first, end = row + piece.count; row < end; row += std::ssize(rows)) {
        rows.resize(static_cast<std::size_t>(std::min(most, end - row)));
        std::iota(rows.begin(), rows.end(), row);
        share.source->read(rows, all.data() + row * width);
      }
    }
  });
  all.exchange(world, own);
  return all;
}

/// Collective. Whether the features stay where they are.
bool stays(const World& world, const TableShare& share, Residence residence, std::vector<std::string>& notices) {
  const bool in_memory = share.source && share.source->in_memory();
  if (residence == Residence::files && (!share.source || in_memory)) {
    throw AgreedError(Status::wrong_use,
                      fmt::format("{}: rows of this table cannot be read one by one, and so not streamed; .npy, "
                                  ".safetensors and .hdf5 without gaps can",
                                  share.path));
  }
  if (in_memory) return true;
  if (!share.source || residence == Residence::memory) return false;
  if (residence == Residence::files) return true;
  const double bytes = static_cast<double>(share.total_rows) * static_cast<double>(share.feature_names.size()) * 4;
  double available = static_cast<double>(available_memory());
  all_reduce_min(world, std::span(&available, 1));
  if (bytes <= available / 2) return false;
  notices.push_back(
      fmt::format("{}: {:.3g} GB of features, and {:.3g} GB of memory available: they are read from the "
                  "file as they are needed",
                  share.path, bytes / 1e9, available / 1e9));
  return true;
}

/// A rank without rows must not disturb a minimum.
constexpr double nothing = std::numeric_limits<double>::infinity();

/// Mean and scale of a feature. A float weight for it, which is divided by its scale, stays far from float's limits.
constexpr double largest = 1e30;

}  // namespace

Dataset gather_dataset(const World& world, const TableShare& share, Residence residence) {
  agree(world, [&] {
    require_float(share, share.features, share.feature_names);
    require_float(share, share.targets, share.target_names);
    require_float(share, share.weights, {"of the weights"});
  });
  std::int64_t weights = static_cast<std::int64_t>(share.weights.size());
  all_reduce_sum(world, std::span(&weights, 1));
  Dataset data;
  data.rows = share.total_rows;
  data.in = static_cast<std::int64_t>(share.feature_names.size());
  data.out = static_cast<std::int64_t>(share.target_names.size());
  if (stays(world, share, residence, data.notices)) {
    data.source = share.source;
  } else {
    data.x =
        share.source ? gather_features(world, share) : gather(world, share, share.features, share.feature_names.size());
  }
  data.y = gather(world, share, share.targets, share.target_names.size());
  if (weights > 0) data.weights = gather(world, share, share.weights, 1);
  data.classes = share.labels;
  if (const auto notice = notice_of_copies(world, data.x.why_not_shared()); !notice.empty())
    data.notices.push_back(notice);
  return data;
}

void Dataset::copy_x(std::span<const std::int64_t> some_rows, float* target) const {
  if (source) {
    source->will_need(some_rows);
    source->read(some_rows, target);
    return;
  }
  for (const std::int64_t row : some_rows) target = std::copy_n(x.data() + row * in, in, target);
}

void Dataset::copy_y(std::span<const std::int64_t> some_rows, float* target) const {
  for (const std::int64_t row : some_rows) target = std::copy_n(y.data() + row * out, out, target);
}

Dataset select_rows(const World& world, const Dataset& data, const std::vector<std::int64_t>& rows) {
  const auto count = std::ssize(rows);
  const std::int64_t begin = share_begin(count, world.rank(), world.size());
  const std::int64_t end = share_begin(count, world.rank() + 1, world.size());
  const auto take = [&](const SharedArray& values, std::int64_t width) {
    if (values.empty()) return SharedArray();
    SharedArray some(world, checked_product(count, width, "the values of some rows"));
    float* to = some.data() + begin * width;
    for (std::int64_t i = begin; i < end; ++i) {
      to = std::copy_n(values.data() + rows[static_cast<std::size_t>(i)] * width, width, to);
    }
    some.exchange(world, {{begin * width, (end - begin) * width}});
    return some;
  };
  Dataset some{.rows = count, .in = data.in, .out = data.out, .x = take(data.x, data.in), .y = take(data.y, data.out)};
  some.weights = take(data.weights, 1);
  if (data.score_weights) some.score_weights = take(*data.score_weights, 1);
  some.classes = data.classes;
  if (data.source) some.source = selected(data.source, rows);
  return some;
}

Standardizer::Standardizer(const World& world, const TableShare& share) {
  const std::size_t columns = share.feature_names.size();
  const auto each_value = [&](auto&& visit) {
    agree(world, [&] {
      each_block(share, [&](std::span<const double> values) {
        for (std::size_t i = 0; i < values.size();) {
          for (std::size_t column = 0; column < columns; ++column, ++i) visit(column, values[i]);
        }
      });
    });
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
  if (share.source) share.source = standardized(share.source, mean_, scale_);
  const std::size_t columns = mean_.size();
  for (std::size_t i = 0; i < share.features.size(); ++i) {
    share.features[i] = (share.features[i] - mean_[i % columns]) / scale_[i % columns];
  }
}

template <class T>
void Standardizer::transform(std::vector<T>& weight, std::vector<T>& bias, bool folds) const {
  if (bias.empty() && std::any_of(mean_.begin(), mean_.end(), [](double mean) { return mean != 0; })) {
    throw UseError("a model without bias cannot hold the means of --standardize; leave out --no-bias or --standardize");
  }
  const std::size_t columns = mean_.size();
  for (std::size_t o = 0; o * columns < weight.size(); ++o) {
    double shift = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      T& value = weight[o * columns + i];
      const double given = static_cast<double>(value);
      const double other = folds ? given / scale_[i] : given * scale_[i];
      shift += (folds ? other : given) * mean_[i];  // the weight for the raw feature
      value = static_cast<T>(other);
    }
    if (!bias.empty()) bias[o] = static_cast<T>(static_cast<double>(bias[o]) + (folds ? -shift : shift));
  }
}

void Standardizer::fold_into(std::vector<float>& weight, std::vector<float>& bias) const {
  transform(weight, bias, true);
}

void Standardizer::fold_into(std::vector<double>& weight, std::vector<double>& bias) const {
  transform(weight, bias, true);
}

void Standardizer::unfold(std::vector<float>& weight, std::vector<float>& bias) const {
  transform(weight, bias, false);
}

}  // namespace ddp
