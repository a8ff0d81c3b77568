#include <linear_ddp/nn/model.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

/// Of `shards` equal ones that hold all, each aligned.
std::int64_t numel_of_shard(const ParameterLayout& layout, std::int64_t shards) {
  return shards == 1 ? layout.numel()
                     : round_up((layout.numel() + shards - 1) / shards, std::int64_t{64 / sizeof(float)});
}

/// Room for the heads' losses and a number of the caller's that keeps whatever follows aligned.
std::int64_t tail_numel(const LinearShape& shape) {
  return round_up(shape.heads + 1, std::int64_t{64 / sizeof(float)});
}

}  // namespace

Model::Model(Device& device, const LinearShape& shape, const LossOptions& loss, std::int64_t shards)
    : device_(device),
      shape_(shape),
      loss_(loss),
      layout_(shape),
      shard_numel_(numel_of_shard(layout_, shards)),
      parameters_(device, shards * shard_numel_),
      gradients_(device, std::max(layout_.numel() + tail_numel(shape), shards * shard_numel_),
                 MemoryUse::communication),
      class_weight_(device, static_cast<std::int64_t>(loss.class_weight.size())) {
  const bool classes = loss.kind == LossKind::cross_entropy;
  if (!classes && (loss.label_smoothing != 0 || !loss.class_weight.empty())) {
    throw UseError("label smoothing and class weights belong to cross entropy");
  }
  if (loss.label_smoothing < 0 || loss.label_smoothing >= 1) {
    throw UseError("the label smoothing must be from 0 to below 1");
  }
  if (!loss.class_weight.empty() && std::cmp_not_equal(loss.class_weight.size(), shape.out)) {
    throw UseError(fmt::format("there are {} class weights for {} classes", loss.class_weight.size(), shape.out));
  }
  class_weight_.upload(loss.class_weight);
}

float* Model::bias_of(Buffer<float>& buffer, const LinearLayer& layer) noexcept {
  return layer.bias < 0 ? nullptr : buffer.data() + layer.bias;
}

/// It grows when a larger batch than ever comes, that is in the first steps. A layer's dz is needed no longer than the
/// one's before it: they take turns in two places.
const std::vector<Model::Hidden>& Model::room_for(std::int64_t rows) {
  rows = std::max(rows, std::int64_t{1});  // a rank may have none
  if (rows <= room_rows_ || shape_.hidden.empty()) return hidden_;
  const bool keeps = keeps_input(shape_.activation);
  const auto numel_of = [&](std::int64_t size) {
    return round_up(checked_product(rows, size, "the hidden outputs"), 16L);
  };
  const std::int64_t widest = numel_of(*std::max_element(shape_.hidden.begin(), shape_.hidden.end()));
  std::int64_t numel = 2 * widest;
  for (const std::int64_t size : shape_.hidden) numel += (keeps ? 2 : 1) * numel_of(size);
  rooms_.emplace_back(device_, numel);
  room_rows_ = rows;
  hidden_.clear();
  float* const turns[] = {rooms_.back().data(), rooms_.back().data() + widest};
  float* next = turns[1] + widest;
  for (const std::int64_t size : shape_.hidden) {
    Hidden& hidden = hidden_.emplace_back(Hidden{next, next, turns[hidden_.size() % 2]});
    next += numel_of(size);
    if (!keeps) continue;
    hidden.kept = next;
    next += numel_of(size);
  }
  return hidden_;
}

/// Returns the last layer's inputs.
const float* Model::forward_hidden(std::int64_t rows, const float* x) {
  std::size_t layer = 0;
  for (const Hidden& hidden : room_for(rows)) {
    const LinearLayer& of = layout_.layers()[layer++];
    device_.linear_forward({rows, of.in, of.out, x, parameters_.data() + of.weight, bias_of(parameters_, of), hidden.y,
                            shape_.activation, hidden.kept});
    x = hidden.y;
  }
  return x;
}

void Model::forward(std::int64_t rows, const float* x, float* y) {
  const LinearLayer& last = layout_.layers().back();
  x = forward_hidden(rows, x);
  device_.linear_forward({rows, last.in, last.out, x, parameters_.data() + last.weight, bias_of(parameters_, last), y});
}

InputGradient Model::inputs_of(std::size_t layer) const noexcept {
  if (layer == 0) return {};
  return {shape_.activation, hidden_[layer - 1].kept, hidden_[layer - 1].dz};
}

LinearLoss Model::operation(const Batch& batch, float loss_scale) {
  const LinearLayer& last = layout_.layers().back();
  LinearLoss op;
  op.rows = batch.rows;
  op.in = last.in;
  op.out = shape_.out;
  op.heads = shape_.heads;
  op.x = forward_hidden(batch.rows, batch.x);
  op.weight = parameters_.data() + last.weight;
  op.bias = bias_of(parameters_, last);
  op.target = batch.target;
  op.row_weight = batch.row_weight;
  op.kind = loss_.kind;
  op.label_smoothing = static_cast<float>(loss_.label_smoothing);
  op.class_weight = loss_.class_weight.empty() ? nullptr : class_weight_.data();
  op.loss_scale = loss_scale;
  return op;
}

void Model::backward(const Batch& batch, float loss_scale, bool add, double* sum, const OnReady& ready) {
  const auto& layers = layout_.layers();
  LinearLoss op = operation(batch, loss_scale);
  op.loss_sum = sum;
  op.add = add;
  op.loss = gradients_.data() + layout_.numel();
  op.weight_gradient = gradients_.data() + layers.back().weight;
  op.bias_gradient = bias_of(gradients_, layers.back());
  op.input = inputs_of(layers.size() - 1);
  device_.linear_loss(op);
  if (ready) ready(layers.back().weight);
  for (std::size_t i = layers.size() - 1; i-- > 0;) {
    const LinearLayer& layer = layers[i];
    LinearBackward back;
    back.rows = batch.rows;
    back.in = layer.in;
    back.out = layer.out;
    back.x = i == 0 ? batch.x : hidden_[i - 1].y;
    back.weight = parameters_.data() + layer.weight;
    back.dy = hidden_[i].dz;
    back.add = add;
    back.weight_gradient = gradients_.data() + layer.weight;
    back.bias_gradient = bias_of(gradients_, layer);
    back.input = inputs_of(i);
    device_.linear_backward(back);
    if (ready) ready(layer.weight);
  }
}

void Model::loss_sum(const Batch& batch, double* sum) {
  LinearLoss op = operation(batch, 1);
  op.loss_sum = sum;
  device_.linear_loss(op);
}

std::vector<Gradient> Model::ranges(std::int64_t head) {
  const auto range = [this](std::int64_t offset, std::int64_t numel) {
    return Gradient{.numel = numel, .parameters = parameters_.data() + offset, .gradients = gradients_.data() + offset};
  };
  std::vector<Gradient> ranges;
  if (shape_.heads == 1) {  // whose padding does no harm in a sweep over all of it
    std::int64_t end = layout_.numel();
    for (auto layer = layout_.layers().rbegin(); layer != layout_.layers().rend(); ++layer) {
      ranges.insert(ranges.begin(), range(layer->weight, end - layer->weight));
      ranges.front().penalized = layer->in * layer->out;
      end = layer->weight;
    }
  } else {
    for (const TensorSlot& slot : layout_.slots()) {
      const std::int64_t numel = slot.numel / shape_.heads;
      ranges.push_back(range(slot.offset + head * numel, numel));
    }
    ranges.front().penalized = shape_.out * shape_.in;
  }
  return ranges;
}

std::vector<float> Model::download_head(std::int64_t head) const {
  std::vector<float> values(static_cast<std::size_t>(layout_.parameters() / shape_.heads));
  float* part = values.data();
  for (const TensorSlot& slot : layout_.slots()) {
    const std::int64_t numel = slot.numel / shape_.heads;
    device_.download(part, parameters_.data() + slot.offset + head * numel,
                     static_cast<std::size_t>(numel) * sizeof(float));
    part += numel;
  }
  return values;
}

void Model::upload_head(std::int64_t head, std::span<const float> values) {
  const std::int64_t expected = layout_.parameters() / shape_.heads;
  if (std::cmp_not_equal(values.size(), expected)) {
    fail("set a head's parameters", fmt::format("it has {} values, not {}", expected, values.size()));
  }
  for (const TensorSlot& slot : layout_.slots()) {
    const std::int64_t numel = slot.numel / shape_.heads;
    const auto part = values.first(static_cast<std::size_t>(numel));
    device_.upload(parameters_.data() + slot.offset + head * numel, part.data(), part.size_bytes());
    values = values.subspan(part.size());
  }
}

std::vector<float> Model::download(std::size_t slot) const {
  const TensorSlot& tensor = layout_.slots().at(slot);
  std::vector<float> values(static_cast<std::size_t>(tensor.numel));
  device_.download(values.data(), parameters_.data() + tensor.offset, values.size() * sizeof(float));
  return values;
}

void Model::upload(std::size_t slot, std::span<const float> values) {
  const TensorSlot& tensor = layout_.slots().at(slot);
  if (std::cmp_not_equal(values.size(), tensor.numel)) {
    fail("set " + tensor.name, fmt::format("it has {} values, not {}", tensor.numel, values.size()));
  }
  device_.upload(parameters_.data() + tensor.offset, values.data(), values.size_bytes());
}

}  // namespace ddp
