// The objective in float64 of each loss, against the losses' textbook formulas in long double, and its gradient against
// differences of them, however the rows are shared out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/training/table_objective.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp::test {
namespace {

using Real = long double;

constexpr std::int64_t rows = 1100, in = 4;  // one rank has more rows than a block
constexpr std::size_t wide = in;

/// All ranks' rows.
struct Table {
  std::vector<double> x, y, weights;
  std::size_t targets = 1, outputs = 1;  ///< of a row
  std::vector<std::string> labels{};
};

Table table_for(LossKind kind, bool weighs) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Table table;
  if (kind == LossKind::cross_entropy) table.labels = {"a", "b", "c"};
  if (kind == LossKind::bce_with_logits) table.labels = {"a", "b"};
  const bool numbers = table.labels.empty();
  if (numbers) table.targets = table.outputs = 2;
  if (kind == LossKind::cross_entropy) table.outputs = 3;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < in; ++i) table.x.push_back(normal(random));
    for (std::size_t t = 0; t < table.targets; ++t) {
      table.y.push_back(numbers ? 2 * normal(random) : static_cast<double>(random() % table.labels.size()));
    }
    if (weighs) table.weights.push_back(std::abs(normal(random)));
  }
  return table;
}

TableShare share_of(const Table& table, std::int64_t begin, std::int64_t end) {
  const auto part = [&](const std::vector<double>& values, std::size_t width) {
    const auto at = [&](std::int64_t row) { return values.begin() + row * static_cast<std::int64_t>(width); };
    return values.empty() ? values : std::vector<double>(at(begin), at(end));
  };
  TableShare share;
  share.feature_names.resize(wide, "x");
  share.target_names.resize(table.targets, "y");
  share.total_rows = rows;
  share.first_row = begin;
  share.rows = end - begin;
  share.features = part(table.x, wide);
  share.targets = part(table.y, table.targets);
  share.weights = part(table.weights, 1);
  share.labels = table.labels;
  return share;
}

TableShare even_share(const Table& table) {
  return share_of(table, share_begin(rows, world().rank(), world().size()),
                  share_begin(rows, world().rank() + 1, world().size()));
}

Real loss_of_row(const TableLoss& loss, const std::vector<Real>& z, const double* target) {
  Real sum = 0;
  const auto own = static_cast<std::size_t>(target[0]);
  const auto weight_of = [&](std::size_t k) {
    return loss.class_weight.empty() ? Real{1} : Real{loss.class_weight[k]};
  };
  switch (loss.kind) {
    case LossKind::mse:
      for (std::size_t o = 0; o < z.size(); ++o) sum += std::pow(z[o] - target[o], Real{2});
      return sum;
    case LossKind::huber:
      for (std::size_t o = 0; o < z.size(); ++o) {
        const Real size = std::abs(z[o] - target[o]);
        sum += size < 1 ? size * size / 2 : size - Real{0.5};
      }
      return sum;
    case LossKind::bce_with_logits:
      return weight_of(own) * std::log(1 + std::exp(own == 1 ? -z[0] : z[0]));
    case LossKind::cross_entropy:
      break;
  }
  // -Σ q_k w_k log p_k of smoothed labels q
  Real all = 0;
  for (const Real logit : z) all += std::exp(logit);
  const auto classes = static_cast<Real>(z.size()), smoothing = Real{loss.label_smoothing};
  for (std::size_t k = 0; k < z.size(); ++k) {
    const Real q = smoothing / classes + (k == own ? 1 - smoothing : 0);
    sum -= q * weight_of(k) * std::log(std::exp(z[k]) / all);
  }
  return sum;
}

Real right_value(const Table& table, const TableLoss& loss, const std::vector<Real>& parameters, bool bias, Real l2) {
  Real sum = 0, count = 0, squares = 0;
  const std::size_t weights = table.outputs * wide;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<Real> z(table.outputs, 0);
    for (std::size_t o = 0; o < z.size(); ++o) {
      if (bias) z[o] = parameters[weights + o];
      for (std::size_t i = 0; i < wide; ++i) z[o] += parameters[o * wide + i] * table.x[row * wide + i];
    }
    const double* target = table.y.data() + row * table.targets;
    const Real weight = table.weights.empty() ? 1 : table.weights[row];
    sum += weight * loss_of_row(loss, z, target);
    count += weight * (loss.class_weight.empty() ? 1 : loss.class_weight[static_cast<std::size_t>(*target)]);
  }
  if (table.labels.empty()) count *= static_cast<Real>(table.outputs);
  for (std::size_t i = 0; i < weights; ++i) squares += parameters[i] * parameters[i];
  return sum / count + l2 / 2 * squares;
}

void expect_right(const Table& table, const TableShare& share, const TableLoss& loss, bool bias, double l2) {
  TableObjective objective(world(), share, loss, bias);
  ASSERT_EQ(objective.numel(), static_cast<std::int64_t>(table.outputs * (wide + (bias ? 1 : 0))));
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<std::size_t>(objective.numel())), gradient(x.size(), 99.0);
  for (double& value : x) value = normal(random);
  std::vector<Real> at(x.begin(), x.end());
  const Real right = right_value(table, loss, at, bias, l2);
  for (const int time : {1, 2}) {  // nothing is left of an evaluation
    EXPECT_NEAR(objective.evaluate(x, gradient, l2), static_cast<double>(right), 1e-14 * static_cast<double>(right))
        << time;
  }
  constexpr Real step = 1e-6L;  // whose square is the differences' error
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<Real> up = at, down = at;
    up[i] += step;
    down[i] -= step;
    const Real slope = (right_value(table, loss, up, bias, l2) - right_value(table, loss, down, bias, l2)) / (2 * step);
    EXPECT_NEAR(gradient[i], static_cast<double>(slope), 1e-11) << i;
  }
}

const std::vector<TableLoss>& losses() {
  static const std::vector<TableLoss> all{{LossKind::mse},
                                          {LossKind::huber},
                                          {LossKind::bce_with_logits},
                                          {LossKind::bce_with_logits, 0, {0.3, 2.7}},
                                          {LossKind::cross_entropy},
                                          {LossKind::cross_entropy, 0.2},
                                          {LossKind::cross_entropy, 0, {0.3, 1.1, 2.7}},
                                          {LossKind::cross_entropy, 0.2, {0.3, 1.1, 2.7}}};
  return all;
}

TEST(TableObjective, IsTheMeanLossAndThePenalty) {
  for (std::size_t i = 0; i < losses().size(); ++i) {
    for (const bool weighs : {false, true}) {
      SCOPED_TRACE(fmt::format("loss {}, {} weights", i, weighs ? "with" : "without"));
      const Table table = table_for(losses()[i].kind, weighs);
      expect_right(table, even_share(table), losses()[i], weighs, weighs ? 0.7 : 0);  // without a bias too
    }
  }
}

TEST(TableObjective, OfARankWithoutRows) {
  const bool is_last = world().rank() + 1 == world().size();
  for (const TableLoss& loss : losses()) {
    const Table table = table_for(loss.kind, true);
    expect_right(table, share_of(table, is_last ? 0 : rows, rows), loss, true, 0.1);
  }
}

/// One row on rank 0: losses and slopes that exponentials beyond double must not reach.
TEST(TableObjective, OfLogitsFarFromZero) {
  const auto evaluated = [](LossKind kind, std::vector<double> weight, double target) {
    TableShare share;
    share.feature_names = {"x"};
    share.target_names = {"y"};
    share.labels = {"a", "b"};
    share.total_rows = 1;
    if (world().rank() == 0) {
      share.rows = 1;
      share.features = {1};
      share.targets = {target};
    }
    std::vector<double> gradient(weight.size());
    TableObjective objective(world(), share, {kind}, false);
    const double value = objective.evaluate(weight, gradient, 0);
    gradient.insert(gradient.begin(), value);
    return gradient;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(evaluated(LossKind::cross_entropy, {1000, 0}, 1), ElementsAre(1000, 1, -1));
  EXPECT_THAT(evaluated(LossKind::cross_entropy, {1000, 0}, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(evaluated(LossKind::bce_with_logits, {1000}, 0), ElementsAre(1000, 1));
  EXPECT_THAT(evaluated(LossKind::bce_with_logits, {-1000}, 1), ElementsAre(1000, -1));
  EXPECT_THAT(evaluated(LossKind::bce_with_logits, {1000}, 1), ElementsAre(0, 0));
}

/// Features of a table that are somewhere else, and can be lost.
class Elsewhere : public FeatureSource {
 public:
  Elsewhere(std::vector<double> x, bool is_lost)
      : FeatureSource(std::vector<std::string>(wide, "x"), false), x_(std::move(x)), is_lost_(is_lost) {}
  using FeatureSource::read;
  void read(std::span<const std::int64_t> some_rows, double* x) override {
    if (is_lost_) throw Error(Status::failed, "the file is gone");
    for (const std::int64_t row : some_rows) x = std::copy_n(x_.begin() + row * in, in, x);
  }
  void will_need(std::span<const std::int64_t> /*some_rows*/) const override {}
  [[nodiscard]] std::string name_row(std::int64_t row) const override { return std::to_string(row); }

 private:
  std::vector<double> x_;
  bool is_lost_;
};

TEST(TableObjective, OfFeaturesThatStayWhereTheyAre) {
  const Table table = table_for(LossKind::cross_entropy, false);
  TableShare share = even_share(table);
  share.features.clear();
  share.source = std::make_shared<Elsewhere>(table.x, false);
  expect_right(table, share, {LossKind::cross_entropy}, true, 0.1);
  // What one rank cannot read ends all of them.
  share.source = std::make_shared<Elsewhere>(table.x, world().rank() == world().size() - 1);
  TableObjective objective(world(), share, {LossKind::cross_entropy}, true);
  std::vector<double> x(static_cast<std::size_t>(objective.numel())), gradient(x.size());
  EXPECT_THROW(objective.evaluate(x, gradient, 0), AgreedError);
}

}  // namespace
}  // namespace ddp::test
