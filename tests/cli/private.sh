#!/bin/sh
# Private training (train.dp): what is refused, what is charged and when, and that nothing gives it back.
. "$(dirname "$0")/lib.sh"

agent a 1
yaml=$work/a/agent.yaml
sed -i 's/patience: 0}/patience: 0, dp: {epsilon: 8, rate: 0.5}}/' "$yaml"
set_to() { sed -i "s/$1/$2/" "$yaml"; }
shown() { "$fkge" -d "$work/a" --json ledger show >"$work/show" && member "$work/show" training "$@"; }
steps() { member "$work/show" training trainings -1 total; }
spent() { shown trainings >/dev/null && [ "$(steps)" -eq "$1" ]; }
within() { shown epsilon >"$work/epsilon" && python3 -c "import sys; sys.exit(not 0 < float(open('$work/epsilon').read()) <= $1)"; }

# ---- rows and the order of the triples ----
# Privately and next to unmoved: a name's rows must follow neither from its id nor from the seed.
mkdir "$work/forward" "$work/back"
sort "$work/a.tsv" >"$work/forward/train.tsv"
sort -r "$work/a.tsv" >"$work/back/train.tsv"
for name in forward back; do tail -n 5 "$work/$name/train.tsv" >"$work/$name/valid.tsv"; done
unmoved() { # FOLDER GRAPH: trained and exported
	"$fkge" -q -d "$work/$1" init --name "$1" --listen 127.0.0.1:0 >/dev/null || return
	sed 's/epochs: 20, eval_every: 10/epochs: 1, eval_every: 1/; s/lr: 0.02/lr: 1e-9/
		s/patience: 0,/patience: 0, filtered: false, shared_chunk: 0,/' \
		"$work/a/agent.yaml" >"$work/$1/agent.yaml"
	"$fkge" -q -d "$work/$1" import "$work/$2" >/dev/null && "$fkge" -q -d "$work/$1" train >/dev/null &&
		"$fkge" -q -d "$work/$1" export "$work/$1.rows" --format tsv >/dev/null
}
unrelated() { # by name and by place in the file: the cosine of both tables as one vector each
	python3 - "$work/$1.rows" "$work/$2.rows" <<'PY'
import math, sys
def table(folder):
    rows = [line.split("\t") for k in ("entities", "relations") for line in open(f"{folder}/{k}.tsv")]
    return [(r[0], [float(x) for x in r[1:]]) for r in rows]
def cosine(x, y):
    x, y = [a for r in x for a in r], [b for r in y for b in r]
    dot = lambda p, q: sum(a * b for a, b in zip(p, q))
    return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))
x, y = map(table, sys.argv[1:])
by_place = cosine([r for _, r in x], [r for _, r in y])
by_name = cosine([r for _, r in sorted(x)], [r for _, r in sorted(y)])
print(f"# by place {by_place:.3f}, by name {by_name:.3f}")
sys.exit(max(abs(by_place), abs(by_name)) > 0.2 or [n for n, _ in x] != [n for n, _ in y])
PY
}
ok 'sorted' unmoved sorted forward
ok 'sorted again' unmoved again forward
ok 'reversed' unmoved reversed back
ok 'one order twice: names have other rows' unrelated sorted again
ok 'the other order: no id has its row again, and exports are in one order' unrelated sorted reversed

ok 'the graph anew, in the other order' exits 0 -d "$work/sorted" import --replace "$work/back"
ok 'has the same numbers, so the best state stays' exits 0 -d "$work/sorted" export "$work/sorted.later" --format tsv
ok 'with the same row for each name' cmp "$work/sorted.rows/entities.tsv" "$work/sorted.later/entities.tsv"
ok 'and training goes on from it, or says that nothing is left' says 8 'do not fit' -d "$work/sorted" train

# One line more in a file that import splits must not deal all others anew.
dealt() { # FILE: the triples of train, in $work/dealt/train.tsv
	"$fkge" -q -d "$work/sorted" import --replace "$1" >/dev/null &&
		"$fkge" -q -d "$work/sorted" export --triples "$work/dealt" >/dev/null && sort "$work/dealt/train.tsv"
}
{ printf 'e50\tjump\te3\n' && cat "$work/a.tsv"; } >"$work/more.tsv"
few_are_moved() {
	dealt "$work/a.tsv" >"$work/one" && dealt "$work/more.tsv" >"$work/two" &&
		moved=$(diff "$work/one" "$work/two" | grep -c '^[<>]') && echo "# $moved moved" &&
		[ -s "$work/one" ] && [ "$moved" -le 5 ]
}
ok 'a line in front moves next to no other' few_are_moved

# ---- what would void it ----
ok 'filtered negatives depend on other triples' says 2 'filtered must be false' -d "$work/a" train
ok 'so do shared ones' says 2 'shared_chunk must be 0' -d "$work/a" train
set_to 'patience: 0' 'patience: 0, filtered: false, shared_chunk: 0'
echo 'privacy: {delta: 1e-5}' >>"$yaml"
set_to 'sleep_s: 1' 'sleep_s: 1, neighbours: true'
ok 'edges are not sent as they are' says 2 'federation.neighbours' -d "$work/a" train
set_to ', neighbours: true' ''
ok 'unknown keys are named' sh -c "sed 's/rate: 0.5/ratio: 0.5/' '$yaml' >'$yaml.bad'"
mv "$yaml" "$yaml.good" && mv "$yaml.bad" "$yaml"
ok 'with those that are known' says 2 'epsilon, delta, clip, noise, rate, triples' -d "$work/a" train
mv "$yaml.good" "$yaml"
ok 'no report' says 2 'no loss' -d "$work/a" train --report "$work/report"

# ---- valid is not looked at ----
cp -r "$work/a" "$work/blind"
mkdir "$work/alone"
cp "$work/a.tsv" "$work/alone/train.tsv"
ok 'and nobody is told to have some' eval 'run -d "$work/blind" import --replace "$work/alone"; ! grep -q valid "$err"'
ok 'so a graph without it is trained' exits 0 -q -d "$work/blind" --json train
ok 'to its end' [ "$(member "$out" ended)" = 'all epochs' ]
run -d "$work/blind" doctor
ok 'the doctor finds nothing bad' eval '! grep -q "^bad " "$out" && grep -q "graph .*, 0 valid" "$out"'
ok 'it is served' exits 0 -d "$work/blind" serve --until-quiet 1
ok 'and goes on' start blind
run -d "$work/blind" config set train.dp.epsilon 0
ok 'without train.dp it would not start anew' says 4 'no triple in valid' -d "$work/blind" reload --restart
ok 'so it does not end for that' exits 0 -d "$work/blind" stop
"$fkge" -q -d "$work/untried" init --name untried --listen 127.0.0.1:0 >/dev/null
sed 's/name: a/name: untried/' "$yaml" >"$work/untried/agent.yaml"
ok 'so is one that was never trained' eval '"$fkge" -q -d "$work/untried" import "$work/alone" >/dev/null && exits 0 -d "$work/untried" serve --until-quiet 1'
ok 'with steps in the agent itself' grep -q 'private steps are kept: epsilon' "$err"

# ---- charged before it runs ----
ok 'it trains' exits 0 -d "$work/a" --json train
cp "$out" "$work/first"
ok 'all of its epochs' [ "$(member "$work/first" ended)" = 'all epochs' ]
ok 'shows no loss' [ "$(member "$work/first" loss)" = None ]
ok 'nor anything of valid' [ "$(member "$work/first" valid_mrr)" = None ]
ok 'every step is on the ledger' spent 40
ok 'within the cap' within 8
ok 'the noise leaves hardly anything' sh -c "! '$fkge' -q -d '$work/a' train --epochs 1 2>'$work/err'"
ok 'status 8' says 8 'private training has spent epsilon' -d "$work/a" train
ok 'which beginning anew does not change' says 8 'do not fit, 0 do' -d "$work/a" train --fresh
ok 'and which cost nothing' spent 40
ok 'the tables are there' exits 0 -d "$work/a" eval --split valid
no_score() { "$fkge" -d "$work/a" "$@" >"$work/said" && grep -q '40 private steps' "$work/said" && ! grep -q 40.0000 "$work/said"; }
ok 'steps are called no score' no_score checkpoint list
ok 'by the doctor' no_score doctor
ok 'the ledger holds' prints 'the ledger holds' -d "$work/a" ledger verify
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
ok 'an export says so too' prints 'trained with noise, 40 steps: epsilon' ledger verify "$work/a.led"
ok 'and how little it can be shown to be' grep -Eq '^  by pld: epsilon [0-7]\.[0-9]{4}$' "$out"
sed 's/"noise": [0-9.]*/"noise": 99/' "$work/a.led" >"$work/forged.led"
ok 'more noise than there was is found out' exits 9 ledger verify "$work/forged.led"
ok 'and named' grep -q 'statement 1 was edited' "$out"

# ---- a larger delta makes nothing cheaper that was spent ----
ok 'a larger delta' exits 0 -d "$work/a" config set train.dp.delta 0.05
ok 'opens no cap' says 8 'at delta 1e-05' -d "$work/a" train --epochs 1
ok 'and is warned of' grep -q 'train.dp.delta 0.05 is not below 1 / [0-9]* triples' "$err"
run -d "$work/a" doctor
ok 'doctor says so' grep -q 'train.dp.delta 0.05 is not below 1 / ' "$out"
ok 'it cost nothing' spent 40
run -d "$work/a" serve --until-quiet 1
ok 'nor in the agent itself, which says so too' eval 'spent 40 && grep -q "train.dp.delta 0.05 is not below 1 / " "$err"'
ok 'as before' exits 0 -d "$work/a" config set train.dp.delta 1e-5

# ---- a larger cap; a kill ----
set_to 'epsilon: 8' 'epsilon: 100, noise: 50'
set_to 'epochs: 20, eval_every: 10' 'epochs: 2000, eval_every: 100'
state=$work/a/training.state
killed() { # once it has a state to go on from
	"$fkge" -q -d "$work/a" train --fresh >/dev/null 2>"$work/a.log" &
	pid=$!
	while [ ! -s "$state" ] && kill -0 "$pid" 2>/dev/null; do :; done
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	shown trainings >/dev/null && before=$(steps) && [ -s "$state" ]
}
ok 'killed' wait_for 'a kill that comes in time' killed
ok 'what was charged stays so' [ "$before" -ge 240 ]
ok 'the ledger still holds' prints 'the ledger holds' -d "$work/a" ledger verify
ok 'it goes on' exits 0 -d "$work/a" --json train --resume
cp "$out" "$work/second"
shown trainings >/dev/null
ok 'to all of its epochs' [ "$(member "$work/second" ended)" = 'all epochs' ]
ok 'charged anew from there on' [ "$(steps)" -ge 4040 ]
ok 'never less than was charged before' [ "$(steps)" -gt "$before" ]
ok 'within the larger cap' within 100
before=$(steps)
set_to 'epochs: 2000, eval_every: 100' 'epochs: 20, eval_every: 10'
ok 'what comes next' exits 0 -d "$work/a" train --epochs 30
ok 'is charged anew' spent $((before + 60))

# ---- with and without ----
set_to 'epsilon: 100, noise: 50' 'epsilon: 0'
ok 'plain training goes on from it' exits 0 -d "$work/a" train
ok 'uncharged' spent $((before + 60))
set_to 'epsilon: 0' 'epsilon: 100, noise: 50'
ok 'but private training not from that' says 2 'trained without train.dp' -d "$work/a" train
ok 'nor does an agent serve it' says 2 'trained without train.dp' -d "$work/a" serve --until-quiet 1
ok 'it begins anew' exits 0 -d "$work/a" train --fresh --epochs 10
echo 'train: {lr: [0.01, 0.02]}' >"$work/space.yaml"
ok 'no search over it' says 2 'train.dp' -d "$work/a" tune "$work/space.yaml"

# Tables of a version whose first rows followed the order of the triples are no start.
python3 - "$work/a/store.db" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
db.execute("UPDATE checkpoint SET protocol = 'private_steps' WHERE kind = 0")
db.commit()
PY
ok 'tables whose first rows followed the triples' says 2 'order of the triples' -d "$work/a" train
ok 'are not served' says 2 'order of the triples' -d "$work/a" serve --until-quiet 1
ok 'but begun anew' exits 0 -d "$work/a" train --fresh --epochs 1

# ---- in the running agent ----
agent b 2
cp "$yaml" "$work/b/agent.yaml"
yaml=$work/b/agent.yaml
set_to 'name: a' 'name: b'
set_to 'epochs: 20, eval_every: 10' 'epochs: 6, eval_every: 3'
set_to 'epsilon: 100, noise: 50' 'epsilon: 12, noise: 4'
sed -i "s/^federation: {/federation: {local_rounds: 1, /" "$yaml"
ok 'an agent trains privately' exits 0 -d "$work/b" serve --until-quiet 1
ok 'and says what it cost' grep -q 'private steps are kept: epsilon' "$err"
"$fkge" -d "$work/b" --json ledger show >"$work/show"
total=$(steps)
ok 'charged' [ "$total" -ge 12 ]
# One that is put back does not know what it trained since: it waits, and then goes on.
agent c 3
sed 's/name: b/name: c/' "$yaml" >"$work/c/agent.yaml"
ok 'a backup before the first training' exits 0 -d "$work/c" backup "$work/early"
rm -rf "$work/c"
ok 'restored' exits 0 -d "$work/c" restore "$work/early"
ok 'it waits for its owner' exits 0 -d "$work/c" serve --until-quiet 1
ok 'and says so' grep -q 'fkge restore --without training' "$err"
ok 'it has no tables' says 1 'no embeddings yet' -d "$work/c" predict "$(head -n 1 "$work/a.tsv" | cut -f 1)" r0 '?'
ok 'nothing is missing' exits 0 -d "$work/c" restore --without training
ok 'now it trains' exits 0 -d "$work/c" serve --until-quiet 1
"$fkge" -d "$work/c" --json ledger show >"$work/show"
ok 'its first training is whole' [ "$(steps)" -ge 12 ]

set_to 'epsilon: 12' 'epsilon: 0.5'
ok 'a cap below what is spent' exits 0 -d "$work/b" serve --until-quiet 1
"$fkge" -d "$work/b" --json ledger show >"$work/show"
ok 'forbids every further step' [ "$(steps)" -eq "$total" ]
ok 'which is said' grep -q 'the tables stay as they are from now on' "$err"

# ---- what is no score is none ----
echo 'http: {listen: ./http.sock}' >>"$work/b/agent.yaml"
ok 'b serves' start b
ask() { # METHOD PATH [request.py's words]
	[ "$(python3 "$(dirname "$0")/../http/request.py" "unix:$work/b/http.sock" "$@" -o "$out" \
		"Authorization: Bearer $("$fkge" -d "$work/b" http key)")" = 200 ]
}
no_score() { # KEY...: of what came; but steps
	python3 - "$out" "$@" <<'PY'
import json, sys
at = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    at = at[int(key) if isinstance(at, list) else key]
print("#", at)
sys.exit(at["valid_score"] is not None or not at["private_steps"] > 0)
PY
}
ask GET /api/v1/status
ok 'the status has no score on valid' no_score best
question="{\"head\": \"$(head -n 1 "$work/a.tsv" | cut -f 1)\", \"relation\": \"next\"}"
ok 'a prediction' ask POST /api/v1/predict 'Content-Type: application/json' "body=$question"
ok 'has none either' no_score checkpoint
run -d "$work/b" --json checkpoint list
ok 'nor has a list of states' no_score checkpoints 0
"$fkge" -q -d "$work/b" export "$work/b.tensors" --format safetensors >/dev/null
told() { grep -q '"private_steps": "[1-9]' "$work/b.tensors/config.json" && ! grep -rqa valid_score "$work/b.tensors"; }
ok 'nor have tables that are written out' told
run -d "$work/b" stop
finish
