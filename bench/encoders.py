#!/usr/bin/env python3
"""A training step of encode/ beside the same encoder in PyTorch, in one run.

usage: encoders.py BENCH_ENCODERS [KIND[,KIND..] [DIM [STEPS]]]

PyTorch (Debian: python3-torch) has the formulas of methods 5.2 as encode/'s files say them: batches
of one type go through together, cross entropy over all entities with smoothing 0.1, dropout 0.1,
AdamW with its defaults.  Both take questions drawn by lot, equally many of nine types, 512 a step,
over 14,505 entities and 237 relations, with two threads.  Their steps take turns, so that a busy
machine is busy for both; medians, by the clock and of processors.
"""
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads do not count as work
import torch  # noqa: E402  (reads the line above)
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

ENTITIES, RELATIONS, THREADS, BATCH = 14505, 237, 2, 512
SHAPES = ("ep", "epp", "eppp", "epepi", "epepepI", "epepip", "eppepi", "epepu", "epepup")


class Encoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        bound = (3 / d) ** 0.5
        self.ent = nn.Parameter(torch.empty(ENTITIES, d).uniform_(-bound, bound))
        self.rel = nn.Parameter(torch.empty(2 * RELATIONS, d).uniform_(-bound, bound))
        self.d = d

    def linear(self, bias=False, rows=None, cols=None):
        return nn.Linear(cols or self.d, rows or self.d, bias=bias)

    def encode(self, shape, anchors, steps):
        """[n, vectors, d]; anchors and steps are iterators over rows."""
        waiting = []
        for letter in shape:
            if letter == "e":
                waiting.append(self.anchor(next(anchors)))
            elif letter == "p":
                waiting.append(self.step(waiting.pop(), next(steps)))
            else:
                n = 3 if letter == "I" else 2
                of, waiting = waiting[-n:], waiting[:-n]
                waiting.append(self.any(of) if letter == "u" else self.all(of))
        return self.out(waiting[0])

    def out(self, x):
        return x


class GQE(Encoder):
    def __init__(self, d):
        super().__init__(d)
        self.w1, self.w2 = self.linear(True, d // 2), self.linear(True, d, d // 2)
        self.w3 = self.linear()

    def anchor(self, e):
        return e[:, None]

    def step(self, q, r):
        return q + r[:, None]

    def all(self, of):
        return self.w3(sum(self.w2(F.dropout(F.relu(self.w1(q)), 0.1)) for q in of) / len(of))

    def any(self, of):
        return torch.cat(of, 1)


class Block(nn.Module):
    def __init__(self, make, d):
        super().__init__()
        self.w, self.norm1, self.norm2 = make(), nn.LayerNorm(d), nn.LayerNorm(d)
        self.f1, self.f2 = make(True), make(True)

    def forward(self, x):
        x = self.norm1(attention(self.w, x))
        return self.norm2(x + F.dropout(self.f2(F.gelu(self.f1(x))), 0.1))


def attention(w, x):
    q = w(x)
    share = torch.softmax(q @ q.transpose(1, 2) / q.shape[-1] ** 0.5, -1)
    return F.dropout(share @ q, 0.1)


class Q2P(Encoder):
    def __init__(self, d):
        super().__init__(d)
        self.offsets = nn.Parameter(torch.empty(2, d).uniform_(-0.1, 0.1))
        for name in ("wz", "uz", "wg", "ug", "wh", "uh", "attention"):
            setattr(self, name, self.linear())
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.later, self.meet1, self.meet2 = (Block(self.linear, d) for _ in range(3))

    def anchor(self, e):
        return e[:, None] + self.offsets, True

    def step(self, state, r):
        p, anchor = state
        p, r = p if anchor else self.later(p), r[:, None]
        z = torch.sigmoid(self.wz(r) + self.uz(p))
        g = torch.sigmoid(self.wg(r) + self.ug(p))
        h = torch.tanh(self.wh(r) + self.uh(p * g))
        p = self.norm1((1 - z) * p + z * h)
        return self.norm2(attention(self.attention, p)), False

    def all(self, of):
        return self.meet2(self.meet1(torch.cat([p for p, _ in of], 1))), False

    def any(self, of):
        return torch.cat([p for p, _ in of], 1), False

    def out(self, state):
        return state[0]


class TreeLSTM(Encoder):
    def __init__(self, d):
        super().__init__(d)
        for name in ("wi", "ui", "wf", "uf", "wo", "uo", "wu", "uu"):
            setattr(self, name, self.linear())
        self.both = nn.Parameter(torch.empty(1, d).uniform_(-0.1, 0.1))
        self.either = nn.Parameter(torch.empty(1, d).uniform_(-0.1, 0.1))

    def anchor(self, e):
        return e, torch.zeros_like(e)

    def cell(self, x, h, kept):
        i, o = torch.sigmoid(self.wi(x) + self.ui(h)), torch.sigmoid(self.wo(x) + self.uo(h))
        c = kept + i * F.dropout(torch.tanh(self.wu(x) + self.uu(h)), 0.1)
        return o * torch.tanh(c), c

    def step(self, state, r):
        h, c = state
        return self.cell(r, h, torch.sigmoid(self.wf(r) + self.uf(h)) * c)

    def meet(self, of, x):
        h = sum(h for h, _ in of)
        kept = sum(torch.sigmoid(self.wf(hk) + self.uf(h)) * c for hk, c in of)
        return self.cell(x, h, kept)

    def all(self, of):
        return self.meet(of, self.both)

    def any(self, of):
        return self.meet(of, self.either)

    def out(self, state):
        return state[0][:, None]


def torch_step(model, optimizer):
    """Rows of all types are looked up at once, and scored at once: by type it takes longer."""
    optimizer.zero_grad()
    sizes = [BATCH // len(SHAPES) + (k < BATCH % len(SHAPES)) for k in range(len(SHAPES))]

    def rows(table, letter):
        each = [n for n, shape in zip(sizes, SHAPES) for _ in range(shape.count(letter))]
        return iter(F.embedding(torch.randint(len(table), (sum(each),)), table).split(each))

    anchors, steps = rows(model.ent, "e"), rows(model.rel, "p")
    q = [model.encode(shape, anchors, steps) for shape in SHAPES]
    lines = torch.cat([x.flatten(0, 1) for x in q]) @ model.ent.T
    parts = lines.split([x.shape[0] * x.shape[1] for x in q])
    scores = torch.cat([part.unflatten(0, x.shape[:2]).max(1).values if x.shape[1] > 1 else part
                        for part, x in zip(parts, q)])
    F.cross_entropy(scores, torch.randint(ENTITIES, (BATCH,)), label_smoothing=0.1).backward()
    optimizer.step()


def main():
    if not 2 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    kinds = sys.argv[2].split(",") if len(sys.argv) > 2 else ["gqe", "q2p", "tree-lstm"]
    dim = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, d = {dim}, {THREADS} threads, median ms of {steps} steps")
    print("encoder    fkge  of processors   PyTorch  of processors   ratio  of processors")
    for kind in kinds:
        model = {"gqe": GQE, "q2p": Q2P, "tree-lstm": TreeLSTM}[kind](dim)
        optimizer = torch.optim.AdamW(model.parameters())
        torch_step(model, optimizer)
        ours, theirs = [], []
        for _ in range(steps):
            args = [kind, dim, ENTITIES, RELATIONS, THREADS, BATCH, 1]
            line = subprocess.run([sys.argv[1], *map(str, args)], stdout=subprocess.PIPE, check=True)
            ours.append([float(x) for x in line.stdout.split()])
            wall, cpu = time.monotonic(), time.process_time()
            torch_step(model, optimizer)
            theirs.append([1e3 * (time.monotonic() - wall), 1e3 * (time.process_time() - cpu)])
        a, b = ([statistics.median(x[i] for x in t) for i in (0, 1)] for t in (ours, theirs))
        print(f"{kind:9} {a[0]:6.0f} {a[1]:14.0f} {b[0]:9.0f} {b[1]:14.0f} {b[0] / a[0]:7.2f} "
              f"{b[1] / a[1]:14.2f}", flush=True)


main()
