#include "training_data.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ddp::app {
namespace {

void print_notices(const World& world, const std::vector<std::string>& notices) {
  if (world.rank() != 0) return;
  for (const auto& notice : notices) fmt::print(stderr, "linear_ddp: note: {}\n", notice);
}

}  // namespace

std::optional<TrainingData> load_data(const World& world, const TrainOptions& options) {
  if (options.data.empty()) return std::nullopt;
  TrainingData data;
  data.share = read_table(world, options.data, options.text, options.columns, options.file);
  print_notices(world, data.share.notices);
  if (options.standardize) {
    data.standardizer.emplace(world, data.share);
    data.standardizer->apply(data.share);
  }
  data.rows = gather_dataset(world, data.share);
  data.share.features = data.share.targets = {};
  return data;
}

}  // namespace ddp::app
