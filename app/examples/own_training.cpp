// A training of one's own with the library: Linear(8 -> 1) on data that each rank makes for itself.
//   mpirun -np 2 own_training
#include <cstdio>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>

int main() {
  const ddp::World world;  // MPI, from here to the end of main
  const auto device = ddp::make_cpu_device();
  ddp::Watchdog watchdog;
  const auto group = ddp::make_mpi_group(world, watchdog);

  ddp::Model model(*device, {.in = 8, .out = 1});
  ddp::DistributedDataParallel replica(world, *device, *group, model);  // every replica is rank 0's now
  ddp::Sgd optimizer(*device, model, {.lr = 0.1, .momentum = 0.9});

  const std::int64_t rows = 64;
  ddp::TorchGenerator generator(static_cast<std::uint64_t>(world.rank()));
  std::vector<float> x(rows * 8), y(rows);
  for (int step = 1; step <= 400; ++step) {
    generator.randn(x);
    for (std::size_t row = 0; row < rows; ++row) y[row] = 3 * x[8 * row] - 2 * x[8 * row + 7] + 1;
    replica.backward({rows, x.data(), y.data()});  // loss and gradients, averaged over the ranks
    optimizer.step();
    if (step % 100 == 0 && world.rank() == 0) std::printf("step %3d  loss %.2e\n", step, replica.loss());
  }
  replica.require_equal_replicas();
  group->close();
}
