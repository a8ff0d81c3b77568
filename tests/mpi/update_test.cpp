// The optimizers' updates on every device, against float64 arithmetic written as PyTorch's documentation writes them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "support/backends.hpp"
#include "support/on_device.hpp"

namespace ddp {
namespace {

using test::Floats;
using test::OnDevice;
using test::random_floats;
using Doubles = std::vector<double>;

class Updates : public test::DeviceSuite {};
DDP_INSTANTIATE_FOR_BACKENDS(Updates);

/// What is done to gradients before an optimizer sees them.
struct Treatment {
  std::int64_t penalized = 0;
  double l2 = 0;
  std::optional<double> max_norm = {};
};
constexpr Treatment treatments[] = {{}, {700, 0.25}, {0, 0, 0.5}, {1, 0.25, 0.5}, {2000, 0.5, 1e9}};

Doubles treated(const Floats& gradient, const Doubles& p, const Treatment& treatment) {
  Doubles g(gradient.begin(), gradient.end());
  double square_sum = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (std::cmp_less(i, treatment.penalized)) g[i] += treatment.l2 * p[i];
    square_sum += g[i] * g[i];
  }
  const double clip = treatment.max_norm ? std::min(1.0, *treatment.max_norm / (std::sqrt(square_sum) + 1e-6)) : 1;
  for (double& value : g) value *= clip;
  return g;
}

/// Some steps from random parameters with random gradients: `update(gradient, step)` on the device, and on p, in
/// float64, `reference(g, step, p)`; they stay together within `tolerance`.
class Comparison {
 public:
  Comparison(Device& device, std::int64_t numel, std::int64_t offset, const Treatment& treatment)
      : device_(device),
        offset_(offset),
        treatment_(treatment),
        start_(random_floats(numel, 6)),
        parameters_(device, start_, offset),
        p_(start_.begin(), start_.end()),
        square_sum_(device, 1) {}

  template <class Update, class Reference>
  void steps(int count, double tolerance, const Update& update, const Reference& reference) {
    for (int step = 0; step < count; ++step) {
      const Floats values = random_floats(std::ssize(start_), 7 + static_cast<unsigned>(step));
      OnDevice gradients(device_, values, offset_);
      Gradient gradient;
      gradient.numel = std::ssize(start_);
      gradient.parameters = parameters_.data();
      gradient.gradients = gradients.data();
      gradient.penalized = treatment_.penalized;
      gradient.l2 = static_cast<float>(treatment_.l2);
      if (treatment_.max_norm) {
        gradient.max_norm = static_cast<float>(*treatment_.max_norm);
        gradient.square_sum = square_sum_.data();
        device_.square_sum(gradient, square_sum_.data());
      }
      update(gradient, step);
      const Doubles g = treated(values, p_, treatment_);
      for (std::size_t i = 0; i < p_.size(); ++i) reference(g[i], step, i, p_[i]);
    }
    const Floats result = parameters_.values();
    double worst = 0;
    for (std::size_t i = 0; i < p_.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(result[i]) - p_[i]));
    }
    EXPECT_LE(worst, tolerance) << p_.size() << " values, offset " << offset_;
  }

 private:
  Device& device_;
  std::int64_t offset_;
  Treatment treatment_;
  Floats start_;
  OnDevice parameters_;
  Doubles p_;
  Buffer<double> square_sum_;
};

template <class Body>
void for_shapes(const Body& body) {
  for (const std::int64_t numel : {0, 1, 3, 1023, 5001}) {
    for (const std::int64_t offset : {0, 1}) {
      for (const Treatment& treatment : treatments) body(numel, offset, treatment);
    }
  }
}

TEST_P(Updates, Sgd) {
  constexpr double lr = 0.1;
  constexpr SgdUpdate cases[] = {{},
                                 {.weight_decay = 0.125F},
                                 {.momentum = 0.875F},
                                 {.momentum = 0.875F, .dampening = 0.5F, .weight_decay = 0.125F},
                                 {.momentum = 0.875F, .weight_decay = 0.125F, .nesterov = true}};
  OnDevice rate(device(), {static_cast<float>(lr)});
  for_shapes([&](std::int64_t numel, std::int64_t offset, const Treatment& treatment) {
    for (SgdUpdate update : cases) {
      OnDevice buffer(device(), Floats(static_cast<std::size_t>(numel), 0), offset);
      if (update.momentum != 0) update.momentum_buffer = buffer.data();
      const auto momentum = static_cast<double>(update.momentum), dampening = static_cast<double>(update.dampening),
                 decay = static_cast<double>(update.weight_decay);
      Doubles b(static_cast<std::size_t>(numel), 0);
      Comparison comparison(device(), numel, offset, treatment);
      // 3 steps of numbers of magnitude 2.
      comparison.steps(
          3, 1e-6,
          [&](const Gradient& gradient, int step) {
            update.first = step == 0;
            device().sgd_update(gradient, update, rate.data());
          },
          [&](double g, int step, std::size_t i, double& p) {
            g += decay * p;
            if (momentum != 0) {
              b[i] = step == 0 ? g : momentum * b[i] + (1 - dampening) * g;
              g = update.nesterov ? g + momentum * b[i] : b[i];
            }
            p -= lr * g;
          });
    }
  });
}

TEST_P(Updates, OfMoreParametersThanThereAreThreads) {
  constexpr std::int64_t numel = 8192 * 256 * 4 + 70'001;
  OnDevice parameters(device(), Floats(numel, 1)), gradients(device(), Floats(numel, 2)), lr(device(), {0.25F});
  device().sgd_update({.numel = numel, .parameters = parameters.data(), .gradients = gradients.data()}, {}, lr.data());
  EXPECT_EQ(parameters.values(), Floats(numel, 0.5F));
}

TEST_P(Updates, Adam) {
  constexpr double lr = 0.1, decay = 0.125;
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      for_shapes([&](std::int64_t numel, std::int64_t offset, const Treatment& treatment) {
        const Floats zeros(static_cast<std::size_t>(numel), 0);
        OnDevice mean(device(), zeros, offset), square(device(), zeros, offset), greatest(device(), zeros, offset);
        const AdamUpdate update{.mean = mean.data(),
                                .square = square.data(),
                                .greatest = amsgrad ? greatest.data() : nullptr,
                                .beta1 = 0.9,
                                .beta2 = 0.5,  // the greatest square is soon an older one
                                .eps = 1e-8,
                                .weight_decay = decoupled ? 0 : decay};
        Doubles m(zeros.begin(), zeros.end()), v = m, most = m;
        const auto scalars = [&](int step) {
          return Floats{static_cast<float>(decoupled ? 1 - lr * decay : 1),
                        static_cast<float>(lr / (1 - std::pow(update.beta1, step + 1))),
                        static_cast<float>(std::sqrt(1 - std::pow(update.beta2, step + 1)))};
        };
        Comparison comparison(device(), numel, offset, treatment);
        // 4 steps of about lr. Rounding of a gradient that is nearly 0, against its own size, moves its parameter: by
        // 3.3e-7 at most, as seen.
        comparison.steps(
            4, 2e-6,
            [&](const Gradient& gradient, int step) {
              OnDevice now(device(), scalars(step));
              device().adam_update(gradient, update, now.data());
            },
            [&](double g, int step, std::size_t i, double& p) {
              if (!decoupled) g += decay * p;
              if (decoupled) p -= lr * decay * p;
              m[i] = update.beta1 * m[i] + (1 - update.beta1) * g;
              v[i] = update.beta2 * v[i] + (1 - update.beta2) * g * g;
              most[i] = std::max(most[i], v[i]);
              const double root = std::sqrt((amsgrad ? most[i] : v[i]) / (1 - std::pow(update.beta2, step + 1)));
              p -= lr / (1 - std::pow(update.beta1, step + 1)) * m[i] / (root + update.eps);
            });
      });
    }
  }
}

TEST_P(Updates, SquareSumIsExactOverManyValues) {
  // Squares of 1 and 2: every partial sum is a whole number below 2^53.
  constexpr std::int64_t numel = 1'000'001;
  OnDevice gradients(device(), Floats(numel, 1)), parameters(device(), Floats(numel, 2));
  Buffer<double> sum(device(), 1);
  Doubles result(1);
  device().square_sum({.numel = numel,
                       .parameters = parameters.data(),
                       .gradients = gradients.data(),
                       .penalized = 500'000,
                       .l2 = 0.5F},
                      sum.data());
  sum.download(result);
  EXPECT_EQ(result[0], 5e5 * 4 + 500'001);
}

}  // namespace
}  // namespace ddp
