#include "linear_ddp/device/cpu_gradients.hpp"

#include <algorithm>

#include "linear_ddp/device/cpu_passes.hpp"
#include "linear_ddp/device/cpu_skinny.hpp"
#include "linear_ddp/device/gemm.hpp"

namespace ddp::passes {
namespace {

/// A BLAS adds products up in parts; one by one, fewer may be added.
constexpr std::int64_t rows_of_a_float_sum = 64 * 1024, rows_added_one_by_one = 2048;

void start_sum(std::vector<double>& sum, std::int64_t numel) {
  std::fill_n(at_least(sum, numel), numel, 0.0);
}
void finish_sum(const std::vector<double>& sum, std::int64_t numel, bool add, float* gradient) {
  for (std::int64_t i = 0; i < numel; ++i) {
    gradient[i] = static_cast<float>(sum[static_cast<std::size_t>(i)]) + (add ? gradient[i] : 0.0F);
  }
}

}  // namespace

void ParameterGradients::start(const Operation& operation) {
  now_ = operation;
  done_ = 0;
  const std::int64_t most = skinny::serves(now_.in, now_.out) ? rows_added_one_by_one : rows_of_a_float_sum;
  group_ = now_.tile * std::max(std::int64_t{1}, most / now_.tile);
  in_groups_ = now_.rows > group_;
  const std::int64_t weights = now_.in * now_.out;
  if (now_.bias_gradient != nullptr) start_sum(bias_sum_, now_.out);
  if (in_groups_) start_sum(weight_sum_, weights);
  if (now_.rows == 0 && !now_.add) std::fill_n(now_.weight_gradient, weights, 0.0F);
}

void ParameterGradients::add(std::int64_t rows, const float* x, const float* dy) {
  const std::int64_t weights = now_.in * now_.out;
  float* gradient = in_groups_ ? at_least(group_gradient_, weights) : now_.weight_gradient;
  if (now_.bias_gradient != nullptr) add_columns(rows, now_.out, dy, bias_sum_.data());
  const bool overwrites = done_ % group_ == 0 && (in_groups_ || !now_.add);
  if (skinny::serves(now_.in, now_.out))
    skinny::weight_gradient(rows, now_.in, now_.out, x, dy, !overwrites, gradient);
  else
    gemm::product_tn(now_.out, now_.in, rows, dy, x, overwrites ? 0.0F : 1.0F, gradient);
  done_ += rows;
  const bool ends_group = done_ % group_ == 0 || done_ == now_.rows;
  if (in_groups_ && ends_group) add_columns(1, weights, gradient, weight_sum_.data());
}

void ParameterGradients::finish() {
  if (now_.bias_gradient != nullptr) finish_sum(bias_sum_, now_.out, now_.add, now_.bias_gradient);
  if (in_groups_) finish_sum(weight_sum_, now_.in * now_.out, now_.add, now_.weight_gradient);
}

}  // namespace ddp::passes
