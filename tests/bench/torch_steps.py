#!/usr/bin/env python3
"""What versus_torch times of PyTorch, as one writes it: a training under DistributedDataParallel.

torch_steps.py steps DEVICE ROWS SIZE SIZE...   seconds of a step of Linear layers with ReLU between, printed by rank 0
torch_steps.py first DEVICE RANKS               the smallest program: prints the loss of its first step

The first finds its place in the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; the second starts its ranks.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def join(device):
    """Binds this rank to one core and one thread, and joins the others."""
    rank = int(os.environ["RANK"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank)
        torch.set_float32_matmul_precision("highest")  # linear_ddp's products are in true float32 too
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    return rank


def training(rank, device, rows, sizes):
    """Returns one step of it, on one batch that is used again and again."""
    torch.manual_seed(rank)
    layers = []
    for features, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(features, outputs), nn.ReLU()]
    model = DistributedDataParallel(nn.Sequential(*layers[:-1]).to(device),
                                    device_ids=[rank] if device == "cuda" else None)
    x = torch.randn(rows, sizes[0], device=device)
    y = torch.randn(rows, sizes[-1], device=device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def slowest(seconds, device):
    value = torch.tensor([seconds], device=device)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return value.item()


def seconds_of(step, calls, device):
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    synchronize()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    synchronize()
    return slowest((time.perf_counter() - begin) / calls, device)


def leave():
    """At once: taking a gloo group to pieces was seen to hang (PyTorch 1.13: its thread and the main one wait for each
    other's lock)."""
    dist.barrier()
    os._exit(0)


def time_steps(device, rows, sizes):
    rank = join(device)
    step = training(rank, device, rows, sizes)
    seconds_of(step, 3, device)
    calls = max(1, int(0.05 / seconds_of(step, 3, device)))
    seconds = statistics.median(seconds_of(step, calls, device) for _ in range(7))
    if rank == 0:
        print(seconds, flush=True)
    leave()


def first_step(rank, ranks, device):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    join(device)
    loss = training(rank, device, 20, [10, 10])()
    if rank == 0:
        print("loss", loss.item(), flush=True)
    leave()


if __name__ == "__main__":
    what, where = sys.argv[1:3]
    numbers = [int(text) for text in sys.argv[3:]]
    if what == "steps":
        time_steps(where, numbers[0], numbers[1:])
    else:
        torch.multiprocessing.spawn(first_step, args=(numbers[0], where), nprocs=numbers[0])
