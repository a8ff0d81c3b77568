#include <linear_ddp/device/cuda_passes.hpp>

#include <linear_ddp/device/cuda_check.hpp>
#include "kernels/activation_kernel.hpp"
#include "kernels/half_kernel.hpp"
#include "kernels/loss_kernel.hpp"

namespace ddp::passes {
namespace {

template <class Use>
void with_function(Activation activation, const Use& use) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return use(kernels::Relu{});
    case Activation::tanh:
      return use(kernels::Tanh{});
    case Activation::gelu:
      return use(kernels::Gelu{});
  }
}

}  // namespace

void loss(const LinearLoss& op, float* y, double* partials, cudaStream_t stream) {
  const kernels::LossArguments arguments{.rows = op.rows,
                                         .heads = op.heads,
                                         .out = op.out,
                                         .y = y,
                                         .target = op.target,
                                         .row_weight = op.row_weight,
                                         .gradient = op.weight_gradient != nullptr,
                                         .scale = op.loss_scale,
                                         .add = op.add,
                                         .partials = partials,
                                         .loss = op.loss,
                                         .loss_sum = op.loss_sum};
  const auto queue = [&](const auto& of_kind) {
    check(kernels::loss_and_gradient(of_kind, arguments, stream), "queue the loss and its gradient");
  };
  switch (op.kind) {
    case LossKind::mse:
      return queue(kernels::MseLoss{});
    case LossKind::huber:
      return queue(kernels::HuberLoss{});
    case LossKind::bce_with_logits:
      return queue(kernels::BceWithLogitsLoss{});
    case LossKind::cross_entropy:
      return queue(kernels::CrossEntropy{op.out, op.label_smoothing, op.class_weight});
  }
}

void activate(Activation activation, std::int64_t numel, const float* z, float* y, cudaStream_t stream) {
  with_function(activation, [&](const auto& function) {
    check(kernels::activate(function, numel, z, y, stream), "queue an activation");
  });
}

void through_activation(Activation activation, std::int64_t numel, const float* kept, float* gradient,
                        cudaStream_t stream) {
  with_function(activation, [&](const auto& function) {
    check(kernels::through_activation(function, numel, kept, gradient, stream), "queue the gradient of an activation");
  });
}

void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result, cudaStream_t stream) {
  const auto convert = type == HalfType::fp16 ? kernels::to_half<kernels::Fp16> : kernels::to_half<kernels::Bf16>;
  check(convert(values, numel, result, stream), "queue a conversion");
}

void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result, cudaStream_t stream) {
  const auto convert = type == HalfType::fp16 ? kernels::from_half<kernels::Fp16> : kernels::from_half<kernels::Bf16>;
  check(convert(values, numel, result, stream), "queue a conversion");
}

}  // namespace ddp::passes
