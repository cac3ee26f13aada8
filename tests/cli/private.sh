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
ok 'the ledger holds' prints 'the ledger holds' -d "$work/a" ledger verify
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
ok 'an export says so too' prints 'trained with noise, 40 steps: epsilon' ledger verify "$work/a.led"
sed 's/"noise": [0-9.]*/"noise": 99/' "$work/a.led" >"$work/forged.led"
ok 'more noise than there was is found out' exits 9 ledger verify "$work/forged.led"
ok 'and named' grep -q 'statement 1 was edited' "$out"

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

# ---- in the running agent ----
agent b 2
cp "$yaml" "$work/b/agent.yaml"
yaml=$work/b/agent.yaml
set_to 'name: a' 'name: b'
set_to 'epochs: 20, eval_every: 10' 'epochs: 6, eval_every: 3'
set_to 'epsilon: 100, noise: 50' 'epsilon: 12, noise: 4'
ok 'an agent trains privately' exits 0 -d "$work/b" serve --until-quiet 1
ok 'and says what it cost' grep -q 'private steps are kept: epsilon' "$err"
"$fkge" -d "$work/b" --json ledger show >"$work/show"
total=$(steps)
ok 'charged' [ "$total" -ge 12 ]
set_to 'epsilon: 12' 'epsilon: 0.5'
ok 'a cap below what is spent' exits 0 -d "$work/b" serve --until-quiet 1
"$fkge" -d "$work/b" --json ledger show >"$work/show"
ok 'forbids every further step' [ "$(steps)" -eq "$total" ]
ok 'which is said' grep -q 'the tables stay as they are from now on' "$err"
finish
