#!/bin/sh
# Questions over several steps: drawn from graphs.
. "$(dirname "$0")/lib.sh"

ok 'help of queries sample has an example' prints Example queries sample --help

# ---- queries sample ----
ok 'a graph is wanted' says 2 'GRAPH and -o' queries sample -o "$work/q"
ok 'a file is wanted' says 2 'GRAPH and -o' queries sample "$work"
ok 'no type is called 4p' says 2 '4p' queries sample "$work" -o "$work/q" --types 1p,4p
ok 'other is no type' says 2 'other' queries sample "$work" -o "$work/q" --types other
ok 'a graph that is not there' says 4 "$work/none" queries sample "$work/none" -o "$work/q"
"$fkge" -q synth -e 300 -t 4000 --seed 3 -o "$work/g" >/dev/null
ok 'all types' exits 0 queries sample "$work/g" -n 20 --types all -o "$work/q" --json
ok 'as many as asked for' [ "$(wc -l <"$work/q") $(member "$out" types 13 type) $(member "$out" types 13 queries)" = '280 pni 20' ]
ok 'the same again' exits 0 queries sample "$work/g" -n 20 --types all -o "$work/again"
ok 'the same seed makes the same bytes' cmp "$work/q" "$work/again"
ok 'with easy answers' exits 0 queries sample "$work/g" -n 20 --types 2p,pin --seed 2 --easy -o "$work/q"
# every hard answer is checked once more, in another language, and that it is none of the known graph
cat >"$work/check.py" <<'PY'
import collections, json, sys
def read(name): return [tuple(l.rstrip("\n").split("\t")) for l in open(sys.argv[1] + "/" + name)]
known, graph = collections.defaultdict(set), collections.defaultdict(set)
for name, to in (("train.tsv", (known, graph)), ("valid.tsv", (known, graph)), ("test.tsv", (graph,))):
    for h, r, t in read(name):
        for g in to:
            g[h, r].add(t)
            g[t, "^" + r].add(h)
def walk(g, anchor, steps):
    at = {anchor}
    for s in steps:
        at = set().union(*(g[x, s] for x in at))
    return at
n = 0
for line in open(sys.argv[2]):
    q, sets = json.loads(line), []
    for g in graph, known:
        branch = [walk(g, a, s) for a, s in zip(q["anchors"], q["relations"])]
        sets.append(branch[0] - branch[1] if q["type"] == "pin" else branch[0])
    assert set(q["hard"]) == sets[0] - sets[1] and q["hard"], q
    assert set(q["easy"]) == sets[0] & sets[1], q
    assert len(q["missing"]) == len(q["hard"]) and min(q["missing"]) >= 1, q
    n += 1
sys.exit(n != 40)
PY
ok 'answers are right' python3 "$work/check.py" "$work/g" "$work/q"
ok 'for training all answers are hard' exits 0 queries sample "$work/g" -n 5 --types 2i --split train --answers 9 -o "$work/q" --json
ok 'so there are no easy ones' [ "$(member "$out" types 0 easy)" = 0 ]
"$fkge" -q split "$work/g" -k 3 --by relations -o "$work/r3" >/dev/null
ok 'of three graphs' exits 0 queries sample "$work/r3/0" "$work/r3/1" "$work/r3/2" -n 9 --types 1p,2p,pi -o "$work/q" --json
ok 'no graph holds a whole one' [ "$(member "$out" types 0 queries) $(member "$out" types 1 queries)" = '0 9' ]
cat >"$work/cross.py" <<'PY'
import json, sys
held = [{l.split("\t")[1] for f in ("train", "valid", "test") for l in open(f"{sys.argv[1]}/{k}/{f}.tsv")} for k in range(3)]
for line in open(sys.argv[2]):
    steps = {s.lstrip("^") for b in json.loads(line)["relations"] for s in b}
    assert steps <= set.union(*held) and not any(steps <= h for h in held), line
PY
ok 'checked by their relations' python3 "$work/cross.py" "$work/r3" "$work/q"
ok 'a folder that cannot be written' exits 1 queries sample "$work/g" -n 1 -o "$work/none/q"
finish
