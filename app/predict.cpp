#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/in_rank_order.hpp>
#include <linear_ddp/nn/activation.hpp>
#include "commands.hpp"
#include "console.hpp"
#include "model_file.hpp"
#include "prediction_text.hpp"
#include "training_data.hpp"

namespace ddp::app {
namespace {

/// y = x · weightᵀ + bias of each layer in turn, in float64, term by term in one order: a row's outputs do not depend
/// on the rows beside it, as those of a matrix product may.
class Predictor {
 public:
  explicit Predictor(const StoredModel& model) : activation_(model.shape.activation) {
    std::vector<std::int64_t> sizes{model.shape.hidden};
    sizes.push_back(model.shape.out);
    auto in = static_cast<std::size_t>(model.shape.in);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const LinearValues& values = model.layers.at(i);
      const auto out = static_cast<std::size_t>(sizes[i]);
      Layer& layer = layers_.emplace_back(Layer{in, std::vector<double>(in * out), values.bias, {}});
      for (std::size_t k = 0; k < in; ++k) {
        for (std::size_t o = 0; o < out; ++o) layer.weight[k * out + o] = values.weight[o * in + k];
      }
      layer.bias.resize(out);
      in = out;
    }
  }

  std::span<const double> operator()(const double* x) {
    for (Layer& layer : layers_) {
      layer.outputs = layer.bias;
      const std::size_t out = layer.outputs.size();
      for (std::size_t i = 0; i < layer.in; ++i) {
        for (std::size_t o = 0; o < out; ++o) layer.outputs[o] += x[i] * layer.weight[i * out + o];
      }
      if (&layer != &layers_.back()) activate(activation_, layer.outputs);
      x = layer.outputs.data();
    }
    return layers_.back().outputs;
  }

 private:
  struct Layer {
    std::size_t in;
    std::vector<double> weight, bias, outputs;  ///< the weight transposed
  };
  Activation activation_;
  std::vector<Layer> layers_;
};

/// Collective. A file of the pattern after the other, and of each the ranks' rows one after the other.
void write_rows(const World& world, const TableShare& share, Predictor& predictor, const PredictionText& text,
                const std::function<void(std::string_view)>& write) {
  constexpr std::size_t block_bytes = 1 << 20;
  const auto in = share.feature_names.size();
  std::vector<double> read;
  std::size_t row = 0;
  for (const RowRange& piece : share.ranges()) {
    const std::size_t end = row + static_cast<std::size_t>(piece.count);
    const auto next = [&]() -> std::optional<std::string> {
      if (row == end) return std::nullopt;
      std::string block;
      while (row < end && block.size() < block_bytes) {
        const auto rows = std::min(end - row, static_cast<std::size_t>(rows_of_block(share)));
        const auto x = own_features(share, static_cast<std::int64_t>(row), static_cast<std::int64_t>(rows), read);
        for (std::size_t i = 0; i < rows; ++i) text.append(block, predictor(x.data() + i * in));
        row += rows;
      }
      return block;
    };
    in_rank_order(world, next, write);
  }
}

}  // namespace

void predict(const World& world, const UseOptions& options) {
  Console console(options.quiet || world.rank() != 0, {});
  StoredModel stored = agree(world, [&] { return read_model(options.model); });
  const Task task = agree(world, [&] {
    if (world.rank() == 0) require_writable(options.out);
    const Task own = stored.task_or(options.given_task, options.model);
    if (options.probabilities && own == Task::regression) throw UseError("--probabilities needs a model of classes");
    return own;
  });
  const PredictionText text =
      agree(world, [&] { return PredictionText(stored, task, options.probabilities, options.out.ends_with(".npy")); });
  ColumnSelection columns = options.columns;
  columns.contents = Contents::features_only;
  columns.leaves_features = true;
  const TableShare share =
      read_table(world, options.data, options.text, columns_of(stored, columns, TargetKind::numbers), options.file);
  print_notices(world, share.notices);
  agree(world, [&] {
    require_features(stored, share);
    // Nobody writes before all ranks know that their rows can be used.
    if (share.source && !share.source->in_memory()) each_block(share, [](std::span<const double>) {});
  });
  Predictor predictor(stored);
  if (world.rank() == 0) {
    write_parts_atomically(options.out, [&](const FilePart& part) {
      const auto write = [&](std::string_view bytes) { part(std::as_bytes(std::span(bytes))); };
      write(text.head(share.total_rows));
      write_rows(world, share, predictor, text, write);
    });
  } else {
    write_rows(world, share, predictor, text, {});
  }
  agree(world, [] {});  // the file is there when any rank ends
  console.line("predicted", fmt::format("{} rows of {}: {}", share.total_rows, options.data, options.out));
}

}  // namespace ddp::app
