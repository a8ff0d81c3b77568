#include <linear_ddp/training/evaluation.hpp>

#include <algorithm>
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
        most_(std::min(std::max<std::int64_t>(1, piece_numel / (data.in + model.shape().outputs())), end_ - begin_)) {
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

/// The heads' losses as sums, and what they are divided by.
class LossSums {
 public:
  LossSums(Device& device, Model& model, const Dataset& data, const Pieces& share)
      : model_(model),
        on_device_(device, model.shape().heads),
        of_piece_(static_cast<std::size_t>(model.shape().heads)) {
    sums_.resize(of_piece_.size() + 1);
    const auto& class_weight = model.loss().class_weight;
    for (auto row = static_cast<std::size_t>(share.begin()); std::cmp_less(row, share.end()); ++row) {
      const double own_class = class_weight.empty() ? 1.0 : class_weight.at(static_cast<std::size_t>(data.y[row]));
      sums_.back() += own_class * (data.weights.empty() ? 1.0 : double{data.weights[row]});
    }
  }
  void add(const Batch& batch) {
    model_.loss_sum(batch, on_device_.data());
    on_device_.download(of_piece_);
    for (std::size_t head = 0; head < of_piece_.size(); ++head) sums_[head] += of_piece_[head];
  }
  /// [heads], and the weight, to be added up over the ranks.
  [[nodiscard]] std::vector<double>& sums() { return sums_; }
  [[nodiscard]] std::vector<double> means() const {
    std::vector<double> means(sums_.begin(), sums_.end() - 1);
    for (double& mean : means) mean /= sums_.back() * static_cast<double>(model_.losses_of_a_row());
    return means;
  }

 private:
  Model& model_;
  Buffer<double> on_device_;
  std::vector<double> of_piece_, sums_;
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
  return evaluate_losses(device, group, model, data).front();
}

std::vector<double> evaluate_losses(Device& device, ProcessGroup& group, Model& model, const Dataset& data) {
  Pieces pieces(device, model, data, group.rank(), group.size());
  LossSums losses(device, model, data, pieces);
  pieces.each([&](std::int64_t, const Batch& batch) { losses.add(batch); });
  Buffer<double> on_device(device, std::ssize(losses.sums()));
  on_device.upload(losses.sums());
  device.wait(Queue::communication, Queue::compute);
  group.all_reduce(on_device.span());
  device.wait(Queue::compute, Queue::communication);
  on_device.download(losses.sums());
  return losses.means();
}

Scores evaluate(const World& world, Device& device, Model& model, const Dataset& data, bool in_detail) {
  return evaluate_heads(world, device, model, data, in_detail).front();
}

std::vector<Scores> evaluate_heads(const World& world, Device& device, Model& model, const Dataset& data,
                                   bool in_detail) {
  const LossKind kind = model.loss().kind;
  const bool binary = kind == LossKind::bce_with_logits;
  if (binary && model.shape().out != 1) throw UseError("scores of BCE are those of one output");
  const bool numbers = kind == LossKind::mse || kind == LossKind::huber;
  Pieces pieces(device, model, data, world.rank(), world.size());
  LossSums losses(device, model, data, pieces);

  const auto outputs = static_cast<std::size_t>(model.shape().out),
             heads = static_cast<std::size_t>(model.shape().heads);
  const double weight = total_weight(data);
  const auto means = numbers ? means_of_targets(world, data, pieces, weight) : std::vector<double>{};
  std::vector<RegressionSums> regressions(heads, RegressionSums(means));
  std::vector<ClassSums> classes(heads, ClassSums(numbers ? 0 : binary ? 2 : outputs, in_detail));
  std::vector<SharedArray> logits;
  for (std::size_t head = 0; binary && in_detail && head < heads; ++head) logits.emplace_back(world, data.rows);
  Buffer<float> on_device(device, pieces.most_rows() * model.shape().heads * model.shape().out);
  std::vector<float> y(static_cast<std::size_t>(on_device.numel()));
  pieces.each([&](std::int64_t first, const Batch& batch) {
    losses.add(batch);
    model.forward(batch.rows, batch.x, on_device.data());
    on_device.download(std::span(y).first(static_cast<std::size_t>(batch.rows) * heads * outputs));
    const float* next = y.data();
    for (std::int64_t i = 0; i < batch.rows; ++i) {
      const auto row = static_cast<std::size_t>(first + i);
      for (std::size_t head = 0; head < heads; ++head, next += outputs) {
        const std::span<const float> row_outputs(next, outputs);
        numbers ? regressions[head].add(data, row, row_outputs) : classes[head].add(data, row, row_outputs);
        if (!logits.empty()) logits[head].data()[row] = *next;
      }
    }
  });

  all_reduce_sum(world, std::span(losses.sums()));
  const std::vector<double> mean_losses = losses.means();
  std::vector<Scores> all(heads);
  for (std::size_t head = 0; head < heads; ++head) {
    Scores& scores = all[head];
    scores.rows = data.rows;
    scores.loss = mean_losses[head];
    std::vector<double> sums;
    numbers ? regressions[head].append_to(sums) : classes[head].append_to(sums);
    all_reduce_sum(world, std::span(sums));
    if (numbers) {
      scores.targets = regressions[head].scores(sums, weight, data.rows);
      continue;
    }
    all_reduce_sum(world, std::span(classes[head].confusion()));
    scores.classes = classes[head].scores(sums, weight);
    scores.classes->roc_auc =
        logits.empty() ? std::numeric_limits<double>::quiet_NaN() : roc_auc(world, data, pieces, logits[head]);
  }
  return all;
}

}  // namespace ddp
