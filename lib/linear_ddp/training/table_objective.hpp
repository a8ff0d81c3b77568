#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/device/operations.hpp>
#include <linear_ddp/training/table_rows.hpp>

namespace ddp {

/// The losses of LossOptions, with numbers of float64.
struct TableLoss {
  LossKind kind = LossKind::mse;
  double label_smoothing = 0;  ///< cross entropy's, from 0 to below 1
  /// One for each class, or empty: 1 each. Cross entropy has them as PyTorch does; of the binary loss each row counts
  /// as much more.
  std::vector<double> class_weight{};
};

/// What FullBatchObjective is, but all of it in float64, on a table's own numbers and on the host: mean loss over all
/// ranks' rows plus l2/2 · ‖W‖², as a function of a layer's parameters: weight [out, in], then bias [out].
class TableObjective {
 public:
  /// Collective. The world and the share, this rank's rows, outlive this object; the share may be empty. Targets of
  /// cross entropy and of the binary loss are labels.
  TableObjective(const World& world, const TableShare& share, TableLoss loss, bool bias);

  /// Collective, at the same x on every rank: the value; `gradient` is set. Throws AgreedError when rows that stay in
  /// their files cannot be read.
  double evaluate(std::span<const double> x, std::span<double> gradient, double l2);

  [[nodiscard]] std::int64_t numel() const noexcept { return weights_ + biases_; }
  /// Of all rows, as the loss has them.
  [[nodiscard]] double weight() const noexcept { return weight_; }

 private:
  void add(const LeastSquaresRows::Block& block, std::span<const double> x);
  /// The block's outputs become the losses' gradients; returns the sum of the losses.
  double differentiate(const LeastSquaresRows::Block& block);

  const World& world_;
  LeastSquaresRows rows_;
  TableLoss loss_;
  std::int64_t out_, weights_, biases_;
  double weight_;
  std::vector<double> y_;     ///< outputs of a block, then the losses' gradients
  std::vector<double> sums_;  ///< of the losses' gradients and, last, of the losses
};

}  // namespace ddp
