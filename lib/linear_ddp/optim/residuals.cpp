#include <linear_ddp/optim/residuals.hpp>

#include <linear_ddp/device/gemm.hpp>
#include <linear_ddp/launch/agree.hpp>

namespace ddp {

using Eigen::MatrixXd;
using Eigen::VectorXd;

Residuals residuals_of(const World& world, const LeastSquaresRows& rows, const Moments& moments, const MatrixXd& w,
                       const VectorXd& shift) {
  Residuals sums{VectorXd::Zero(rows.out), VectorXd::Zero(rows.out), MatrixXd::Zero(rows.in, rows.out)};
  const MatrixXd minus_w = -w;  // read by rows, its transpose
  agree(world, [&] {
    RowMajorMatrix x, error, gradient = RowMajorMatrix::Zero(rows.in, rows.out);
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      x = Eigen::Map<const RowMajorMatrix>(block.x, block.rows, rows.in).rowwise() - moments.mean_x.transpose();
      error = Eigen::Map<const RowMajorMatrix>(block.y, block.rows, rows.out).rowwise() -
              (moments.mean_y + shift).transpose();
      gemm::product_nt(block.rows, rows.out, rows.in, x.data(), minus_w.data(), 1, error.data());
      if (block.weight == nullptr) {
        sums.squares += error.colwise().squaredNorm().transpose();
      } else {
        const auto weight = Eigen::Map<const VectorXd>(block.weight, block.rows).asDiagonal();
        sums.squares += (error.cwiseAbs2().transpose() * weight).rowwise().sum();
        error = weight * error;
      }
      sums.mean += error.colwise().sum().transpose();
      gemm::product_tn(rows.in, rows.out, block.rows, x.data(), error.data(), 1, gradient.data());
    });
    sums.gradient = gradient;
  });
  for (auto* values : {&sums.squares, &sums.mean}) sum_over_ranks(world, *values);
  sum_over_ranks(world, sums.gradient);
  sums.mean /= moments.weight;
  return sums;
}

}  // namespace ddp
