#!/usr/bin/env python3
"""Tables in which each relation is its owner's, out of those of several owners.

usage: owners.py OUT TABLES TABLES...

TABLES are folders of `fkge export` of complex_reciprocal, all of one dim, whose relations differ. A
row of OUT has a block for each owner: its row of the entity, and one number that says whether it
has one at all. A relation's row is zero but in its owner's block, so a score is the owner's, and
what the owner does not know scores far below what it knows: search over OUT is search over each
relation at its owner. OUT is complex_reciprocal of dim (dim + 1) x owners, for `fkge import OUT
--embeddings` into an agent with the owners' graphs as one.
"""
import os
import sys

import numpy as np

FAR = 40  # between scores of what an owner knows and what not, twice


def read(folder, what):
    with open(os.path.join(folder, what + ".txt"), encoding="utf-8") as f:
        names = f.read().splitlines()
    return names, np.load(os.path.join(folder, what + ".npy"))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, folders = sys.argv[1], sys.argv[2:]
    ents, rels = ([read(f, what) for f in folders] for what in ("entities", "relations"))
    d, n = ents[0][1].shape[1] // 2, len(folders)
    ids = {name: i for i, name in enumerate(dict.fromkeys(e for names, _ in ents for e in names))}
    # entity: real parts, imaginary parts; of each owner d and the sign
    rows = np.zeros((len(ids), 2, n, d + 1), np.float32)
    rows[:, 0, :, d] = -1
    steps, named = [], []
    for k, ((names, ent), (relations, rel)) in enumerate(zip(ents, rels)):
        at = [ids[name] for name in names]
        rows[at, 0, k, :d], rows[at, 1, k, :d] = ent[:, :d], ent[:, d:]
        rows[at, 0, k, d] = 1
        # relation: forwards, backwards; real parts, imaginary parts
        block = np.zeros((len(relations), 2, 2, n, d + 1), np.float32)
        block[:, :, :, k, :d] = rel.reshape(len(relations), 2, 2, d)
        block[:, :, 0, k, d] = FAR / 2
        steps.append(block)
        named += relations
    os.makedirs(out, exist_ok=True)
    for what, table, names in (("entities", rows, ids), ("relations", np.concatenate(steps), named)):
        np.save(os.path.join(out, what + ".npy"), table.reshape(len(names), -1))
        with open(os.path.join(out, what + ".txt"), "w", encoding="utf-8") as f:
            f.writelines(name + "\n" for name in names)


main()
