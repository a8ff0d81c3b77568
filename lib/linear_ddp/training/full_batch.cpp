#include <linear_ddp/training/full_batch.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <linear_ddp/base/error.hpp>

namespace ddp {

FullBatchObjective::FullBatchObjective(Device& device, ProcessGroup& group, Model& model, BatchSource& source,
                                       double l2)
    : device_(device),
      group_(group),
      model_(model),
      step_(source.load(0, 0)),
      scale_(1 / (step_.divisor * static_cast<double>(model.losses_of_a_row()))),
      l2_(l2),
      numel_(static_cast<std::size_t>(model.layout().numel())),
      penalized_(static_cast<std::size_t>(model.layout().slots().front().numel)),
      sums_(device, model.layout().numel() + 1, MemoryUse::communication),
      floats_(numel_),
      received_(numel_ + 1) {
  if (!source.one_step_over_all_rows()) throw UseError("a full batch is one step over all rows");
}

std::vector<double> FullBatchObjective::parameters() const {
  std::vector<float> values(numel_);
  device_.download(values.data(), model_.parameters().data(), numel_ * sizeof(float));
  return {values.begin(), values.end()};
}

void FullBatchObjective::set_parameters(std::span<const double> x) {
  std::transform(x.begin(), x.end(), floats_.begin(), [](double value) { return static_cast<float>(value); });
  device_.upload(model_.parameters().data(), floats_.data(), numel_ * sizeof(float));
}

double FullBatchObjective::operator()(std::span<double> x, std::span<double> gradient) {
  set_parameters(x);
  std::copy(floats_.begin(), floats_.end(), x.begin());
  model_.backward(step_.batch, static_cast<float>(scale_), false, sums_.data() + numel_);
  device_.widen(model_.gradients().data(), model_.layout().numel(), sums_.data());
  device_.wait(Queue::communication, Queue::compute);
  group_.all_reduce(sums_.span());
  device_.wait(Queue::compute, Queue::communication);
  sums_.download(received_);
  std::copy_n(received_.begin(), numel_, gradient.begin());
  for (std::size_t i = 0; i < penalized_; ++i) gradient[i] += l2_ * x[i];
  return received_[numel_] * scale_ + penalty(x);
}

double FullBatchObjective::penalty(std::span<const double> x) const {
  double sum = 0;
  for (const double value : x.first(penalized_)) sum += value * value;
  return l2_ / 2 * sum;
}

LbfgsResult train_by_lbfgs(FullBatchObjective& objective, const LbfgsTrainerOptions& options,
                           TrainingObserver& observer) {
  std::vector<double> x = objective.parameters();
  const Objective evaluate = [&](std::span<double> at, std::span<double> gradient) { return objective(at, gradient); };
  const auto result =
      minimize_lbfgs(x, evaluate, options.lbfgs, [&](const LbfgsReport& report, std::span<const double> at) {
        std::optional<Validation> validation;
        objective.set_parameters(at);  // the search may have looked elsewhere last
        if (options.validate) validation = options.validate(report.iteration - 1);
        observer.on_epoch(
            {report.iteration - 1, report.iteration, report.step, report.value - objective.penalty(at), validation});
        return validation && validation->stops;
      });
  objective.set_parameters(x);
  return result;
}

}  // namespace ddp
