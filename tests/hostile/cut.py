#!/usr/bin/env python3
"""A small part of some members' graphs, for measurements that must be short (docs/results/reliability.md).

    cut.py FROM TO ENTITIES SHARE

Keeps triples between the ENTITIES that occur most in all members' train, and of these SHARE, drawn with seed 1.
"""
import collections
import os
import random
import sys


def lines(folder, member, split):
    with open(os.path.join(folder, member, split + ".tsv")) as f:
        return [(line, line.rstrip("\n").split("\t")) for line in f]


def main(folder, to, entities, share):
    rng = random.Random(1)
    members = sorted(os.listdir(folder))
    seen = collections.Counter()
    for m in members:
        for _, (head, _, tail) in lines(folder, m, "train"):
            seen.update((head, tail))
    kept = {e for e, _ in seen.most_common(entities)}
    for m in members:
        os.makedirs(os.path.join(to, m), exist_ok=True)
        for split in ("train", "valid", "test"):
            with open(os.path.join(to, m, split + ".tsv"), "w") as f:
                f.writelines(line for line, (head, _, tail) in lines(folder, m, split)
                             if head in kept and tail in kept and rng.random() < share)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
