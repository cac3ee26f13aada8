#!/bin/sh
# experiment with agents that are processes over TCP: what comes out is what one process has, bit for bit; what
# is left when it is stopped or killed; what cannot be run so.
. "$(dirname "$0")/lib.sh"

patience=240
run -q synth -e 200 -t 1200 -r 6 --agents 3 --overlap 0.5 --ratios 8:1:1 -o "$work/data"
cat >"$work/x.yaml" <<'YAML'
experiment: {name: small, data: data, seeds: [1], rounds: 6, epochs: 2, eval_every: 2, patience: 0,
  keep: each, equal_start: moved}
model: {kind: transe, dim: 16}
train: {lr: 0.02, negatives: 8, batch: 64, threads: 1}
eval: {protocol: standard}
variants:
  single: {rounds: 2}
  fede:
  tcp: {method: fede, agents: processes}
  masked: {method: fede, topology: hosted, secret_aggregation: true, rounds: 3}
  masked_tcp: {method: fede, topology: hosted, secret_aggregation: true, rounds: 3, agents: processes}
YAML
# same RUNS NAME RUNS NAME: rounds, scores and tables are the same.  Where a row has its home is by chance: so is how
# many rows each message has, not how many all have.  Three agents send each other 12 messages of rows a round, and in
# each seven numbers and lengths are written in one to five bytes.
same() {
	python3 - "$work/$1/runs/$2-seed1.json" "$work/$3/runs/$4-seed1.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
for key in "rounds", "best_round", "best_valid_mrr", "kept_valid_mrr", "test", "params":
    if a[key] != b[key]:
        sys.exit(f"# {key}: {a[key]} and {b[key]}")
for x, y in zip(a["agents"], b["agents"], strict=True):
    for key in "agent", "tables", "best_round", "best_valid_mrr", "test", "train_triples":
        if x[key] != y[key]:
            sys.exit(f"# agent {x['agent']}, {key}: {x[key]} and {y[key]}")
looks = [[{k: c[k] for k in ("round", "valid_mrr", "params")} for c in r["curve"]] for r in (a, b)]
for x, y in zip([a] + a["curve"], [b] + b["curve"]):
    rounds = x["round"] if "round" in x else x["rounds"]
    if abs(x["bytes"] - y["bytes"]) > rounds * 12 * 7 * 4:
        sys.exit(f"# {rounds} rounds: {x['bytes']} and {y['bytes']} bytes")
sys.exit(looks[0] != looks[1])
PY
}
of() { # RUNS NAME EXPRESSION over its record r
	python3 - "$work/$1/runs/$2-seed1.json" "$3" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PY
}

# ---- the same as in one process ----
ok 'agents as processes' exits 0 -q experiment "$work/x.yaml" -o "$work/x"
ok 'the same tables, bit for bit' same x fede x tcp
ok 'masked, with a host' same x masked x masked_tcp
# Graphs that have names in common, and no more: some go on from a copy that has trained alone.
for i in 1 2 3; do run -q synth -e 200 -t 1200 -r 6 --seed $i --ratios 8:1:1 -o "$work/apart/$i"; done
sed '/^variants:/,$d; s/data: data/data: apart/' "$work/x.yaml" >"$work/w.yaml"
cat >>"$work/w.yaml" <<'YAML'
variants:
  weighed: {method: fede, weight: valid, weight_from: 3}
  weighed_tcp: {method: fede, weight: valid, weight_from: 3, agents: processes}
  ended: {method: fede, weight: valid, weight_from: 9}
  ended_tcp: {method: fede, weight: valid, weight_from: 9, agents: processes}
  own: {method: fedep, weight: valid, weight_from: 4, rounds: 4}
  own_tcp: {method: fedep, weight: valid, weight_from: 4, rounds: 4, agents: processes}
YAML
ok 'as much taken in' exits 0 -q experiment "$work/w.yaml" -o "$work/w"
ok 'or the copy' of w weighed 'any(a.get("took_alone") for a in r["agents"])'
ok 'the same tables of both' same w weighed w weighed_tcp
above='any(a["best_valid_mrr"] > max(c["agents"][i] for c in r["curve"]) for i, a in enumerate(r["agents"]))'
ok 'or it where rounds end before the choice' of w ended "$above"
ok 'the same tables then' same w ended w ended_tcp
ok 'in the last round a copy is looked at' of w own 'any(a.get("took_alone") and a["best_round"] == 4 for a in r["agents"])'
ok 'the same tables of that' same w own w own_tcp
ok 'all were in all rounds' of x tcp '[a["rounds"] for a in r["agents"]] == [6, 6, 6]'
ok 'more goes over the wire than rounds say' of x tcp 'r["wire_bytes"] > r["bytes"] > 0'
ok 'when each look was, and what each saw' of x tcp 'len(r["curve"]) > 1 and r["curve"][-1]["seconds"] < r["seconds"] + 1 and all(0 < a["seconds"] < b["seconds"] for a, b in zip(r["curve"], r["curve"][1:])) and all(abs(sum(c["agents"]) / 3 - c["valid_mrr"]) < 0.1 and len(c["agents"]) == 3 for c in r["curve"])'
ok 'from each' of x tcp 'sum(a["wire_bytes"] for a in r["agents"]) == r["wire_bytes"] and all(a["wire_bytes"] > 0 for a in r["agents"])'
ok 'what it took is theirs too' of x tcp 'r["cpu_seconds"] > 0.05'
ok 'the report says so' grep -q '^| \*\*tcp\*\* (over TCP) ' "$work/x/report.md"
ok 'what went over the wire' grep -q '| MB on the wire |' "$work/x/report.md"
ok 'and the CSV' grep -q '^small,tcp,1,mean,MRR,0\.[0-9]*,processes$' "$work/x/results.csv"
ok 'and the picture' grep -q 'tcp (over TCP)' "$work/x/curves.svg"
ok 'nothing else stays' test "$(ls "$work/x/runs" | grep -vc json)" -eq 0

# ---- stopped at a look ----
ok 'stops at a look' says 0 'stopped by --until' experiment "$work/x.yaml" -o "$work/y" --only tcp --until 3
ok 'without a record' test ! -e "$work/y/runs/tcp-seed1.json"
ok 'a report of what has begun' exits 0 -q experiment "$work/x.yaml" -o "$work/y" --show
ok 'says how far it is' grep -q '^| \*\*tcp\*\* (over TCP) .*| under way, round 4 |' "$work/y/report.md"
home=$work/y/runs/tcp-seed1.agents
ok 'its agents have been in four rounds' prints '| fede' -d "$home/2" rounds list
ok 'and no more' test "$(grep -c '| fede' "$out")" -eq 4
# rounds_s: from the first round's begin to the end of the second one, the first look, of all agents
rounds_s() {
	for i in 0 1 2; do "$fkge" -d "$home/$i" rounds list --json >"$work/list$i.json" || return; done
	python3 - "$work"/list?.json <<'PY'
import json, sys
rounds = [{r["number"]: r for r in json.load(open(f))["rounds"]} for f in sys.argv[1:]]
print((max(r[1]["finished_ms"] for r in rounds) - min(r[0]["started_ms"] for r in rounds)) / 1000)
PY
}
spent=$(rounds_s)
# owed RUN: as an interruption of the last validation leaves its agents (its best tables stay: they are not better again)
owed() { python3 - "$work/y/runs/$1.agents"/*/store.db <<'PY'
import storedb, sys
for path in sys.argv[1:]:
    db = storedb.connect(path)
    (id,) = db.execute("SELECT id FROM round ORDER BY number DESC LIMIT 1").fetchone()
    (latest,) = db.execute("SELECT digest FROM checkpoint WHERE kind = 3").fetchone()
    db.execute("UPDATE round SET scored = 0, score = 0 WHERE id = ?", (id,))
    db.execute("INSERT OR REPLACE INTO meta VALUES ('look', ?)", (id + latest,))
    db.commit()
PY
}
ok 'their last look is owed' owed tcp-seed1
python3 - "$home/run.json" "$work/taken" <<'PY' &
import json, socket, sys, time
held = []
for a in json.load(open(sys.argv[1]))["agents"]:
    host, port = a["listen"].rsplit(":", 1)
    held.append(socket.socket())
    held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held[-1].bind((host, int(port)))
    held[-1].listen()
open(sys.argv[2], "w").write("all")
time.sleep(600)
PY
pids="$pids $!"
ok 'another program has their ports now' wait_for 'their ports' test -s "$work/taken"
ok 'they go on' says 0 'tcp, seed 1: its agents go on from their stores' experiment "$work/x.yaml" -o "$work/y" --only tcp
ok 'as if uninterrupted' same x tcp y tcp
ok 'time counts from when they run, not from the first round' of y tcp "r['curve'][0]['seconds'] > $spent > 0"
ok 'the time between the two does not count' of y tcp 'r["curve"][-1]["seconds"] < r["seconds"]'
ok 'their folders go' test ! -e "$home"
ok 'with other settings' exits 0 -q experiment "$work/x.yaml" -o "$work/y" --only masked_tcp --until 1
sed 's/lr: 0.02/lr: 0.01/' "$work/x.yaml" >"$work/z.yaml"
ok 'they begin anew' says 0 'is of other settings or data' experiment "$work/z.yaml" -o "$work/y" --only masked_tcp
ok 'and end' of y masked_tcp 'r["rounds"] == 3'

# ---- ended from outside ----
cat >"$work/e.yaml" <<'YAML'
experiment: {name: endless, data: data, seeds: [1], rounds: 1000000, epochs: 1, eval_every: 5, patience: 0}
model: {kind: transe, dim: 8}
train: {lr: 0.01, negatives: 4, batch: 64, threads: 1}
variants: {tcp: {method: fede, agents: processes}}
YAML
home=$work/e/runs/tcp-seed1.agents
begin() { # in the background: $experiment
	"$fkge" experiment "$work/e.yaml" -o "$work/e" "$@" >/dev/null 2>"$work/experiment.log" &
	experiment=$!
	pids="$pids $experiment"
}
rounds() { "$fkge" -d "$home/$1" rounds list -n 0 --json >"$out" && python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
print(sum(r["outcome"] == 0 for r in j["rounds"]) + j["folded"]["rounds"] - j["folded"]["failed"])' "$out"; }
beyond() { [ "$(rounds 0)" -gt "$1" ]; }
gone() { for i in 0 1 2; do exits 5 -d "$home/$i" status || return; done; }
end() { # STATUS: it ends with that
	status=0
	wait "$experiment" || status=$?
	[ "$status" -eq "$1" ]
}

begin
ok 'rounds run' wait_for 'rounds' beyond 2
ok 'nobody else comes in' says 1 'another experiment is at work' experiment "$work/e.yaml" -o "$work/e"
kill -9 "$experiment"
wait "$experiment" 2>/dev/null
ok 'no agent outlives it' wait_for 'the end of all agents' gone
done=$(rounds 0)
begin
ok 'they go on' wait_for 'more rounds' beyond "$done"
run -d "$home/1" status --json
kill -9 "$(member "$out" pid)"
ok 'an agent that dies ends it' end 1
ok 'by name' logged experiment 'agent 1 ended with status 0x9'
ok 'with all others' gone
done=$(rounds 0)
begin
ok 'it can go on' wait_for 'more rounds' beyond "$done"
run -d "$home/1" status --json
agent=$(member "$out" pid)
ok 'a terminal does not interrupt the agents as well' [ "$(ps -o pgid= -p "$agent" | tr -d ' ')" = "$agent" ]
kill -INT "$experiment"
ok 'an interrupt ends it' end 1
ok 'and it says what to do' logged experiment 'stopped; the same command goes on'
ok 'with all agents' gone
ok 'whose stores are sound' exits 0 -d "$home/0" doctor
"$fkge" -q -d "$home/0" serve 2>"$work/stray.log" &
stray=$!
pids="$pids $stray"
ok 'one that was left' wait_for 'the stray' exits 0 -d "$home/0" status
ok 'is found' exits 0 -q experiment "$work/e.yaml" -o "$work/e" --until 5
ok 'and ended' wait_for 'the end of the stray' ended "$stray"

# ---- until nobody is better any more ----
sed 's/patience: 0/patience: 1/; s/eval_every: 5/eval_every: 1/; s/lr: 0.01/lr: 1e-9, normalize: false/' "$work/e.yaml" >"$work/tired.yaml"
ok 'it ends when nobody proposes' exits 0 -q experiment "$work/tired.yaml" -o "$work/tired"
ok 'early' of tired tcp '1 <= r["rounds"] < 1000'

# ---- what cannot be run so is said with its line ----
wrong() { # TEXT VARIANTS
	sed '/^variants/q' "$work/x.yaml" | sed 's/patience: 0/forget: 0.1/' >"$work/wrong.yaml"
	printf '%b' "$2" >>"$work/wrong.yaml"
	says 2 "$1" experiment "$work/wrong.yaml" -o "$work/none"
}
ok 'no rounds' wrong 'wrong.yaml:7: single: agents: processes is not for this: it has no rounds' '  single: {agents: processes}\n'
ok 'retained' wrong 'wrong.yaml:7: a: agents: processes is not for this: agents train on all' '  a: {method: fede, retained: true, agents: processes}\n'
ok 'stall' wrong 'wrong.yaml:8: b: agents: processes is not for this: agents do not wait' '  fede:\n  b: {method: fedlu, stall: 0.1, agents: processes}\n'
ok 'unlearning' wrong "wrong.yaml:8: unlearn: the tables of 'raw' stay with its agents" '  raw: {method: fedlu, agents: processes}\n  un: {unlearn: raw}\n'
ok 'something else' wrong "wrong.yaml:7: agents: 'apart' is not one of simulated, processes" '  fede: {agents: apart}\n'
# An agent of other names alone is in no round, and all would wait for it.
mkdir "$work/strange"
cp -r "$work/data/0" "$work/data/1" "$work/strange"
mkdir "$work/strange/lone"
for split in train valid test; do
	sed "s/^/z/; s/\t\([^\t]*\)$/\tz\1/" "$work/data/2/$split.tsv" >"$work/strange/lone/$split.tsv"
done
sed 's/data: data/data: strange/' "$work/x.yaml" >"$work/s.yaml"
ok 'nothing shared' says 2 'agent lone shares no entity with any other' experiment "$work/s.yaml" -o "$work/s" --only tcp
ok 'as in one process' exits 0 -q experiment "$work/s.yaml" -o "$work/s" --only fede
ok 'a path that is too long' says 2 'give a shorter --out' experiment "$work/e.yaml" -o "$work/$(printf '%0100d' 0)"
finish
