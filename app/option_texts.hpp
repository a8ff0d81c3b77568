#pragma once

namespace ddp::app {

/// Of the documented command line, not in this version. Refused by name, so that nobody waits for what will not happen.
inline constexpr const char* not_yet_options =
    "--threads --tensorboard "
    "--report --trace --progress -v --config";
inline constexpr const char* command_names = "train evaluate predict bench info";

inline constexpr const char* help_footer = R"(
Examples
  mpirun -np 2 linear_ddp
      the smallest run: Linear(10 -> 10), one SGD step on random data, on two ranks
  mpirun -np 4 linear_ddp --data diabetes.csv --target target --standardize --global-batch full
      --epochs 5000 --lr 0.1 --momentum 0.9 --evaluate-train --save diabetes.safetensors
      a regression on a table, the same result for any number of ranks
  mpirun -np 4 linear_ddp --data diabetes.csv --target target --optimizer exact --summary
      the same regression without steps, with standard errors
  mpirun -np 4 linear_ddp --data embeddings.npy --labels classes.npy --task multiclass --optimizer lbfgs
      --l2-path 1e-5:1:11 --folds 5 --save probe.safetensors
      a linear probe, its penalty chosen by cross-validation
  mpirun -np 4 linear_ddp --data embeddings.npy --labels classes.npy --task multiclass --valid 0.1
      --sweep lr=0.01,0.1,1,weight-decay=0,1e-4 --momentum 0.9 --schedule cosine --epochs 20 --save best.safetensors
      six linear probes trained at once, the best one kept

  srun --mpi=pmix linear_ddp --data part.npy --epochs 100 --checkpoint run1 --checkpoint-every 10m --resume
      a long training: run again, it goes on where a time limit, or a node that failed, has ended it

Other commands
  linear_ddp evaluate    what a saved model is worth on a table
  linear_ddp predict     what it says of each row
  linear_ddp bench       a step of this job, its parts, and the limits of this machine
  linear_ddp info        ranks, hosts, devices, libraries, and what a training would use

Exit status: 0 done, 1 failed while running, 2 wrong use or wrong data, 75 stopped by SIGTERM, SIGUSR1 or SIGUSR2 after
a checkpoint (run again with --resume), 124 a collective passed --timeout, 130 stopped by SIGINT.)";

inline constexpr const char* evaluate_footer = R"(
Example
  mpirun -np 4 linear_ddp evaluate --model diabetes.safetensors --data new.csv --target target

Features are found by the names in the model; a model without names takes the columns by their place.)";

inline constexpr const char* bench_footer = R"(
Examples
  mpirun -np 2 linear_ddp bench
  mpirun -np 2 linear_ddp bench --in 1024 --out 1000 --batch-size 256 --compress fp16 --json bench.jsonl

Each part is timed alone, all in turns; times are medians of the slowest rank's.
  step        backward (forward, loss and gradients), all-reduce and update, as in a training
  overlap     how much of the all-reduce is hidden behind the rest of a step
  products    the layers' bare matrix products, each as one call of the matrix library
  sum         one bare all-reduce of as many bytes as there are gradients
  copy        the inputs of a step, copied
  launch      on GPUs, of a recording of one smallest kernel
  step/limit  step / (products + sum)
  wire        bytes that a rank sends in a step, as the all-reduce in a ring has it)";

inline constexpr const char* predict_footer = R"(
Example
  mpirun -np 4 linear_ddp predict --model iris.safetensors --data new.csv --out classes.csv --probabilities

One line for each row, in their order, the same for any number of ranks (computed in float64, on the CPU). Features are
found by the names in the model; a model without names takes all columns but those of --target, --exclude, --weights.)";

}  // namespace ddp::app
