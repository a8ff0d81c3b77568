#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/data/table.hpp>
#include <linear_ddp/launch/shared_array.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// All rows, as they are trained on: in host memory, which the ranks of a host share; or with the features still in
/// their files, or sparse.
struct Dataset {
  std::int64_t rows = 0, in = 0, out = 0;
  SharedArray x;             ///< [rows, in]; empty with a source
  SharedArray y;             ///< [rows, out]; with classes: [rows, 1], the class's index
  SharedArray weights = {};  ///< [rows], or empty: all 1
  /// What rows count in scores, where that is not what they count in the loss.
  std::optional<SharedArray> score_weights = {};
  std::vector<std::string> classes = {};       ///< empty: y are numbers
  std::vector<std::string> notices = {};       ///< what a person should know; the same on all ranks
  std::shared_ptr<FeatureSource> source = {};  ///< of x

  /// x of some rows, [rows.size(), in].
  void copy_x(std::span<const std::int64_t> some_rows, float* target) const;
  /// y of some rows, [rows.size(), out].
  void copy_y(std::span<const std::int64_t> some_rows, float* target) const;
};

/// Where the features of a data set are: automatic leaves them in their files when the memory for them is more than
/// half of what a host has available. Sparse ones are in memory, as they are.
enum class Residence { automatic, memory, files };

/// Collective. Every rank's share, as float, put together for every rank. Throws AgreedError when a value is beyond
/// float, and for Residence::files without a source.
[[nodiscard]] Dataset gather_dataset(const World& world, const TableShare& share,
                                     Residence residence = Residence::automatic);

/// Collective. Some of the rows, in that order; the same ones on every rank.
[[nodiscard]] Dataset select_rows(const World& world, const Dataset& data, const std::vector<std::int64_t>& rows);

/// Mean 0 and standard deviation 1 (of the population, as scikit-learn's StandardScaler) for each feature, over all
/// ranks' rows, in float64.
class Standardizer {
 public:
  /// Collective. A constant column (its minimum is its maximum) gets scale 1, so that it becomes exactly 0. Throws
  /// AgreedError naming the column when its mean is beyond 1e30, or its scale not between 1e-30 and 1e30: float weights
  /// for raw features would be lost.
  Standardizer(const World& world, const TableShare& share);

  /// x ← (x - mean) / scale, in place.
  void apply(TableShare& share) const;
  /// Turns weights for standardised features into weights for raw ones, in float64:
  /// weight[o, i] ← weight[o, i] / scale[i];  bias[o] ← bias[o] - Σ weight[o, i] · mean[i] / scale[i].
  /// Throws UseError without a bias (bias empty) when a mean is not 0; so does unfold.
  void fold_into(std::vector<float>& weight, std::vector<float>& bias) const;
  void fold_into(std::vector<double>& weight, std::vector<double>& bias) const;
  /// The way back: weights for raw features become weights for standardised ones.
  void unfold(std::vector<float>& weight, std::vector<float>& bias) const;

  [[nodiscard]] const std::vector<double>& mean() const noexcept { return mean_; }
  [[nodiscard]] const std::vector<double>& scale() const noexcept { return scale_; }

 private:
  template <class T>
  void transform(std::vector<T>& weight, std::vector<T>& bias, bool folds) const;

  std::vector<double> mean_, scale_;
};

}  // namespace ddp
