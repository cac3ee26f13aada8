#!/bin/sh
# experiment: queries, by trained encoders and by search, with the figures of the commands that do one of them.
. "$(dirname "$0")/lib.sh"

run -q synth -e 200 -t 1500 --seed 3 -o "$work/g"
run -q split "$work/g" -k 3 --by relations -o "$work/r3"
cat >"$work/x.yaml" <<'YAML'
experiment: {name: asked, data: r3, seeds: [1], rounds: 6, epochs: 1, eval_every: 2, patience: 0,
  published: paper.csv, dataset: D3, clients: 3}
queries: {types: [2p, 2i, up], count: 20, valid_count: 4, test_count: 6, cross_count: 8, seed: 7,
  dim: 8, lr: 0.02, batch: 32, steps: 4, beam: 16, points: 16, want_known: 8, want: 20}
model: {kind: complex_reciprocal, dim: 8, gamma: 0.01}
train: {loss: softmax, negatives: 0, corrupt: both, optimizer: adagrad, lr: 0.1, batch: 64, threads: 1}
variants:
  local:
  central:
  fede:
  fedr:
  fedcqa: {published: FedCQA}
  q2p: {method: fedcqa, queries.encoder: q2p, published: FedCQA}
  search_local:
  search_central:
  search_federated:
  whole: {method: search_federated, queries.want: 0}
  wild: {method: fedcqa, queries.lr: 1}
YAML
cat >"$work/paper.csv" <<'CSV'
paper,table,dataset,clients,kge_model,method,metric,value,unit,setting_note
P,4,D3,2,GQE,FedCQA,MRR in-graph,99,percent,fewer clients
P,3,D3,3,GQE,FedCQA,MRR in-graph,12.5,percent,x
P,3,D3,3,GQE,FedCQA,HR@3 cross-graph,11,percent,x
P,4,D3,5,GQE,FedCQA,MRR in-graph,99,percent,other clients
P,3,D3,3,Q2P,FedCQA,MRR in-graph,31,percent,another encoder
CSV
fact() { # Python over the records r["VARIANT"] of $work/$1
	python3 - "$work/$1/runs" "$2" <<'PY'
import glob, json, os, sys
r = {os.path.basename(f)[:-len("-seed1.json")]: json.load(open(f)) for f in glob.glob(sys.argv[1] + "/*.json")}
q = {v: x["queries"] for v, x in r.items()}
sys.exit(not eval("(" + sys.argv[2] + ")"))
PY
}
wrong() { # TEXT FROM TO: the file with FROM replaced is refused with the text
	sed "s|$2|$3|" "$work/x.yaml" >"$work/wrong.yaml"
	says 2 "$1" experiment "$work/wrong.yaml" -o "$work/none"
}

ok 'an experiment' exits 0 -q experiment "$work/x.yaml" -o "$work/x"
ok 'all arms have their figures' fact x 'len(r) == 11 and all(0 < x["in_graph"]["mrr"] < 1 and
	[t["type"] for t in x["in_graph"]["types"]] == ["2p", "2i", "up"] and
	[t["queries"] for t in x["in_graph"]["types"]] == [18] * 3 for x in q.values())'
ok 'who is alone cannot ask across' fact x '{v for v in r if "cross_graph" not in q[v]} == {"local", "fedr", "search_local"}'
ok 'all are asked the same' fact x 'len({str((x["protocol"]["queries_digests"], x["protocol"]["cross_digest"])) for x in q.values()}) == 1'
ok 'masks change nothing' fact x 'abs(q["fede"]["in_graph"]["mrr"] - q["fedcqa"]["in_graph"]["mrr"]) < .02 and
	r["fedcqa"]["bytes"] > 0 == r["search_federated"]["bytes"] == r["central"]["bytes"]'
ok 'what only owners know, only owners answer' fact x '[m["types"] for m in q["search_local"]["members"]] ==
	[m["types"] for m in q["search_federated"]["members"]]'
ok 'what goes to owners is counted, and limited' fact x '(lambda a, b: 1 < a["steps"] == b["steps"] and a["rows"] <= 28 * a["steps"] and
	a["known_rows"] <= 8 * a["steps"] and
	a["points"] <= 16 * a["steps"] and a["points"] < b["points"] and a["rows"] < b["rows"] and
	abs(a["bytes"] - 5 * a["points"] + 4 * a["known_rows"] - 7 * a["rows"]) < 1e-6)(q["search_federated"]["cross_graph"], q["whole"]["cross_graph"])'
ok 'limits cost something' fact x 'q["search_federated"]["cross_graph"]["mrr"] != q["whole"]["cross_graph"]["mrr"]'
ok 'tables of one way are trained once' fact x '[r[v]["agents"][0]["tables"] for v in ("search_federated", "whole")] ==
	[r["search_local"]["agents"][0]["tables"]] * 2 and r["search_local"]["curve"] == r["whole"]["curve"]'
ok 'not again' says 0 'whole, seed 1: goes on after round 6' experiment "$work/x.yaml" -o "$work/w" --only search_local --only whole
ok 'and of another one not' fact x 'r["search_central"]["agents"][0]["tables"] != r["search_local"]["agents"][0]["tables"]'

# ---- the same as by commands ----
run queries federate "$work/r3/0" "$work/r3/1" "$work/r3/2" --arm fedcqa --dim 8 --lr 0.02 --batch 32 --rounds 6 \
	--round-steps 4 --look-every 2 --patience 0 --count 20 --valid-count 4 --test-count 6 --cross-count 8 --test-seed 7 --json
cat >"$work/one.yaml" <<'YAML'
experiment: {name: one, data: r3, seeds: [1], rounds: 1, epochs: 3, eval_every: 1}
queries: {types: [2p, 2i, up], test_count: 6, seed: 7, beam: 16}
model: {kind: complex_reciprocal, dim: 8, gamma: 0.01}
train: {loss: softmax, negatives: 0, corrupt: both, optimizer: adagrad, lr: 0.1, batch: 64, threads: 1}
variants:
  search_local:
YAML
sed 's/types: .2p, 2i, up., //; /^  fedcqa/p; /^variants/,$s/^  .*//' "$work/x.yaml" >"$work/all.yaml"
"$fkge" -q experiment "$work/all.yaml" -o "$work/all" >"$work/all.out" 2>&1
ok 'FedCQA is that of queries federate' python3 - "$out" "$work/all/runs/fedcqa-seed1.json" <<'PY'
import json, sys
a, r = (json.load(open(f)) for f in sys.argv[1:3])
q = r["queries"]
sys.exit(not (a["in_graph"] == q["in_graph"] and a["cross_graph"] == q["cross_graph"] and a["bytes"] == r["bytes"] and
	      a["protocol"] == q["protocol"] and [m["types"] for m in a["members"]] == [m["types"] for m in q["members"]]))
PY
run -q experiment "$work/one.yaml" -o "$work/one"
run -q -d "$work/a" init --listen off
sed -n '/^model/,/^train/p' "$work/one.yaml" | sed 's/threads: 1}/threads: 1, epochs: 3, eval_every: 3, seed: 1000}/' >"$work/settings"
{ printf 'name: a\nlisten: off\n'; cat "$work/settings"; } >"$work/a/agent.yaml"
run -q -d "$work/a" import "$work/r3/0"
run -q -d "$work/a" train
run -q queries sample "$work/r3/0" --types 2p,2i,up -n 6 --answers 1000 --seed 7 -o "$work/q"
run -d "$work/a" query --batch "$work/q" --evaluate --beam 16 --json
ok 'search is that of query --batch' python3 - "$out" "$work/one/runs/search_local-seed1.json" <<'PY'
import json, sys
a, r = (json.load(open(f)) for f in sys.argv[1:3])
keys = ("type", "queries", "hard", "mrr", "hits1", "hits3", "hits10")
ours, theirs = ([[t[k] for k in keys] for t in x["types"]] for x in (a, r["queries"]["members"][0]))
sys.exit(ours != theirs or len(ours) != 3)
PY

# ---- it goes on ----
ok 'one is best before it ends' fact x 'r["wild"]["best_round"] < 6'
some='--only wild --only central --only fedcqa --only search_local --only whole'
for u in 2 4; do run -q experiment "$work/x.yaml" -o "$work/y" $some --until $u; done
ok 'stopped twice' test ! -e "$work/y/runs/fedcqa-seed1.json"
ok 'it goes on' says 0 'fedcqa, seed 1: goes on after round 4' experiment "$work/x.yaml" -o "$work/y" $some
run -q experiment "$work/x.yaml" -o "$work/z" $some --rounds 2
run -q experiment "$work/x.yaml" -o "$work/z" $some --rounds 6
for d in y z; do
	ok "$d: as if it had been made at once" python3 - "$work/x/runs" "$work/$d/runs" <<'PY'
import glob, json, os, sys
keys = ("curve", "queries", "bytes", "best_round", "rounds", "settings")
for f in glob.glob(sys.argv[2] + "/*.json"):
    a, b = (json.load(open(os.path.join(d, os.path.basename(f)))) for d in sys.argv[1:3])
    assert [a[k] for k in keys] == [b[k] for k in keys], f
PY
done
ok 'a state that is cut off begins anew' sh -c "head -c 900 '$work/z/runs/fedcqa-seed1.state' >'$work/cut' && cp '$work/cut' '$work/z/runs/fedcqa-seed1.state'"
ok 'and says so' says 0 'fedcqa: begins anew' experiment "$work/x.yaml" -o "$work/z" --rounds 8 --only fedcqa

# ---- tables ----
ok 'the report' exits 0 -q experiment "$work/x.yaml" -o "$work/x" --show --json
ok 'has a row of each arm, with its costs' grep -Eq '^\| \*\*search_federated\*\* +\| +0\.[0-9]{4} \| +0\.[0-9]{4} \| +0\.[0-9]{4} \| +0\.[0-9]{4} \| +0\.0 \| +[0-9.]+ \| +1 \|' "$work/x/report.md"
ok 'and what is published of as many clients' grep -Eq '^\| \*FedCQA, published\* +\| +\*0\.1250\* \| +- \| +- \| +\*0\.1100\* \|' "$work/x/report.md"
ok 'with this encoder' grep -Eq '^\| \*FedCQA, published\* +\| +\*0\.3100\* \|' "$work/x/report.md"
ok 'and of no other' [ "$(grep -c 0.9900 "$work/x/report.md")" = 0 ]
ok 'the number of queries of each type' [ "$(grep -Ec '^\| \*queries\* +\| +(18|8) \| +(18|8) \| +(18|8) \|' "$work/x/report.md")" = 2 ]
ok 'and CSV' grep -Eq '^asked,whole,1,mean,Hits@3 cross-graph 2i,0\.' "$work/x/results.csv"
ok 'figures for programs' [ "$(member "$out" runs 0 queries in_graph queries)" = 54 ]

# ---- what is wrong is said with its line ----
ok 'no such key' wrong "wrong.yaml:3: unknown key 'kount' in queries" 'types: .2p, 2i, up., count' 'kount'
ok 'no such type' wrong "queries.types: '2in' is not one of 1p to up" '2i, up' '2in, up'
ok 'no such encoder' wrong "wrong.yaml:13: queries.encoder: no such word: 'bert'" 'queries.encoder: q2p' 'queries.encoder: bert'
ok 'an odd width' wrong 'queries.dim: an even number' 'dim: 8, lr' 'dim: 9, lr'
ok 'no method of triples' wrong "no method of queries is called 'single'" '  local:' '  single:'
ok 'other questions for one variant' wrong 'are the same for all variants' 'queries.want: 0' 'queries.seed: 3'
ok 'shared names' wrong 'not with queries: names' 'seeds: .1.' 'seeds: [1], names: r3'
finish
