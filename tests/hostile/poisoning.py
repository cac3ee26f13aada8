#!/usr/bin/env python3
"""What attackers cost the others in rounds and pairs, without and with the defence (docs/results/reliability.md).

    poisoning.py POISONED DATA OUT [--attackers 1,3] [--seeds 1,2,3] [--methods fede,fedep] [--rounds N]

POISONED is build/tests/hostile/poisoned, DATA a folder with one folder a member; what a run came to is
kept in OUT and not made again.  OUT is of one data set, number of rounds and width (run-with.json).
The members named by --attackers attack; the controls are the federation without them, without the
defence and with it.  Test MRR is the mean over the honest members.
"""
import argparse
import hashlib
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
    """Of each method: without any defence, with parts of it, with all that looks at members and what they bring (both),
    and as an agent has it in rounds by default: with a copy that trains alone for its first 20 looks, too.  In pairs no
    copy trains, so both is an agent's default there."""
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
        yield f"{m}_default", (f"{{method: {m}, keep: each, weight: valid, bound_rows: true, judge: true, "
                               "compare_rounds: 20}")


def write_file(o, data, path):
    with open(path, "w") as f:
        f.write(FILE.format(data=data, seeds=", ".join(o.seeds), rounds=o.rounds, dim=o.dim))
        for name, text in variants(o.methods, o.rounds):
            f.write(f"  {name}: {text}\n")


def digest_of(data, members):
    """Of the members' files, wherever they lie."""
    h = hashlib.sha256()
    for m in members:
        for name in sorted(os.listdir(os.path.join(data, m))):
            path = os.path.join(data, m, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                text = f.read()
            h.update(f"{m}/{name} {len(text)}\n".encode())
            h.update(text)
    return h.hexdigest()


def claim(o, members):
    """Names in OUT say variant, seed and attack: what else a run hangs on is the same for all of them."""
    path = os.path.join(o.out, "run-with.json")
    now = {"rounds": o.rounds, "dim": o.dim, "data": digest_of(o.data, members), "file": FILE,
           "variants": dict(variants(o.methods, o.rounds))}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            was = json.load(f)
    elif any(name.endswith(".json") for name in os.listdir(o.out)):
        sys.exit(f"{o.out}: it has runs, and nothing says with what they were run: take another folder")
    else:
        was = dict(now, variants={})
    for key in ("rounds", "dim"):
        if was[key] != now[key]:
            sys.exit(f"{o.out}: its runs are of another length or width ({key} {was[key]} before, {now[key]} now): "
                     "take another folder")
    if was["data"] != now["data"]:
        sys.exit(f"{o.out}: its runs are of other data than {o.data}: take another folder")
    if was["file"] != now["file"] or any(was["variants"].get(v, text) != text for v, text in now["variants"].items()):
        sys.exit(f"{o.out}: its runs are of other settings than this script has now: take another folder")
    now["variants"] = {**was["variants"], **now["variants"]}
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(now, f, indent=1)
    os.rename(path + ".part", path)


def without(o, members):
    """The data of the honest members alone: links, of now."""
    to = os.path.join(o.out, "without-" + o.attackers.replace(",", "-"))
    os.makedirs(to, exist_ok=True)
    for m in set(os.listdir(to)) - set(members):
        os.unlink(os.path.join(to, m))
    for m in members:
        link, at = os.path.join(to, m), os.path.join(os.path.abspath(o.data), m)
        if os.path.islink(link) and os.readlink(link) == at:
            continue
        os.symlink(at, link + ".part")
        os.replace(link + ".part", link)
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
    claim(o, members)
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
