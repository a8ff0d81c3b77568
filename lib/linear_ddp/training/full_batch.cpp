#include <linear_ddp/training/full_batch.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ddp {
namespace {

std::vector<float> floats_of(std::span<const double> values) {
  std::vector<float> floats(values.size());
  std::transform(values.begin(), values.end(), floats.begin(), [](double value) { return static_cast<float>(value); });
  return floats;
}

}  // namespace

FullBatchObjective::FullBatchObjective(Device& device, ProcessGroup& group, const LinearShape& shape,
                                       const LossOptions& loss, FullBatch rows)
    : device_(device),
      group_(group),
      shape_(shape),
      loss_(loss),
      rows_(std::move(rows)),
      weights_(shape.out * shape.in),
      biases_(shape.bias ? shape.out : 0) {}

void FullBatchObjective::make_room(std::int64_t heads) {
  if (model_ && model_->shape().heads == heads) return;
  model_.reset();
  shape_.heads = heads;
  model_.emplace(device_, shape_, loss_);
  const std::int64_t numel = model_->layout().numel();
  sums_ = Buffer<double>(device_, numel + heads, MemoryUse::communication);
  floats_.assign(static_cast<std::size_t>(numel), 0);
  received_.resize(static_cast<std::size_t>(numel + heads));
}

void FullBatchObjective::set_parameters(std::span<Head> heads) {
  const auto round = [](std::span<double> values, float* floats) {
    for (double& value : values) value = static_cast<double>(*floats++ = static_cast<float>(value));
  };
  const auto weights = static_cast<std::size_t>(weights_), biases = static_cast<std::size_t>(biases_);
  for (std::size_t head = 0; head < heads.size(); ++head) {
    round(heads[head].x.first(weights), floats_.data() + head * weights);
    if (biases == 0) continue;
    const auto offset = static_cast<std::size_t>(model_->layout().slots()[1].offset);
    round(heads[head].x.last(biases), floats_.data() + offset + head * biases);
  }
  device_.upload(model_->parameters().data(), floats_.data(), floats_.size() * sizeof(float));
}

/// In tiles of rows, so that a device that does not make its own has a bounded number of outputs in memory.
void FullBatchObjective::queue_losses() {
  constexpr std::int64_t most_outputs = std::int64_t{64} << 20;
  const std::int64_t width = shape_.heads * shape_.out, targets = losses_of_a_row(loss_.kind, shape_.out);
  const std::int64_t tile = std::max<std::int64_t>(1, most_outputs / width);
  const auto scale = static_cast<float>(1 / (rows_.weight * static_cast<double>(targets)));
  bool adds = false;
  for (const Batch& piece : rows_.pieces) {
    for (std::int64_t row = 0; row == 0 || row < piece.rows; row += tile) {
      const Batch some{std::min(tile, piece.rows - row), piece.x + row * shape_.in, piece.target + row * targets,
                       piece.row_weight == nullptr ? nullptr : piece.row_weight + row};
      model_->backward(some, scale, adds, sums_.data() + model_->layout().numel());
      adds = true;
    }
  }
}

void FullBatchObjective::evaluate(std::span<Head> heads) {
  make_room(std::ssize(heads));
  set_parameters(heads);
  queue_losses();
  const auto numel = static_cast<std::size_t>(model_->layout().numel());
  device_.widen(model_->gradients().data(), model_->layout().numel(), sums_.data());
  device_.wait(Queue::communication, Queue::compute);
  group_.all_reduce(sums_.span());
  device_.wait(Queue::compute, Queue::communication);
  sums_.download(received_);

  const double losses = rows_.weight * static_cast<double>(losses_of_a_row(loss_.kind, shape_.out));
  const auto weights = static_cast<std::size_t>(weights_), biases = static_cast<std::size_t>(biases_);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Head& head = heads[i];
    const double* weight = received_.data() + i * weights;
    for (std::size_t j = 0; j < weights; ++j) head.gradient[j] = weight[j] + head.l2 * head.x[j];
    if (biases > 0) {
      const auto offset = static_cast<std::size_t>(model_->layout().slots()[1].offset);
      std::copy_n(received_.data() + offset + i * biases, biases, head.gradient.data() + weights);
    }
    head.value = received_[numel + i] / losses + l2_penalty(head.x.first(weights), head.l2);
  }
}

double l2_penalty(std::span<const double> weight, double l2) {
  if (l2 == 0) return 0;
  double sum = 0;
  for (const double value : weight) sum += value * value;
  return l2 / 2 * sum;
}

void minimize_together(FullBatchObjective& objective, std::span<HeadSearch> heads, const LbfgsOptions& options,
                       const std::function<bool(std::size_t head, const LbfgsSearch&)>& report) {
  std::vector<LbfgsSearch> searches;
  for (HeadSearch& head : heads) searches.emplace_back(std::move(head.x), options);
  for (;;) {
    std::vector<std::size_t> active;
    std::vector<FullBatchObjective::Head> points;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (searches[i].end()) continue;
      active.push_back(i);
      points.push_back({searches[i].point(), searches[i].gradient(), heads[i].l2});
    }
    if (active.empty()) break;
    objective.evaluate(points);
    for (std::size_t i = 0; i < active.size(); ++i) {
      LbfgsSearch& search = searches[active[i]];
      if (search.tell(points[i].value) && report && report(active[i], search)) search.stop();
    }
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    heads[i].x.assign(searches[i].x().begin(), searches[i].x().end());
    heads[i].result = {searches[i].report(), *searches[i].end()};
  }
}

std::vector<HeadSearch> minimize_path(FullBatchObjective& objective, std::span<const double> l2,
                                      std::vector<double> start, std::size_t at_once, const LbfgsOptions& options) {
  std::vector<std::size_t> order(l2.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return l2[a] > l2[b]; });
  std::vector<HeadSearch> all(l2.size());
  for (std::size_t first = 0; first < order.size(); first += at_once) {
    const std::size_t end = std::min(first + at_once, order.size());
    std::vector<HeadSearch> group;
    for (std::size_t i = first; i < end; ++i) group.push_back({l2[order[i]], start});
    minimize_together(objective, group, options);
    start = group.back().x;
    for (std::size_t i = first; i < end; ++i) all[order[i]] = std::move(group[i - first]);
  }
  return all;
}

LbfgsResult train_by_lbfgs(FullBatchObjective& objective, Model& model, const LbfgsTrainerOptions& options,
                           TrainingObserver& observer) {
  const auto of_one_head = [&](std::span<double> x, std::span<double> gradient) {
    FullBatchObjective::Head head{x, gradient, options.l2};
    objective.evaluate({&head, 1});
    return head.value;
  };
  std::vector<double> x = get_parameters(model);
  return train_by_lbfgs(of_one_head, x, model, options, observer);
}

LbfgsResult train_by_lbfgs(const Objective& objective, std::vector<double>& x, Model& model,
                           const LbfgsTrainerOptions& options, TrainingObserver& observer) {
  const auto report = [&](const LbfgsReport& now, std::span<const double> at) {
    std::optional<Validation> validation;
    if (options.validate) {
      set_parameters(model, at);
      validation = options.validate(now.iteration - 1);
    }
    observer.on_epoch({now.iteration - 1, now.iteration, now.step,
                       now.value - l2_penalty(weight_of(model, at), options.l2), validation});
    return validation && validation->stops;
  };
  const LbfgsResult result = minimize_lbfgs(x, objective, options.lbfgs, report);
  set_parameters(model, x);
  return result;
}

std::span<const double> weight_of(const Model& model, std::span<const double> x) {
  return x.first(static_cast<std::size_t>(model.layout().slots()[0].numel));
}

std::vector<double> get_parameters(const Model& model) {
  const std::vector<float> values = model.download_head(0);
  return {values.begin(), values.end()};
}

void set_parameters(Model& model, std::span<const double> x, std::int64_t head) {
  model.upload_head(head, floats_of(x));
}

}  // namespace ddp
