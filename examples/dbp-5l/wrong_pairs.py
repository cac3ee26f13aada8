"""How well fkge align finds the things of DBP-5L where some of the pairs are wrong.

usage: wrong_pairs.py FKGE ALIGN_FOLDER WORK_FOLDER [SEED]

In each file the second names of a share of the lines are shuffled among these lines.  A result is
the set of all pairs of entities that have one shared name; the truth is what the files as they are
lead to, which is free of conflicts.  Prints a Markdown table.  "all" joins whatever pairs connect,
two entities of one graph, too.
"""
import collections
import itertools
import os
import random
import shutil
import subprocess
import sys

fkge, source, work = sys.argv[1:4]
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
files = {}
for name in sorted(os.listdir(source)):
    with open(os.path.join(source, name), encoding="utf-8", newline="\n") as f:
        files[name] = [line.rstrip("\n").split("\t") for line in f]


def pairs_within(classes):
    return {p for c in classes for p in itertools.combinations(sorted(c), 2)}


def align(folder, rule):
    out = os.path.join(work, "out")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([fkge, "-q", "align", folder, "-o", out, "--match", rule], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    classes = collections.defaultdict(list)
    for name in os.listdir(out):
        with open(os.path.join(out, name), encoding="utf-8", newline="\n") as f:
            for line in f:
                own, shared = line.rstrip("\n").split("\t")
                classes[shared].append((name[: -len(".tsv")], own))
    return pairs_within(classes.values())


def spoil(folder, share):
    """Writes the files with so many wrong lines; returns their pairs."""
    draw, pairs = random.Random(seed), []
    os.makedirs(folder, exist_ok=True)
    for name, lines in files.items():
        a, b = name[: -len(".tsv")].split("-")
        lines = [list(line) for line in lines]
        at = draw.sample(range(len(lines)), round(share * len(lines)))
        names = [lines[i][1] for i in at]
        draw.shuffle(names)
        for i, second in zip(at, names):
            lines[i][1] = second
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as f:
            f.writelines(f"{x}\t{y}\n" for x, y in lines)
        pairs += [((a, x), (b, y)) for x, y in lines]
    return pairs


def join_all(pairs, truth):
    """Precision and recall of joining all: classes are too large to list their pairs."""
    parent = {}

    def find(x):
        while parent.setdefault(x, x) != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for x, y in pairs:
        parent[find(x)] = find(y)
    sizes = collections.Counter(find(x) for x in list(parent))
    found = sum(n * (n - 1) // 2 for n in sizes.values())
    right = sum(find(x) == find(y) for x, y in truth)
    return right / found, right / len(truth)


def score(found, truth):
    return len(found & truth) / len(found), len(found & truth) / len(truth)


os.makedirs(work, exist_ok=True)
truth = align(source, "refuse")
print("| wrong lines | all: precision | recall | unique: precision | recall | best: precision | recall |")
print("|---:|---:|---:|---:|---:|---:|---:|")
for share in 0.0, 0.01, 0.05, 0.1, 0.2:
    folder = os.path.join(work, "in")
    figures = [*join_all(spoil(folder, share), truth)]
    for rule in "unique", "best":
        figures += score(align(folder, rule), truth)
    print(f"| {share:.0%} |", " | ".join(f"{x:.3f}" for x in figures), "|", flush=True)
