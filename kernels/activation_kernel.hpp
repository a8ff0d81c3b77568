#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/activation.hpp"

namespace ddp::kernels {

/// Queued. y[i] = f(z[i]); the two may be one.
template <class Function>
[[nodiscard]] cudaError_t activate(const Function& function, std::int64_t numel, const float* z, float* y,
                                   cudaStream_t stream);

/// Queued. gradient[i] *= f'(kept[i]), of what the function's gradient is told from.
template <class Function>
[[nodiscard]] cudaError_t through_activation(const Function& function, std::int64_t numel, const float* kept,
                                             float* gradient, cudaStream_t stream);

extern template cudaError_t activate(const Relu&, std::int64_t, const float*, float*, cudaStream_t);
extern template cudaError_t activate(const Tanh&, std::int64_t, const float*, float*, cudaStream_t);
extern template cudaError_t activate(const Gelu&, std::int64_t, const float*, float*, cudaStream_t);
extern template cudaError_t through_activation(const Relu&, std::int64_t, const float*, float*, cudaStream_t);
extern template cudaError_t through_activation(const Tanh&, std::int64_t, const float*, float*, cudaStream_t);
extern template cudaError_t through_activation(const Gelu&, std::int64_t, const float*, float*, cudaStream_t);

}  // namespace ddp::kernels
