#!/bin/sh
# What an owner gets who changes nothing: settings by the graph, and a word where tables do worse
# than counting.
. "$(dirname "$0")/lib.sh"

# A catalogue: items of a few kinds, each with values of 6 attributes, a value being of many items.
# catalogue FOLDER [reversed]
catalogue() {
	mkdir "$1" && python3 - "$1" "${2:-}" <<'PY'
import random, sys
random.seed(3)
lines = []
for i in range(120):
    kind = random.randrange(4)
    for a in range(6):
        v = (kind * (a + 2)) % 5 if random.random() < 0.8 else random.randrange(8)
        t = (f"item{i}", f"a{a}", f"v{a}.{v}")
        lines.append("\t".join(t if not sys.argv[2] else (t[2], t[1], t[0])) + "\n")
random.shuffle(lines)
for name, part in (("train", lines[:540]), ("valid", lines[540:630]), ("test", lines[630:])):
    open(f"{sys.argv[1]}/{name}.tsv", "w").writelines(part)
PY
}

# seller NAME 'more of train' 'more of the file'
seller() {
	"$fkge" -q -d "$work/$1" init --name "$1" --listen 127.0.0.1:0 >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: 127.0.0.1:0
model: {dim: 16}
train: {eval_every: 5, threads: 1, batch: 64, negatives: 8, $2}
${3:-}
YAML
	"$fkge" -q -d "$work/$1" import "$work/catalogue" >/dev/null
}

# ---- the floor ----
catalogue "$work/catalogue"
seller low 'epochs: 5, lr: 1e-6'
seller high 'epochs: 60, lr: 0.02, corrupt: tail'
ok 'tables below counting are trained, with a word' says 0 'is below counting' -d "$work/low" train
ok 'and how to help it' says 0 'train.corrupt tail where relations are many-to-one' \
	-d "$work/low" train --fresh --report "$work/report"
ok 'the report of the training has it' grep -q 'by counting.*which is better' "$work/report/report.md"
floor() { run -d "$work/$1" eval --split valid --floor --json && member "$out" floor mrr; }
floor low >"$work/floor"
run -d "$work/low" train --fresh --json
# valid alone: --split valid filters by test, too, training does not
near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < 0.02 * b)' "$1" "$2"; }
ok 'the floor is that of eval' near "$(member "$out" valid_floor)" "$(cat "$work/floor")"
ok 'better tables get none' exits 0 -d "$work/high" train
ok '... not a word' sh -c '! grep -q counting "$1"' sh "$err"
ok 'doctor says it, too' prints 'fkge tune --quick looks for them' -d "$work/low" doctor
ok 'and where all is well' prints 'by counting' -d "$work/high" doctor

# ---- presets ----
p=$work/p
ok 'an agent with a preset' exits 0 -d "$p" init --listen off --preset best
ok 'no such preset' says 2 "fast, balanced, best" -d "$work/q" init --preset good
ok 'without a graph nothing is chosen' says 0 'model.preset chooses by the graph' -d "$p" config get model.dim
ok 'the import says what is chosen' prints 'model.preset best, by the graph (165 entities, 540 triples' -d "$p" import "$work/catalogue"
ok 'so does config get' [ "$(run -d "$p" config get model.dim && cat "$out")" = 400 ]
ok 'and why' grep -q 'all entities are asked.*train.negatives 0' "$err"
ok 'for programs, too' exits 0 -d "$p" config get --json
ok 'why' sh -c 'grep -q "\"suited\": \"model.preset best" "$1"' sh "$out"
ok 'what is set wins' exits 0 -d "$p" config set model.dim 8
ok 'the chosen loss stays' [ "$(run -d "$p" config get train.loss && cat "$out")" = softmax ]
ok 'it is said' grep -q 'agent.yaml says model.dim' "$err"
run -d "$p" config set train.epochs 2
ok 'a rate falls as long as is trained' [ "$(run -d "$p" config get train.schedule_epochs && cat "$out")" = 2 ]
run -d "$p" config get && run -d "$p" config set train.eval_every 1
ok 'it trains so' exits 0 -d "$p" train
ok 'they answer' exits 0 -d "$p" predict item1 a0 '?' --json
ok 'these tables' [ "$(member "$out" checkpoint model) $(member "$out" checkpoint dim)" = 'complex_reciprocal 8' ]
q=$work/q
"$fkge" -q -d "$q" init --listen off >/dev/null
"$fkge" -q -d "$q" import "$work/catalogue" >/dev/null
ok 'a file in which all stands' says 0 'are comments now' -d "$q" config set model.preset fast
ok 'is chosen for, too' [ "$(run -d "$q" config get model.kind && cat "$out")" = complex_reciprocal ]
ok 'a change is told of what it chooses' prints 'train.epochs: 100, was 20' -d "$q" config set train.epochs 100
ok 'not of the default' prints 'train.epochs: 20, was 100' -d "$q" config unset train.epochs
ok 'the value that it chooses is no other' says 0 'it has that value already' -d "$q" config set train.epochs 20
ok 'in JSON as well' exits 0 -d "$q" config set train.epochs 100 --json
ok 'of the key that was set' [ "$(member "$out" was)" = 20 ]
ok 'and no more' exits 0 -d "$q" config set model.preset none
"$fkge" -q -d "$q" config unset train.epochs >/dev/null 2>&1
ok 'as before' [ "$(run -d "$q" config get model.kind && cat "$out")" = transe ]

# ---- a preset that fits other graphs than this one ----
# draws NAME 'more of the file': 10000 entities, for which fast draws negatives
draws() {
	"$fkge" -q -d "$work/$1" init --name "$1" --listen off >/dev/null || return
	printf 'name: %s\nlisten: off\n%s\n' "$1" "$2" >"$work/$1/agent.yaml"
	"$fkge" -q -d "$work/$1" import "$work/drawn" >/dev/null 2>&1
}
mkdir "$work/drawn"
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "e%d\tr\te%d\n", i % 10000, (i * 7 + i / 10000 + 1) % 10000 }' >"$work/drawn/train.tsv"
head -20 "$work/drawn/train.tsv" >"$work/drawn/valid.tsv"
draws answers 'model: {preset: fast}
train: {query_answers: 8}'
draws width 'model: {preset: fast, rel_dim: 64}'
ok 'is refused when it trains' says 2 'agent.yaml:4: train.query_answers' -d "$work/answers" train
ok 'of whatever key' says 2 'agent.yaml:3: model.rel_dim (64)' -d "$work/width" train
ok 'doctor says why it would not start' exits 1 -d "$work/width" doctor
ok '... by the key' flat_has 'model.rel_dim (64)'
ok 'so does config check' says 2 'agent.yaml:4: train.query_answers' -d "$work/answers" config check
draws plain 'model: {preset: fast}'
ok 'config check takes what goes' exits 0 -d "$work/plain" config check
ok 'config set asks the graph, too' says 2 'train.query_answers' -d "$work/plain" config set train.query_answers 8
ok '... and changes nothing' grep -qx 'model: {preset: fast}' "$work/plain/agent.yaml"
ok '... of what goes, it does' exits 0 -d "$work/plain" config set train.negatives 64

# ---- an agent that runs ----
seller serving 'epochs: 5, lr: 1e-6' 'federation: {local_rounds: 2, epochs_per_round: 1, sleep_s: 0}'
ok 'it serves' start serving
asleep() { [ "$(value serving state)" = sleep ]; }
ok 'it has trained' wait_for 'sleep' asleep
ok 'its status has the floor' sh -c 'case $1 in 0.*) ;; *) exit 1 ;; esac' sh \
	"$(member "$work/serving.json" best valid_floor)"
ok 'and the warning' sh -c 'case $1 in *"is below counting"*) ;; *) exit 1 ;; esac' sh \
	"$(member "$work/serving.json" best floor_warning)"
ok 'also for people' prints 'is below counting' -d "$work/serving" status
ok 'it ends' exits 0 -d "$work/serving" stop
ok 'the log has it once' [ "$(grep -c 'is below counting' "$work/serving.log")" = 1 ]

# ---- what the graph decides ----
many='6 of 6 relations are many-to-one'
run -d "$work/auto" init --name auto --listen off
ok 'what init writes leaves it to the graph' grep -Eq '^  corrupt: auto ' "$work/auto/agent.yaml"
ok 'import says what the graph decides' prints "sampling bernoulli, by the graph: each relation" \
	-d "$work/auto" import "$work/catalogue"
ok '... and why' flat_has "$many"
ok 'train says it' says 0 "$many" -d "$work/auto" train --epochs 1
run -d "$work/auto" train --epochs 1 --json
ok 'and its record has what was in effect' sh -c 'case $1 in
	*"corrupt: alternate"*"sampling: bernoulli"*) ;; *) exit 1 ;; esac' sh "$(member "$out" settings)"
ok 'doctor, too' prints "$many" -d "$work/auto" doctor
sed -i 's/protocol: standard/protocol: tail/' "$work/auto/agent.yaml"
ok 'scores of tails: tails' says 0 'train.corrupt tail, sampling uniform' -d "$work/auto" train --fresh --epochs 1
catalogue "$work/reversed" reversed
ok 'one-to-many, and the same scores' prints '0 of 6 relations are many-to-one, 6 one-to-many' \
	-d "$work/auto" import --replace "$work/reversed"
ok '... not tails' flat_has 'train.corrupt alternate, sampling bernoulli'
sed -i 's/corrupt: auto /corrupt: both /' "$work/auto/agent.yaml"
ok 'what the owner says stays' exits 0 -d "$work/auto" train --fresh --epochs 1 --json
ok '... as it was' sh -c 'case $1 in
	*"corrupt: both"*"sampling: uniform"*) ;; *) exit 1 ;; esac' sh "$(member "$out" settings)"
ok 'and nothing is said' sh -c '! grep -q "by the graph" "$1"' sh "$err"
sed -i 's/corrupt: both /corrupt: auto /; s/filtered: true/filtered: false/
	s/shared_chunk: 16/shared_chunk: 0/; s/epsilon: 0 /epsilon: 8 /' "$work/auto/agent.yaml"
run -d "$work/auto" import --replace "$work/catalogue"
ok 'private training: the graph is not looked at' sh -c '! grep -q "by the graph" "$1" "$2"' sh "$out" "$err"
ok 'a running agent says it once in its log' [ "$(grep -c "$many" "$work/serving.log")" = 1 ]
ok 'and in its status' sh -c 'case $1 in *"$2"*) ;; *) exit 1 ;; esac' sh "$(member "$work/serving.json" suited)" "$many"

# ---- an agent that starts with tables, and does not train ----
sed -i 's/local_rounds: 2/local_rounds: 0/' "$work/serving/agent.yaml"
ok 'it starts again' start serving
says_so() { prints 'is below counting' -d "$work/serving" status; }
ok 'its status says so without a look' wait_for 'the warning' says_so
twice() { [ "$(grep -c 'is below counting' "$work/serving.log")" = 2 ]; }
ok 'so does the log' wait_for 'the line' twice
ok 'it ends again' exits 0 -d "$work/serving" stop
finish
