"""Chains the pairwise alignment files into one shared name for each thing.

usage: chain.py ALIGN_FOLDER OUT_FOLDER

Writes OUT_FOLDER/<language>/alias.tsv (own name TAB shared name).  The shared name is the
alphabetically first member of the chain, as companies that keep a common catalogue would do.
"""
import os
import sys

parent = {}


def find(x):
    while parent.setdefault(x, x) != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


align, out = sys.argv[1:3]
for name in sorted(os.listdir(align)):
    a, b = name[: -len(".tsv")].split("-")
    with open(os.path.join(align, name), encoding="utf-8", newline="\n") as f:
        for line in f:
            x, y = line.rstrip("\n").split("\t")
            p, q = find((a, x)), find((b, y))
            parent[max(p, q)] = min(p, q)
for lang in sorted({lang for lang, _ in parent}):
    with open(os.path.join(out, lang, "alias.tsv"), "w", encoding="utf-8", newline="\n") as f:
        for key in sorted(k for k in parent if k[0] == lang):
            root = find(key)
            f.write(f"{key[1]}\tshared:{root[0]}:{root[1]}\n")
