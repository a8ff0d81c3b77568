#include <algorithm>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/parallel/communication_hook.hpp>

namespace ddp {
namespace {

/// A layer's weight gradient M[out, in] as P[out, rank] · Q[in, rank]ᵀ.
struct Matrix {
  std::int64_t out, in, rank;
  float* gradient;
  Buffer<float> kept;  ///< M; between the steps what of it was not sent
  Buffer<float> p, q;  ///< q [rank, in]: transposed
};

class PowerSgdHook final : public CommunicationHook {
 public:
  PowerSgdHook(Device& device, Model& model, const PowerSgdOptions& options)
      : device_(device), start_step_(options.start_step) {
    if (options.rank < 1) throw UseError("PowerSGD's rank must be 1 or more");
    if (options.start_step < 1) throw UseError("PowerSGD begins after 1 step or more");
    TorchGenerator generator(options.seed);
    for (const LinearLayer& layer : model.layout().layers()) {
      const std::int64_t rank = std::min({options.rank, layer.in, layer.out}), numel = layer.in * layer.out;
      const auto sent = static_cast<double>(rank * (layer.in + layer.out));
      Parts& parts = parts_.emplace_back();
      parts.offset = layer.weight;
      if (static_cast<double>(numel) > sent * options.min_compression_rate) {
        Matrix& matrix = parts.matrix.emplace(Matrix{layer.out, layer.in, rank, model.gradients().data() + layer.weight,
                                                     Buffer<float>(device, numel),
                                                     Buffer<float>(device, layer.out * rank, MemoryUse::communication),
                                                     Buffer<float>(device, layer.in * rank, MemoryUse::communication)});
        std::vector<float> q(static_cast<std::size_t>(layer.in * rank));
        generator.randn(q);
        matrix.q.upload(q);
        if (layer.bias >= 0) parts.plain = model.gradients().subspan(size(layer.bias), size(layer.out));
      } else {
        parts.plain = model.gradients().subspan(size(layer.weight), size(numel));
        if (layer.bias >= 0) {  // right behind it
          parts.plain = model.gradients().subspan(size(layer.weight), size(layer.bias - layer.weight + layer.out));
        }
      }
    }
  }

  int prepare(std::int64_t step) override { return compresses_ = step >= start_step_; }

  void start(ProcessGroup& group, const GradientBucket& bucket) override {
    if (compresses_) {
      each_matrix(bucket, [&](Matrix& m) {
        device_.add(m.gradient, m.out * m.in, 1, m.kept.data());
        device_.linear_forward(
            {.rows = m.out, .in = m.in, .out = m.rank, .x = m.kept.data(), .weight = m.q.data(), .y = m.p.data()});
      });
    }
    device_.wait(Queue::communication, Queue::compute);
    if (!compresses_) return group.all_reduce(bucket.gradients);
    for (Parts& parts : parts_) {
      if (!holds(bucket, parts)) continue;
      if (parts.matrix) group.all_reduce(parts.matrix->p.span());
      if (!parts.plain.empty()) group.all_reduce(parts.plain);
    }
  }

  void finish(ProcessGroup& group, const GradientBucket& bucket) override {
    if (!compresses_) return;
    const auto product = [](Matrix& m) {
      return LinearBackward{.rows = m.out, .in = m.in, .out = m.rank, .weight = m.q.data(), .dy = m.p.data()};
    };
    each_matrix(bucket, [&](Matrix& m) {
      device_.orthonormalize(m.out, m.rank, m.p.data());
      LinearBackward q = product(m);  // Pᵀ · M
      q.x = m.kept.data();
      q.weight_gradient = m.q.data();
      device_.linear_backward(q);
    });
    device_.wait(Queue::communication, Queue::compute);
    each_matrix(bucket, [&](Matrix& m) { group.all_reduce(m.q.span()); });
    device_.wait(Queue::compute, Queue::communication);
    each_matrix(bucket, [&](Matrix& m) {
      LinearBackward sum = product(m);  // P · Qᵀ
      sum.input.dz = m.gradient;
      device_.linear_backward(sum);
      device_.add(m.gradient, m.out * m.in, -1 / static_cast<float>(group.size()), m.kept.data());
    });
  }

 private:
  struct Parts {  // of a layer
    std::int64_t offset = 0;
    std::optional<Matrix> matrix;
    std::span<float> plain;  ///< what is summed as it is
  };

  static std::size_t size(std::int64_t numel) { return static_cast<std::size_t>(numel); }
  static bool holds(const GradientBucket& bucket, const Parts& parts) {
    return parts.offset >= bucket.offset && parts.offset < bucket.offset + std::ssize(bucket.gradients);
  }
  template <class Use>
  void each_matrix(const GradientBucket& bucket, const Use& use) {
    for (Parts& parts : parts_) {
      if (parts.matrix && holds(bucket, parts)) use(*parts.matrix);
    }
  }

  Device& device_;
  std::int64_t start_step_;
  bool compresses_ = false;
  std::vector<Parts> parts_;
};

}  // namespace

std::unique_ptr<CommunicationHook> make_powersgd_hook(Device& device, Model& model, const PowerSgdOptions& options) {
  return std::make_unique<PowerSgdHook>(device, model, options);
}

}  // namespace ddp
