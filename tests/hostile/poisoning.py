#!/usr/bin/env python3
"""What attackers cost the others in rounds and pairs, without and with the defence (docs/results/reliability.md).

    poisoning.py POISONED DATA OUT [--attackers 1,3] [--seeds 1,2,3] [--methods fede,fedep] [--rounds N]

POISONED is build/tests/hostile/poisoned, DATA a folder with one folder a member; what a run came to is
kept in OUT and not made again.  The members named by --attackers attack; the controls are the
federation without them, without the defence and with it.  Test MRR is the mean over the honest members.
"""
import argparse
import json
import os
import subprocess
import sys

ATTACKS = ["none", "added-noise", "noise", "flip", "flip-10", "unlike", "alike", "target", "target-itself", "wrong-means",
           "flip-10-unseen", "unlike-unseen"]

FILE = """experiment: {{name: poisoning, data: {data}, seeds: [{seeds}], rounds: {rounds}, epochs: 2, eval_every: 5,
  patience: 0, average: queries}}
model: {{kind: transe, dim: {dim}, gamma: 9}}
train: {{optimizer: adam, lr: 5e-3, loss: self_adversarial, negatives: 32, shared_chunk: 64, batch: 256,
  corrupt: alternate, filtered: true, threads: 1}}
eval: {{protocol: standard, valid_limit: 500}}
variants:
"""


PAIRS = "federation.max_rounds: {rounds}, federation.patience: 0, federation.gather_s: 1, federation.local_rounds: 0"


def variants(methods, rounds):
    """Of each method: without any defence, with parts of it, and with all (the default of an agent)."""
    for m in methods:
        if m == "pairs":
            end = PAIRS.format(rounds=rounds)
            yield f"{m}", f"{{method: {m}, federation.weight: all, federation.judge: false, {end}}}"
            yield f"{m}_valid", f"{{method: {m}, federation.weight: valid, federation.judge: false, {end}}}"
            yield f"{m}_judge", f"{{method: {m}, federation.weight: all, {end}}}"
            yield f"{m}_both", f"{{method: {m}, federation.weight: valid, {end}}}"
            continue
        yield f"{m}", f"{{method: {m}, keep: each}}"
        yield f"{m}_bound", f"{{method: {m}, keep: each, bound_rows: true}}"
        yield f"{m}_valid", f"{{method: {m}, keep: each, weight: valid}}"
        yield f"{m}_judge", f"{{method: {m}, keep: each, bound_rows: true, judge: true}}"
        yield f"{m}_both", f"{{method: {m}, keep: each, weight: valid, bound_rows: true, judge: true}}"


def write_file(o, data, path):
    with open(path, "w") as f:
        f.write(FILE.format(data=data, seeds=", ".join(o.seeds), rounds=o.rounds, dim=o.dim))
        for name, text in variants(o.methods, o.rounds):
            f.write(f"  {name}: {text}\n")


def without(o, members):
    """The data of the honest members alone."""
    to = os.path.join(o.out, "without-" + o.attackers.replace(",", "-"))
    os.makedirs(to, exist_ok=True)
    for m in members:
        link = os.path.join(to, m)
        if not os.path.islink(link):
            os.symlink(os.path.join(os.path.abspath(o.data), m), link)
    return to


def run(o, path, variant, seed, attack, attackers):
    label = os.path.basename(path)[:-len('.yaml')] + "-" + attack + "-" + "-".join(map(str, attackers))
    name = os.path.join(o.out, f"{variant}-{seed}-{label}.json")
    if not os.path.exists(name):
        out = os.path.join(o.out, f"state-{os.getpid()}")
        os.makedirs(os.path.join(out, "runs"), exist_ok=True)
        got = subprocess.run([o.poisoned, path, out, variant, seed, attack, *map(str, attackers)],
                             stdout=subprocess.PIPE, check=True).stdout
        with open(name + ".part", "wb") as f:
            f.write(got)
        os.rename(name + ".part", name)
        subprocess.run(["rm", "-rf", out], check=True)
    return json.load(open(name))


def mean_of(record, names):
    found = {a["agent"]: a["test"]["mrr"] for a in record["agents"]}
    return sum(found[n] for n in names) / len(names)


def hits_of(record):
    """Of the targets of honest members, the share among the first ten of their best tables."""
    found = [t for t in record["targets"] if t["targets"] > 0]
    n = sum(t["targets"] for t in found)
    return sum(t["hits"] for t in found) / n if n > 0 else 0.0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("poisoned")
    p.add_argument("data")
    p.add_argument("out")
    p.add_argument("--attackers", default="0")
    p.add_argument("--seeds", default="1")
    p.add_argument("--methods", default="fede")
    p.add_argument("--attacks", default=",".join(ATTACKS))
    p.add_argument("--only", default="", help="variants, by commas")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--dim", type=int, default=64)
    o = p.parse_args()
    o.seeds, o.methods = o.seeds.split(","), o.methods.split(",")
    members = sorted(m for m in os.listdir(o.data) if os.path.isdir(os.path.join(o.data, m)))
    attackers = [int(a) for a in o.attackers.split(",")]
    honest = [m for i, m in enumerate(members) if i not in attackers]
    os.makedirs(o.out, exist_ok=True)
    whole, alone = os.path.join(o.out, "all.yaml"), os.path.join(o.out, "without-" + o.attackers.replace(",", "-") + ".yaml")
    write_file(o, os.path.abspath(o.data), whole)
    write_file(o, os.path.abspath(without(o, honest)), alone)
    print("| variant | seed | attack | honest members' MRR | without the attackers | lost | ... with this defence | lost | targets hit |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed in o.seeds:
        for variant, _ in variants(o.methods, o.rounds):
            if o.only and variant not in o.only.split(","):
                continue
            control = mean_of(run(o, alone, variant.split("_")[0], seed, "none", []), honest)
            same = mean_of(run(o, alone, variant, seed, "none", []), honest)
            for attack in o.attacks.split(","):
                record = run(o, whole, variant, seed, attack, attackers)
                got = mean_of(record, honest)
                print(f"| {variant} | {seed} | {attack} | {got:.4f} | {control:.4f} | {control - got:+.4f} |"
                      f" {same:.4f} | {same - got:+.4f} | {100 * hits_of(record):.0f} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
