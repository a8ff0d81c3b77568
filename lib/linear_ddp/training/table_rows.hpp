#pragma once

#include <span>

#include <linear_ddp/data/table.hpp>
#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>
#include <linear_ddp/training/evaluation.hpp>

namespace ddp {

/// A rank's share of a table for the least-squares solver, wherever its features are. The share must outlive the rows.
[[nodiscard]] LeastSquaresRows rows_of(const TableShare& share);

/// Collective. What all ranks' rows count: Σ weight · class_weight of the row's class; without class weights each
/// row's is 1.
[[nodiscard]] double total_weight(const World& world, const TableShare& share,
                                  std::span<const double> class_weight = {});

/// Collective. The scores of y = weight · x + bias on a table's numbers, in float64; weight [out, in], bias [out] or
/// empty. The loss is the mean over rows and outputs.
[[nodiscard]] Scores evaluate(const World& world, const TableShare& share, std::span<const double> weight,
                              std::span<const double> bias);

}  // namespace ddp
