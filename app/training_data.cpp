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
  const Task task = options.task();
  ColumnSelection columns = options.columns;
  if (task != Task::regression) columns.target_kind = TargetKind::labels;
  TrainingData data;
  data.share = read_table(world, options.data, options.text, columns, options.file);
  print_notices(world, data.share.notices);
  require_classes(task, data.share);
  if (options.standardize) {
    data.standardizer.emplace(world, data.share);
    data.standardizer->apply(data.share);
  }
  data.rows = gather_dataset(world, data.share);
  print_notices(world, data.rows.notices);
  data.share.features = data.share.targets = data.share.weights = {};
  return data;
}

}  // namespace ddp::app
