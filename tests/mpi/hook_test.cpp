// Gradients that are summed over the ranks by hooks.
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>

#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "support/backends.hpp"
#include "support/eigen.hpp"

namespace ddp::test {
namespace {

class Hooks : public DeviceSuite {
 protected:
  void SetUp() override {
    DeviceSuite::SetUp();
    if (IsSkipped()) return;
    group_ = GetParam() == Backend::cpu ? make_mpi_group(world(), watchdog_)
                                        : make_nccl_group(world(), device(), watchdog_, std::chrono::seconds(60));
  }
  void TearDown() override {
    if (group_) group_->close();
  }

  /// Gradients of a step, which are this rank's, all ranks' sum: by a batch of its own.
  struct Gradients {
    Floats own, sum;
  };
  Gradients gradients(Model& model, DistributedDataParallel& replica, int step, double total) {
    const std::int64_t rows = 5 + world().rank();
    const auto seed = static_cast<unsigned>(100 * step + world().rank());
    OnDevice x(device(), random_floats(rows * model.shape().in, seed)),
        target(device(), random_floats(rows * model.shape().out, seed + 50));
    const Batch batch{rows, x.data(), target.data()};
    model.backward(batch, static_cast<float>(1 / (total * static_cast<double>(model.losses_of_a_row()))));
    Gradients result{on_host(model.gradients()), {}};
    replica.backward(batch, total);
    result.sum = on_host(model.gradients());
    return result;
  }
  Floats on_host(std::span<const float> values) {
    Floats copy(values.size());
    device().download(copy.data(), values.data(), values.size_bytes());
    return copy;
  }
  static Matrix sum_over_ranks(const Matrix& own) {
    Matrix sum = own;
    all_reduce_sum(world(), std::span(sum.data(), static_cast<std::size_t>(sum.size())));
    return sum;
  }
  static Matrix part(const Floats& flat, std::int64_t offset, std::int64_t rows, std::int64_t columns) {
    return matrix({flat.begin() + offset, flat.begin() + offset + rows * columns}, rows, columns);
  }
  static void fill(Model& model) {
    for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
      model.upload(slot, random_floats(model.layout().slots()[slot].numel, static_cast<unsigned>(slot) + 7));
    }
  }
  ProcessGroup& group() { return *group_; }

 private:
  Watchdog watchdog_;
  std::unique_ptr<ProcessGroup> group_;
};
DDP_INSTANTIATE_FOR_BACKENDS(Hooks);

const LinearShape stack{.in = 12, .out = 9, .hidden = {20, 15}, .activation = Activation::tanh};

TEST_P(Hooks, BucketsOfAnySizeHoldTheSums) {
  for (const BucketOptions& buckets : {BucketOptions{}, {1e-4, 1e-4}, {1e-3, 1e-4}, {0, 0}}) {
    Model model(device(), stack);
    fill(model);
    DistributedDataParallel replica(world(), device(), group(), model, buckets);
    const Gradients found = gradients(model, replica, 1, 30);
    const auto numel = model.layout().numel() + 1;  // and the loss
    const Matrix expected = sum_over_ranks(part(found.own, 0, 1, numel));
    EXPECT_LE((part(found.sum, 0, 1, numel) - expected).cwiseAbs().maxCoeff(), 1e-6) << buckets.cap_mb;
  }
}

TEST_P(Hooks, HalvesAreRoundedOnceOnEachSide) {
  for (const auto& [type, unit] : {std::pair{HalfType::fp16, 0x1p-11}, {HalfType::bf16, 0x1p-8}}) {
    Model model(device(), stack);
    fill(model);
    DistributedDataParallel replica(world(), device(), group(), model, {1e-3, 1e-4});
    replica.register_comm_hook(make_half_hook(device(), type));
    const Gradients found = gradients(model, replica, 1, 30);
    const auto numel = model.layout().numel();
    const Matrix own = part(found.own, 0, 1, numel), sum = part(found.sum, 0, 1, numel);
    // Each addend is rounded, and each of the sums; small ones to the step of subnormal halves.
    const Matrix sizes = sum_over_ranks(own.cwiseAbs());
    const Matrix bound = (unit * world().size() * sizes).array() + world().size() * 0x1p-25;
    EXPECT_LE(((sum - sum_over_ranks(own)).cwiseAbs() - bound).maxCoeff(), 0);
    // The loss is no gradient, and stays a float.
    EXPECT_NEAR(static_cast<double>(found.sum[static_cast<std::size_t>(numel)]) /
                    sum_over_ranks(part(found.own, numel, 1, 1))(0, 0),
                1, 1e-6);
    EXPECT_GT((sum - sum_over_ranks(own)).cwiseAbs().maxCoeff(), 0) << "nothing was rounded";
  }
}

/// One step of PowerSGD as the paper has it (algorithm 1, with error feedback and warm start) for one matrix.
class Reference {
 public:
  Reference(std::int64_t out, const Matrix& q) : error_(Matrix::Zero(out, q.rows())), q_(q) {}
  [[nodiscard]] const Matrix& error() const { return error_; }

  Matrix step(const Matrix& gradient) {
    const Matrix m = gradient + error_;
    Matrix p = m * q_;
    all_reduce(p);
    // The Q of a QR decomposition is what Gram and Schmidt find, but for signs, which cancel in P·Qᵀ.
    p = Eigen::HouseholderQR<Matrix>(p).householderQ() * Matrix::Identity(p.rows(), p.cols());
    q_ = m.transpose() * p;
    all_reduce(q_);
    const Matrix sum = p * q_.transpose();
    error_ = m - sum / world().size();
    return sum;
  }

 private:
  static void all_reduce(Matrix& values) {
    all_reduce_sum(world(), std::span(values.data(), static_cast<std::size_t>(values.size())));
  }
  Matrix error_, q_;
};

TEST_P(Hooks, PowerSgdIsThePapersAlgorithm) {
  for (const std::int64_t rank : {1, 2, 4}) {
    const LinearShape shape{.in = 12, .out = 9};
    Model model(device(), shape);
    fill(model);
    DistributedDataParallel replica(world(), device(), group(), model);
    replica.register_comm_hook(
        make_powersgd_hook(device(), model, {.rank = rank, .start_step = 2, .min_compression_rate = 0, .seed = 3}));
    Floats q(static_cast<std::size_t>(12 * rank));
    TorchGenerator(3).randn(q);
    Reference reference(9, matrix(q, rank, 12).transpose());
    Matrix told = Matrix::Zero(9, 12), all = told;
    for (int step = 0; step < 6; ++step) {
      const Gradients found = gradients(model, replica, step, 30);
      const Matrix own = part(found.own, 0, 9, 12), sum = part(found.sum, 0, 9, 12);
      const Matrix expected = step < 2 ? sum_over_ranks(own) : reference.step(own);
      EXPECT_LE((sum - expected).cwiseAbs().maxCoeff(), 2e-5) << "rank " << rank << ", step " << step;
      const std::int64_t bias = model.layout().layers()[0].bias;
      EXPECT_LE((part(found.sum, bias, 1, 9) - sum_over_ranks(part(found.own, bias, 1, 9))).cwiseAbs().maxCoeff(),
                1e-6);
      told += sum;
      all += sum_over_ranks(own);
    }
    // Nothing is lost: what was not told yet is kept.
    EXPECT_LE((told + sum_over_ranks(reference.error()) - all).cwiseAbs().maxCoeff(), 2e-5);
  }
}

TEST_P(Hooks, PowerSgdOfFullRankIsThePlainSum) {
  Model model(device(), stack);
  fill(model);
  DistributedDataParallel replica(world(), device(), group(), model, {1e-3, 1e-4});
  replica.register_comm_hook(
      make_powersgd_hook(device(), model, {.rank = 100, .start_step = 1, .min_compression_rate = 0}));
  for (int step = 0; step < 3; ++step) {
    const Gradients found = gradients(model, replica, step, 30);
    const auto numel = model.layout().numel() + 1;
    const Matrix expected = sum_over_ranks(part(found.own, 0, 1, numel));
    EXPECT_LE((part(found.sum, 0, 1, numel) - expected).cwiseAbs().maxCoeff(), 1e-5) << step;
  }
}

TEST_P(Hooks, ColumnsBecomeOrthonormalAndDependentOnesZero) {
  const std::int64_t rows = 500;
  Floats values = random_floats(rows * 4, 1);
  for (std::size_t row = 0; row < rows; ++row) values[row * 4 + 2] = 2 * values[row * 4] - values[row * 4 + 1];
  const Matrix before = matrix(values, rows, 4);
  OnDevice there(device(), values);
  device().orthonormalize(rows, 4, there.data());
  const Matrix after = matrix(there.values(), rows, 4);
  Matrix expected = Matrix::Identity(4, 4);
  expected(2, 2) = 0;
  EXPECT_LE((after.transpose() * after - expected).cwiseAbs().maxCoeff(), 1e-6);
  // The same space.
  EXPECT_LE((after * (after.transpose() * before) - before).cwiseAbs().maxCoeff(), 1e-5);
}

}  // namespace
}  // namespace ddp::test
