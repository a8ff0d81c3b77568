#include <linear_ddp/optim/tall_skinny_qr.hpp>

#include <mpi.h>

#include <algorithm>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

int count_of(const MatrixXd& values) {
  return narrow<int>(values.size(), "the number of values of a triangle");
}

void send(const World& world, const MatrixXd& values, int to) {
  check_mpi(MPI_Send(values.data(), count_of(values), MPI_DOUBLE, to, 0, world.comm()), "send a rank's triangle");
}

MatrixXd receive(const World& world, Index rows, Index columns, int from) {
  MatrixXd values(rows, columns);
  check_mpi(MPI_Recv(values.data(), count_of(values), MPI_DOUBLE, from, 0, world.comm(), MPI_STATUS_IGNORE),
            "receive a rank's triangle");
  return values;
}

void broadcast(const World& world, MatrixXd& values) {
  check_mpi(MPI_Bcast(values.data(), count_of(values), MPI_DOUBLE, 0, world.comm()), "send the triangle to all ranks");
}

MatrixXd stacked(const MatrixXd& upper, const MatrixXd& lower) {
  MatrixXd both(upper.rows() + lower.rows(), upper.cols());
  both << upper, lower;
  return both;
}

}  // namespace

/// The first rows, as many as there are columns of A; zeros where there are less.
MatrixXd TallSkinnyQr::top(const MatrixXd& any) const {
  MatrixXd result = MatrixXd::Zero(columns_, any.cols());
  const Index rows = std::min(columns_, any.rows());
  result.topRows(rows) = any.topRows(rows);
  return result;
}

TallSkinnyQr::TallSkinnyQr(const World& world, const MatrixXd& own)
    : world_(world), rows_(own.rows()), columns_(own.cols()) {
  const auto triangle = [&](const Factors& factors) {
    return MatrixXd(top(factors.matrixQR()).triangularView<Eigen::Upper>());
  };
  r_ = MatrixXd::Zero(columns_, columns_);
  if (rows_ > 0) {
    own_.compute(own);
    r_ = triangle(own_);
  }
  for (int step = 1; step < world.size() && parent_ < 0; step *= 2) {
    if (world.rank() % (2 * step) != 0) {
      parent_ = world.rank() - step;
      send(world, r_, parent_);
    } else if (world.rank() + step < world.size()) {
      const int other = world.rank() + step;
      nodes_.push_back({other, Factors(stacked(r_, receive(world, columns_, columns_, other)))});
      r_ = triangle(nodes_.back().factors);
    }
  }
  broadcast(world, r_);
}

MatrixXd TallSkinnyQr::multiply_transposed(const MatrixXd& f) const {
  MatrixXd h = rows_ == 0 ? MatrixXd::Zero(columns_, f.cols()).eval() : top(own_.householderQ().adjoint() * f);
  for (const Node& node : nodes_) {
    h = top(node.factors.householderQ().adjoint() * stacked(h, receive(world_, columns_, f.cols(), node.other)));
  }
  if (parent_ >= 0) send(world_, h, parent_);
  broadcast(world_, h);
  return h;
}

MatrixXd TallSkinnyQr::multiply(const MatrixXd& h) const {
  MatrixXd own = parent_ >= 0 ? receive(world_, columns_, h.cols(), parent_) : h;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const MatrixXd both = node->factors.householderQ() * stacked(own, MatrixXd::Zero(columns_, h.cols()));
    send(world_, both.bottomRows(columns_), node->other);
    own = both.topRows(columns_);
  }
  if (rows_ == 0) return MatrixXd(0, h.cols());
  MatrixXd f = MatrixXd::Zero(rows_, h.cols());
  f.topRows(std::min(rows_, columns_)) = own.topRows(std::min(rows_, columns_));
  return own_.householderQ() * f;
}

}  // namespace ddp
