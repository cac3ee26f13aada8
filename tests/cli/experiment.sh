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
ok 'the best look is kept' check fede-seed1.json \
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
ok 'the protocol is on record' check single-seed1.json 'r["protocol"]["name"] == "standard"'

# ---- taken up again ----
cp "$work/x/runs/fede-seed1.json" "$work/first.json"
ok 'again' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --only fede
ok 'what is finished is not run again' cmp -s "$work/first.json" "$work/x/runs/fede-seed1.json"
ok 'what is missing is' test -s "$work/x/runs/fede-seed2.json"
ok 'and nothing else' test ! -e "$work/x/runs/single-seed2.json"
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

# ---- tables ----
ok 'the report' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --show
ok 'has the published figure' grep -q '^| \*FedE, published\* *| *\*0.3250\* |' "$work/x/report.md"
ok 'of this model and data set only' test "$(grep -c 0.9900 "$work/x/report.md")" -eq 0
ok 'marks the run of y.yaml' grep -q '^| \*\*hosted\*\* .*, 1 of other settings |' "$work/x/report.md"
ok 'and nothing else' test "$(grep -c 'other settings' "$work/x/report.md")" -eq 1
sed 's/lr: 0.01/lr: 0.02/' "$work/x.yaml" >"$work/z.yaml"
ok 'runs of other settings' says 0 'other settings than the file' experiment "$work/z.yaml" -o "$work/x" --show
ok 'are marked' grep -q '^| \*\*fede\*\* .* of other settings |' "$work/x/report.md"
run -q experiment "$work/x.yaml" -o "$work/bare" --show
ok 'says what was not run' grep -q '| not run |' "$work/bare/report.md"
ok 'has the floor' grep -q 'frequency floor' "$work/x/report.md"
ok 'and CSV' grep -q '^small,fede,1,mean,MRR,0\.' "$work/x/results.csv"

# ---- what is wrong is said with its line ----
ok 'no such method' wrong "wrong.yaml:8: no method is called 'fedx'" 'collective:' 'fedx:'
ok 'no such constant' wrong "wrong.yaml:10: method fede has no constant" 'rounds: 2' 'mu: 2'
ok 'no such setting' wrong "wrong.yaml:3: " 'dim: 8' 'dum: 8'
ok 'no such topology' wrong "wrong.yaml:10: topology: 'moon' is not one of" hosted, moon,
sed 's/threads: 1/update: racing, shared_chunk: 0/; s/reference: fede, //; /fedlu/s/.*/  fedprox:/; /single\|collective\|hosted\|masked/d; s/^  fede:.*//' "$work/x.yaml" >"$work/racing.yaml"
sed 's/paper.csv/none.csv/' "$work/x.yaml" >"$work/nopaper.yaml"
sed 's/data: data/data: nowhere/' "$work/x.yaml" >"$work/nodata.yaml"
ok 'no data' says 1 'no such folder' experiment -o "$work/none" "$work/nodata.yaml"
ok 'twice' wrong "'single' is there twice" 'collective:' 'single:'
ok 'no such reference' wrong "reference: no variant is called 'fedx'" 'reference: fede' 'reference: fedx'
ok 'no such published figures' says 1 'none.csv: no such file (experiment.published)' experiment "$work/nopaper.yaml" -o "$work/no"
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
