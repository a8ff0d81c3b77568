#!/usr/bin/env python3
"""What tests/gpu/run leaves to Python.

report.py same-losses CPU.jsonl CUDA.jsonl          whether two runs' step losses agree
report.py write FOLDER REPORT.json SECONDS BUDGET   the results in FOLDER as JSON, and as tables on the terminal
"""
import json
import math
import pathlib
import sys

# Sums of float32 products in another order differ by some ulp, that is by less than 1e-5 after some hundred steps.
TOLERANCE = 1e-5
GOOD = {"passed", "skipped", "refused"}  # refused: by the machine, which says nothing of linear_ddp


def json_lines(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def difference(expected, actual):
    """Relative; infinite when either is not finite."""
    value = abs(expected - actual) / max(abs(expected), 1e-30)
    return value if math.isfinite(value) else math.inf


def same_losses(cpu_path, cuda_path):
    cpu, cuda = ([event["loss"] for event in json_lines(path) if event["event"] == "step"]
                 for path in (cpu_path, cuda_path))
    if not cpu or len(cpu) != len(cuda):
        sys.exit(f"error: {len(cpu)} losses on the CPU, {len(cuda)} on the GPU")
    worst, step = max((difference(a, b), step) for step, (a, b) in enumerate(zip(cpu, cuda), 1))
    print(f"{len(cpu)} losses; the largest relative difference is {worst:.2e}, at step {step}")
    if worst > TOLERANCE:
        sys.exit(f"error: that is more than {TOLERANCE}: {cpu[step - 1]} on the CPU, {cuda[step - 1]} on the GPU")


def ratio_rows(ours, torch):
    """For each shape, the time of PyTorch's variants in steps of ours."""
    rows = []
    for row in ours:
        theirs = {other["variant"]: other for other in torch if other["shape"] == row["shape"]}
        if theirs:
            rows.append({"shape": row["shape"], "ours_us": row["step_us"],
                         **{name: other["step_us"] / row["step_us"] if "step_us" in other else None
                            for name, other in theirs.items()}})
    return rows


def print_ratios(rows):
    variants = list(dict.fromkeys(name for row in rows for name in row if name not in ("shape", "ours_us")))
    print("\nPyTorch's step / ours" + " " * 8 + "ours us".rjust(12) + "".join(name.rjust(10) for name in variants))
    for row in rows:
        cells = ("-" if row.get(name) is None else f"{row[name]:.2f}" for name in variants)
        shape = "{} x {} -> {}".format(*row["shape"])
        print(f"  {shape:<27}{row['ours_us']:>12.2f}" + "".join(cell.rjust(10) for cell in cells))


def write(folder, target, seconds, budget):
    folder = pathlib.Path(folder)
    machine = dict(line.split(None, 1) for line in (folder / "facts").read_text().splitlines())
    checks = []
    for line in (folder / "results").read_text().splitlines():
        stage, name, status, taken, limit, detail = line.split("\t")
        checks.append({"stage": stage, "name": name.strip(), "status": status, "seconds": int(taken),
                       "limit": int(limit), "detail": detail})
    bench, path, torch = (json_lines(folder / f"{name}.jsonl") for name in ("bench", "path", "torch"))
    ratios = ratio_rows(bench, torch)
    bad = [check for check in checks if check["status"] not in GOOD]
    ok = bool(checks) and not bad and any(check["status"] == "passed" for check in checks)
    report = {"ok": ok, "seconds": int(seconds), "budget": int(budget), "machine": machine, "checks": checks,
              "bench": bench, "path": path, "torch": torch, "torch_over_ours": ratios}
    pathlib.Path(target).write_text(json.dumps(report, indent=1) + "\n")

    if bench:
        print("\n  step" + " " * 25 + "us".rjust(10) + "limit us".rjust(12) + "ratio".rjust(8) + "budget".rjust(8) +
              "  limit")
    for row in bench:
        shape = "{} x {} -> {}".format(*row["shape"])
        over = row["ratio"] > row.get("budget", float("inf"))
        budget_text = f"{row['budget']:.2f}" if "budget" in row else "-"
        print(f"  {shape:<27}{row['step_us']:>12.2f}{row['limit_us']:>12.2f}{row['ratio']:>8.2f}{budget_text:>8}"
              f"  {row['limit']}{'  OVER BUDGET' if over else ''}")
    for row in path:
        print("\n  path {} x {} -> {} classes".format(*row["shape"]) + f", {row['penalties']} penalties, to 1e-6 of each "
              f"optimum: {row['seconds']:.2f} s; {row['evaluations']} evaluations, their products alone "
              f"{row['products_seconds']:.2f} s, ratio {row['ratio']:.2f}")
    if ratios:
        print_ratios(ratios)
    print("\n  stage        passed  other")
    for stage in dict.fromkeys(check["stage"] for check in checks):
        own = [check for check in checks if check["stage"] == stage]
        others = [f"{check['name']}: {check['status']}" for check in own if check["status"] != "passed"]
        print(f"  {stage:<12} {len(own) - len(others):>3}/{len(own):<3} {'; '.join(others)}")
    print(f"  {'ok' if ok else 'FAILED'} after {seconds} s of {budget} s; {target}")
    return 0 if ok else 1


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "same-losses":
        same_losses(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == "write":
        sys.exit(write(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
