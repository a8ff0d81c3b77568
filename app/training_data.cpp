#include "training_data.hpp"

#include <fmt/format.h>

#include <cstdio>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/split.hpp>
#include <linear_ddp/launch/agree.hpp>

namespace ddp::app {
namespace {

/// The table of --valid: its columns are those of the training, by their names when they have names of their own.
TableShare read_valid(const World& world, const TrainOptions& options, const ColumnSelection& given,
                      const TableShare& training) {
  ColumnSelection columns = given;
  const auto given_format = options.file.format;
  const auto format = given_format == FileFormat::by_extension ? format_of(options.valid) : given_format;
  const bool has_columns = format == FileFormat::csv || format == FileFormat::tsv || format == FileFormat::npy ||
                           format == FileFormat::libsvm;
  if (has_columns && !repeated_name(training.feature_names)) {
    columns.features = training.feature_names;
    columns.targets = training.target_names;
    columns.excluded.clear();
  }
  TableShare valid = read_table(world, options.valid, options.text, columns, options.file);
  agree(world, [&] {
    if (valid.feature_names.size() != training.feature_names.size()) {
      throw UseError(fmt::format("{}: the table has {} features, that of --data {}", options.valid,
                                 valid.feature_names.size(), training.feature_names.size()));
    }
    if (columns.target_kind == TargetKind::labels) use_classes(valid, training.labels);
  });
  return valid;
}

std::optional<TableShare> validation_rows(const World& world, const TrainOptions& options,
                                          const ColumnSelection& columns, TableShare& training) {
  if (options.valid.empty()) return std::nullopt;
  const auto fraction = options.valid_fraction();
  if (!fraction) return read_valid(world, options, columns, training);
  const auto held_back = agree(world, [&] {
    try {
      return held_back_rows(training.total_rows, *fraction, options.seed);
    } catch (const UseError& error) {
      throw UseError(fmt::format("--valid {}: {}", options.valid, error.what()));
    }
  });
  return agree(world, [&] { return take_rows(training, held_back); });
}

/// But for its names.
void forget_rows(TableShare& share) {
  share.features = share.targets = share.weights = {};
  share.source.reset();
}

}  // namespace

void print_notices(const World& world, const std::vector<std::string>& notices) {
  if (world.rank() != 0) return;
  for (const auto& notice : notices) fmt::print(stderr, "linear_ddp: note: {}\n", notice);
}

TrainingTables load_tables(const World& world, const TrainOptions& options) {
  const Task task = options.task();
  ColumnSelection columns = options.columns;
  columns.leaves_features = true;
  if (task != Task::regression) columns.target_kind = TargetKind::labels;
  TrainingTables tables;
  tables.training = read_table(world, options.data, options.text, columns, options.file);
  print_notices(world, tables.training.notices);
  require_classes(task, tables.training);
  tables.valid = validation_rows(world, options, columns, tables.training);
  if (options.standardize) {
    tables.standardizer.emplace(world, tables.training);
    tables.standardizer->apply(tables.training);
    if (tables.valid) tables.standardizer->apply(*tables.valid);
  }
  if (tables.valid) print_notices(world, tables.valid->notices);
  return tables;
}

std::optional<TrainingData> load_data(const World& world, const TrainOptions& options) {
  if (options.data.empty()) return std::nullopt;
  TrainingTables tables = load_tables(world, options);
  TrainingData data;
  data.share = std::move(tables.training);
  data.standardizer = std::move(tables.standardizer);
  data.rows = gather_dataset(world, data.share, options.residence);
  if (!options.lbfgs_in_float64()) forget_rows(data.share);
  print_notices(world, data.rows.notices);
  if (tables.valid) {
    const bool in_files = tables.valid->source && !tables.valid->source->in_memory();
    data.valid = gather_dataset(world, *tables.valid, in_files ? options.residence : Residence::automatic);
  }
  return data;
}

}  // namespace ddp::app
