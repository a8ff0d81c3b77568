#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace ddp {

/// PyTorch's CPU random numbers: what follows `torch.manual_seed(seed)`, draw by draw. Integers and uniforms are equal
/// bit for bit; randn to the last bits of log and cos (PyTorch's are vectorised). Recorded in tests/data/torch.
class TorchGenerator {
 public:
  /// Seeds mt19937 with the low 32 bits of the seed, as PyTorch does.
  explicit TorchGenerator(std::uint64_t seed);

  /// torch.rand: uniform in [0, 1), 24 bits.
  void rand(std::span<float> values);
  /// Tensor.uniform_(low, high).
  void uniform(std::span<float> values, float low, float high);
  /// torch.randn: two algorithms, below 16 values and from 16 on.
  void randn(std::span<float> values);
  /// torch.randint(bound, …), 0 < bound < 2^32, as PyTorch 1.13 draws it (newer ones take 64 bits from a bound of 2^28
  /// on). Throws Error for another bound.
  void randint(std::span<std::int64_t> values, std::int64_t bound);
  /// torch.randperm(n).
  [[nodiscard]] std::vector<std::int64_t> randperm(std::int64_t n);

 private:
  [[nodiscard]] std::uint64_t next_64_bits();
  [[nodiscard]] float next_float();
  [[nodiscard]] double next_double();
  [[nodiscard]] double next_normal();

  std::mt19937 engine_;
  std::optional<double> spare_normal_;  // the second of a pair, kept for the next call
};

/// nn.Linear(in, out, bias)'s initialisation: weight [out, in], then bias [out] (empty: none), uniform in ±1/√in.
void init_linear(TorchGenerator& generator, std::int64_t in, std::span<float> weight, std::span<float> bias);

}  // namespace ddp
