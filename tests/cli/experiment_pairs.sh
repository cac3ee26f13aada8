#!/bin/sh
# experiment: agents that meet in pairs, in virtual time: the same figures for the same file and seed.
. "$(dirname "$0")/lib.sh"

run -q synth -e 200 -t 1200 -r 6 --agents 3 --overlap 0.5 --ratios 8:1:1 -o "$work/data"
cat >"$work/p.yaml" <<'YAML'
experiment: {name: small, data: data, seeds: [1], rounds: 12, epochs: 2, eval_every: 2, patience: 0, reference: fede}
model: {kind: transe, dim: 16}
train: {lr: 0.02, negatives: 8, batch: 64, threads: 1}
eval: {protocol: standard}
federation: {gather_s: 1}
variants:
  fede:
  fede_slow: {method: fede, slow: {"0": 100}}
  fede_away: {method: fede, away: {"1": 0.2}}
  pairs:
  back: {method: pairs, federation: {after: back}}
  rests: {method: pairs, federation.patience: 2, federation.local_rounds: 1}
  frame: {method: pairs, federation.frame: common}
  slow: {method: pairs, slow: {"0": 100}}
  away: {method: pairs, away: {"1": 2}}
  ppat: {method: pairs, federation.translator: ppat, privacy.useless_sessions: spend,
    ppat: {steps: 20, batch: 8, hidden: 16, teachers: 4}}
  map: {method: pairs, federation.translator: map, privacy: {useless_sessions: spend}}
  short: {method: pairs, rounds: 3, epochs: 1, train.epochs: 4}
  mixed: {method: pairs, own: {"1": {model.kind: distmult, train.loss: logistic}, "2": {model.dim: 24}},
    federation: {share: both, neighbours: true, aligned_share: 0.5}}
YAML
fact() { # Python over the records r["VARIANT"]
	python3 - "$work/p/runs" "$1" <<'PY'
import glob, json, os, sys
r = {os.path.basename(f)[: -len("-seed1.json")]: json.load(open(f)) for f in glob.glob(sys.argv[1] + "/*.json")}
sys.exit(not eval("(" + sys.argv[2] + ")"))
PY
}
same() { # FILE FILE: records but for what they took
	python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for r in a, b:
    del r["seconds"], r["cpu_seconds"]
sys.exit(a != b)
PY
}

ok 'pairs beside rounds' exits 0 -q experiment "$work/p.yaml" -o "$work/p"
ok 'each agent has its test' fact 'all(0 < a["test"]["mrr"] <= 1 for x in r.values() for a in x["agents"])'
ok 'they meet' fact 'all(x["sessions"] > 6 and x["bytes"] > 0 for v, x in r.items() if "fede" not in v)'
ok 'with every translator' fact 'r["ppat"]["agents"][0]["epsilon"] > 0 and r["map"]["agents"][0]["epsilon"] > 0 and
	r["pairs"]["agents"][0]["epsilon"] == 0'
ok 'what one sends another gets' fact 'all(0.99 < sum(a["bytes"] for a in x["agents"]) / (2 * x["bytes"]) <= 1 and
	x["most_bytes_through_one"] == max(a["bytes"] for a in x["agents"]) for v, x in r.items() if "fede" not in v)'
ok 'none of their sessions fails' fact 'all(a["sessions"] > 0 and a["sessions_failed"] == 0 for a in r["pairs"]["agents"])'
ok 'keeping goes further than going back' fact 'r["pairs"]["best_valid_mrr"] > r["back"]["best_valid_mrr"]'
ok 'in one frame otherwise' fact 'r["frame"]["agents"][0]["tables"] != r["pairs"]["agents"][0]["tables"]'
ok 'each keeps its own best' fact 'all(abs(sum(x["curve"][-1]["agents"]) / 3 - x["kept_valid_mrr"]) < 1e-9 and
	x["curve"][-1]["agents"] == [a["best_valid_mrr"] for a in x["agents"]] for v, x in r.items() if "fede" not in v)'
ok 'which only rises, in time' fact 'all(a["virtual_s"] <= b["virtual_s"] and a["valid_mrr"] < b["valid_mrr"]
	for v, x in r.items() if "fede" not in v for a, b in zip(x["curve"], x["curve"][1:]))'
ok 'as much training as rounds have' fact 'all((a["rounds"], a["epochs"]) == (11, 24) for a in r["pairs"]["agents"])'
ok 'or less' fact 'all(a["rounds"] <= 11 and a["epochs"] <= 2 + 2 * a["rounds"]
	for v, x in r.items() if v not in ("short", "rests") and "fede" not in v for a in x["agents"])'
ok 'their number and length are settings' fact '[(a["rounds"], a["epochs"]) for a in r["short"]["agents"]] == [(2, 6)] * 3'
ok 'a slow agent takes longer' fact 'r["slow"]["virtual_s"] > 3 * r["pairs"]["virtual_s"]'
ok 'rounds wait for a slow member' fact 'r["fede_slow"]["virtual_s"] > 3 * r["fede"]["virtual_s"] and
	[a["tables"] for a in r["fede_slow"]["agents"]] == [a["tables"] for a in r["fede"]["agents"]]'
ok 'not for one that is away' fact 'r["fede_away"]["virtual_s"] < 2 * r["fede"]["virtual_s"] and
	r["fede_away"]["bytes"] < r["fede"]["bytes"]'
ok 'a curve of rounds has its time' fact 'all(a["virtual_s"] < b["virtual_s"] and len(a["agents"]) == 3
	for a, b in zip(r["fede"]["curve"], r["fede"]["curve"][1:]))'
ok 'one that is away half of the time is met less often' fact 'r["away"]["sessions"] < r["pairs"]["sessions"]'
ok 'who hears nothing new any more trains on alone' fact 'all(a["rounds"] == 11 for a in r["slow"]["agents"]) and
	r["slow"]["agents"][0]["local_rounds"] > 0'
ok 'and all names are let in' fact '"names_max: 4000000" in r["pairs"]["settings"]["settings"]'
ok 'who finds nothing better rests' fact 'max(a["rounds"] for a in r["rests"]["agents"]) < 11'
cells_of() { # of all, of the others, as the report has it: of $1
	sed -n '/^## Virtual time/,/^## Settings/s/^| '"$1"' *|//p' "$work/p/report.md"
}
ok 'the report says how long it took' python3 - "$(cells_of fede_slow)" "$work/p/runs" <<'PY'
import json, sys
of = lambda v: json.load(open(f"{sys.argv[2]}/{v}-seed1.json"))
at, goal = of("fede_slow"), 0.95 * max(c["valid_mrr"] for c in of("fede")["curve"])
others = 0.95 * max(sum(c["agents"][2:]) for c in of("fede")["curve"])
times = [next(c["virtual_s"] for c in at["curve"] if is_there(c))
	 for is_there in (lambda c: c["valid_mrr"] >= goal, lambda c: sum(c["agents"][2:]) >= others)]
cells = [x.strip() for x in sys.argv[1].split("|")]
sys.exit(cells[:4] != ["%.1f" % at["virtual_s"], "-"] + ["%.1f" % t for t in times])
PY
ok 'once more' exits 0 -q experiment "$work/p.yaml" -o "$work/q" --only pairs --only away --only ppat
for v in pairs away ppat; do
	ok "$v: the same figures again" same "$work/p/runs/$v-seed1.json" "$work/q/runs/$v-seed1.json"
done
ok 'and nothing is run twice' exits 0 -q experiment "$work/p.yaml" -o "$work/q" --only pairs

# sessions that are refused as useless, by each accountant: what `pld` had priced before has taken nothing
sed '/^variants/,$d; s/, reference: fede//' "$work/p.yaml" >"$work/vain.yaml"
cat >>"$work/vain.yaml" <<'YAML'
variants:
  exact: {method: pairs, federation: {translator: ppat, local_rounds: 0}}
  pld: {method: pairs, federation: {translator: ppat, local_rounds: 0}, privacy.accountant: pld}
YAML
ok 'useless sessions' exits 0 -q experiment "$work/vain.yaml" -o "$work/vain"
ok 'a price takes no time of a run' python3 - "$work/vain/runs" <<'PY'
import json, sys
exact, pld = (json.load(open(f"{sys.argv[1]}/{v}-seed1.json")) for v in ("exact", "pld"))
took = lambda r: [r["virtual_s"], r["bytes"], r["sessions"]] + [a["epochs"] for a in r["agents"]]
sys.exit(not (took(exact) == took(pld) and exact["sessions"] == 0 and exact["agents"][0]["epochs"] > 0))
PY

# killed in the middle, and run again
rm "$work"/q/runs/*
"$fkge" -q experiment "$work/p.yaml" -o "$work/q" --only fede --only mixed >"$out" 2>"$err" &
pids=$!
wait_for 'the first run' test -s "$work/q/runs/fede-seed1.json"
kill -9 "$pids"
wait "$pids" 2>"$err"
ok 'after a kill' exits 0 -q experiment "$work/p.yaml" -o "$work/q" --only fede --only mixed
ok 'the same figures' same "$work/p/runs/mixed-seed1.json" "$work/q/runs/mixed-seed1.json"
rm "$work/q/runs/mixed-seed1.json"
ok 'stopped early' says 0 'mixed, seed 1: stopped by --until; without it, it begins again' \
	experiment "$work/p.yaml" -o "$work/q" --only mixed --until 3
ok 'is no record' test ! -e "$work/q/runs/mixed-seed1.json"
ok 'until it has been run' exits 0 -q experiment "$work/p.yaml" -o "$work/q" --only mixed
ok 'as if uninterrupted' same "$work/p/runs/mixed-seed1.json" "$work/q/runs/mixed-seed1.json"

# rounds that some were not in, stopped at looks and taken up again: one gone for a while, one lost as it begins
sed '/^variants/,$d; s/reference: fede/average: plain/; /^federation/d; s/eval_every: 2/eval_every: 1/' "$work/p.yaml" >"$work/gone.yaml"
cat >>"$work/gone.yaml" <<'YAML'
variants:
  lost: {method: fedep, away: {"1": 0.1}}
  shared: {method: fede, away: {"1": 0.2}}
  seldom: {method: fedep, away: {"1": 0.2}, eval_every: 2}
  judged: {method: fedep, away: {"1": 0.2}, judge: true, bound_rows: true, weight: valid, weight_from: 4}
YAML
run -q experiment "$work/gone.yaml" -o "$work/gone"
for u in 1 2 3 4 6 8 10; do
	run -q experiment "$work/gone.yaml" -o "$work/gone_part" --until $u
done
run -q experiment "$work/gone.yaml" -o "$work/gone_part"
for v in lost shared seldom judged; do
	ok "$v: as if uninterrupted" same "$work/gone/runs/$v-seed1.json" "$work/gone_part/runs/$v-seed1.json"
done

# as processes over TCP
sed 's/^  pairs:$/  pairs: {agents: processes, rounds: 4, federation: {gather_s: 0.2, local_rounds: 0}}/' "$work/p.yaml" >"$work/tcp.yaml"
"$fkge" -q experiment "$work/tcp.yaml" -o "$work/tcp" --only pairs >"$work/tcp.log" 2>&1 &
pids=$!
serves() { [ -S "$1/control.sock" ]; }
ok 'agents over TCP' wait_for 'the last of them' serves "$work/tcp/runs/pairs-seed1.agents/2"
kill -INT "$pids"
wait "$pids" 2>"$err"
pids=
ok 'go on from their stores' says 0 'pairs, seed 1: its agents go on from their stores' \
	experiment "$work/tcp.yaml" -o "$work/tcp" --only pairs
ok 'and have their rounds' python3 - "$work/tcp/runs/pairs-seed1.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
# whom the others' end leaves without news has fewer
sys.exit(not (max(a["rounds"] for a in r["agents"]) == 3 and sum(a["sessions_either_side"] for a in r["agents"]) > 2 and
	      all(a["rounds"] <= 3 and a["local_rounds"] == 0 and a["wire_bytes"] > 0 and 0 < a["test"]["mrr"] <= 1
		  for a in r["agents"]) and r["settings"]["agents"] == "processes" and
	      abs(r["curve"][-1]["valid_mrr"] - r["kept_valid_mrr"]) < 1e-6))
PY

# what is wrong is said with its line
refused() { # TEXT FROM TO: the file with FROM replaced is refused with the text
	sed "s|$2|$3|" "$work/p.yaml" >"$work/wrong.yaml"
	says 2 "$1" experiment "$work/wrong.yaml" -o "$work/none"
}
ok 'what is of a process' refused 'wrong.yaml:5: federation.sleep_s: not in an experiment' gather_s sleep_s
ok 'one round' refused 'short: rounds: 1: pairs train once before they meet, which is the first' 'rounds: 3' 'rounds: 1'
ok 'or that of all' says 2 'pairs: rounds: 1: pairs train once' experiment "$work/p.yaml" -o "$work/none" --rounds 1
ok 'no end' refused 'back: federation.max_rounds: pairs need an end' 'after: back' 'max_rounds: 0'
ok 'a setting that is none' refused "wrong.yaml:11: federation.after: 'moon'" 'after: back' 'after: moon'
ok 'of rounds' refused "'federation.after': of agent.yaml, model and train may vary" '  fede:' '  fede: {federation.after: back}'
ok 'no such agent' refused "has no agent '7'" 'slow: {"0"' 'slow: {"7"'
ok 'time that is real' refused 'slow: agents: processes is not for this: its time is real' \
	'{method: pairs, slow:' '{method: pairs, agents: processes, slow:'
ok 'no factor' refused "wrong.yaml:8: slow: 'x' is no factor" '100}' 'x}'
ok 'all are ranked alike' refused 'own: all agents are ranked alike' model.dim eval.protocol
ok 'a model that there is' refused "'transx'" distmult transx
finish
