#include <fmt/format.h>

#include <exception>

#include <linear_ddp/base/error.hpp>
#include "fuzz/input.hpp"
#include "model_file.hpp"

namespace {

using ddp::app::StoredModel, ddp::fuzz::require;

bool are(const std::vector<std::string>& names, std::int64_t count) {
  return names.empty() || std::ssize(names) == count;
}

void check(const StoredModel& model) {
  require(model.layers.size() == model.shape.hidden.size() + 1, "a layer for each size");
  std::int64_t in = model.shape.in;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::int64_t out = i + 1 == model.layers.size() ? model.shape.out : model.shape.hidden[i];
    require(std::ssize(model.layers[i].weight) == in * out, "weight is out x in");
    require(std::ssize(model.layers[i].bias) == (model.shape.bias ? out : 0), "bias is out, or nothing");
    in = out;
  }
  require(are(model.feature_names, model.shape.in), "a name for each feature");
  static_cast<void>(model.loss_kind(model.task_or(std::nullopt, "model")));
  static_cast<void>(columns_of(model, {}, ddp::TargetKind::numbers));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ddp::fuzz::InputFile file({data, size});
  try {
    check(ddp::app::read_model(file.path()));
  } catch (const ddp::UseError&) {
  } catch (const std::exception& error) {
    require(false, fmt::format("a file is refused as wrong use, not: {}", error.what()));
  }
  return 0;
}
