#include <linear_ddp/optim/lr_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ddp {

double LrSchedule::at(double lr, std::int64_t done) const {
  const double part = static_cast<double>(done) / static_cast<double>(steps);
  switch (kind) {
    case Kind::constant:
      break;
    case Kind::step:
      return lr * std::pow(gamma, static_cast<double>(done / steps));
    case Kind::cosine:
      return eta_min + (lr - eta_min) * (1 + std::cos(std::numbers::pi * part)) / 2;
    case Kind::linear:
      return lr * (start_factor + (end_factor - start_factor) * std::min(part, 1.0));
  }
  return lr;
}

}  // namespace ddp
