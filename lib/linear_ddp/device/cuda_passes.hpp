#pragma once

#include <cuda_runtime_api.h>

#include <linear_ddp/device/operations.hpp>

/// The CUDA device's element-wise passes, each one kernel, queued. They choose the kernel and throw Error with CUDA's
/// text when it cannot be queued.
namespace ddp::passes {

/// The loss, and where the operation has gradients they take the place of the outputs y[rows, heads, out]. `partials`
/// is room for max_loss_partials doubles.
void loss(const LinearLoss& operation, float* y, double* partials, cudaStream_t stream);

/// y[i] = activation(z[i]); the two may be one.
void activate(Activation activation, std::int64_t numel, const float* z, float* y, cudaStream_t stream);

/// gradient[i] *= the activation's derivative, told from its input where keeps_input, else from its output.
void through_activation(Activation activation, std::int64_t numel, const float* kept, float* gradient,
                        cudaStream_t stream);

void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result, cudaStream_t stream);
void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result, cudaStream_t stream);

}  // namespace ddp::passes
