#!/usr/bin/env python3
"""Which of two neighbouring graphs was it?  An attack on private training (docs/THREAT-MODEL.md).

    neighbours.py FKGE [--runs N] [--all] [--serve] [--note]

Graphs that differ by one triple are trained on privately (epsilon 0.1) by the program that ships,
each time in a folder of its own: import, train (or, with --serve, the agent's own first training),
export, ledger.  Distinguishers that know all that is public (names, agent.yaml with its seed, both
graphs) are then asked, of every output, from which of the two it came.

By (epsilon, delta) nobody guesses right more often than e^epsilon / (1 + e^epsilon) + delta, and
where the two graphs have the same triples in another order, more often than 1/2.  A test fails at
so many right answers that chance within this bound gives them at most once in 1000 runs of this
program, over all that it asks.

Rules that must be learnt are learnt on one half of the trainings and asked on the other, and the
other way round.  --all: every format of export, too.  --note: failures are counted and said, the status is 0 (for figures of a program
that fails)."""

import argparse
import concurrent.futures
import functools
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

EPSILON, DELTA = 0.1, 1e-5
NAMES, FLOATS, GAMMA, SEED = 40, 8, 4, 1
HEAD, RELATION, TAIL = "urn:e35", "urn:jump", "urn:e3"  # of the triple that is there or not
FORMATS = ("tsv", "openke", "npy", "word2vec")
CHANCE = 1e-3  # of a failure of the whole program by chance, were all at the bound

TRAINING = f"""model: {{dim: {FLOATS}, gamma: {GAMMA}}}
train: {{seed: {SEED}, epochs: 1, eval_every: 1, threads: 1, lr: 0.001, negatives: 4, patience: 0,
  filtered: false, shared_chunk: 0, dp: {{epsilon: {EPSILON}, delta: {DELTA}, rate: 0.01}}}}
"""
YAML = f"""name: a
listen: 127.0.0.1:0
{TRAINING}federation: {{local_rounds: 0, sleep_s: 1}}
"""


# ---- the graphs ----


def node(i):
    """RDF's names; some nodes have none but a label, to which the program gives a mark."""
    return f"_:x{i}" if i % 10 == 4 else f"urn:e{i}"


def base_graph():
    rules = (("urn:next", 1), ("urn:jump", 7), ("urn:far", 11))
    return [(node(i), r, node((i + s) % NAMES)) for i in range(NAMES) for r, s in rules]


def graphs():
    base, extra = base_graph(), (HEAD, RELATION, TAIL)
    assert extra not in base
    middle = len(base) // 2
    return {
        "base": base,
        "first": [extra] + base,
        "middle": base[:middle] + [extra] + base[middle:],
        "reversed": base[::-1],
    }


VALID = (("urn:e5", "urn:next", "urn:e9"),)  # no new names


def write_graph(folder, triples, valid=VALID):
    os.makedirs(folder)
    for split, of in ("train", triples), ("valid", valid):
        with open(f"{folder}/{split}.nt", "w") as f:
            for t in of:
                f.write(" ".join(n if n.startswith("_:") else f"<{n}>" for n in t) + " .\n")


# ---- what the program gives out ----


def call(fkge, folder, *args):
    done = subprocess.run([fkge, "-d", folder, *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"Bail out! fkge {' '.join(args)}: status {done.returncode}: {done.stderr}")
    return done


# Not of the triples: clocks, what the machine was doing, ports and processes.
UNSTEADY = {"time", "created_ms", "seconds", "epoch_seconds", "peak_bytes", "pid", "port"}


def steady(j):
    if isinstance(j, dict):
        return {k: steady(v) for k, v in j.items() if k not in UNSTEADY}
    return [steady(x) for x in j] if isinstance(j, list) else j


def leaves(j, path=""):
    """Each value by itself: one that is never the same would hide all others."""
    if isinstance(j, dict):
        return [x for k in sorted(j) for x in leaves(j[k], f"{path}.{k}")]
    if isinstance(j, list):
        return [x for k, v in enumerate(j) for x in leaves(v, f"{path}[{k}]")]
    return [(path, j)]


def json_leaves(text, folder):
    return leaves(steady(json.loads(text.replace(folder, ""))))


def line_leaves(text):
    clock = r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?Z?"
    text = re.sub(rf"127.0.0.1:\d+|port \d+|{clock}|\d+(\.\d+)? ?m?s\b", "", text)
    return list(enumerate(text.splitlines()))


def read_table(path):
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return [r[0] for r in rows], [[float(x) for x in r[1:]] for r in rows]


MARK = re.compile(r"@[0-9a-f]{12}\b")


def unmarked(text):
    """A mark that is another one each time would make every text one that was never seen."""
    return MARK.sub("", text)


def export(fkge, folder, forms, out):
    """What can be compared whole, by output and by place in it; and the two tables."""
    words = {}
    for form in forms:
        to = f"{folder}/{form}"
        said = call(fkge, folder, "--json", "export", to, "--format", form).stdout
        words[f"export {form}: what it says"] = json_leaves(said, folder)
        for name in sorted(os.listdir(to)):
            rows = name.endswith((".tsv", ".vec"))  # as long as the digits of their numbers
            if not rows:
                words[f"export {form}: size of {name}"] = [("", os.path.getsize(f"{to}/{name}"))]
            if not rows and name.endswith(".txt"):
                with open(f"{to}/{name}") as f:
                    words[f"export {form}: order in {name}"] = [("", unmarked(f.read()))]
    out["ent_order"], out["ent_rows"] = read_table(f"{folder}/tsv/entities.tsv")
    out["rel_order"], out["rel_rows"] = read_table(f"{folder}/tsv/relations.tsv")
    order = " ".join(out["ent_order"] + out["rel_order"])
    words["export tsv: order of names"] = [("", unmarked(order))]
    words["export tsv: marks of blank nodes"] = [("", " ".join(sorted(set(MARK.findall(order)))))]
    return words


def train(fkge, folder, serve):
    if not serve:
        done = call(fkge, folder, "--json", "train")
        return {"train: what it says": json_leaves(done.stdout, folder),
                "train: what it notes": line_leaves(done.stderr.replace(folder, ""))}
    log = call(fkge, folder, "serve", "--status-file", f"{folder}/status.json",
               "--until-quiet", "0.3").stderr
    with open(f"{folder}/status.json") as f:
        return {"serve: status": json_leaves(f.read(), folder),
                "serve: what it logs": line_leaves(log.replace(folder, ""))}


def one_run(fkge, template, graph, folder, o):
    shutil.copytree(template, folder)
    call(fkge, folder, "import", graph)
    out = {}
    words = train(fkge, folder, o.serve)
    words.update(export(fkge, folder, FORMATS if o.all else FORMATS[:2], out))
    for shown in (("ledger", "show"), ("checkpoint", "list"))[: 2 if o.all else 1]:
        said = call(fkge, folder, "--json", *shown).stdout
        words[" ".join(shown)] = json_leaves(said, folder)
    if o.all:
        call(fkge, folder, "ledger", "export", f"{folder}/a.led")
        words["ledger export: size"] = [("", os.path.getsize(f"{folder}/a.led"))]
    out["words"] = {(what, path): value for what, all in words.items() for path, value in all}
    shutil.rmtree(folder)
    return out


def run_all(fkge, work, o):
    jobs = {}
    call(fkge, f"{work}/new", "init", "--name", "a", "--listen", "127.0.0.1:0")
    with open(f"{work}/new/agent.yaml", "w") as f:
        f.write(YAML)
    for name, triples in graphs().items():
        write_graph(f"{work}/graph.{name}", triples)
    with concurrent.futures.ThreadPoolExecutor(8 if o.serve else 2) as pool:
        for k in range(o.runs):
            for name in graphs():  # one owner: the keys are the same; each imports for itself
                jobs[name, k] = pool.submit(one_run, fkge, f"{work}/new", f"{work}/graph.{name}",
                                            f"{work}/{name}.{k}", o)
        return {name: [jobs[name, k].result() for k in range(o.runs)] for name in graphs()}


# ---- what partners are answered (query.answer: soft) ----

MEMBER = """federation: {names_every_s: 0, epochs_per_round: 1, max_rounds: 1, sleep_s: 0, local_rounds: 0}
query: {answer: soft, steps_per_day: 100000, rows_per_day: 10000000}
"""
OWNERS = ("base", "reversed")
PATIENCE_S = 60


def member_new(fkge, work, name, yaml):
    """A trained agent that listens on a port of its own."""
    folder = f"{work}/member.{name}"
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    call(fkge, folder, "init", "--name", name, "--listen", address)
    with open(f"{folder}/agent.yaml", "w") as f:
        f.write(f"name: {name}\nlisten: {address}\n{yaml}{MEMBER}")
    call(fkge, folder, "import", f"{work}/graph.{name}")
    call(fkge, folder, "train")
    return folder


def ask_agent(folder, request):
    """The running agent's own socket, as fkge query uses it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(PATIENCE_S)
        s.connect(f"{folder}/control.sock")
        s.sendall(json.dumps(request).encode() + b"\n")
        with s.makefile() as lines:
            return json.loads(lines.readline())


def step_request(names, points, norm, beam):
    return {"do": "step", "entities": len(names), "relation": "urn:next", "inverse": False,
            "norm": norm, "points": points, "beam": beam, "known": 0, "want": NAMES,
            "patience_ms": 10000, "partners": []}


def pairs_that_tell():
    """Names of which each order of the triples has another one first."""
    at = [ids_of(graphs()[owner])[0] for owner in OWNERS]
    names = [n for n in at[0] if not n.startswith("_:")]
    pairs = [(names[k], names[k + 1]) for k in range(0, len(names) - 1, 2)]
    pairs = [p if at[0][p[0]] < at[0][p[1]] else p[::-1] for p in pairs]
    return names, [(a, b) for a, b in pairs if at[1][a] > at[1][b]]


def right_answers(asker, owner_of, names, pairs, truth, norm, beam):
    """Of two equal points the ways lead from one: from the first in the owner's file?"""
    right = 0
    for pair in pairs:
        points = [[names.index(n), truth] for n in pair]
        said = ask_agent(asker, step_request(names, points, norm, beam))
        assert len(said["answers"]) == len(OWNERS) and all(a["rows"] for a in said["answers"]), said
        for a in said["answers"]:
            first = a["rows"][0][2] == points[0][0]
            right += first == (owner_of[a["id"]] == OWNERS[0])
    return right, len(OWNERS) * len(pairs)


def ask_owners(fkge, asker, folders, names, pairs):
    owner_of = {call(fkge, folders[o], "id").stdout.strip(): o for o in OWNERS}
    until = time.monotonic() + PATIENCE_S
    while len(ask_agent(asker, step_request(names, [], 0, 1)).get("answers", ())) < len(OWNERS):
        if time.monotonic() > until:
            sys.exit("Bail out! names are not compared")
        time.sleep(0.2)
    return {"ways of a step, beam 1": right_answers(asker, owner_of, names, pairs, 1, 0, 1),
            "ways of a step, norm min": right_answers(asker, owner_of, names, pairs, 1e-6, 1, 0)}


def answers_to_partners(fkge, work):
    """Two owners of the same triples in another order, and one who asks both."""
    names, pairs = pairs_that_tell()
    listed = [(a, "urn:listed", b) for a, b in zip(names, names[1:])]
    write_graph(f"{work}/graph.asker", listed, [(names[0], "urn:listed", names[2])])
    folders = {o: member_new(fkge, work, o, TRAINING) for o in OWNERS}
    asker = member_new(fkge, work, "asker", re.sub(r", dp: \{.*?\}", "", TRAINING))
    running = []
    try:
        for o in OWNERS:
            line = f"{work}/line"
            call(fkge, asker, "invite", "--for", call(fkge, folders[o], "id").stdout.strip(), "-o", line)
            call(fkge, folders[o], "join", line)
            os.unlink(line)
        for folder in [asker, *folders.values()]:
            with open(f"{folder}/log", "w") as log:
                running.append(subprocess.Popen([fkge, "-d", folder, "serve"], stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log))
        for folder in [asker, *folders.values()]:
            until = time.monotonic() + PATIENCE_S
            while not os.path.exists(f"{folder}/control.sock") and time.monotonic() < until:
                time.sleep(0.1)
        return ask_owners(fkge, asker, folders, names, pairs)
    finally:
        for p in running:
            p.kill()
            p.wait()


# ---- first rows by the public seed, as id by id a plain training has them ----


class Rng:
    """base/rng.h"""

    mask = (1 << 64) - 1

    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & self.mask
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.mask
            self.s.append(z ^ (z >> 31))

    def rotl(self, x, k):
        return ((x << k) | (x >> (64 - k))) & self.mask

    def u64(self):
        s = self.s
        out = (self.rotl((s[0] + s[3]) & self.mask, 23) + s[0]) & self.mask
        t = (s[1] << 17) & self.mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.rotl(s[3], 45)
        return out

    def row(self):
        return [2 * (self.u64() >> 11) / 2**53 - 1 for _ in range(FLOATS)]


def ids_of(triples):
    ent, rel = {}, {}
    for h, r, t in triples:
        ent.setdefault(h, len(ent))
        rel.setdefault(r, len(rel))
        ent.setdefault(t, len(ent))
    return ent, rel


def first_rows(triples):
    ent, rel = ids_of(triples)
    rng = Rng(SEED)
    ent_rows = [rng.row() for _ in ent]
    rel_rows = [rng.row() for _ in rel]
    return {n: ent_rows[k] for n, k in ent.items()}, {n: rel_rows[k] for n, k in rel.items()}


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


# ---- distinguishers: each gives (right answers, questions) ----


def fixed(sides, score):
    """score(run) > 0 means the second graph; a tie counts half on each side."""
    right = sum((score(r) < 0) + (score(r) == 0) / 2 for r in sides[0])
    right += sum((score(r) > 0) + (score(r) == 0) / 2 for r in sides[1])
    return math.floor(right), len(sides[0]) + len(sides[1])


def halves(sides):
    n = len(sides[0]) // 2
    for learn, ask in ((slice(0, n), slice(n, None)), (slice(n, None), slice(0, n))):
        yield [s[learn] for s in sides], [s[ask] for s in sides]


def learnt_words(sides, key):
    """Says the side on which such a value was seen more often."""
    for learn, ask in halves(sides):
        seen = [[r["words"].get(key) for r in s] for s in learn]
        yield fixed(ask, lambda r: seen[1].count(r["words"].get(key))
                    - seen[0].count(r["words"].get(key)))


def learnt_direction(sides, vector):
    """Says the side whose mean is nearer."""
    for learn, ask in halves(sides):
        mean = [[sum(c) / len(s) for c in zip(*map(vector, s))] for s in learn]
        way = [b - a for a, b in zip(*mean)]
        middle = dot(way, [(a + b) / 2 for a, b in zip(*mean)])
        yield fixed(ask, lambda r: dot(way, vector(r)) - middle)


def by_name(run, kind):
    """Of a blank node without its mark, which is another one each time."""
    return dict(zip((unmarked(n) for n in run[kind + "_order"]), run[kind + "_rows"]))


def all_rows(run, kind):
    rows = by_name(run, kind)
    return [x for name in sorted(rows) for x in rows[name]]


def rows_by_place(run, kind):
    return [x for row in run[kind + "_rows"] for x in row]


def score_of_triple(run):
    """TransE's, and the same without its relation."""
    ent, rel = by_name(run, "ent"), by_name(run, "rel")
    h, t, r = ent[HEAD], ent[TAIL], rel[RELATION]
    whole = -sum(abs(a + b - c) for a, b, c in zip(h, r, t))
    better = sum(-sum(abs(a + b - c) for a, b, c in zip(h, r, x)) > whole for x in ent.values())
    return [whole, -sum(abs(a - c) for a, c in zip(h, t)), better]


def is_first_row(kind, two):
    """More like the first rows that names would have by the ids of one graph, or of the other."""
    guess = [first_rows(t)[0 if kind == "ent" else 1] for t in two]

    def score(run):
        rows = by_name(run, kind)
        return sum(dot(rows[n], guess[1][n]) - dot(rows[n], guess[0][n]) for n in rows)

    return score


def ask_all(sides, two):
    for kind, what in (("ent", "entities"), ("rel", "relations")):
        yield f"first rows of {what}, by ids", fixed(sides, is_first_row(kind, two))
        for fold in learnt_direction(sides, lambda r: all_rows(r, kind)):
            yield f"rows of {what}, by name", fold
        for fold in learnt_direction(sides, lambda r: rows_by_place(r, kind)):
            yield f"rows of {what}, by place", fold
    for k, what in enumerate(("score", "score without relation", "rank")):
        for fold in learnt_direction(sides, lambda r: [score_of_triple(r)[k]]):
            yield f"{what} of the triple", fold
    for key in sorted({k for s in sides for r in s for k in r["words"]}, key=str):
        if len({r["words"].get(key) for s in sides for r in s}) > 1:
            for fold in learnt_words(sides, key):
                yield key[0], fold
        else:  # always the same, so half of all answers are right
            yield key[0], (len(sides[0]), 2 * len(sides[0]))


# ---- the verdict ----


@functools.lru_cache(None)
def least_bad(n, p, chance):
    """The number of right answers of n from which on they are too unlikely; n + 1: none is."""
    k, at_least = n + 1, 0
    while k > 0:
        one = math.lgamma(n + 1) - math.lgamma(k) - math.lgamma(n - k + 2)
        at_least += math.exp(one + (k - 1) * math.log(p) + (n - k + 1) * math.log(1 - p))
        if at_least > chance:
            break
        k -= 1
    return k


PAIRS = (("base", "first", EPSILON), ("base", "middle", EPSILON), ("base", "reversed", 0))


def options():
    a = argparse.ArgumentParser()
    a.add_argument("fkge")
    a.add_argument("--runs", type=int, default=24)
    a.add_argument("--all", action="store_true")
    a.add_argument("--serve", action="store_true")
    a.add_argument("--note", action="store_true")
    return a.parse_args()


def answers_of(runs):
    """By pair and output: all right answers of questions."""
    answers = {}
    for one, other, epsilon in PAIRS:
        sides, two = [runs[one], runs[other]], [graphs()[one], graphs()[other]]
        for what, fold in ask_all(sides, two):
            answers.setdefault((other, epsilon, what), []).append(fold)
    return answers


def main():
    o = options()
    work = tempfile.mkdtemp(prefix="fkge-test.")
    try:
        answers = answers_of(run_all(os.path.abspath(o.fkge), work, o))
        for what, fold in answers_to_partners(os.path.abspath(o.fkge), work).items():
            answers["reversed", 0, what] = [fold]
    finally:
        shutil.rmtree(work)
    chance = CHANCE / sum(map(len, answers.values()))
    failed = 0
    for k, ((other, epsilon, what), folds) in enumerate(answers.items()):
        p = math.exp(epsilon) / (1 + math.exp(epsilon)) + (DELTA if epsilon > 0 else 0)
        over = [right - least_bad(n, p, chance) for right, n in folds]
        assert all(least_bad(n, p, chance) <= n for _, n in folds), "too few runs to say anything"
        right, n = folds[over.index(max(over))]
        print(f"{'not ok' if max(over) >= 0 else 'ok'} {k + 1} - {other}, {what}: "
              f"{right} of {n} right at most, {least_bad(n, p, chance)} would be too many")
        failed += max(over) >= 0
    print(f"1..{len(answers)}")
    print(f"# {failed} of {len(answers)} outputs tell more than epsilon {EPSILON} allows")
    sys.exit(failed > 0 and not o.note)


main()
