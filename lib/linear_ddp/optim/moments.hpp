#pragma once

#include <Eigen/Core>
#include <cstdint>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>
#include <linear_ddp/optim/scaled_columns.hpp>

namespace ddp {

/// Means, and sums of products of deviations from them, of all ranks' rows, weighted; without a bias the deviations are
/// from 0. The same bits on all ranks.
struct Moments {
  double weight = 0;               ///< of all rows
  std::int64_t rows = 0;           ///< of all ranks
  Eigen::VectorXd mean_x, mean_y;  ///< [in], [out]
  Eigen::MatrixXd xx, xy;          ///< [in, in], [in, out]
  Eigen::VectorXd yy;              ///< [out], each target's with itself
};

/// Of some of this rank's rows: sums of deviations from a guess, and of their products. Rows are gathered into a block,
/// which is multiplied when it is full: one by one they may come from anywhere.
class OwnMoments {
 public:
  OwnMoments(std::int64_t in, std::int64_t out, bool bias);

  void add(const LeastSquaresRows::Block& block, std::int64_t row);

  /// Of the rows that were gathered since the last time. Ends the adding.
  void multiply();

  /// Collective, after multiply(). Without a difference of large sums: each rank's deviations are from a guess of its
  /// own, then from its means, then from all ranks' (Chan, Golub, LeVeque, 1979).
  [[nodiscard]] Moments of_all_ranks(const World& world);

 private:
  bool bias_;
  std::int64_t rows_ = 0, gathered_ = 0;
  double weight_ = 0;
  Eigen::RowVectorXd guess_x_, guess_y_, sum_x_, sum_y_, yy_;
  Eigen::MatrixXd xx_;  ///< the upper triangle
  RowMajorMatrix xy_;
  RowMajorMatrix x_, y_;   ///< the block
  Eigen::VectorXd roots_;  ///< of its rows' weights
};

/// Collective, in one pass. Throws AgreedError when squares overflow.
[[nodiscard]] Moments moments_of(const World& world, const LeastSquaresRows& rows, bool bias);

/// Throws AgreedError for moments that are no numbers: squares overflowed.
void expect_finite(const Moments& moments);

/// What is left of a constant feature is the rounding of its mean: it becomes 0.
void clear_constants(Moments& moments);

}  // namespace ddp
