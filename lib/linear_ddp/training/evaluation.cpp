#include <linear_ddp/training/evaluation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/training/score_sums.hpp>

namespace ddp {
namespace {

/// A rank's share of a data set, brought to the device a piece at a time.
class Pieces {
 public:
  Pieces(Device& device, const Model& model, const Dataset& data, int rank, int ranks)
      : device_(device),
        data_(data),
        begin_(share_begin(data.rows, rank, ranks)),
        end_(share_begin(data.rows, rank + 1, ranks)),
        most_(std::min(std::max<std::int64_t>(1, piece_numel / (data.in + model.shape().out)), end_ - begin_)) {
    if (device.memory_is_host()) return;
    x_ = Buffer<float>(device, most_ * data.in);
    y_ = Buffer<float>(device, most_ * data.out);
    if (!data.weights.empty()) weights_ = Buffer<float>(device, most_);
  }

  /// Calls visit(first row, batch on the device).
  template <class Visit>
  void each(const Visit& visit) {
    for (std::int64_t row = begin_; row < end_; row += most_) {
      const std::int64_t rows = std::min(most_, end_ - row);
      Batch batch{rows, x_of(row, rows), data_.y.data() + row * data_.out,
                  data_.weights.empty() ? nullptr : data_.weights.data() + row};
      if (!device_.memory_is_host()) {
        x_.upload({batch.x, static_cast<std::size_t>(rows * data_.in)});
        y_.upload({batch.target, static_cast<std::size_t>(rows * data_.out)});
        if (batch.row_weight != nullptr) weights_.upload({batch.row_weight, static_cast<std::size_t>(rows)});
        batch = {rows, x_.data(), y_.data(), batch.row_weight == nullptr ? nullptr : weights_.data()};
      }
      visit(row, batch);
    }
  }
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::int64_t end() const { return end_; }
  [[nodiscard]] std::int64_t most_rows() const { return most_; }

 private:
  /// On the host.
  const float* x_of(std::int64_t first_row, std::int64_t count) {
    if (!data_.source) return data_.x.data() + first_row * data_.in;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), first_row);
    read_.resize(static_cast<std::size_t>(count * data_.in));
    data_.copy_x(rows, read_.data());
    return read_.data();
  }

  static constexpr std::int64_t piece_numel = 8 << 20;
  Device& device_;
  const Dataset& data_;
  std::int64_t begin_, end_, most_;
  Buffer<float> x_, y_, weights_;
  std::vector<float> read_;
};

/// A loss as a sum and what it is divided by.
struct LossSums {
  double loss = 0, weight = 0;
  void add_weights(const Model& model, const Dataset& data, const Pieces& share) {
    const auto& class_weight = model.loss().class_weight;
    for (auto row = static_cast<std::size_t>(share.begin()); std::cmp_less(row, share.end()); ++row) {
      const double own_class = class_weight.empty() ? 1.0 : class_weight.at(static_cast<std::size_t>(data.y[row]));
      weight += own_class * (data.weights.empty() ? 1.0 : double{data.weights[row]});
    }
  }
};

/// Loss of a piece.
class PieceLoss {
 public:
  PieceLoss(Device& device, Model& model) : model_(model), sum_(device, 1) {}
  double operator()(const Batch& batch) {
    double sum = 0;
    model_.loss_sum(batch, sum_.data());
    sum_.download({&sum, 1});
    return sum;
  }

 private:
  Model& model_;
  Buffer<double> sum_;
};

/// The first row of a target is what its deviations are taken from: a constant target then has none, and the sum of
/// others does not cancel.
std::vector<double> means_of_targets(const World& world, const Dataset& data, const Pieces& share, double weight) {
  const auto outputs = static_cast<std::size_t>(data.out);
  std::vector<double> means(outputs, 0.0);
  for (auto row = static_cast<std::size_t>(share.begin()); std::cmp_less(row, share.end()); ++row) {
    for (std::size_t o = 0; o < outputs; ++o) {
      means[o] += weight_of(data, row) * (static_cast<double>(data.y[row * outputs + o]) - double{data.y[o]});
    }
  }
  all_reduce_sum(world, std::span(means));
  for (std::size_t o = 0; o < outputs; ++o) means[o] = double{data.y[o]} + means[o] / weight;
  return means;
}

double total_weight(const Dataset& data) {
  const SharedArray& weights = score_weights(data);
  if (weights.empty()) return static_cast<double>(data.rows);
  return std::accumulate(weights.data(), weights.data() + weights.size(), 0.0);
}

/// Rank 0 sorts the logits of all rows, and tells.
double roc_auc(const World& world, const Dataset& data, const Pieces& share, SharedArray& logits) {
  logits.exchange(world, {{share.begin(), share.end() - share.begin()}});
  double area = world.rank() == 0 ? mann_whitney(data, logits.data()) : 0;
  all_reduce_sum(world, std::span(&area, 1));
  return area;
}

}  // namespace

double Scores::score() const {
  if (classes) return classes->accuracy;
  double sum = 0;
  for (const auto& target : targets) sum += target.r2;
  return sum / static_cast<double>(targets.size());
}

double evaluate_loss(Device& device, ProcessGroup& group, Model& model, const Dataset& data) {
  Pieces pieces(device, model, data, group.rank(), group.size());
  PieceLoss piece_loss(device, model);
  LossSums own;
  pieces.each([&](std::int64_t, const Batch& batch) { own.loss += piece_loss(batch); });
  own.add_weights(model, data, pieces);
  Buffer<double> on_device(device, 2);
  std::array<double, 2> sums{own.loss, own.weight};
  on_device.upload(sums);
  device.wait(Queue::communication, Queue::compute);
  group.all_reduce(on_device.span());
  device.wait(Queue::compute, Queue::communication);
  on_device.download(sums);
  return sums[0] / (sums[1] * static_cast<double>(model.losses_of_a_row()));
}

Scores evaluate(const World& world, Device& device, Model& model, const Dataset& data, bool with_area) {
  const LossKind kind = model.loss().kind;
  const bool binary = kind == LossKind::bce_with_logits;
  if (binary && model.shape().out != 1) throw UseError("scores of BCE are those of one output");
  const bool numbers = kind == LossKind::mse || kind == LossKind::huber;
  Pieces pieces(device, model, data, world.rank(), world.size());
  PieceLoss piece_loss(device, model);
  LossSums loss;
  loss.add_weights(model, data, pieces);

  const auto outputs = static_cast<std::size_t>(model.shape().out);
  const double weight = total_weight(data);
  RegressionSums regression(numbers ? means_of_targets(world, data, pieces, weight) : std::vector<double>{});
  ClassSums classes(numbers ? 0 : binary ? 2 : outputs);
  const bool ranks_rows = binary && with_area;
  SharedArray logits = ranks_rows ? SharedArray(world, data.rows) : SharedArray();
  Buffer<float> on_device(device, pieces.most_rows() * model.shape().out);
  std::vector<float> y(static_cast<std::size_t>(on_device.numel()));
  pieces.each([&](std::int64_t first, const Batch& batch) {
    loss.loss += piece_loss(batch);
    model.forward(batch.rows, batch.x, on_device.data());
    on_device.download(std::span(y).first(static_cast<std::size_t>(batch.rows) * outputs));
    for (std::int64_t i = 0; i < batch.rows; ++i) {
      const std::span<const float> row_outputs(y.data() + static_cast<std::size_t>(i) * outputs, outputs);
      const auto row = static_cast<std::size_t>(first + i);
      if (numbers) {
        regression.add(data, row, row_outputs);
      } else {
        classes.add(data, row, row_outputs);
        if (ranks_rows) logits.data()[row] = row_outputs[0];
      }
    }
  });

  std::vector<double> sums{loss.loss, loss.weight};
  regression.append_to(sums);
  classes.append_to(sums);
  all_reduce_sum(world, std::span(sums));
  Scores scores;
  scores.rows = data.rows;
  scores.loss = sums[0] / (sums[1] * static_cast<double>(model.losses_of_a_row()));
  const std::span<const double> rest = std::span(sums).subspan(2);
  if (numbers) {
    scores.targets = regression.scores(rest, weight, data.rows);
  } else {
    all_reduce_sum(world, std::span(classes.confusion()));
    scores.classes = classes.scores(rest, weight);
    scores.classes->roc_auc =
        ranks_rows ? roc_auc(world, data, pieces, logits) : std::numeric_limits<double>::quiet_NaN();
  }
  return scores;
}

}  // namespace ddp
