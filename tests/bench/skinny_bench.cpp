// A step's loss and gradients of a layer with few outputs, against a bare read of its inputs and against two products
// by the BLAS, in one run.
//   build/skinny_bench [rows in]
// Rounds alternate; medians are compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include <linear_ddp/device/device.hpp>
#include "linear_ddp/device/gemm.hpp"

namespace {

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// As fast as memory is: eight sums, so that no addition waits for the one before.
float sum_of(const std::vector<float>& values) {
  using Floats [[gnu::vector_size(64)]] = float;
  Floats sums[8] = {};
  const auto* vectors = reinterpret_cast<const Floats*>(values.data());
  for (std::size_t i = 0; i + 8 <= values.size() / 16; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += vectors[i + k];
  }
  float sum = 0;
  for (const Floats& part : sums) {
    for (int lane = 0; lane < 16; ++lane) sum += part[lane];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 100'000, in = argc > 2 ? std::atoll(argv[2]) : 256;
  const auto device = ddp::make_cpu_device();
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  ddp::Buffer<float> x(*device, rows * in), target(*device, rows * 16), y(*device, rows * 16);
  std::vector<float> values(static_cast<std::size_t>(rows * in));
  for (float& value : values) value = uniform(engine);
  x.upload(values);
  fmt::print("{} x {}\n", rows, in);
  for (const std::int64_t out : {1, 2, 4, 8, 16}) {
    ddp::Buffer<float> weight(*device, out * in), bias(*device, out), gradient(*device, out * in),
        bias_gradient(*device, out), loss(*device, 1);
    weight.upload(std::vector<float>(static_cast<std::size_t>(out * in), 0.01F));
    ddp::LinearLoss op{.rows = rows, .in = in, .out = out};
    op.x = x.data();
    op.weight = weight.data();
    op.bias = bias.data();
    op.target = target.data();
    op.loss_scale = 1 / static_cast<float>(rows);
    op.loss = loss.data();
    op.weight_gradient = gradient.data();
    op.bias_gradient = bias_gradient.data();
    std::vector<double> steps, reads, products;
    float kept = 0;
    for (int round = 0; round < 21; ++round) {
      steps.push_back(seconds_of([&] { device->linear_loss(op); }));
      reads.push_back(seconds_of([&] { kept += sum_of(values); }));
      products.push_back(seconds_of([&] {
        ddp::gemm::product_nt(rows, out, in, x.data(), weight.data(), 0, y.data());
        ddp::gemm::product_tn(out, in, rows, y.data(), x.data(), 0, gradient.data());
      }));
    }
    const double step = median(steps);
    fmt::print("{:>2} outputs: {:.2f} ms; {:.2f} x a bare read, {:.2f} x the two products{}\n", out, 1e3 * step,
               step / median(reads), step / median(products), kept == 0.5F ? "." : "");
  }
}
