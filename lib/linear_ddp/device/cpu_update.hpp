#pragma once

#include <linear_ddp/device/operations.hpp>

#include "kernels/sgd.hpp"

/// The optimizers' sweeps over the parameters.
namespace ddp::passes {

double square_sum(const Gradient& gradient);
void sgd(const Gradient& gradient, const kernels::SgdStep<float>& step, float* momentum_buffer);
void adam(const Gradient& gradient, const AdamUpdate& update, const float* scalars);

}  // namespace ddp::passes
