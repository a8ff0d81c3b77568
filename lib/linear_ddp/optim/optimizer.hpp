#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// What an optimizer works on that is one of several ranks', each with a part of the parameters.
struct OptimizerShard {
  std::vector<Gradient> ranges;         ///< one at least, though it may have no parameters
  std::function<void(double*)> add_up;  ///< a number on the device, over the ranks; queued
  std::function<void()> gather;         ///< the ranks' updated parameters, for all; queued
};

/// What happens to a model's gradients before any optimizer's formula.
struct GradientOptions {
  double l2 = 0;  ///< the penalty l2/2 · ‖W‖² of the weights, not of the bias, has its gradient added
  std::optional<double> clip_grad_norm;   ///< torch.nn.utils.clip_grad_norm_'s max_norm
  std::optional<OptimizerShard> shard{};  ///< instead of the model's ranges
};

/// Updates the parameters of one of a model's heads by their gradients. Work is queued; the device and the model
/// outlive the optimizer.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of the parameters by the gradients as they are.
  void step() {
    prepare();
    update();
  }
  /// The two halves of a step: the host sends what changes from one to the next, and the device does the work. The
  /// second may be recorded.
  void prepare();
  void update();

  /// The learning rate from the next step on. Throws UseError when it is negative or not finite.
  void set_lr(double lr);
  [[nodiscard]] double lr() const noexcept { return lr_; }

  /// What it remembers from step to step: a value for each parameter, under PyTorch's name, in the device's memory.
  /// With steps() it is all that an equal optimizer needs to go on as this one would.
  struct Memory {
    std::string name;
    Buffer<float> values;
  };
  [[nodiscard]] std::span<Memory> memory() noexcept { return memory_; }
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
  void go_on_after(std::int64_t steps) noexcept { steps_ = steps; }

  /// l2/2 · ‖W‖² of the weights as they are. Waits; with a shard collective.
  [[nodiscard]] double penalty();

 protected:
  /// Throws UseError for a negative option.
  Optimizer(Device& device, Model& model, double lr, const GradientOptions& options, std::int64_t head);

  /// A new part of memory(): zeros, of all ranges one after the other.
  [[nodiscard]] float* remember(const char* name);

  using Scalars = std::array<float, 3>;
  /// What step number steps() needs on the device.
  [[nodiscard]] virtual Scalars next_scalars() = 0;
  virtual void update(std::span<const Gradient> ranges, const float* scalars) = 0;

  Device& device_;

 private:
  /// Over all ranges, and ranks, into square_sum_. Queued.
  void add_up_squares(std::span<const Gradient> ranges);

  double lr_ = 0;
  std::int64_t steps_ = 0;  // with the one that is prepared
  std::vector<Gradient> ranges_;
  std::vector<Memory> memory_;
  std::function<void(double*)> add_up_;  // empty: all is here
  std::function<void()> gather_;
  Buffer<double> square_sum_;
  Buffer<float> scalars_;
  std::optional<Scalars> sent_;
};

}  // namespace ddp
