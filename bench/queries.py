#!/usr/bin/env python3
"""The search of `fkge query` beside the same search in NumPy, one thread each, in one run.

usage: queries.py FKGE AGENT GRAPH QUERIES [N [PRECISION]]

AGENT is a folder with a trained complex or complex_reciprocal, GRAPH the folder of triples that it
imported, QUERIES a file of test queries as `fkge query --batch` takes.  The first N queries of each
type (20) go through both, and MRR must agree.  NumPy twice: a row of M at a time, as
one writes it first, and all rows of a step in one matrix product.  Times are processor time a query.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402  (reads the line above)

BEAM, CAP = 64, np.float32(0.9999)


def names(path):
    with open(path, encoding="utf-8") as f:
        return {line.rstrip("\n"): i for i, line in enumerate(f)}


class Tables:
    def __init__(self, folder, graph, search):
        at = lambda name: os.path.join(folder, name)
        self.ent, self.rel = np.load(at("entities.npy")), np.load(at("relations.npy"))
        self.entities, self.relations = names(at("entities.txt")), names(at("relations.txt"))
        self.slope = np.float32(search["truth"]["slope"])
        self.weight = np.exp(np.float32(search["truth"]["offset"]))
        self.dim = self.ent.shape[1] // 2
        self.edges = {s: self.read(graph, s) for s in ("train", "valid", "test")}
        self.known = collections.defaultdict(list)  # (relation, inverse): (from, to) of train
        self.degree = collections.Counter()
        for h, r, t in self.edges["train"]:
            for inverse, a, b in ((False, h, t), (True, t, h)):
                self.known[r, inverse].append((a, b))
                self.degree[a, r, inverse] += 1
        self.known = {k: np.array(v).T for k, v in self.known.items()}
        self.after = collections.defaultdict(set)  # over all triples
        for split in self.edges.values():
            for h, r, t in split:
                self.after[h, r, False].add(t)
                self.after[t, r, True].add(h)

    def read(self, graph, split):
        with open(os.path.join(graph, split + ".tsv"), encoding="utf-8") as f:
            lines = (line.rstrip("\n").split("\t") for line in f)
            return [(self.entities[h], self.relations[r], self.entities[t]) for h, r, t in lines]

    def turns(self, r, inverse):
        row, d = self.rel[r], self.dim
        if len(row) == 4 * d:  # reciprocal
            row = row[2 * d:] if inverse else row[:2 * d]
            inverse = False
        return row[:d], -row[d:] if inverse else row[d:]

    def queries(self, heads, step):
        a, b = self.ent[heads, :self.dim], self.ent[heads, self.dim:]
        c, z = self.turns(*step)
        return np.concatenate([a * c - b * z, a * z + b * c], axis=-1)

    def truths(self, scores, heads, step):
        """Rows of M but for known edges."""
        scores = scores * self.slope
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        factor = [self.weight * max(1, self.degree[int(h), *step]) for h in heads]
        scores *= np.array(factor, np.float32)[:, None]
        return np.minimum(scores, CAP, out=scores)

    def walk(self, x, step, at_once):
        y = np.zeros_like(x)
        if step in self.known:
            a, b = self.known[step]
            np.maximum.at(y, b, x[a])
        heads = np.flatnonzero(x)
        if len(heads) > BEAM:
            degree = [self.degree[int(h), *step] for h in heads] if (x == 1).sum() > BEAM else 0
            order = np.lexsort((heads, -np.maximum(1, degree) * np.ones(len(heads)), -x[heads]))
            heads = heads[order[:BEAM]]
        for i in range(0, len(heads), at_once):
            part = heads[i:i + at_once]
            scores = self.queries(part, step) @ self.ent.T
            m = self.truths(scores, part, step) * x[part][:, None]
            np.maximum(y, m.max(axis=0) if len(part) > 1 else m[0], out=y)
        return y


def parse(t, q):
    """Branches as (anchor, steps), the last step or None."""
    def step(word):
        inverse = word.startswith("^")
        return t.relations[word[inverse:]], inverse
    branches = [(t.entities[a], [step(w) for w in path])
                for a, path in zip(q["anchors"], q["relations"])]
    return branches, step(q["last"]) if "last" in q else None


def search(t, q, at_once):
    branches, last = parse(t, q)
    out = None
    for anchor, steps in branches:
        x = np.zeros(len(t.ent), np.float32)
        x[anchor] = 1
        for step in steps:
            x = t.walk(x, step, at_once)
        union = q["type"] in ("2u", "up")
        out = x if out is None else out + x * (1 - out) if union else out * x
    return out if last is None else t.walk(out, last, at_once)


def exact(t, q):
    branches, last = parse(t, q)
    sets = []
    for anchor, steps in branches:
        s = {anchor}
        for step in steps:
            s = set().union(*(t.after[e, *step] for e in s))
        sets.append(s)
    s = set.union(*sets) if q["type"] in ("2u", "up") else set.intersection(*sets)
    return s if last is None else set().union(*(t.after[e, *last] for e in s))


def mrr(t, q, truth):
    others = np.ones(len(truth), bool)
    others[list(exact(t, q))] = False
    others = truth[others]
    ranks = [1 + (others > truth[a]).sum() + (others == truth[a]).sum() / 2
             for a in (t.entities[h] for h in q["hard"])]
    return np.mean(1 / np.array(ranks))


def first(path, n):
    count, kept = collections.Counter(), collections.defaultdict(list)
    with open(path, encoding="utf-8") as f:
        for line in f:
            q = json.loads(line)
            if count[q["type"]] < n and q["hard"] and "n" not in q["type"]:
                count[q["type"]] += 1
                kept[q["type"]].append(q)
    return kept


def main():
    if len(sys.argv) not in (5, 6, 7):
        sys.exit(__doc__)
    fkge, agent, graph, path = sys.argv[1:5]
    n = int(sys.argv[5]) if len(sys.argv) > 5 else 20
    precision = sys.argv[6] if len(sys.argv) > 6 else "float32"
    kept = first(path, n)
    with tempfile.TemporaryDirectory() as tmp:
        mine = os.path.join(tmp, "queries.jsonl")
        with open(mine, "w", encoding="utf-8") as f:
            for qs in kept.values():
                f.writelines(json.dumps(q) + "\n" for q in qs)
        out = subprocess.run([fkge, "-q", "-d", agent, "query", "--batch", mine, "--evaluate",
                              "--beam", str(BEAM), "--threads", "1", "--precision",
                              precision, "--json"],
                             stdout=subprocess.PIPE, check=True).stdout
        ours = json.loads(out)
        subprocess.run([fkge, "-q", "-d", agent, "export", os.path.join(tmp, "vec")], check=True)
        t = Tables(os.path.join(tmp, "vec"), graph, ours["search"])
    print(f"{ours['arithmetic']}, {len(t.ent)} entities, {t.ent.shape[1]} floats, beam {BEAM}; "
          f"median ms a query")
    print("type   fkge    p99   NumPy, row by row      ratio   NumPy, matrices      ratio")
    for record in ours["types"]:
        qs, ms, got = kept[record["type"]], {1: [], BEAM: []}, []
        for q in qs:
            for at_once, times in ms.items():
                begun = time.process_time()
                truth = search(t, q, at_once)
                times.append(1e3 * (time.process_time() - begun))
            got.append(mrr(t, q, truth))
        own = record["median_ms"]
        row, matrix = np.median(ms[1]), np.median(ms[BEAM])
        print(f"{record['type']:4} {own:7.2f} {record['p99_ms']:6.2f} {row:19.1f} {row / own:10.1f} "
              f"{matrix:17.1f} {matrix / own:10.1f}", flush=True)
        if abs(np.mean(got) - record["mrr"]) > 2e-3:
            sys.exit(f"MRR of {record['type']}: {record['mrr']:.4f}, NumPy {np.mean(got):.4f}")


main()
