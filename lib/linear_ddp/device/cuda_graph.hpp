#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include <linear_ddp/device/device.hpp>

namespace ddp {

/// Captures what `work` queues on `stream`, and on streams that wait for it and that it waits for again. Throws Error.
[[nodiscard]] std::unique_ptr<Recording> capture_cuda_graph(cudaStream_t stream, const std::function<void()>& work);

}  // namespace ddp
