#pragma once

#include <Eigen/QR>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// A = Q · R of a matrix whose rows are spread over the ranks: each factors its own, and a tree over the ranks factors
/// their triangles, two at a time and always the same two (Demmel, Grigori, Hoemmen, Langou, 2012). Q stays in factors.
class TallSkinnyQr {
 public:
  /// Collective. `own`: this rank's rows, any number; the ranks have the same number of columns.
  TallSkinnyQr(const World& world, const Eigen::MatrixXd& own);

  /// Upper triangular, [columns, columns]; the same bits on all ranks.
  [[nodiscard]] const Eigen::MatrixXd& r() const noexcept { return r_; }

  /// Collective. Qᵀ · f, the same bits on all ranks; of f each rank has the rows that it has of A.
  [[nodiscard]] Eigen::MatrixXd multiply_transposed(const Eigen::MatrixXd& f) const;
  /// Collective. This rank's rows of Q · h; every rank has the whole of h, [columns, any].
  [[nodiscard]] Eigen::MatrixXd multiply(const Eigen::MatrixXd& h) const;

 private:
  using Factors = Eigen::HouseholderQR<Eigen::MatrixXd>;
  /// Where a triangle of this rank and one of another rank became one.
  struct Node {
    int other;
    Factors factors;
  };

  [[nodiscard]] Eigen::MatrixXd top(const Eigen::MatrixXd& any) const;

  const World& world_;
  Eigen::Index rows_, columns_;
  Factors own_;
  std::vector<Node> nodes_;
  int parent_ = -1;  ///< to which this rank's triangle goes; none on rank 0
  Eigen::MatrixXd r_;
};

}  // namespace ddp
