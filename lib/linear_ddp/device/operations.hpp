#pragma once

#include <cstdint>

namespace ddp {

/// PyTorch's MSELoss, HuberLoss (delta 1), BCEWithLogitsLoss and CrossEntropyLoss.
enum class LossKind { mse, huber, bce_with_logits, cross_entropy };

/// Cross entropy has one loss a row, whose target is the number of its class; the others have one for each output.
[[nodiscard]] constexpr std::int64_t losses_of_a_row(LossKind kind, std::int64_t out) noexcept {
  return kind == LossKind::cross_entropy ? 1 : out;
}

/// PyTorch's ReLU, Tanh, and GELU (exact, by the normal distribution).
enum class Activation { none, relu, tanh, gelu };

/// Whether the gradient of an activation is told from its input, which then is kept; the others' is from the output.
[[nodiscard]] constexpr bool keeps_input(Activation activation) noexcept {
  return activation == Activation::gelu;
}

/// y[rows, out] = activation(z), z = x[rows, in] · weight[out, in]ᵀ + bias[out], with in and out 1 or more, and rows 0
/// or more. Matrices are dense and row-major; bias may be null. All pointers are memory of the device.
struct LinearForward {
  std::int64_t rows = 0, in = 0, out = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  Activation activation = Activation::none;
  float* z = nullptr;  ///< [rows, out], kept for the gradient; needed where keeps_input
};

/// The gradient with respect to what a layer's inputs were made of: x = activation(z), dz = dL/dz [rows, in].
struct InputGradient {
  Activation activation = Activation::none;
  const float* kept = nullptr;  ///< [rows, in]: z where keeps_input, else x
  float* dz = nullptr;          ///< null: not wanted
};

/// The gradients of a layer's parameters and inputs, from dy = dL/dy [rows, out]. Zero rows are legal.
struct LinearBackward {
  std::int64_t rows = 0, in = 0, out = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* dy = nullptr;
  bool add = false;                  ///< to the parameters' gradients, which else are overwritten
  float* weight_gradient = nullptr;  ///< null: not wanted
  float* bias_gradient = nullptr;    ///< null without a bias
  InputGradient input{};
};

/// The last layer with its loss, and the gradients of its parameters; one operation, because a device may fuse its
/// passes and work in tiles. With l one loss, L = loss_scale · Σ row_weight · l(x·weightᵀ + bias, target) over rows
/// and, but for cross entropy, outputs:
///
///   loss              = L                            (null: not wanted)
///   loss_sum          = Σ row_weight · l, in float64 (null: not wanted)
///   weight_gradient   = dL/dweight [out, in]         (null: no gradients, an evaluation)
///   bias_gradient     = dL/dbias [out]               (null without a bias, or without gradients)
///
/// Several heads are as many layers side by side, of the same rows and targets but each with parameters, losses and
/// gradients of its own: one wide product in place of many narrow ones. All tensors but x, target and row_weight then
/// have [heads] before their other dimensions.
///
/// Results are overwritten, or, with `add`, added to. Zero rows are legal. `input` is wanted of one head only.
struct LinearLoss {
  std::int64_t rows = 0, in = 0, out = 0, heads = 1;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* target = nullptr;      ///< [rows, out]; cross entropy: [rows], from 0 to out - 1, else the loss is NaN
  const float* row_weight = nullptr;  ///< [rows]; null: 1 each
  LossKind kind = LossKind::mse;
  float label_smoothing = 0;            ///< cross entropy's
  const float* class_weight = nullptr;  ///< cross entropy's [out]; null: 1 each
  float loss_scale = 1;
  bool add = false;
  float* loss = nullptr;
  double* loss_sum = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  InputGradient input{};
};

/// The bare matrix products of a layer, each as one call of the device's matrix library over all rows: no bias, no
/// loss, no tiles, none of our own products. What a benchmark compares the operations above with; y stands for its
/// gradient.
///
///   y = x · weightᵀ [rows, out];   weight_gradient = yᵀ · x [out, in];   dx = y · weight [rows, in]   (null: not
///   wanted)
///
/// There is one row or more.
struct LinearProducts {
  std::int64_t rows = 0, in = 0, out = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  float* y = nullptr;
  float* weight_gradient = nullptr;
  float* dx = nullptr;
};

/// Numbers of 16 bits: IEEE 754 binary16, and the upper half of a float.
enum class HalfType { fp16, bf16 };

/// A flat range of parameters, and what an optimizer sees as the gradient of each:
///
///   g[i] = clip · (gradients[i] + l2 · parameters[i]), the second term for i < penalized only;
///   clip = min(1, max_norm / (√*square_sum + 1e-6)), or 1 when square_sum is null (torch.nn.utils.clip_grad_norm_).
struct Gradient {
  std::int64_t numel = 0;
  float* parameters = nullptr;
  const float* gradients = nullptr;
  std::int64_t penalized = 0;
  float l2 = 0;
  float max_norm = 0;
  const double* square_sum = nullptr;
};

/// One step of torch.optim.SGD; the formula is kernels/sgd.hpp's.
struct SgdUpdate {
  float* momentum_buffer = nullptr;  ///< null when momentum is 0
  float momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< the first step of all: the buffer becomes the gradient
};

/// One step of torch.optim.Adam or AdamW; the formula is kernels/adam.hpp's. What changes from step to step comes
/// beside it, as three floats: AdamW's decay 1 - lr · weight_decay (Adam: 1), lr / (1 - beta1^t), and √(1 - beta2^t).
struct AdamUpdate {
  float* mean = nullptr;      ///< of the gradients: exp_avg
  float* square = nullptr;    ///< of their squares: exp_avg_sq
  float* greatest = nullptr;  ///< amsgrad's max_exp_avg_sq; null without
  double beta1 = 0, beta2 = 0, eps = 0;
  double weight_decay = 0;  ///< added to the gradient; AdamW: 0
};

}  // namespace ddp
