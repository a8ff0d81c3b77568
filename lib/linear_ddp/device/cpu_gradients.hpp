#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ddp::passes {

/// A vector only grows: to resize it for each batch would fill it with zeros again and again.
template <class T>
T* at_least(std::vector<T>& values, std::int64_t numel) {
  if (std::cmp_less(values.size(), numel)) values.resize(static_cast<std::size_t>(numel));
  return values.data();
}

/// The gradients of a layer's parameters, added up over tiles of rows. The products of up to 64k rows (for few outputs, 2k) are
/// added up in floats, and those sums in float64: a float that has grown rounds each of many small addends the same way.
class ParameterGradients {
 public:
  struct Operation {
    std::int64_t rows, in, out, tile;
    bool add;  ///< to what is there
    float* weight_gradient;
    float* bias_gradient;  ///< null without a bias
  };
  void start(const Operation& operation);
  /// The next tile: x[rows, in], dy[rows, out].
  void add(std::int64_t rows, const float* x, const float* dy);
  void finish();

 private:
  Operation now_{};
  std::int64_t done_ = 0, group_ = 0;  // rows, and of how many the products are added up in floats
  bool in_groups_ = false;
  std::vector<float> group_gradient_;
  std::vector<double> bias_sum_, weight_sum_;
};

}  // namespace ddp::passes
