#include <linear_ddp/optim/least_squares.hpp>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/optim/augmented_system.hpp>
#include <linear_ddp/optim/moments.hpp>
#include <linear_ddp/optim/residuals.hpp>
#include <linear_ddp/optim/scaled_columns.hpp>
#include "linear_ddp/device/gemm.hpp"

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Method = LeastSquaresSolution::Method;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Above, the error of normal equations, whose condition is its square, is not made good by a few corrections.
constexpr double most_for_normal_equations = 1e6;
/// Below, a correction of normal equations is less than what they stop at, and where a fit leaves more than this share
/// of the targets' squares, what it leaves is known to 12 digits without the rows.
constexpr double least_for_corrections = 16, least_left_of_targets = 1e-3;
/// Above, a last place of the columns decides about the first one of the solution.
constexpr double most_solvable = 1e15;

/// The solution in the columns' scale, and the triangle whose product with itself is their Gram matrix.
struct Scaled {
  MatrixXd w;         ///< [in, out]
  MatrixXd triangle;  ///< upper
};

class Solver {
 public:
  Solver(const World& world, const LeastSquaresRows& rows, const LeastSquaresOptions& options)
      : world_(world),
        rows_(rows),
        options_(options),
        shared_moments_(rows.moments ? rows.moments : std::make_shared<Moments>(moments_of(world, rows, options.bias))),
        moments_(*shared_moments_) {
    const VectorXd squares = moments_.xx.diagonal().array() + options.ridge;
    scale_ = scales_of(squares);
  }

  LeastSquaresSolution solve() {
    if (options_.extra_precise && solve_to_the_last_digit()) return std::move(solution_);
    if (!solve_normal_equations()) solve_by_qr();
    return std::move(solution_);
  }

 private:
  bool solve_normal_equations() {
    MatrixXd gram = scale_.asDiagonal() * moments_.xx * scale_.asDiagonal();
    gram.diagonal() += options_.ridge * scale_.cwiseAbs2();
    const Eigen::LLT<MatrixXd> factors(gram);
    if (factors.info() != Eigen::Success) return false;
    const MatrixXd triangle = factors.matrixU();
    solution_.condition = condition_of(triangle);
    if (!(solution_.condition <= most_for_normal_equations)) return false;
    solution_.method = Method::normal_equations;
    solution_.rank = rows_.in;

    const RowMajorMatrix lower = factors.matrixL();
    const auto solve = [&](const auto& right) {
      RowMajorMatrix x = scale_.asDiagonal() * right;
      gemm::solve_cholesky(rows_.in, rows_.out, lower.data(), x.data());
      return MatrixXd(scale_.asDiagonal() * x);
    };
    MatrixXd w = solve(moments_.xy);
    VectorXd shift = VectorXd::Zero(rows_.out);  // what the rounding of the means leaves of the bias
    if (needs_no_rows(w)) {
      solution_.converged = true;
      finish(w, shift, triangle);
      return true;
    }
    constexpr int most_refinements = 10;
    const double rounding = 16 * epsilon * solution_.condition;
    for (;;) {
      Residuals residuals = residuals_of(world_, rows_, moments_, w, shift);
      solution_.square_sums.assign(residuals.squares.begin(), residuals.squares.end());
      const MatrixXd change = solve(residuals.gradient - options_.ridge * w);
      const auto size = [&](const MatrixXd& values) {  // of each column's share of the targets
        return scale_.cwiseInverse().asDiagonal() * values;
      };
      solution_.converged = size(change).norm() <= rounding * size(w).norm();
      if (solution_.converged || solution_.refinements == most_refinements) break;
      w += change;
      if (options_.bias) shift += residuals.mean;
      ++solution_.refinements;
    }
    finish(w, shift, triangle);
    return true;
  }

  bool needs_no_rows(const MatrixXd& w) {
    if (!(solution_.condition <= least_for_corrections)) return false;
    const VectorXd left = moments_.yy - w.cwiseProduct(moments_.xy + options_.ridge * w).colwise().sum().transpose();
    if ((left.array() < least_left_of_targets * moments_.yy.array()).any()) return false;
    solution_.square_sums.assign(left.begin(), left.end());
    return true;
  }

  void solve_by_qr() {
    const Index in = rows_.in, out = rows_.out;
    // Blocks below the triangle of those before: memory for a block, not for the rows.
    MatrixXd r = MatrixXd::Zero(in, in), qy = MatrixXd::Zero(in, out);
    const auto take = [&](const MatrixXd& x, const MatrixXd& y) {
      MatrixXd all(in + x.rows(), in), right(in + x.rows(), out);
      all << r, x;
      right << qy, y;
      const Eigen::HouseholderQR<MatrixXd> factors(all);
      right = factors.householderQ().adjoint() * right;
      r = factors.matrixQR().topRows(in).triangularView<Eigen::Upper>();
      qy = right.topRows(in);
    };
    agree(world_, [&] {
      if (options_.ridge > 0 && world_.rank() == 0) {
        take(MatrixXd((std::sqrt(options_.ridge) * scale_).asDiagonal()), MatrixXd::Zero(in, out));
      }
      each_deviation(rows_, moments_.mean_x, moments_.mean_y,
                     [&](const RowMajorMatrix& x, const RowMajorMatrix& y) { take(x * scale_.asDiagonal(), y); });
    });
    const TallSkinnyQr qr(world_, r);
    const MatrixXd right = qr.multiply_transposed(qy);
    Eigen::ColPivHouseholderQR<MatrixXd> pivoted(qr.r());
    pivoted.setThreshold(epsilon * static_cast<double>(std::max(moments_.rows, rows_.in)));
    solution_.method = Method::qr;
    solution_.rank = pivoted.rank();
    solution_.converged = true;
    solution_.condition = solution_.rank == in ? condition_of(qr.r()) : infinity;
    const MatrixXd w =
        solution_.rank == in ? MatrixXd(scale_.asDiagonal() * pivoted.solve(right)) : smallest_solution(pivoted, right);
    const VectorXd shift = VectorXd::Zero(out);
    const Residuals residuals = residuals_of(world_, rows_, moments_, w, shift);
    solution_.square_sums.assign(residuals.squares.begin(), residuals.squares.end());
    finish(w, options_.bias ? residuals.mean : shift, qr.r());
  }

  /// Of all solutions the one with the smallest weights, in the features' own scale.
  MatrixXd smallest_solution(const Eigen::ColPivHouseholderQR<MatrixXd>& pivoted, const MatrixXd& right) {
    const Index in = rows_.in, rank = pivoted.rank(), free = in - rank;
    const auto& order = pivoted.colsPermutation();
    for (Index i = rank; i < in; ++i) solution_.dependent.push_back(order.indices()[i]);
    std::sort(solution_.dependent.begin(), solution_.dependent.end());
    const auto triangle = pivoted.matrixR().topLeftCorner(rank, rank).triangularView<Eigen::Upper>();
    MatrixXd basic = MatrixXd::Zero(in, right.cols()), null = MatrixXd::Zero(in, free);
    basic.topRows(rank) = triangle.solve((pivoted.householderQ().adjoint() * right).topRows(rank));
    null.topRows(rank) = -triangle.solve(pivoted.matrixR().topRightCorner(rank, free));
    null.bottomRows(free).setIdentity();
    const MatrixXd w = scale_.asDiagonal() * (order * basic).eval(),
                   directions = scale_.asDiagonal() * (order * null).eval();
    return w - directions * directions.completeOrthogonalDecomposition().solve(w);
  }

  /// False where columns are dependent, as far as double can tell.
  bool solve_to_the_last_digit() {
    const Index in = rows_.in, unknowns = in + (options_.bias ? 1 : 0);
    VectorXd scale(unknowns);
    scale.head(in) = scales_of((moments_.xx.diagonal().array() + options_.ridge).matrix() +
                               moments_.weight * moments_.mean_x.cwiseAbs2());
    if (options_.bias) scale[in] = scales_of(VectorXd::Constant(1, moments_.weight))[0];
    const bool has_ridge = options_.ridge > 0 && world_.rank() == 0;
    const VectorXd zero_x = VectorXd::Zero(in), zero_y = VectorXd::Zero(rows_.out);
    MatrixXd a, b;
    agree(world_, [&] {
      a = MatrixXd::Zero(rows_.rows + (has_ridge ? in : 0), unknowns);
      b = MatrixXd::Zero(a.rows(), rows_.out);
      Index row = 0;
      rows_.each_block([&](const LeastSquaresRows::Block& block) {
        a.block(row, 0, block.rows, in) = Eigen::Map<const RowMajorMatrix>(block.x, block.rows, in);
        if (options_.bias) a.block(row, in, block.rows, 1).setOnes();
        b.middleRows(row, block.rows) = Eigen::Map<const RowMajorMatrix>(block.y, block.rows, rows_.out);
        if (block.weight != nullptr) {
          const Eigen::ArrayXd roots = Eigen::Map<const VectorXd>(block.weight, block.rows).array().sqrt();
          a.middleRows(row, block.rows).array().colwise() *= roots;
          b.middleRows(row, block.rows).array().colwise() *= roots;
        }
        row += block.rows;
      });
      if (has_ridge) a.block(row, 0, in, in).diagonal().setConstant(std::sqrt(options_.ridge));
      a = (a * scale.asDiagonal()).eval();
    });
    const TallSkinnyQr qr(world_, a);
    solution_.condition = condition_of(qr.r());
    if (!(solution_.condition <= most_solvable)) return false;
    const RefinedSolution refined = solve_augmented(world_, a, qr, b, MatrixXd::Zero(unknowns, rows_.out));
    solution_.method = Method::refined_qr;
    solution_.rank = unknowns;
    solution_.refinements = refined.rounds;
    solution_.converged = refined.converged;
    const MatrixXd x = scale.asDiagonal() * refined.x;
    VectorXd squares = refined.r.topRows(rows_.rows).colwise().squaredNorm().transpose();
    sum_over_ranks(world_, squares);
    solution_.square_sums.assign(squares.begin(), squares.end());
    store(x.topRows(in), options_.bias ? VectorXd(x.row(in).transpose()) : VectorXd());
    if (!options_.standard_errors) return true;

    VectorXd variances(unknowns);
    constexpr Index at_once = 8;  // each takes memory for a number a row
    for (Index first = 0; first < unknowns; first += at_once) {
      const Index count = std::min(at_once, unknowns - first);
      MatrixXd c = MatrixXd::Zero(unknowns, count);
      for (Index i = 0; i < count; ++i) c(first + i, i) = -1;
      const RefinedSolution inverse = solve_augmented(world_, a, qr, MatrixXd::Zero(a.rows(), count), c);
      solution_.converged = solution_.converged && inverse.converged;
      for (Index i = 0; i < count; ++i)
        variances[first + i] = inverse.x(first + i, i) * scale[first + i] * scale[first + i];
    }
    store_errors(variances.head(in), options_.bias ? variances[in] : 0);
    return true;
  }

  void finish(const MatrixXd& w, const VectorXd& shift, const MatrixXd& triangle) {
    store(w, options_.bias ? VectorXd(moments_.mean_y + shift - w.transpose() * moments_.mean_x) : VectorXd());
    if (!options_.standard_errors) return;
    if (solution_.rank < rows_.in || options_.ridge > 0) return store_errors(VectorXd::Constant(rows_.in, NAN), NAN);
    const MatrixXd inverse =
        triangle.transpose().triangularView<Eigen::Lower>().solve(MatrixXd::Identity(rows_.in, rows_.in));
    const VectorXd of_mean = inverse * scale_.cwiseProduct(moments_.mean_x);
    store_errors(inverse.colwise().squaredNorm().transpose().cwiseProduct(scale_.cwiseAbs2()),
                 1 / moments_.weight + of_mean.squaredNorm());
  }

  void store(const MatrixXd& w, const VectorXd& bias) {
    solution_.weight.assign(w.data(), w.data() + w.size());  // its columns are the outputs
    solution_.bias.assign(bias.begin(), bias.end());
  }

  /// `variances` are those of residuals of variance 1.
  void store_errors(const VectorXd& variances, double of_bias) {
    const auto freedom = static_cast<double>(moments_.rows - rows_.in - (options_.bias ? 1 : 0));
    for (const double squares : solution_.square_sums) {
      const double variance = freedom > 0 ? squares / freedom : std::numeric_limits<double>::quiet_NaN();
      for (const double factor : variances) solution_.weight_errors.push_back(std::sqrt(variance * factor));
      if (options_.bias) solution_.bias_errors.push_back(std::sqrt(variance * of_bias));
    }
  }

  const World& world_;
  const LeastSquaresRows& rows_;
  LeastSquaresOptions options_;
  std::shared_ptr<const Moments> shared_moments_;
  const Moments& moments_;
  VectorXd scale_;
  LeastSquaresSolution solution_;
};

}  // namespace

LeastSquaresSolution solve_least_squares(const World& world, const LeastSquaresRows& rows,
                                         const LeastSquaresOptions& options) {
  return Solver(world, rows, options).solve();
}

std::string_view name_of(LeastSquaresSolution::Method method) {
  switch (method) {
    case Method::normal_equations:
      return "normal equations";
    case Method::qr:
      return "QR";
    case Method::refined_qr:
      return "QR, refined to the last digit";
  }
  return "";
}

}  // namespace ddp
