#pragma once

#include <cstdint>

namespace ddp {

/// How the learning rate goes on from step to step, as torch.optim.lr_scheduler's StepLR, CosineAnnealingLR and
/// LinearLR do when scheduler.step() follows every optimizer.step().
struct LrSchedule {
  enum class Kind { constant, step, cosine, linear };
  Kind kind = Kind::constant;
  std::int64_t steps = 1;  ///< StepLR's step_size, CosineAnnealingLR's T_max, LinearLR's total_iters
  double gamma = 0.1;      ///< StepLR
  double eta_min = 0;      ///< CosineAnnealingLR
  double start_factor = 1.0 / 3, end_factor = 1;  ///< LinearLR

  /// Of the step after `done` others, where the base is `lr`:
  ///   step:    lr · gamma^⌊done / steps⌋
  ///   cosine:  eta_min + (lr - eta_min) · (1 + cos(π · done / steps)) / 2
  ///   linear:  lr · (start + (end - start) · min(done, steps) / steps)
  [[nodiscard]] double at(double lr, std::int64_t done) const;
};

}  // namespace ddp
