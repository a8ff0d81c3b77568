#include <linear_ddp/training/table_objective.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/training/full_batch.hpp>
#include "kernels/cross_entropy.hpp"
#include "kernels/loss.hpp"
#include "linear_ddp/device/gemm.hpp"

namespace ddp {
namespace {

using Block = LeastSquaresRows::Block;

double weight_of(const Block& block, std::int64_t row) {
  return block.weight == nullptr ? 1.0 : block.weight[row];
}

/// Each output of a row becomes weight · dl/dy; returns weight · Σ l.
template <class Loss>
double row_loss(const Loss& loss, std::int64_t out, const double* target, double weight, double* y) {
  double sum = 0;
  for (std::int64_t o = 0; o < out; ++o) {
    const double output = y[o];
    sum += loss.value(output, target[o]);
    y[o] = weight * loss.gradient(output, target[o]);
  }
  return weight * sum;
}

/// The same of a row's logits.
double row_loss(const kernels::CrossEntropyOf<double>& loss, std::int64_t own, double weight, double* z) {
  // Relative to the largest logit nothing overflows.
  const double largest = *std::max_element(z, z + loss.classes), own_logit = z[own] - largest, hard = loss.hard(own);
  double exponentials = 0, soft = 0, soft_logits = 0;
  for (std::int64_t k = 0; k < loss.classes; ++k) {
    soft += loss.soft(k);
    soft_logits += loss.soft(k) * (z[k] - largest);
    z[k] = std::exp(z[k] - largest);
    exponentials += z[k];
  }
  const double log_sum = std::log(exponentials), factor = (hard + soft) / exponentials;
  for (std::int64_t k = 0; k < loss.classes; ++k) z[k] = weight * (factor * z[k] - loss.soft(k));
  z[own] -= weight * hard;
  return weight * (hard * (log_sum - own_logit) + soft * log_sum - soft_logits);
}

}  // namespace

TableObjective::TableObjective(const World& world, const TableShare& share, TableLoss loss, bool bias)
    : world_(world),
      rows_(rows_of(share)),
      loss_(std::move(loss)),
      out_(loss_.kind == LossKind::cross_entropy ? std::ssize(share.labels) : rows_.out),
      weights_(out_ * rows_.in),
      biases_(bias ? out_ : 0),
      weight_(total_weight(world, share, loss_.class_weight)) {}

double TableObjective::evaluate(std::span<const double> x, std::span<double> gradient, double l2) {
  sums_.assign(static_cast<std::size_t>(numel() + 1), 0.0);
  agree(world_, [&] { rows_.each_block([&](const Block& block) { add(block, x); }); });
  all_reduce_sum(world_, std::span(sums_));
  const double losses = weight_ * static_cast<double>(losses_of_a_row(loss_.kind, out_));
  const auto weights = static_cast<std::size_t>(weights_);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = sums_[i] / losses + (i < weights ? l2 * x[i] : 0.0);
  return sums_.back() / losses + l2_penalty(x.first(weights), l2);
}

void TableObjective::add(const Block& block, std::span<const double> x) {
  y_.resize(static_cast<std::size_t>(block.rows * out_));
  double* y = y_.data();
  gemm::product_nt(block.rows, out_, rows_.in, block.x, x.data(), 0, y);
  const double* bias = x.data() + weights_;
  for (std::int64_t i = 0; biases_ > 0 && i < block.rows * out_; ++i) y[i] += bias[i % out_];
  sums_.back() += differentiate(block);
  gemm::product_tn(out_, rows_.in, block.rows, y, block.x, 1, sums_.data());
  double* bias_sums = sums_.data() + weights_;
  for (std::int64_t i = 0; biases_ > 0 && i < block.rows * out_; ++i) bias_sums[i % out_] += y[i];
}

double TableObjective::differentiate(const Block& block) {
  const std::vector<double>& of_class = loss_.class_weight;
  const auto sum_of_rows = [&](const auto& of_row) {
    double sum = 0;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      sum += of_row(block.y + row * rows_.out, weight_of(block, row), y_.data() + row * out_);
    }
    return sum;
  };
  const auto sum_of = [&](const auto& loss) {
    return sum_of_rows([&](const double* target, double weight, double* y) {
      const double of_own = of_class.empty() ? 1.0 : of_class[static_cast<std::size_t>(*target)];
      return row_loss(loss, out_, target, weight * of_own, y);
    });
  };
  switch (loss_.kind) {
    case LossKind::mse:
      return sum_of(kernels::MseLoss{});
    case LossKind::huber:
      return sum_of(kernels::HuberLoss{});
    case LossKind::bce_with_logits:
      return sum_of(kernels::BceWithLogitsLoss{});
    case LossKind::cross_entropy:
      break;
  }
  const kernels::CrossEntropyOf<double> loss{out_, loss_.label_smoothing, of_class.empty() ? nullptr : of_class.data()};
  return sum_of_rows([&](const double* target, double weight, double* z) {
    return row_loss(loss, static_cast<std::int64_t>(*target), weight, z);
  });
}

}  // namespace ddp
