#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// All rows of a step, on all ranks' devices. A view.
struct FullBatch {
  std::vector<Batch> pieces;  ///< this rank's
  std::int64_t rows = 0;      ///< of all ranks …
  double weight = 0;          ///< … and what they count in a mean
};

/// A data set that stays on the devices, of each of its parts an even share on each rank.
class ResidentRows {
 public:
  /// `part` has the part of each row, counted from 0; empty: there is one. For cross entropy over classes of unequal
  /// weight a row counts its weight times that of its class. The device outlives it.
  ResidentRows(Device& device, const Dataset& data, const std::vector<float>& class_weight, int rank, int ranks,
               std::span<const int> part = {});

  [[nodiscard]] FullBatch all() const { return without(-1); }
  /// All parts but one.
  [[nodiscard]] FullBatch without(int part) const;

 private:
  struct Part {
    Buffer<float> x, target, row_weight;
    Batch batch;
    std::int64_t rows;
    double weight;
  };
  std::vector<Part> parts_;
};

}  // namespace ddp
