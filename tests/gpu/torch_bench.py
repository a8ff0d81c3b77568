#!/usr/bin/env python3
"""torch_bench.py [--device cuda|cpu] [--json=FILE] [--seconds N] [--small]

gpu_step_bench's training steps (Linear, MSELoss, SGD, float32 without TF32) in PyTorch, as one writes them: plain,
under DistributedDataParallel with one process, with torch.compile, and as one CUDA graph. Prints one JSON line a
measurement.
"""
import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

# gpu_step_bench.cpp has the same shapes.
SHAPES = [(20, 10, 10), (64, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096), (100_000, 256, 1), (1_000_000, 512, 1)]
SMALL_SHAPES = [(20, 10, 10), (64, 32, 32), (1000, 16, 1)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--json", help="write the lines to this file too")
    parser.add_argument("--seconds", type=float, default=120, help="begin no measurement after so many")
    parser.add_argument("--small", action="store_true", help="little shapes, to try the script itself")
    return parser.parse_args()


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(step, device):
    """Of one step, the median of 11 rounds of some 20 ms, or of as many as fit into 2 s."""

    def timed(calls):
        synchronize(device)
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        synchronize(device)
        return (time.perf_counter() - begin) / calls

    for _ in range(3):
        step()
    calls = max(1, min(2000, int(0.02 / timed(3))))
    rounds, begin = [timed(calls)], time.perf_counter()
    while len(rounds) < 11 and time.perf_counter() - begin < 2:
        rounds.append(timed(calls))
    return statistics.median(rounds)


class Training:
    """A model, its optimizer, and one batch that is used again and again."""

    def __init__(self, shape, device, wrap=lambda model: model):
        rows, features, outputs = shape
        torch.manual_seed(0)
        self.x = torch.randn(rows, features, device=device)
        self.y = torch.randn(rows, outputs, device=device)
        self.model = wrap(nn.Linear(features, outputs).to(device))
        self.loss = nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)

    def forward(self):
        return self.loss(self.model(self.x), self.y)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        loss.backward()
        self.optimizer.step()
        return loss


def plain(shape, device):
    return Training(shape, device).step


def ddp(shape, device):
    ids = [torch.cuda.current_device()] if device == "cuda" else None
    return Training(shape, device, lambda model: nn.parallel.DistributedDataParallel(model, device_ids=ids)).step


def compiled(shape, device):
    training = Training(shape, device)
    # The optimizer's step is compiled on its own, as PyTorch advises; the shapes are static.
    training.forward = torch.compile(training.forward, dynamic=False)
    training.optimizer.step = torch.compile(training.optimizer.step, dynamic=False)
    return training.step


def graph(shape, device):
    if device != "cuda":
        raise RuntimeError("CUDA graphs need CUDA")
    training = Training(shape, device)
    # https://pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            training.step()
    torch.cuda.current_stream().wait_stream(stream)
    training.optimizer.zero_grad(set_to_none=True)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        training.step()
    return recorded.replay


# Compiling takes the longest, and so comes last.
VARIANTS = {"plain": plain, "ddp": ddp, "graph": graph, "compile": compiled}


def measure(variant, shape, device):
    row = {"shape": list(shape), "variant": variant}
    try:
        torch.compiler.reset()
        row["step_us"] = 1e6 * seconds_of(VARIANTS[variant](shape, device), device)
    except Exception as error:  # one variant that this PyTorch or machine refuses leaves the others
        row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    if device == "cuda":
        torch.cuda.empty_cache()
    return row


def main():
    options = parse()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("torch_bench.py: this PyTorch sees no GPU; --device cpu tries the script without")
    torch.set_float32_matmul_precision("highest")
    begin = time.perf_counter()
    store = os.path.join(tempfile.mkdtemp(), "store")
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", init_method=f"file://{store}", rank=0,
                            world_size=1)
    with open(options.json or os.devnull, "w", encoding="utf-8") as file:
        for variant in VARIANTS:
            for shape in SMALL_SHAPES if options.small else SHAPES:
                if time.perf_counter() - begin > options.seconds:
                    row = {"shape": list(shape), "variant": variant, "error": "no time left"}
                else:
                    row = measure(variant, shape, options.device)
                for stream in (file, None):
                    print(json.dumps(row), file=stream, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
