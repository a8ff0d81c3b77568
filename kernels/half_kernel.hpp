#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/half.hpp"

namespace ddp::kernels {

/// Queued. result[i] = values[i] as Half (Fp16 or Bf16) has it, and the way back.
template <class Half>
[[nodiscard]] cudaError_t to_half(const float* values, std::int64_t numel, std::uint16_t* result, cudaStream_t stream);
template <class Half>
[[nodiscard]] cudaError_t from_half(const std::uint16_t* values, std::int64_t numel, float* result,
                                    cudaStream_t stream);

extern template cudaError_t to_half<Fp16>(const float*, std::int64_t, std::uint16_t*, cudaStream_t);
extern template cudaError_t to_half<Bf16>(const float*, std::int64_t, std::uint16_t*, cudaStream_t);
extern template cudaError_t from_half<Fp16>(const std::uint16_t*, std::int64_t, float*, cudaStream_t);
extern template cudaError_t from_half<Bf16>(const std::uint16_t*, std::int64_t, float*, cudaStream_t);

}  // namespace ddp::kernels
