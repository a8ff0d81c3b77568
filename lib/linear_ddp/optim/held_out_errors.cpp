#include <linear_ddp/optim/held_out_errors.hpp>

#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>

#include <linear_ddp/device/gemm.hpp>
#include <linear_ddp/device/symmetric_eigen.hpp>
#include <linear_ddp/optim/scaled_columns.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Above, eigenvalues of the small features lose digits to the rounding of the large ones'.
constexpr double most_apart = 1e6;
/// As for the normal equations of least squares.
constexpr double most_for_cholesky = 1e6;

bool sizes_are_far_apart(const VectorXd& squares) {
  const double largest = squares.maxCoeff();
  return (squares.array() > 0 && squares.array() * most_apart < largest).any();
}

}  // namespace

HeldOutErrors::HeldOutErrors(const Moments& fit, const Moments& held, const VectorXd& lambdas) : yy_(held.yy) {
  if (sizes_are_far_apart(fit.xx.diagonal()) && solve_each(fit, held, lambdas)) return;
  const Index in = fit.xy.rows(), out = fit.xy.cols();
  MatrixXd q = fit.xx, half(in, in);
  VectorXd eigenvalues(in);
  to_eigenvectors(std::span(q.data(), static_cast<std::size_t>(q.size())),
                  std::span(eigenvalues.data(), static_cast<std::size_t>(in)));
  for (auto* values : {&c_, &held_xy_}) values->resize(in, out);
  held_xx_.resize(in, in);
  // Read by rows, a matrix of columns is its transpose.
  gemm::product_nt(out, in, in, fit.xy.data(), q.data(), 0, c_.data());
  gemm::product_nt(out, in, in, held.xy.data(), q.data(), 0, held_xy_.data());
  gemm::product_nt(in, in, in, q.data(), held.xx.data(), 0, half.data());
  gemm::product_nt(in, in, in, q.data(), half.data(), 0, held_xx_.data());

  const double nothing = epsilon * static_cast<double>(in) * eigenvalues.cwiseAbs().maxCoeff();
  factors_ = MatrixXd::NullaryExpr(in, lambdas.size(), [&](Index i, Index penalty) {
    const double value = std::max(eigenvalues[i], 0.0) + lambdas[penalty];
    return value > nothing ? 1 / value : 0;
  });
}

VectorXd HeldOutErrors::of(const VectorXd& scale) const {
  if (each_.size() > 0) return (each_.transpose() * scale).cwiseMax(0);
  const Index in = c_.rows(), out = c_.cols();
  const MatrixXd scaled = c_ * scale.cwiseSqrt().asDiagonal();
  MatrixXd square = MatrixXd::Zero(in, in);
  gemm::add_gram(in, out, scaled.data(), square.data());  // of columns, the upper triangle
  square = square.cwiseProduct(held_xx_);
  const VectorXd linear = c_.cwiseProduct(held_xy_) * scale;
  const MatrixXd product = square.selfadjointView<Eigen::Upper>() * factors_;
  const VectorXd of_penalties =
      factors_.cwiseProduct(product).colwise().sum().transpose() - 2 * (factors_.transpose() * linear);
  return (of_penalties.array() + scale.dot(yy_)).max(0);
}

/// By Cholesky of the columns scaled to like sizes, once for each penalty; false where they are nearly dependent.
bool HeldOutErrors::solve_each(const Moments& fit, const Moments& held, const VectorXd& lambdas) {
  each_.resize(held.yy.size(), lambdas.size());
  for (Index penalty = 0; penalty < lambdas.size(); ++penalty) {
    const VectorXd squares = fit.xx.diagonal().array() + lambdas[penalty];
    const VectorXd scale = scales_of(squares);
    MatrixXd gram = scale.asDiagonal() * fit.xx * scale.asDiagonal();
    gram.diagonal() += lambdas[penalty] * scale.cwiseAbs2();
    gram.diagonal() = (scale.array() > 0).select(gram.diagonal(), 1);  // a constant column has the weight 0
    const Eigen::LLT<MatrixXd> factors(gram);
    if (factors.info() != Eigen::Success || !(condition_of(factors.matrixU()) <= most_for_cholesky)) {
      each_.resize(0, 0);
      return false;
    }
    const MatrixXd w = scale.asDiagonal() * factors.solve(scale.asDiagonal() * fit.xy);
    const MatrixXd told = held.xx * w - 2 * held.xy;
    each_.col(penalty) = held.yy + w.cwiseProduct(told).colwise().sum().transpose();
  }
  return true;
}

}  // namespace ddp
