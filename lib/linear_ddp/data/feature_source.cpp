#include <linear_ddp/data/feature_source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>

namespace ddp {
namespace {

constexpr std::int64_t block_values = 32 << 10;

std::int64_t block_rows(std::int64_t columns) {
  return std::max<std::int64_t>(1, block_values / std::max<std::int64_t>(1, columns));
}

class Standardized final : public FeatureSource {
 public:
  Standardized(std::shared_ptr<FeatureSource> source, std::vector<double> mean, std::vector<double> scale)
      : FeatureSource(source->names(), source->in_memory()),
        source_(std::move(source)),
        mean_(std::move(mean)),
        scale_(std::move(scale)) {}

  using FeatureSource::read;
  void read(std::span<const std::int64_t> rows, double* x) override {
    source_->read(rows, x);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t column = 0; column < mean_.size(); ++column, ++x) *x = (*x - mean_[column]) / scale_[column];
    }
  }
  void will_need(std::span<const std::int64_t> rows) const override { source_->will_need(rows); }
  std::string name_row(std::int64_t row) const override { return source_->name_row(row); }

 private:
  std::shared_ptr<FeatureSource> source_;
  std::vector<double> mean_, scale_;
};

class Selected final : public FeatureSource {
 public:
  Selected(std::shared_ptr<FeatureSource> source, std::vector<std::int64_t> rows)
      : FeatureSource(source->names(), source->in_memory()), source_(std::move(source)), rows_(std::move(rows)) {}

  using FeatureSource::read;
  void read(std::span<const std::int64_t> rows, double* x) override { source_->read(places_of(rows), x); }
  void will_need(std::span<const std::int64_t> rows) const override { source_->will_need(places_of(rows)); }
  std::string name_row(std::int64_t row) const override { return source_->name_row(place_of(row)); }

 private:
  [[nodiscard]] std::int64_t place_of(std::int64_t row) const { return rows_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] std::vector<std::int64_t> places_of(std::span<const std::int64_t> rows) const {
    std::vector<std::int64_t> places;
    places.reserve(rows.size());
    for (const std::int64_t row : rows) places.push_back(place_of(row));
    return places;
  }

  std::shared_ptr<FeatureSource> source_;
  std::vector<std::int64_t> rows_;
};

class Joined final : public FeatureSource {
 public:
  struct Part {
    std::int64_t first_row;
    std::shared_ptr<FeatureSource> source;
  };

  explicit Joined(std::vector<Part> parts)
      : FeatureSource(parts[0].source->names(), std::all_of(parts.begin(), parts.end(),
                                                            [](const Part& part) { return part.source->in_memory(); })),
        parts_(std::move(parts)) {}

  using FeatureSource::read;
  void read(std::span<const std::int64_t> rows, double* x) override {
    each_part(rows, [&](FeatureSource& source, std::span<const std::int64_t> places) {
      source.read(places, x);
      x += std::ssize(places) * columns();
    });
  }
  void will_need(std::span<const std::int64_t> rows) const override {
    each_part(rows,
              [](const FeatureSource& source, std::span<const std::int64_t> places) { source.will_need(places); });
  }
  std::string name_row(std::int64_t row) const override {
    const Part& part = part_of(row);
    return part.source->name_row(row - part.first_row);
  }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

 private:
  [[nodiscard]] const Part& part_of(std::int64_t row) const {
    return *std::prev(std::upper_bound(parts_.begin(), parts_.end(), row,
                                       [](std::int64_t wanted, const Part& part) { return wanted < part.first_row; }));
  }
  /// Calls visit(source, its rows) for rows that follow each other and are of the same source.
  template <class Visit>
  void each_part(std::span<const std::int64_t> rows, const Visit& visit) const {
    std::vector<std::int64_t> places;
    for (std::size_t begin = 0; begin < rows.size(); begin += places.size()) {
      const Part& part = part_of(rows[begin]);
      places.clear();
      for (std::size_t at = begin; at < rows.size() && &part_of(rows[at]) == &part; ++at) {
        places.push_back(rows[at] - part.first_row);
      }
      visit(*part.source, places);
    }
  }

  std::vector<Part> parts_;
};

}  // namespace

void FeatureSource::read(std::span<const std::int64_t> rows, float* x) {
  const auto columns = names_.size();
  const auto most = static_cast<std::size_t>(block_rows(std::ssize(names_)));
  std::vector<double> block(std::min(most, rows.size()) * columns);
  for (; !rows.empty(); rows = rows.subspan(std::min(most, rows.size()))) {
    const auto some = rows.first(std::min(most, rows.size()));
    read(some, block.data());
    for (std::size_t i = 0; i < some.size() * columns; ++i) {
      x[i] = static_cast<float>(block[i]);
      if (std::isfinite(x[i])) continue;
      throw UseError(fmt::format("{}, column {}: {:g} is beyond the range of float (3.4e38): rescale it",
                                 name_row(some[i / columns]), excerpt(names_[i % columns]), block[i]));
    }
    x += some.size() * columns;
  }
}

std::shared_ptr<FeatureSource> standardized(std::shared_ptr<FeatureSource> source, std::vector<double> mean,
                                            std::vector<double> scale) {
  return std::make_shared<Standardized>(std::move(source), std::move(mean), std::move(scale));
}

std::shared_ptr<FeatureSource> selected(std::shared_ptr<FeatureSource> source, std::vector<std::int64_t> rows) {
  return std::make_shared<Selected>(std::move(source), std::move(rows));
}

std::shared_ptr<FeatureSource> joined(std::shared_ptr<FeatureSource> first, std::int64_t first_rows,
                                      std::shared_ptr<FeatureSource> second) {
  const auto* files = dynamic_cast<const Joined*>(first.get());
  auto parts = files != nullptr ? files->parts() : std::vector<Joined::Part>{{0, std::move(first)}};
  parts.push_back({first_rows, std::move(second)});
  return std::make_shared<Joined>(std::move(parts));
}

std::span<const double> own_features(const TableShare& share, std::int64_t first, std::int64_t count,
                                     std::vector<double>& block) {
  const auto columns = std::ssize(share.feature_names);
  const auto numel = static_cast<std::size_t>(count * columns);
  if (!share.source) return {share.features.data() + first * columns, numel};
  std::vector<std::int64_t> rows;
  for (const RowRange& piece : share.ranges()) {
    for (std::int64_t row = std::max<std::int64_t>(first, 0); row < std::min(piece.count, first + count); ++row) {
      rows.push_back(piece.first + row);
    }
    first -= piece.count;  // of the next piece's rows
  }
  block.resize(numel);
  share.source->read(rows, block.data());
  return block;
}

std::int64_t rows_of_block(const TableShare& share) {
  return block_rows(std::ssize(share.feature_names));
}

}  // namespace ddp
