#!/usr/bin/env python3
"""Writes embeddings.npy and classes.npy: ../datasets/digits.csv seen through a fixed random network of one layer.

Each fifth image is left for test.npy and test_classes.npy.
"""
import csv
import random
import struct

WIDTH = 128


def write_npy(path, descr, shape, code, values):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    padding = -(10 + len(header) + 1) % 64
    text = (header + " " * padding + "\n").encode()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
        file.write(struct.pack(f"<{len(values)}{code}", *values))


draw = random.Random(0).gauss
with open("../datasets/digits.csv", newline="") as file:
    rows = [[float(field) for field in row] for row in list(csv.reader(file))[1:]]
weight = [[draw(0, 1) / 8 for _ in range(64)] for _ in range(WIDTH)]
bias = [draw(0, 0.5) for _ in range(WIDTH)]
for prefix, tests in ("", False), ("test_", True):
    some = [row for i, row in enumerate(rows) if (i % 5 == 4) == tests]
    embeddings = []
    for *pixels, _ in some:
        image = [(pixel - 5) / 6 for pixel in pixels]  # about their mean and standard deviation
        for w, b in zip(weight, bias):
            embeddings.append(max(0.0, b + sum(a * p for a, p in zip(w, image))))
    write_npy("test.npy" if tests else "embeddings.npy", "<f2", (len(some), WIDTH), "e", embeddings)
    write_npy(prefix + "classes.npy", "|u1", (len(some),), "B", [int(row[-1]) for row in some])
