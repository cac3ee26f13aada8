#!/bin/sh
# experiment: methods beside each other, taken up again, with figures that do not depend on topology.
. "$(dirname "$0")/lib.sh"

run -q synth -e 200 -t 1200 -r 6 --agents 3 --overlap 0.5 --ratios 8:1:1 -o "$work/data"
cat >"$work/x.yaml" <<'YAML'
experiment: {name: small, data: data, seeds: [1, 2], rounds: 4, epochs: 1, eval_every: 2,
  average: queries, reference: fede, published: paper.csv, dataset: D3}
model: {kind: transe, dim: 8}
train: {lr: 0.01, negatives: 4, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  single: {published: Independent}
  collective:
  fede: {published: FedE}
  hosted: {method: fede, topology: hosted, rounds: 2}
  masked: {method: fede, secret_aggregation: true}
  fedlu: {warm_up: 0}
YAML
cat >"$work/paper.csv" <<'CSV'
paper,table,dataset,clients,kge_model,method,metric,value,unit,setting_note
P,1,D3,3,TransE,FedE,MRR,32.5,percent,"both sides, pooled"
P,1,D3,3,RotatE,FedE,MRR,99,percent,"another model"
P,1,D4,3,TransE,FedE,Hits@1,99,percent,"another data set"
CSV
check() { # Python over the record r of $1
	python3 - "$work/x/runs/$1" "$2" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PY
}
wrong() { # TEXT FROM TO: the file with FROM replaced is refused with the text
	sed "s|$2|$3|" "$work/x.yaml" >"$work/wrong.yaml"
	says 2 "$1" experiment "$work/wrong.yaml" -o "$work/none"
}

# ---- runs ----
ok 'an experiment' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --seed 1
ok 'one record a variant' test "$(ls "$work/x/runs" | wc -l)" -eq 6
ok 'three agents, each with its test' check fede-seed1.json \
	'len(r["agents"]) == 3 and all(0 < a["test"]["mrr"] <= 1 for a in r["agents"])'
ok 'the mean is over queries' check fede-seed1.json 'abs(r["test"]["mrr"] - sum(
	a["test"]["mrr"] * a["test"]["queries"] for a in r["agents"]) / r["test"]["queries"]) < 1e-9'
ok 'a look every two rounds' check fede-seed1.json '[c["round"] for c in r["curve"]] == [2, 4]'
ok 'the best validation is kept' check fede-seed1.json \
	'r["best_valid_mrr"] == max(c["valid_mrr"] for c in r["curve"])'
ok 'rounds send rows' check fede-seed1.json 'r["params"] > 0 and r["bytes"] > 0'
ok 'the control arm sends nothing' check single-seed1.json 'r["params"] == 0 and r["bytes"] == 0'
ok 'a variant has rounds of its own' check hosted-seed1.json 'r["rounds"] == 2'
ok 'masks cancel: almost the same tables' python3 - "$work/x/runs/fede-seed1.json" \
	"$work/x/runs/masked-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
near = all(abs(x["test"]["mrr"] - y["test"]["mrr"]) < 0.02 for x, y in zip(a["agents"], b["agents"]))
sys.exit(not (near and a["bytes"] != b["bytes"]))
PY
ok 'the table that travels has figures too' check fedlu-seed1.json '0 < r["test_shared"]["mrr"] <= 1'
ok 'where there is one' check fede-seed1.json '"test_shared" not in r'
ok "and each agent's seed" check fede-seed1.json '[a["seed"] for a in r["agents"]] == [1000, 1001, 1002]'
ok "not one that no run has" test "$(grep -c '^  \(seed\|epochs\|eval_every\|patience\):' "$work/x/report.md")" -eq 0
ok 'but what it trains by' test "$(grep -c '^  \(lr\|loss\|batch\):' "$work/x/report.md")" -eq 3
ok 'the protocol is on record' check single-seed1.json 'r["protocol"]["name"] == "standard"'

# who has trained on more counts for more, or each the same
cp -r "$work/data" "$work/uneven"
sed -i '1~3!d' "$work/uneven/0/train.tsv"
for by in triples plain; do
	sed "s/data: data/data: uneven/; s/average: queries/average: $by/; s/rounds: 4/rounds: 2/" "$work/x.yaml" >"$work/u.yaml"
	ok "the mean by $by" exits 0 -q experiment "$work/u.yaml" -o "$work/$by" --seed 1 --only fede
	ok 'is that' python3 - "$work/$by/runs/fede-seed1.json" "$by" <<'PY'
import json, sys
r, by = json.load(open(sys.argv[1])), sys.argv[2]
w = [a["train_triples"] if by == "triples" else 1 for a in r["agents"]]
mean = sum(x * a["test"]["mrr"] for x, a in zip(w, r["agents"])) / sum(w)
evenly = sum(a["test"]["mrr"] for a in r["agents"]) / len(w)
sys.exit(abs(r["test"]["mrr"] - mean) > 1e-9 or (by == "triples") != (abs(mean - evenly) > 1e-9))
PY
done

# who has no test has no score in it, and does not count there
: >"$work/uneven/1/test.tsv"
for by in triples plain; do
	sed "s/average: [a-z]*/average: $by/" "$work/u.yaml" >"$work/v.yaml"
	run -q experiment "$work/v.yaml" -o "$work/no$by" --seed 1 --only fede
	ok "no test, by $by: the mean is of the others" python3 - "$work/no$by/runs/fede-seed1.json" "$by" <<'PY'
import json, sys
r, by = json.load(open(sys.argv[1])), sys.argv[2]
w = [(a["train_triples"] if by == "triples" else 1) * (a["agent"] != "1") for a in r["agents"]]
mean = sum(x * a["test"]["mrr"] for x, a in zip(w, r["agents"])) / sum(w)
sys.exit(not (abs(r["test"]["mrr"] - mean) < 1e-9 and r["agents"][1]["test"]["queries"] == 0))
PY
done
ok 'nor a cell' grep -Eq '^\| fede +\| +0\.[0-9]+ +\| +- +\| +0\.[0-9]+ +\|' "$work/noplain/report.md"
ok 'nor a line of CSV' test "$(grep -c '^small,fede,1,1,MRR' "$work/noplain/results.csv")" -eq 0

# ---- taken up again ----
cp "$work/x/runs/fede-seed1.json" "$work/first.json"
ok 'again' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --only fede
ok 'what is finished is not run again' cmp -s "$work/first.json" "$work/x/runs/fede-seed1.json"
ok 'what is missing is' test -s "$work/x/runs/fede-seed2.json"
ok 'and nothing else' test ! -e "$work/x/runs/single-seed2.json"
ok 'a record has what its run goes by' check fede-seed1.json '"seed: " not in r["settings"]["settings"]'
sed -i 's/\\ntrain:\\n/&  seed: 1\\n  epochs: 4\\n/' "$work/x/runs/fede-seed1.json"
cp "$work/x/runs/fede-seed1.json" "$work/older.json"
ok 'an older one has more' check fede-seed1.json '"seed: 1\n  epochs: 4\n" in r["settings"]["settings"]'
ok 'and is not made again' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --only fede --seed 1
ok 'for that' cmp -s "$work/older.json" "$work/x/runs/fede-seed1.json"
rm "$work/x/runs/fede-seed1.json"
run -q experiment "$work/x.yaml" -o "$work/x" --only fede --seed 1
ok 'the same seed, the same figures' python3 - "$work/first.json" "$work/x/runs/fede-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for r in a, b:
    del r["seconds"], r["cpu_seconds"]
sys.exit(a != b)
PY
sed 's/hosted, rounds: 2/hosted/' "$work/x.yaml" >"$work/y.yaml"
run -q experiment "$work/y.yaml" -o "$work/x" --only hosted --seed 1
ok 'with other settings it is run again' check hosted-seed1.json 'r["rounds"] == 4'
ok 'hosted or sharded, the same tables' python3 - "$work/x/runs/fede-seed1.json" \
	"$work/x/runs/hosted-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit([x["test"] for x in a["agents"]] != [x["test"] for x in b["agents"]])
PY

# ---- interrupted, and taken up again ----
same() { # FILE FILE: records but for what they took
	python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for r in a, b:
    del r["seconds"], r["cpu_seconds"], r["data"]
sys.exit(a != b)
PY
}
sed 's/rounds: 4/rounds: 6/; s/rounds: 2}/rounds: 6}/' "$work/x.yaml" >"$work/long.yaml"
run -q experiment "$work/long.yaml" -o "$work/whole" --seed 1
ok 'runs stop at a look' exits 0 -q experiment "$work/long.yaml" -o "$work/part" --seed 1 --until 1
ok 'and leave their state' test "$(ls "$work/part/runs" | grep -c 'seed1.state$')" -eq 6
ok 'not a record' test "$(ls "$work/part/runs" | wc -l)" -eq 6
mv "$work/data" "$work/moved"
sed 's/data: data/data: moved/' "$work/long.yaml" >"$work/moved.yaml"
ok 'they go on' says 0 'fedlu, seed 1: goes on after round 2' experiment "$work/moved.yaml" -o "$work/part" --seed 1 --until 3
ok 'a report of what has begun' exits 0 -q experiment "$work/moved.yaml" -o "$work/part" --show
ok 'says how far it is' grep -q '^| \*\*fedlu\*\* .*| under way, round 4 |' "$work/part/report.md"
ok 'each that has begun' test "$(grep -c '^| \*\*.* under way, round [24] |' "$work/part/report.md")" -ge 6
ok 'and how good' python3 - "$work/part/report.md" "$work/whole/runs" <<'PY'
import json, sys
at = [l.split("|")[1:-1] for l in open(sys.argv[1]).read().split("## Under way")[1].split("\n## ")[0].splitlines() if l[:1] == "|"]
rows = {r[0].strip(): [x.strip() for x in r[1:]] for r in at[2:]}
curve = json.load(open(sys.argv[2] + "/fede-seed1.json"))["curve"][:2]
best = max(c["valid_mrr"] for c in curve)
sys.exit(len(rows) < 6 or rows["fede"][:2] != ["1", "4 of 6"] or
	 rows["fede"][3:5] != ["%.4f" % best, "%.4f" % curve[-1]["valid_mrr"]])
PY
ok 'to the end' says 0 'fedlu, seed 1: goes on after round 4' experiment "$work/moved.yaml" -o "$work/part" --seed 1
for v in single collective fede hosted masked fedlu; do
	ok "$v: as if uninterrupted" same "$work/whole/runs/$v-seed1.json" "$work/part/runs/$v-seed1.json"
done
# A copy that trains alone until valid decides is part of the state.  These graphs have names in common, and no more.
for i in 1 2 3; do run -q synth -e 200 -t 1200 -r 6 --seed $i --ratios 8:1:1 -o "$work/apart/$i"; done
cat >"$work/weighed.yaml" <<'YAML'
experiment: {name: small, data: apart, seeds: [1], rounds: 6, epochs: 2, eval_every: 2, patience: 0,
  keep: each, equal_start: moved}
model: {kind: transe, dim: 16}
train: {lr: 0.02, negatives: 8, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  weighed: {method: fede, weight: valid, weight_from: 5}
YAML
run -q experiment "$work/weighed.yaml" -o "$work/weighed" --seed 1
ok 'weighed: somebody goes on from it' grep -q '"took_alone": *true' "$work/weighed/runs/weighed-seed1.json"
run -q experiment "$work/weighed.yaml" -o "$work/weighed_part" --seed 1 --until 3
ok 'weighed: goes on' says 0 'weighed, seed 1: goes on after round 4' experiment "$work/weighed.yaml" -o "$work/weighed_part" --seed 1
ok 'weighed: as if uninterrupted' same "$work/weighed/runs/weighed-seed1.json" "$work/weighed_part/runs/weighed-seed1.json"
# So is the choice about it that waits.
sed 's/seeds: .1., rounds: 6, epochs: 2/seeds: [3], rounds: 8, epochs: 3/; s/lr: 0.02/lr: 0.01/; s/weighed:/waits:/' "$work/weighed.yaml" >"$work/waits.yaml"
run -q experiment "$work/waits.yaml" -o "$work/weighed"
run -q experiment "$work/waits.yaml" -o "$work/weighed_part" --until 5
ok 'waits: a copy does' grep -aq '"waits": *[1-9]' "$work/weighed_part/runs/waits-seed3.state"
ok 'waits: goes on' says 0 'waits, seed 3: goes on after round 6' experiment "$work/waits.yaml" -o "$work/weighed_part"
ok 'waits: as if uninterrupted' same "$work/weighed/runs/waits-seed3.json" "$work/weighed_part/runs/waits-seed3.json"
# Rounds that end before it is made keep the copy where it is best: higher than all looks (agents' own, or their mean).
sed '/^variants:/,$d; s/rounds: 6/rounds: 60/; s/patience: 0/patience: 1/' "$work/weighed.yaml" >"$work/ended.yaml"
cat >>"$work/ended.yaml" <<'YAML'
variants:
  ended: {method: fede, weight: valid, weight_from: 60}
  short: {method: fede, weight: valid, weight_from: 60, rounds: 6}
  together: {method: fede, weight: valid, weight_from: 60, keep: together}
YAML
run -q experiment "$work/ended.yaml" -o "$work/weighed"
for v in ended short; do
	ok "$v: the copy is kept" python3 - "$work/weighed/runs/$v-seed1.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
looks = zip(*(c["agents"] for c in r["curve"]))
sys.exit(r["rounds"] == 60 or not any(a["best_valid_mrr"] > max(x) and a["best_round"] == r["rounds"]
				      for a, x in zip(r["agents"], looks, strict=True)))
PY
done
ok 'together: so are all' python3 - "$work/weighed/runs/together-seed1.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
kept = [a["best_valid_mrr"] for a in r["agents"]]
sys.exit(not (abs(r["best_valid_mrr"] - sum(kept) / 3) < 1e-9 and r["best_round"] == r["rounds"] < 60 and
	      r["best_valid_mrr"] > max(c["valid_mrr"] for c in r["curve"])))
PY
run -q experiment "$work/ended.yaml" -o "$work/weighed_part" --only ended --until 5
run -q experiment "$work/ended.yaml" -o "$work/weighed_part" --only ended
ok 'ended: as if uninterrupted' same "$work/weighed/runs/ended-seed1.json" "$work/weighed_part/runs/ended-seed1.json"
# A copy that is compared for longer is kept where it is ahead at a look, too, and trains on after the choice.
sed '/^variants:/,$d; s/rounds: 6/rounds: 8/' "$work/weighed.yaml" >"$work/compared.yaml"
cat >>"$work/compared.yaml" <<'YAML'
variants:
  all: {method: fede, weight: valid, weight_from: 40}
  none: {method: fede, weight: none}
  compared: {method: fede, weight: valid, weight_from: 40, compare_rounds: 3}
  after: {method: fede, weight: valid, weight_from: 4, compare_rounds: 20}
YAML
run -q experiment "$work/compared.yaml" -o "$work/weighed"
ok 'compared: the copy is kept, at a look that is not the last' python3 - "$work/weighed/runs" <<'PY'
import json, sys
a, n, c = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("all", "none", "compared"))
best = [max(p["agents"][i] for p in n["curve"][:3]) for i in range(3)] # the last look is not compared
kept = [i for i, x in enumerate(c["agents"]) if x.get("kept_copy")]
sys.exit(not (kept and any(c["agents"][i]["best_round"] < c["rounds"] for i in kept) and c["curve"] == a["curve"] and
	      all(c["agents"][i]["best_valid_mrr"] == best[i] for i in kept if c["agents"][i]["best_round"] < c["rounds"])))
PY
ok 'after: nobody keeps less than alone' python3 - "$work/weighed/runs" <<'PY'
import json, sys
n, c = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("none", "after"))
sys.exit(not all(x["best_valid_mrr"] >= y["best_valid_mrr"] for x, y in zip(c["agents"], n["agents"], strict=True)))
PY
for v in compared after; do
	run -q experiment "$work/compared.yaml" -o "$work/weighed_part" --only $v --until 5
	run -q experiment "$work/compared.yaml" -o "$work/weighed_part" --only $v
	ok "$v: as if uninterrupted" same "$work/weighed/runs/$v-seed1.json" "$work/weighed_part/runs/$v-seed1.json"
done
ok 'states go' test "$(ls "$work/part/runs" | grep -c state)" -eq 0
cp "$work/whole/runs/fede-seed1.json" "$work/first.json"
run -q experiment "$work/moved.yaml" -o "$work/whole" --seed 1 --only fede
ok 'data that has moved is the same data' cmp -s "$work/first.json" "$work/whole/runs/fede-seed1.json"
run -q experiment "$work/moved.yaml" -o "$work/other" --seed 1 --only fede --until 1
sed 's/lr: 0.01/lr: 0.02/' "$work/moved.yaml" >"$work/faster.yaml"
ok 'a state of other settings' says 0 'fede-seed1.state is of other settings or data' experiment "$work/faster.yaml" -o "$work/other" --seed 1 --only fede --until 1
cp "$work/moved/0/train.tsv" "$work/train.tsv"
sed -i '$d' "$work/moved/0/train.tsv"
ok 'or of other data' says 0 'fede-seed1.state is of other settings or data' experiment "$work/faster.yaml" -o "$work/other" --seed 1 --only fede --until 1
truncate -s -1 "$work/other/runs/fede-seed1.state"
ok 'or damaged' says 0 'fede-seed1.state: damaged' experiment "$work/faster.yaml" -o "$work/other" --seed 1 --only fede
mv "$work/train.tsv" "$work/moved/0/train.tsv"
mv "$work/moved" "$work/data"

# ---- what is kept ----
cat >"$work/k.yaml" <<'YAML'
experiment: {name: keeping, data: data, seeds: [1], rounds: 60, epochs: 1, eval_every: 2, patience: 0}
model: {kind: transe, dim: 8}
train: {lr: 0.05, negatives: 4, batch: 64, threads: 1, loss: logistic}
eval: {protocol: standard}
variants:
  single:
  each: {method: single, keep: each}
  fedlu: {warm_up: 4, keep: each}
YAML
run -q experiment "$work/k.yaml" -o "$work/k"
ok 'each agent keeps its own best' python3 - "$work/k/runs" <<'PY'
import json, sys
s, e = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("single", "each"))
rounds = [a["best_round"] for a in e["agents"]]
weight = [a["test"]["queries"] for a in e["agents"]] # 8:1:1: as many as of valid
kept = sum(a["best_valid_mrr"] * w for a, w in zip(e["agents"], weight)) / sum(weight)
sys.exit(not (len(set(rounds)) > 1 and e["curve"] == s["curve"] and "kept_valid_mrr" not in s and
	      all(a["best_round"] == s["best_round"] for a in s["agents"]) and
	      all(a["best_valid_mrr"] >= b["best_valid_mrr"] and
		  (a["test"] == b["test"]) == (a["best_round"] == b["best_round"])
		  for a, b in zip(e["agents"], s["agents"])) and
	      abs(kept - e["kept_valid_mrr"]) < 0.002 and
	      e["kept_valid_mrr"] > e["best_valid_mrr"]))
PY
run -q experiment "$work/k.yaml" -o "$work/k2" --until 40
run -q experiment "$work/k.yaml" -o "$work/k2"
for v in each fedlu; do
	ok "$v: as if uninterrupted" same "$work/k/runs/$v-seed1.json" "$work/k2/runs/$v-seed1.json"
done
ok 'the report says so' python3 - "$work/k" <<'PY'
import json, re, sys
at = [a["best_round"] for a in json.load(open(sys.argv[1] + "/runs/each-seed1.json"))["agents"]]
[line] = re.findall(r"^\| each .* to .*$", open(sys.argv[1] + "/report.md").read(), re.M)
sys.exit(not (min(at) < max(at) and f" {min(at)} to {max(at)} |" in line))
PY
ok 'and what it means' grep -q 'every agent keeps its own best one' "$work/k/report.md"
sed 's/keep: each}/keep: both}/' "$work/k.yaml" >"$work/kk.yaml"
ok 'or all together' says 2 "kk.yaml:7: keep: 'both' is not one of together, each" experiment "$work/kk.yaml"

# together: all keep the tables of the look that is best by the mean, as a run leaves them that ends there
cat >"$work/b.yaml" <<'YAML'
experiment: {name: best, data: data, seeds: [1], rounds: 12, epochs: 2, eval_every: 2, patience: 0}
model: {kind: transe, dim: 8}
train: {lr: 0.3, negatives: 4, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  single:
  slow: {method: single, train.lr: 0.1}
  fede:
YAML
run -q experiment "$work/b.yaml" -o "$work/b"
early=0
for v in single slow fede; do
	best=$(member "$work/b/runs/$v-seed1.json" best_round)
	[ "$best" -eq 12 ] || early=$((early + 1))
	sed "s/rounds: 12/rounds: $best/" "$work/b.yaml" >"$work/bb.yaml"
	run -q experiment "$work/bb.yaml" -o "$work/bb" --only "$v"
	ok "$v: the tables kept are of the best validation" python3 - "$work/b/runs/$v-seed1.json" \
		"$work/bb/runs/$v-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit([x["tables"] for x in a["agents"]] != [x["tables"] for x in b["agents"]] or a["test"] != b["test"])
PY
done
ok 'which is not always the last one' [ "$early" -gt 0 ]

# looks at valid know nothing of test
cp -r "$work/data" "$work/untested"
for a in 0 1 2; do sed -i '1~4!d' "$work/untested/$a/test.tsv"; done
sed 's/data: data/data: untested/' "$work/b.yaml" >"$work/bt.yaml"
run -q experiment "$work/bt.yaml" -o "$work/bt" --only fede
ok 'with other test triples, the same looks' python3 - "$work/b/runs/fede-seed1.json" \
	"$work/bt/runs/fede-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit(a["curve"] != b["curve"] or a["test"] == b["test"])
PY

# which table has figures: FedE's after aggregation, FedEP's before it, as each alone has trained it
cat >"$work/s.yaml" <<'YAML'
experiment: {name: scored, data: data, seeds: [1], rounds: 1, epochs: 2, equal_start: false}
model: {kind: transe, dim: 8}
train: {lr: 0.05, negatives: 4, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  single:
  fedep:
  fede:
  kept: {method: fede, weight: none}
YAML
run -q experiment "$work/s.yaml" -o "$work/s"
ok 'own tables of one method, shared ones of another' python3 - "$work/s/runs" <<'PY'
import json, sys
single, fedep, fede = ([a["tables"] for a in json.load(open(f"{sys.argv[1]}/{v}-seed1.json"))["agents"]]
		       for v in ("single", "fedep", "fede"))
sys.exit(fedep != single or any(a == b for a, b in zip(fede, single)))
PY
ok 'and the record says which' python3 - "$work/s/runs" <<'PY'
import json, sys
table = {v: json.load(open(f"{sys.argv[1]}/{v}-seed1.json"))["protocol"]["table"] for v in ("single", "fedep", "fede", "kept")}
sys.exit(table != {"single": "local", "fedep": "local", "fede": "aggregated", "kept": "local"})
PY
ok 'as the report does' grep -q '^| \*\*fede\*\* (aggregated) *| *0' "$work/s/report.md"
ok 'of that one alone' test "$(grep -c '^| .*(aggregated)' "$work/s/report.md")" -eq 1

# ---- another number of rounds ----
run -q experiment "$work/x.yaml" -o "$work/more" --only fede --only collective --seed 1 --rounds 2
ok 'fewer rounds' python3 - "$work/more/runs/fede-seed1.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit([c["round"] for c in r["curve"]] != [2] or r["settings"]["rounds"] != 2)
PY
ok 'more go on from there' says 0 'fede, seed 1: goes on after round 2' experiment "$work/x.yaml" -o "$work/more" \
	--only fede --only collective --seed 1 --rounds 6
run -q experiment "$work/x.yaml" -o "$work/direct" --only fede --only collective --seed 1 --rounds 6
for v in fede collective; do
	ok "$v: as if there had been so many from the start" same "$work/direct/runs/$v-seed1.json" "$work/more/runs/$v-seed1.json"
done
# What a last round decides about a copy, since no other comes, a longer run would not have: it begins anew.
sed '/^variants:/,$d; s/patience: 0/patience: 2/' "$work/weighed.yaml" >"$work/last.yaml"
cat >>"$work/last.yaml" <<'YAML'
variants:
  each: {method: fede, weight: valid, weight_from: 60}
  together: {method: fede, weight: valid, weight_from: 60, keep: together}
  forced: {method: fede, weight: valid, weight_from: 4}
  chosen: {method: fede, weight: valid, weight_from: 1}
  all: {method: fede}
YAML
run -q experiment "$work/last.yaml" -o "$work/last" --rounds 12
run -q experiment "$work/last.yaml" -o "$work/longer" --rounds 4
run experiment "$work/last.yaml" -o "$work/longer" --rounds 12
for v in each together forced chosen all; do
	ok "$v: as if there had been so many from the start" same "$work/last/runs/$v-seed1.json" "$work/longer/runs/$v-seed1.json"
done
begins_anew() { grep -q "^$1: begins anew: .*$1-seed1.state: its last round has decided about a copy" "$err"; }
for v in each together forced; do
	ok "$v: and says that it begins anew" begins_anew $v
done
for v in chosen all; do
	ok "$v: goes on" grep -q "^$v, seed 1: goes on after round 4" "$err"
done
run -q experiment "$work/last.yaml" -o "$work/last6" --only each --rounds 6
run -q experiment "$work/last.yaml" -o "$work/fewer" --only each --rounds 12 --until 6
run -q experiment "$work/last.yaml" -o "$work/fewer" --only each --rounds 6
ok 'an end at fewer rounds decides, too' same "$work/last6/runs/each-seed1.json" "$work/fewer/runs/each-seed1.json"
ok 'the file decides without it' says 0 'begins anew' experiment "$work/x.yaml" -o "$work/more" --only fede --seed 1
ok 'and then nothing is kept' test ! -e "$work/more/runs/fede-seed1.state"

# ---- names ----
mkdir "$work/names"
for a in 0 1 2; do
	cut -f 1 "$work/data/$a/train.tsv" | sort -u | head -20 | sed 's/.*/&\tshared-&/' >"$work/names/$a.tsv"
done
printf 'nothing\tshared-nothing\n' >>"$work/names/1.tsv"
cut -f 1 "$work/data/2/train.tsv" | sort -u | sed -n '40p;41p' | paste - - >>"$work/names/2.tsv"
sed 's/data: data/data: data, names: names/' "$work/x.yaml" >"$work/named.yaml"
ok 'names that are lost are told' says 0 '1: 1 of 21 lines of names are of nothing in its graph' \
	experiment "$work/named.yaml" -o "$work/named" --only fede --seed 1
ok 'of two things with one name, too' grep -q "2: 1 shared names are also another entity's own" "$err"
ok 'and in the report' grep -Eq '^\| +1 +\| +20 \| +[0-9]+ \| +1 \| +0 \|' "$work/named/report.md"
sed -n 1p "$work/data/0/train.tsv" | awk '{print $1 "\tx"; print $3 "\tx"}' >"$work/names/0.tsv"
ok 'all conflicts are told' says 4 "names/0.tsv: 1 in conflict" experiment "$work/named.yaml" -o "$work/named2" --only fede --seed 1

# ---- forgetting ----
cat >"$work/u.yaml" <<'YAML'
experiment: {name: forgetful, data: data, seeds: [1], rounds: 20, epochs: 2, eval_every: 10, patience: 0,
  forget: 0.05, published: forgotten.csv, dataset: D3}
model: {kind: transe, dim: 16}
train: {lr: 0.02, negatives: 8, batch: 64, threads: 1, loss: logistic}
eval: {protocol: fedlu}
variants:
  raw: {method: fedlu, warm_up: 5}
  kept: {method: fedlu, warm_up: 5, retained: true}
  alone: {method: single, retained: true, rounds: 10}
  unlearned: {unlearn: raw}
  by_hard: {unlearn: raw, confusion: hard}
  by_soft: {unlearn: raw, confusion: soft}
YAML
cat >"$work/forgotten.csv" <<'CSV'
paper,table,dataset,clients,kge_model,method,metric,value,unit,setting_note
P,2,D3,3,TransE,unlearned global,Hits@1 forgetting set,15.02,percent,x
P,2,D3,3,TransE,re-trained local,MRR test set,31.25,percent,x
CSV
ok 'unlearning' exits 0 -q experiment "$work/u.yaml" -o "$work/u"
ok 'is measured' python3 - "$work/u/runs" <<'PY'
import json, sys
r = {v: json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("raw", "kept", "alone", "unlearned")}
n = {v: [a["forgotten"]["queries"] for a in x["agents"]] for v, x in r.items()}
share = [2 * round(0.05 * a["train_triples"]) for a in r["raw"]["agents"]]
lost = all(r["unlearned"][k]["mrr"] < 0.5 * r["raw"][k]["mrr"] for k in ("forgotten", "forgotten_shared"))
e = r["unlearned"]["exchanged"]
# it begins with the tables that valid liked best; its filter lacks what is forgotten
began = sum(a["unlearning"]["valid_before"] for a in r["unlearned"]["agents"]) / 3
lost = lost and abs(began / r["raw"]["best_valid_mrr"] - 1) < 0.1
sys.exit(not (lost and all(x == share for x in n.values()) and
	      r["kept"]["forgotten"]["mrr"] < r["raw"]["forgotten"]["mrr"] and
	      e["forgotten"] == r["unlearned"]["forgotten"] and # the local table does not travel
	      e["forgotten_shared"] != r["unlearned"]["forgotten_shared"] and
	      r["unlearned"]["raw_exchanged"]["forgotten"] == r["raw"]["forgotten"] and
	      r["unlearned"]["bytes"] > 0 and "forgotten_shared" not in r["alone"] and
	      all(a["unlearning"]["decay_epochs"] > 0 for a in r["unlearned"]["agents"])))
PY
ok 'each confusion alone does something else' python3 - "$work/u/runs" <<'PY'
import json, sys
r = {v: json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("raw", "unlearned", "by_hard", "by_soft")}
sys.exit(not (len({x["forgotten"]["mrr"] for x in r.values()}) == 4 and
	      r["by_soft"]["settings"]["confusion"] == "soft" and "confusion" not in r["unlearned"]["settings"] and
	      all(r[v]["forgotten"]["mrr"] < r["raw"]["forgotten"]["mrr"] for v in ("by_hard", "by_soft"))))
PY
# where the table that travels is the agent's own, the exchange that is only to compare with is undone
cat >"$work/rows.yaml" <<'YAML'
experiment: {name: rows, data: data, seeds: [1], rounds: 10, epochs: 2, eval_every: 10, forget: 0.001}
model: {kind: transe, dim: 16}
train: {lr: 0.02, negatives: 8, batch: 64, threads: 1, loss: logistic}
eval: {protocol: fedlu}
variants:
  rows: {method: fedep}
  less: {unlearn: rows}
  feds: {s: 3}
  less_feds: {unlearn: feds}
YAML
run -q experiment "$work/rows.yaml" -o "$work/rows"
ok 'it begins with what was best' python3 - "$work/rows/runs" <<'PY'
import json, sys
rows, less = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("rows", "less"))
near = all(abs(b["unlearning"]["valid_before"] / a["best_valid_mrr"] - 1) < 0.02
	   for a, b in zip(rows["agents"], less["agents"]))
sys.exit(not near or less["raw_exchanged"]["test"] == rows["test"])
PY
ok 'both exchanges are the first of their federation, in FedS one of all rows' python3 - "$work/rows/runs" <<'PY'
import json, sys
rows, feds = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("less", "less_feds"))
a, b = (feds[k]["test"]["mrr"] for k in ("exchanged", "raw_exchanged"))
sys.exit(not (feds["params"] == rows["params"] > 0 and abs(a / b - 1) < 0.02))
PY
ok 'and how much was' grep -q "^5 % of each agent's train, drawn by the seed\." "$work/u/report.md"
ok 'with the published figures' grep -q '^| \*unlearned global, published\* *| *\*0.1502\* | *- | *- | *- |' "$work/u/report.md"
ok 'of each kind' grep -q '^| \*re-trained local, published\* *| *- | *- | *- | *\*0.3125\* |' "$work/u/report.md"
ok 'after the exchange too' grep -q '^| \*\*unlearned\*\* (global, exchanged) ' "$work/u/report.md"
ok 'and as CSV' grep -q '^forgetful,unlearned,1,0,MRR forgotten global exchanged,0' "$work/u/results.csv"
ok 'tables that are unlearned stay' test -s "$work/u/runs/raw-seed1.state"
ok 'only those' test "$(ls "$work/u/runs" | grep -c state)" -eq 1
rm "$work/u/runs/unlearned-seed1.json" "$work/u/runs/raw-seed1.state"
ok 'without them' says 1 'raw has no run with this seed that is over' experiment "$work/u.yaml" -o "$work/u" --only unlearned
ok 'they are made again' exits 0 -q experiment "$work/u.yaml" -o "$work/u"
ok 'and what needs them' test -s "$work/u/runs/unlearned-seed1.json"
sed 's/method: fedlu, warm_up: 5}/method: fedkd, dim: 8}/' "$work/u.yaml" >"$work/kd.yaml"
ok 'not where another width travels' says 2 'has relations of its own' experiment "$work/kd.yaml" -o "$work/kd" --only raw --only unlearned
sed 's/  forget: 0.05, /  /' "$work/u.yaml" >"$work/noshare.yaml"
ok 'a share is needed' says 2 'noshare.yaml:8: kept: experiment.forget says' experiment "$work/noshare.yaml" -o "$work/kd"
sed 's/forget: 0.05/forget: 5/' "$work/u.yaml" >"$work/much.yaml"
ok 'below a half' says 2 "forget: '5' is not above 0" experiment "$work/much.yaml" -o "$work/kd"

# ---- teaching that waits ----
cat >"$work/t.yaml" <<'YAML'
experiment: {name: teaching, data: data, seeds: [1], rounds: 40, epochs: 1, eval_every: 2, patience: 0}
model: {kind: transe, dim: 8}
train: {lr: 0.05, negatives: 4, batch: 64, threads: 1, loss: logistic}
eval: {protocol: standard}
variants:
  never: {method: fedlu, warm_up: 100}
  four: {method: fedlu, warm_up: 4}
  avatar: {method: fedlu, warm_up: 4, mu_distill: 0}
  soon: {method: fedlu, warm_up: 2, stall: 0.5}
  late: {method: fedlu, warm_up: 100, stall: 0.001, keep_moments: 1}
  tired: {method: fedlu, warm_up: 2, stall: 0.001, rounds: 200, patience: 2}
YAML
run -q experiment "$work/t.yaml" -o "$work/t"
ok 'it begins at stalls, one table at a time' python3 - "$work/t/runs" <<'PY'
import json, sys
r = {v: json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("never", "four", "avatar", "soon", "late", "tired")}
def rule(curve, warm_up, stall): # the validations from which on each is taught; looks in which neither gained
    best, shared, local, avatar, worse = -1, -1, 0, 0, []
    for c in curve:
        a, b = c["valid_mrr"] - best, c["valid_shared_mrr"] - shared
        if not avatar and (a <= 0 or (c["round"] >= warm_up and min(a, b) <= stall)):
            avatar = c["round"]
        if not local and b <= 0:
            local = c["round"]
        worse.append(a <= 0 and b <= 0 if a <= 0 else None)
        best, shared = max(best, c["valid_mrr"]), max(shared, c["valid_shared_mrr"])
    return {"local": local, "avatar": avatar}, worse
def is_rule(v, warm_up, stall):
    return r[v]["teaching"] == rule(r[v]["curve"], warm_up, stall)[0]
mrr = {v: [c["valid_mrr"] for c in x["curve"]] for v, x in r.items()}
count = stop = 0 # looks in which neither gained since the local tables last did
for w in rule(r["tired"]["curve"], 2, 0.001)[1]:
    count = 0 if w is None else count + w
    stop += count >= 2
local = r["soon"]["teaching"]["local"]
sys.exit(not (is_rule("soon", 2, 0.5) and is_rule("late", 100, 0.001) and is_rule("tired", 2, 0.001) and
	      r["soon"]["teaching"]["avatar"] == 4 < local and 0 < r["late"]["teaching"]["local"] and
	      mrr["four"] != mrr["never"] == mrr["avatar"] and "teaching" not in r["four"] and
	      mrr["soon"][:local // 2] == mrr["never"][:local // 2] != mrr["soon"][local // 2:] and
	      mrr["soon"] != mrr["never"] and stop == 1 and r["tired"]["rounds"] < 200))
PY
for v in soon late; do
	run -q experiment "$work/t.yaml" -o "$work/t2" --only $v --until 6
	run -q experiment "$work/t.yaml" -o "$work/t2" --only $v --until 20
	run -q experiment "$work/t.yaml" -o "$work/t2" --only $v
	ok "$v: and goes on" same "$work/t/runs/$v-seed1.json" "$work/t2/runs/$v-seed1.json"
done
# one look before its patience is at an end
run -q experiment "$work/t.yaml" -o "$work/t2" --only tired --until $(($(member "$work/t/runs/tired-seed1.json" rounds) - 2))
ok 'tired: stopped before' [ ! -e "$work/t2/runs/tired-seed1.json" ]
run -q experiment "$work/t.yaml" -o "$work/t2" --only tired
ok 'tired: has no new patience' same "$work/t/runs/tired-seed1.json" "$work/t2/runs/tired-seed1.json"
sed 's/{method: fedlu, warm_up: 4}/{method: fede, stall: 0.1}/' "$work/t.yaml" >"$work/tt.yaml"
ok 'where there is teaching' says 2 'tt.yaml:7: stall: method fede has no constant warm_up' experiment "$work/tt.yaml"

# ---- tables ----
ok 'the report' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --show
ok 'has the published figure' grep -q '^| \*FedE, published\* *| *\*0.3250\* |' "$work/x/report.md"
ok 'of this model and data set only' test "$(grep -c 0.9900 "$work/x/report.md")" -eq 0
ok 'marks the run of y.yaml' grep -q '^| \*\*hosted\*\* .*, 1 of other settings |' "$work/x/report.md"
ok 'and nothing else' test "$(grep -c 'other settings' "$work/x/report.md")" -eq 1
sed 's/lr: 0.01/lr: 0.02/' "$work/x.yaml" >"$work/z.yaml"
ok 'runs of other settings' says 0 'other settings than those of now; without --show' experiment "$work/z.yaml" -o "$work/x" --show
ok 'are marked' grep -q '^| \*\*fede\*\* .* of other settings |' "$work/x/report.md"
ok 'what leaves the others as they are' says 0 'hosted: 1 of its runs were made with other settings than those of now; without --only and --seed they' \
	experiment "$work/x.yaml" -o "$work/x" --only fede --seed 1
run -q experiment "$work/x.yaml" -o "$work/bare" --show
ok 'says what was not run' grep -q '| not run |' "$work/bare/report.md"
ok 'has the floor' grep -q 'frequency floor' "$work/x/report.md"
ok 'and CSV' grep -q '^small,fede,1,mean,MRR,0\.' "$work/x/results.csv"
ok 'what it took, too' grep -q "^small,fede,1,all,bytes,$(member "$work/x/runs/fede-seed1.json" bytes),simulated$" "$work/x/results.csv"
ok 'and each agent' [ "$(grep -c '^small,fede,1,.*,bytes,[1-9]' "$work/x/results.csv")" -ge 3 ]

# ---- figures of the tables, of records that are drawn ----
cat >"$work/drawn.py" <<'PY'
# write | check FOLDER: other figures into its records; are those of its report the ones that come of them?
import glob, json, random, re, statistics, sys
how, folder = sys.argv[1:]
QUALITY = ["mrr", "hits1", "hits3", "hits5", "hits10"]
def draw(r):
    for test in [r["test"]] + [a["test"] for a in r["agents"]] + ([r["test_shared"]] if "test_shared" in r else []):
        test.update({k: random.random() for k in QUALITY})
    r.update(rounds=random.randrange(2, 90), best_round=random.randrange(1, 90), cpu_seconds=random.uniform(20, 900))
    for a in r["agents"]:
        a["best_round"] = random.randrange(1, 90)
    if r["params"] == 0:
        return
    r["params"], r["bytes"] = random.randrange(10**7, 10**8), random.randrange(10**8, 10**9)
    r["most_bytes_through_one"] = int(r["bytes"] * random.uniform(0.2, 0.9))
    r["best_valid_mrr"] = best = {1: 0.4, 2: 0.3}[r["seed"]]
    points = sorted(random.sample(range(1000, r["params"]), 3))
    r["curve"] = [dict(r["curve"][0], valid_mrr=v, params=p) for v, p in zip([0.9 * best, 0.985 * best, best], points)]
def table(text, head):
    lines = text[text.index("\n| method", text.index(head)) + 1:].split("\n\n")[0].splitlines()
    return {re.sub("[*]", "", row[0]): row[1:] for row in ([c.strip() for c in l.split("|")[1:-1]] for l in lines[2:])}
if how == "write":
    random.seed(6)
    for path in sorted(glob.glob(folder + "/runs/*.json")):
        r = json.load(open(path))
        draw(r)
        json.dump(r, open(path, "w"))
    sys.exit()
of = {}
for path in glob.glob(folder + "/runs/*.json"):
    r = json.load(open(path))
    of.setdefault(r["variant"], {})[r["seed"]] = r
report = open(folder + "/report.md").read()
mean = lambda v, f: statistics.mean(f(r) for r in of[v].values())
spread = lambda v, f, d: f"{mean(v, f):.{d}f} \u00b1 {statistics.stdev(f(r) for r in of[v].values()):.{d}f}"
quality, agents, costs = (table(report, head) for head in ("# small", "## Test MRR of each agent", "## What it took"))
ratio = lambda v, f: statistics.mean(f(of[v][s]) / f(of["fede"][s]) for s in of[v])
for v in of:
    aggregated = "" if v in ("single", "collective", "fedlu") else " (aggregated)"
    assert quality[v + aggregated] == [spread(v, lambda r: r["test"][k], 4) for k in QUALITY] + ["2"], v
    assert agents[v] == [f'{mean(v, lambda r: r["agents"][i]["test"]["mrr"]):.4f}' for i in range(3)], v
    rounds, best, valid, million, mb, most, cpu, whole, to98, to99 = costs[v]
    assert [rounds, best] == [spread(v, lambda r: r[k], 0) for k in ("rounds", "best_round")], v
    assert valid == spread(v, lambda r: r["best_valid_mrr"], 4) and cpu == f'{mean(v, lambda r: r["cpu_seconds"]):.0f}', v
    assert [million, mb] == [f"{mean(v, lambda r: r[k]) / 1e6:.1f}" for k in ("params", "bytes")], v
    if v in ("single", "collective"):
        assert [most, whole, to98, to99] == ["-"] * 4, v
        continue
    share = mean(v, lambda r: r["most_bytes_through_one"]) / mean(v, lambda r: r["bytes"])
    assert most == f"{100 * share:.0f} %", v
    assert whole == f'{ratio(v, lambda r: r["params"]):.4f}', v
    assert [to98, to99] == [f'{ratio(v, lambda r: r["curve"][k]["params"]):.4f}' for k in (1, 2)], v
assert quality["fedlu (global)"] == [spread("fedlu", lambda r: r["test_shared"][k], 4) for k in QUALITY] + ["2"]
PY
ok 'runs of two seeds' exits 0 -q experiment "$work/x.yaml" -o "$work/drawn"
ok 'with other figures' python3 "$work/drawn.py" write "$work/drawn"
ok 'are shown' exits 0 -q experiment "$work/x.yaml" -o "$work/drawn" --show
ok 'each figure is what comes of them' python3 "$work/drawn.py" check "$work/drawn"

# ---- arms that are not trained alike ----
cat >"$work/unlike.yaml" <<'YAML'
experiment: {name: unlike, data: data, seeds: [1], rounds: 2, epochs: 1, eval_every: 2, patience: 0}
model: {kind: transe, dim: 8}
train: {lr: 0.05, negatives: 4, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  single: {train.lr: 0.00001}
  fede: {slow: {"1": 10}}
  fede_max: {method: fede, model.dim: 16}
  pairs: {federation.epochs_per_round: 9, own: {"2": {train.lr: 0.5}}}
  alone: {method: single, train.lr: 0.00001}
YAML
run -q experiment "$work/unlike.yaml" -o "$work/unlike" --show
of() { # VARIANT TEXT: the settings of the variant have the text
	sed -n '/^## Settings/,$p' "$work/unlike/report.md" | grep -F "* **$1**:" | grep -qF " $2;"
}
no_more() { # VARIANT: nothing after its method
	sed -n '/^## Settings/,$p' "$work/unlike/report.md" | grep -F "* **$1**:" | grep -q 'method "[a-z]*";$'
}
ok 'settings that are not those of the first' of fede 'train.lr 0.05'
ok 'how fast an agent is' of fede 'slow {"1": 10.0}'
ok 'width' of fede_max 'model.dim 16'
ok 'what pairs have besides' of pairs 'federation.epochs_per_round 9'
ok 'and an agent of its own' of pairs 'own {"2": {"train.lr": "0.5"}}'
ok 'not what is equal' no_more alone
sed 's/method: fede, model.dim: 16/method: fede, eval.protocol: tail/' "$work/unlike.yaml" >"$work/ranked.yaml"
ok 'all variants are ranked alike' says 2 'ranked.yaml:8: fede_max: eval: not as single has it' experiment "$work/ranked.yaml" -o "$work/unlike" --show

# ---- one report, one data set ----
cp -r "$work/data" "$work/replaced"
sed 's/data: data/data: replaced/; s/seeds: .1, 2./seeds: [1, 2, 3]/; s/rounds: 4/rounds: 2/' "$work/x.yaml" >"$work/r.yaml"
run -q experiment "$work/r.yaml" -o "$work/r" --only fede --only single
run -q experiment "$work/r.yaml" -o "$work/r" --only collective --seed 2 --rounds 4 --until 1
cp "$work/replaced/0/train.tsv" "$work/train.tsv"
sed -i '$d' "$work/replaced/0/train.tsv"
run -q experiment "$work/r.yaml" -o "$work/r" --only fede --seed 1
counted() { # VARIANT:SEED... are in the figures for programs and in the CSV, and no others
	python3 - "$out" "$work/r/results.csv" "$@" <<'PY'
import csv, json, sys
want = set(sys.argv[3:])
j = {f"{r['variant']}:{r['seed']}" for r in json.load(open(sys.argv[1]))["runs"]}
c = {f"{r['variant']}:{r['seed']}" for r in csv.DictReader(open(sys.argv[2]))}
sys.exit(not (j == c == want))
PY
}
ok 'runs of other data' says 0 'fede: 2 of its runs are of other data' experiment "$work/r.yaml" -o "$work/r" --show
ok 'are left out' grep -q '^| \*\*fede\*\* .*| *1, 2 of other data left out |' "$work/r/report.md"
ok 'though they are all' grep -q '^| \*\*single\*\* .*| *none, 3 of other data left out |' "$work/r/report.md"
ok 'the mean is of the others' grep -q "^| \*\*fede\*\* (aggregated) *| *$(printf %.4f "$(member "$work/r/runs/fede-seed1.json" test mrr)") |" "$work/r/report.md"
run experiment "$work/r.yaml" -o "$work/r" --show --json
ok 'everywhere' counted fede:1
run -q experiment "$work/r.yaml" -o "$work/r" --show --rounds 4
ok 'a run of other data is not under way' grep -q '^| \*\*collective\*\* .*| *not run |' "$work/r/report.md"
mv "$work/replaced" "$work/gone"
ok 'without the data' says 0 'fede: 1 of its runs are of other data' experiment "$work/r.yaml" -o "$work/r" --show
ok 'it is what most runs are of' grep -q '^| \*\*single\*\* .*| *3 |' "$work/r/report.md"
ok 'without the others' grep -q '^| \*\*fede\*\* .*| *2, 1 of other data left out |' "$work/r/report.md"
ok 'which the report says' grep -q 'is not there' "$work/r/report.md"
run experiment "$work/r.yaml" -o "$work/r" --show --json
ok 'that everywhere' counted fede:2 fede:3 single:1 single:2 single:3
mv "$work/gone" "$work/replaced"
mv "$work/train.tsv" "$work/replaced/0/train.tsv"
ok 'with the first data again' exits 0 -q experiment "$work/r.yaml" -o "$work/r" --show --rounds 4
ok 'it is under way again' grep -q '^| \*\*collective\*\* .*| *under way, round 2 |' "$work/r/report.md"

# ---- names that CSV and Markdown have to be told of ----
mkdir "$work/named"
cp -r "$work/data/0" "$work/named/a, \"b\""
cp -r "$work/data/1" "$work/named/c|d\\"
sed 's/name: small/name: '"'"'one, "two" | three'"'"'/; s/data: data/data: named/; s/rounds: [24]/rounds: 1/; s/eval_every: 2/eval_every: 1/' "$work/x.yaml" >"$work/named.yaml"
ok 'agents with a comma, quotes and a bar' exits 0 -q experiment "$work/named.yaml" -o "$work/names" --seed 1 --only fede
ok 'are fields of CSV' python3 - "$work/names/results.csv" <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
float_of = [float(r["value"]) for r in rows]
sys.exit(not ({r["experiment"] for r in rows} == {'one, "two" | three'} and
	      {r["agent"] for r in rows} == {"mean", "all", 'a, "b"', "c|d\\"} and
	      {r["agents"] for r in rows} == {"simulated"}))
PY
ok 'and cells of a table' grep -Eq '^[|] method +[|] +a, "b" +[|] +c\\[|]d\\\\ +[|]$' "$work/names/report.md"

# ---- agents in any form that import reads ----
cp -r "$work/data" "$work/forms"
rm -r "$work/forms/2"
cp -r "$work/forms/0" "$work/forms/plain"
mv "$work/forms/plain/train.tsv" "$work/forms/plain/train.txt"
mv "$work/forms/plain/test.tsv" "$work/forms/plain/test.csv"
for a in 0 1; do zstd -q --rm "$work/forms/$a/train.tsv"; done
cp -r "$work/forms/1" "$work/forms/ids"
cp -r "$work/forms/1" "$work/forms/json"
rm "$work/forms/json/train.tsv.zst"
"$fkge" -q -d "$work/ids" init --listen off >/dev/null
"$fkge" -q -d "$work/ids" import "$work/data/1" >/dev/null
rm -r "$work/forms/ids"
ok 'a folder of OpenKE' exits 0 -q -d "$work/ids" export --triples --format openke "$work/forms/ids"
echo '{}' >"$work/forms/json/train.json"
mkdir "$work/forms/empty" "$work/forms/.hidden" "$work/forms/names"
for pair in 0:0 1:1 plain:0 ids:1; do
	cut -f 1 "$work/data/${pair#*:}/train.tsv" | sort -u | sed 's/.*/&\tshared-&/' >"$work/forms/names/${pair%:*}.tsv"
done
sed 's|data: data|data: forms, names: forms/names|; s/rounds: [24]/rounds: 1/; s/eval_every: 2/eval_every: 1/' "$work/x.yaml" >"$work/forms.yaml"
ok 'other forms of train' exits 0 experiment "$work/forms.yaml" -o "$work/f" --seed 1 --only fede
ok 'are agents' [ "$(cut -d, -f4 "$work/f/results.csv" | sort -u | tr '\n' ' ')" = '0 1 agent all ids mean plain ' ]
ok 'a folder without train is named' grep -q 'Not an agent: .*/forms/empty: no train.tsv' "$err"
ok 'and one of a form that is not read' grep -q 'Not an agent: .*/forms/json/train.json: JSON-LD is not read' "$err"
ok 'and a split that is not' grep -q 'Warning: .*/forms/plain/test.csv is not read: test may be .tsv' "$err"
ok 'and nothing else, names neither' [ "$(grep -c 'Not an agent\|is not read: ' "$err")" -eq 3 ]
digest=$(member "$work/f/runs/fede-seed1.json" data_digest)
sed -i '2d; 1s/.*/'"$(($(sed -n 1p "$work/forms/ids/train2id.txt") - 1))"'/' "$work/forms/ids/train2id.txt"
run -q experiment "$work/forms.yaml" -o "$work/f" --seed 1 --only fede
ok 'files of OpenKE are of the data' [ "$digest" != "$(member "$work/f/runs/fede-seed1.json" data_digest)" ]
rm -r "$work/forms/plain" "$work/forms/ids" "$work/forms/1"
ok 'one agent is none' says 4 '1 folders whose train can be read' experiment "$work/forms.yaml" -o "$work/f"
ok '... and which folders are not' grep -q 'Not an agent: .*/forms/empty' "$err"

# ---- a picture of one look ----
sed 's/rounds: [24]/rounds: 1/; s/eval_every: [0-9]*/eval_every: 1/' "$work/x.yaml" >"$work/one.yaml"
run -q experiment "$work/one.yaml" -o "$work/one" --seed 1 --only fede
quiet() { [ "$status" -eq 0 ] && [ ! -s "$err" ]; }
ok 'nothing is wrong with it' quiet
ok 'it is one look' [ "$(member "$work/one/runs/fede-seed1.json" curve 0 round)" = 1 ]

# ---- what is wrong is said with its line ----
ok 'no such method' wrong "wrong.yaml:8: no method is called 'fedx'" 'collective:' 'fedx:'
ok 'no such constant' wrong "wrong.yaml:10: method fede has no constant" 'rounds: 2' 'mu: 2'
ok 'no such setting' wrong "wrong.yaml:3: " 'dim: 8' 'dum: 8'
ok 'no such topology' wrong "wrong.yaml:10: topology: 'moon' is not one of" hosted, moon,
ok 'more holders than agents' wrong 'min_holders is 9, and ' 'topology: hosted' 'topology: hosted, min_holders: 9'
sed 's/threads: 1/update: racing, shared_chunk: 0/; s/reference: fede, //; /fedlu/s/.*/  fedprox:/; /single\|collective\|hosted\|masked/d; s/^  fede:.*//' "$work/x.yaml" >"$work/racing.yaml"
sed 's/paper.csv/none.csv/' "$work/x.yaml" >"$work/nopaper.yaml"
sed 's/data: data/data: nowhere/' "$work/x.yaml" >"$work/nodata.yaml"
ok 'no data' says 4 'no such folder' experiment -o "$work/none" "$work/nodata.yaml"
ok 'twice' wrong 'single is given twice' 'collective:' 'single:'
ok 'no such reference' wrong "reference: no variant is called 'fedx'" 'reference: fede' 'reference: fedx'
sed 's/published: FedE}/published: FedX}/' "$work/x.yaml" >"$work/misspelt.yaml"
ok 'no figures of that name' says 0 "has no figures of 'FedX' (variant fede) for dataset D3" experiment "$work/misspelt.yaml" -o "$work/x" --show
ok 'no such published figures' says 4 'none.csv: no such file (experiment.published)' experiment "$work/nopaper.yaml" -o "$work/no"
ok 'before anything is run' test ! -e "$work/no"
ok 'which variant cannot be' says 2 'variant fedprox, seed 1: ' experiment "$work/racing.yaml" -o "$work/none"
ok 'a seed twice' wrong 'wrong.yaml:1: seeds: 1 is there twice' 'seeds: .1, 2.' 'seeds: [1, 1]'
ok 'why training cannot be' says 2 'not with a federated method' experiment "$work/racing.yaml" -o "$work/none"
ok 'not a number' wrong "wrong.yaml:1: rounds: 'x' is not allowed here" 'rounds: 4' 'rounds: x'
ok 'no such variant' says 2 'no such variant' experiment "$work/x.yaml" --only fedx
run experiment "$work/x.yaml" -o "$work/x" --show --json
ok 'figures for programs' python3 - "$out" "$work/x/runs/fede-seed1.json" <<'PY'
import json, sys
j, r = (json.load(open(f)) for f in sys.argv[1:3])
fede = [x for x in j["runs"] if (x["variant"], x["seed"]) == ("fede", 1)]
sys.exit(not (len(fede) == 1 and fede[0]["test"] == r["test"] and
	      not any((x["variant"], x["seed"]) == ("single", 2) for x in j["runs"])))
PY
ok 'the methods' exits 0 experiment --methods
ok 'are listed' grep -q '^fede ' "$out"
finish
