#include "linear_ddp/device/cpu_loss.hpp"

#include <cmath>
#include <limits>

#include "kernels/cross_entropy.hpp"
#include "kernels/loss.hpp"
#include "kernels/multiversion.hpp"

namespace ddp::passes {
namespace {

/// What a sweep works on.
struct Outputs {
  std::int64_t rows, heads, out;
  const float* target;
  const float* row_weight;
  float scale;
  float* y;
};

// Inlined into each version of the functions below, to be compiled for that version's vectors.

/// Flat, not row by row: an end of a vector in each row of ten outputs would cost more than the arithmetic.
template <class Loss>
[[gnu::always_inline]] inline double sweep(Loss loss, std::int64_t numel, const float* target, float scale, float* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < numel; ++i) {
    const float output = y[i];
    sum += static_cast<double>(loss.value(output, target[i]));
    y[i] = scale * loss.gradient(output, target[i]);
  }
  return sum;
}

template <class Loss>
[[gnu::always_inline]] inline double sweep(Loss loss, const Outputs& outputs) {
  const auto [rows, heads, out, target, weight, scale, y] = outputs;
  if (weight == nullptr) return sweep(loss, rows * out, target, scale, y);
  double sum = 0;
  if (out == 1) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < rows; ++i) {
      const float output = y[i];
      sum += static_cast<double>(weight[i] * loss.value(output, target[i]));
      y[i] = scale * weight[i] * loss.gradient(output, target[i]);
    }
    return sum;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto w = static_cast<double>(weight[row]);
    sum += w * sweep(loss, out, target + row * out, scale * weight[row], y + row * out);
  }
  return sum;
}

/// Of several heads, each with a sum of its own.
template <class Loss>
[[gnu::always_inline]] inline void sweep_heads(Loss loss, const Outputs& outputs, double* sums) {
  const auto [rows, heads, out, target, weight, scale, y] = outputs;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float w = weight == nullptr ? 1.0F : weight[row], factor = scale * w;
    float* own = y + row * heads * out;
    const float* expected = target + row * out;
    if (out == 1) {
      const float t = *expected;
#pragma omp simd
      for (std::int64_t head = 0; head < heads; ++head) {
        const float output = own[head];
        sums[head] += static_cast<double>(w * loss.value(output, t));
        own[head] = factor * loss.gradient(output, t);
      }
    } else {
      for (std::int64_t head = 0; head < heads; ++head) {
        sums[head] += static_cast<double>(w) * sweep(loss, out, expected, factor, own + head * out);
      }
    }
  }
}

template <class Loss>
[[gnu::always_inline]] inline void add_losses(Loss loss, const Outputs& outputs, double* sums) {
  if (outputs.heads == 1)
    *sums += sweep(loss, outputs);
  else
    sweep_heads(loss, outputs, sums);
}

struct RowSums {
  float largest, exponentials, soft_logits, soft;
};

/// Each logit becomes its exponential, relative to the largest.
[[gnu::always_inline]] inline RowSums exponentiate(const kernels::CrossEntropy& loss, float* z) {
  RowSums sums{-std::numeric_limits<float>::infinity(), 0, 0, 0};
  float largest = sums.largest, exponentials = 0, soft_logits = 0, soft = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t k = 0; k < loss.classes; ++k) largest = z[k] > largest ? z[k] : largest;
  if (loss.label_smoothing > 0) {
#pragma omp simd reduction(+ : soft_logits, soft)
    for (std::int64_t k = 0; k < loss.classes; ++k) {
      soft_logits += loss.soft(k) * (z[k] - largest);
      soft += loss.soft(k);
    }
  }
#pragma omp simd reduction(+ : exponentials)
  for (std::int64_t k = 0; k < loss.classes; ++k) {
    z[k] = kernels::exp_of_nonpositive(z[k] - largest);
    exponentials += z[k];
  }
  return {largest, exponentials, soft_logits, soft};
}

[[gnu::always_inline]] inline double row_loss(const kernels::CrossEntropy& loss, float target, float scale, float* z) {
  if (!loss.is_class(target)) return std::numeric_limits<double>::quiet_NaN();
  const auto own = static_cast<std::int64_t>(target);
  const float own_logit = z[own], hard = loss.hard(own);
  const RowSums sums = exponentiate(loss, z);
  // Relative to the largest logit, as the logits that come with them.
  const double log_sum = std::log(static_cast<double>(sums.exponentials));
  const float factor = scale * (hard + sums.soft) / sums.exponentials;
  if (loss.label_smoothing > 0) {
#pragma omp simd
    for (std::int64_t k = 0; k < loss.classes; ++k) z[k] = factor * z[k] - scale * loss.soft(k);
  } else {
#pragma omp simd
    for (std::int64_t k = 0; k < loss.classes; ++k) z[k] *= factor;
  }
  z[own] -= scale * hard;
  return static_cast<double>(hard) * (log_sum - static_cast<double>(own_logit - sums.largest)) +
         static_cast<double>(sums.soft) * log_sum - static_cast<double>(sums.soft_logits);
}

[[gnu::always_inline]] inline void add_losses(const kernels::CrossEntropy& loss, const Outputs& outputs, double* sums) {
  const auto [rows, heads, out, target, weight, scale, y] = outputs;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float w = weight == nullptr ? 1.0F : weight[row];
    for (std::int64_t head = 0; head < heads; ++head) {
      sums[head] += static_cast<double>(w) * row_loss(loss, target[row], scale * w, y + (row * heads + head) * out);
    }
  }
}

DDP_MULTIVERSION void mse(const Outputs& outputs, double* sums) {
  add_losses(kernels::MseLoss{}, outputs, sums);
}
DDP_MULTIVERSION void huber(const Outputs& outputs, double* sums) {
  add_losses(kernels::HuberLoss{}, outputs, sums);
}
DDP_MULTIVERSION void bce_with_logits(const Outputs& outputs, double* sums) {
  add_losses(kernels::BceWithLogitsLoss{}, outputs, sums);
}
DDP_MULTIVERSION void cross_entropy(const kernels::CrossEntropy& loss, const Outputs& outputs, double* sums) {
  add_losses(loss, outputs, sums);
}

}  // namespace

void loss(const LinearLoss& op, std::int64_t first, std::int64_t rows, float* y, double* sums) {
  const Outputs outputs{.rows = rows,
                        .heads = op.heads,
                        .out = op.out,
                        .target = op.target + first * losses_of_a_row(op.kind, op.out),
                        .row_weight = op.row_weight == nullptr ? nullptr : op.row_weight + first,
                        .scale = op.loss_scale,
                        .y = y};
  switch (op.kind) {
    case LossKind::mse:
      return mse(outputs, sums);
    case LossKind::huber:
      return huber(outputs, sums);
    case LossKind::bce_with_logits:
      return bce_with_logits(outputs, sums);
    case LossKind::cross_entropy:
      return cross_entropy({op.out, op.label_smoothing, op.class_weight}, outputs, sums);
  }
}

}  // namespace ddp::passes
