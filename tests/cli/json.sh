#!/bin/sh
# docs/reference/json.md against the program, both ways: every command with --json prints no key that the page
# lacks, and every key of the page is printed by its command. json_keys.py compares; what is not reached here
# stands there, with the reason.
. "$(dirname "$0")/lib.sh"

keys=$(dirname "$0")/json_keys.py
page=$2/docs/reference/json.md
mkdir "$work/json"
number=100
# has SECTION ARGS...: runs fkge --json; what it prints goes to that section of the page
has() {
	section=$1
	shift
	number=$((number + 1))
	run "$@" --json
	cp "$out" "$work/json/$number.$section"
	ok "fkge $section $number" [ "$status" -eq 0 ] && return
	cat "$err"
}
on() { # NAME SECTION ARGS...: of that agent
	who=$1
	shift
	has "$1" -d "$work/$who" "$@"
}

# ---- what an owner does alone ----
graph "$work/graph.tsv" 1
has synth synth -e 60 -t 300 --agents 2 -o "$work/g"
has split split "$work/graph.tsv" --parts 2 --by relations -o "$work/parts"
has version version
has init -d "$work/c" init --name c --listen off
on c config get
on c config get model.dim
on c config check
on c config diff
has init init --reference
on c id
on c id --fingerprint
on c id --line
on c import "$work/graph.tsv"
run -d "$work/c" config set model.preset fast
on c config get model.dim
on c config unset model.preset
printf 'e1\tElement 1\n' >"$work/alias.tsv"
on c import --alias "$work/alias.tsv"
printf 'e2\tElement 2\ne2\tTwo\ne3\tElement 3\n' >"$work/many.tsv"
on c import --alias "$work/many.tsv" --match unique
run -d "$work/c" import --alias "$work/many.tsv" --json
ok 'two aliases of one name are refused' [ "$status" -eq 4 ]
cp "$out" "$work/json/198.import"
mkdir "$work/pairs"
printf 'x\ty\n' >"$work/pairs/a-b.tsv"
has align align "$work/pairs" -o "$work/aliases"
cat >"$work/c/agent.yaml" <<'YAML'
name: c
listen: off
model: {dim: 16, gamma: 4}
train: {epochs: 4, eval_every: 2, threads: 1, lr: 0.02, batch: 64, negatives: 8}
YAML
on c train
on c export "$work/tables"
has init -d "$work/d" init --name d --listen off
cp "$work/c/agent.yaml" "$work/d/agent.yaml"
on d import "$work/graph.tsv"
on d import "$work/tables" --embeddings
has init -d "$work/l" init --name l --listen off
cp "$work/c/agent.yaml" "$work/l/agent.yaml"
sed 's,^\([^\t]*\)\t\([^\t]*\)\t\(.*\)$,<a:\1> <a:\2> <a:\3> .,' "$work/graph.tsv" >"$work/graph.nt"
echo '<a:e2> <http://www.w3.org/2000/01/rdf-schema#label> "two" .' >>"$work/graph.nt"
on l import "$work/graph.nt" -p a=a: --labels en
on l train
on l predict a:e1 a:next '?' -a -k 1000
on l similar a:e1 -k 1000
on l query 'SELECT ?x { a:e1 a:next ?x }' --exact
on c eval --floor --classify --limit 5
on c predict e1 next '?' -k 1
printf 'e1\tnext\t?\nnobody\tnext\t?\n' >"$work/questions"
run -d "$work/c" predict --batch "$work/questions" --json
cp "$out" "$work/json/199.predict"
on c similar e1 -k 1
on c query 'SELECT ?x { ?x <next> ?y . ?y <next> <e5> }' --exact
on c query 'SELECT ?x { ?x <next> ?y . ?y <next> <e5> . FILTER NOT EXISTS { <e1> <next> ?x } }' --explain
has queries queries sample "$work/graph.tsv" -n 3 --types 1p,2i -o "$work/queries.jsonl"
printf '%s\n' '{"type":"2in","anchors":["e1","e2"],"relations":[["next"],["next"]],"hard":["e3"]}' \
	>>"$work/queries.jsonl"
on c query --batch "$work/queries.jsonl" --evaluate --limit 2
has queries queries federate "$work/parts/0" "$work/parts/1" --arm fedcqa --dim 4 --rounds 1 --round-steps 1 --count 5 \
	--valid-count 2 --test-count 2 --cross-count 2
on c queries train --dim 4 --count 9 --valid-count 3 --steps 2 --eval-every 1
on c query --batch "$work/queries.jsonl" --evaluate --encoder "$work/c/encoder"
printf 'no query\nno more\n' | cat "$work/queries.jsonl" - >"$work/bad.jsonl"
run -d "$work/c" query --batch "$work/bad.jsonl" --evaluate --json
cp "$out" "$work/json/196.query"
run -d "$work/c" query --batch "$work/queries.jsonl" -k 2 --explain --json
cp "$out" "$work/json/197.query"
on c checkpoint save one
on c checkpoint list
on c checkpoint restore one
on c doctor
on c secret
on c http key
on c backup "$work/copy"
has restore -d "$work/back" restore "$work/copy"
cat >"$work/space.yaml" <<'YAML'
search: {method: random, trials: 2, epochs: 2}
model: {rel_dim: [0, 3]} # of which the second is refused
YAML
on c tune "$work/space.yaml"
head -3 "$work/graph.tsv" >"$work/forget.tsv"
on c unlearn "$work/forget.tsv" --retrain --epochs 2 --anyway
on d unlearn "$work/forget.tsv" --epochs 2 --anyway
mkdir "$work/data"
cp -r "$work/parts/0" "$work/parts/1" "$work/data"
cat >"$work/x.yaml" <<'YAML'
experiment: {name: small, data: data, seeds: [1], rounds: 1, epochs: 1, eval_every: 1}
model: {kind: transe, dim: 8}
train: {lr: 0.01, negatives: 4, batch: 64, threads: 1}
variants: {single: }
YAML
has experiment experiment "$work/x.yaml" -o "$work/x"
cat >"$work/asked.yaml" <<'YAML'
experiment: {name: asked, data: data, seeds: [1], rounds: 1, epochs: 1, eval_every: 1}
queries: {types: [2p], count: 5, valid_count: 2, test_count: 2, cross_count: 2, dim: 4, steps: 1}
model: {kind: transe, dim: 8}
train: {lr: 0.01, negatives: 4, batch: 64, threads: 1}
variants: {central: , local: , search_federated: }
YAML
has experiment experiment "$work/asked.yaml" -o "$work/asked"
has experiment experiment --methods
sed -i 's/negatives: 8/negatives: 8, filtered: false, shared_chunk: 0, dp: {epsilon: 8, rate: 0.5}/' "$work/c/agent.yaml"
on c train --fresh
on c ledger show

has init -d "$work/i" init --name i --listen off
run -d "$work/i" config set federation.accept invited
run -d "$work/i" secret
on i invite --address h:1 -o "$work/line-i"
on i invite --list

# A line of another federation than its own.
for who in fa fb; do "$fkge" -q -d "$work/$who" init --name $who --listen 127.0.0.1:1 --secret >/dev/null; done
"$fkge" -q -d "$work/fa" invite --address 127.0.0.1:1 --for "$(id_of fb)" -o "$work/line-fb" 2>/dev/null
on fb join --replace-secret "$work/line-fb"

# ---- partners: sessions of pairs ----
for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat, control: true, judge: false'
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/; s/max_rounds: 2/max_rounds: 1/" "$work/$who/agent.yaml"
	printf 'ppat: {steps: 4, batch: 8}\nprivacy: {useless_sessions: spend}\nquery: {answer: soft}\n' >>"$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train --epochs 4 >/dev/null
done
on a invite --for "$(id_of b)"
on a invite --list
member "$work/json/$((number - 1)).invite" line >"$work/line"
on b join "$work/line"
ok 'a starts' start a
ok 'b starts' start b
ok 'a has hosted' wait_for 'rounds of a' at_least a rounds 1
ok 'b has hosted' wait_for 'rounds of b' at_least b rounds 1
trained_alone() { [ "$(member "$work/$1.json" arms alone_epochs)" -ge 1 ]; } # when it is idle
ok 'a has trained alone, too' wait_for 'the control arm of a' trained_alone a
on a status
on a events
on a config set log.level warn
on a config set train.lr 0.03
on a reload
on a peer list
on a peer show b
on a peer pending
on a peer introduced
question='SELECT ?x { <e1> <next>/<next> ?x }'
on a query --federated --tell-own --explain "$question"
printf '{"type":"1p","anchors":["e1"],"relations":[["next"]],"hard":["e50"]}\n' >"$work/across.jsonl"
on a query --federated --tell-own --batch "$work/across.jsonl"
on a query --federated --batch "$work/across.jsonl" --evaluate
on a queries list
on a queries show "$(member "$work/json/$((number)).queries" steps 0 id)"
on b stop
ok 'b has ended' wait_for 'the end of b' ended "$pid_b"
on a query --federated "$question"
on a stop
ok 'a ends' wait_for 'the end of a' ended "$pid_a"
on a queries export -o "$work/a.q"
on b queries export -o "$work/b.q"
has queries queries verify "$work/a.q" "$work/b.q"
on a report --control
on a ledger show
on a ledger quote b --labels 10
on a ledger export "$work/a.led"
on b ledger export "$work/b.led"
has ledger ledger verify "$work/a.led" "$work/b.led"
on a ledger close b
on a peer revoke b
cp -r "$work/c" "$work/c.old"
on c peer add "$("$fkge" -d "$work/b" id --line)"
on c peer revoke b
on c peer forget b
on c key rotate -o "$work/keys"
on c key show
"$fkge" -q -d "$work/b" peer add "$("$fkge" -q -d "$work/c.old" id --line)" 2>/dev/null
on b peer rotate --check "$work/keys"

sed -i 's/translator: ppat/translator: map/' "$work/a/agent.yaml"
on a ledger quote b --rows 100
sed -i 's/translator: map/translator: procrustes/; s/useless_sessions: spend/useless_sessions: spend, noisy_rows: true/; s/answer: soft/answer: nothing/' \
	"$work/a/agent.yaml"
on a ledger quote b --rows 100

# ---- a common frame ----
agent f 3 'frame: common'
"$fkge" -q -d "$work/f" train --epochs 1 >/dev/null
ok 'f starts' start f
on f status
on f stop
ok 'f ends' wait_for 'the end of f' ended "$pid_f"

# ---- rounds ----
for who in r s; do
	agent $who 1 'mode: rounds, weight_from: 1'
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	echo 'rounds: {epochs: 1, max: 1, every_s: 0.1, join_s: 60, train_s: 600, stage_s: 300}' >>"$work/$who/agent.yaml"
done
befriend r s >/dev/null 2>&1
ok 'r starts' start r
ok 's starts' start s
over() { [ "$("$fkge" -d "$work/$1" rounds list --json | grep -c '"finished_ms"')" -ge 1 ]; }
signed() { "$fkge" -d "$work/$1" rounds show --json >"$work/round" && grep -q '"sign_key"' "$work/round"; }
ok 'r has an account' wait_for 'the account of s' signed r
ok 's has an account' wait_for 'the account of r' signed s
on r status
on r rounds list
on r rounds show
on r stop
on s stop
ok 'r ends' wait_for 'the end of r' ended "$pid_r"
ok 's ends' wait_for 'the end of s' ended "$pid_s"
on r report
on r rounds export "$work/r.acc"
on s rounds export "$work/s.acc"
has rounds rounds verify "$work/r.acc" "$work/s.acc"
for who in r s; do
	sed -i 's/^rounds: {epochs: 1, max: 1,/rounds: {method: fedcqa, dim: 4, steps: 1, batch: 8, queries: 5, epochs: 1, max: 2,/' \
		"$work/$who/agent.yaml"
	echo 'query: {score_holders: 2}' >>"$work/$who/agent.yaml"
	ok "$who starts with an encoder" start $who
done
encoder() { run -d "$work/$1" queries encoder && [ "$status" -eq 0 ]; }
ok 'r has an encoder' wait_for 'a round with encoders' encoder r
on r queries encoder
scored() { run -d "$work/r" query --federated --encoder "$work/r/encoder.rounds" --holders 2 'SELECT ?x { <e3> <next> ?x }' && [ "$status" -eq 0 ]; }
ok 's scores' wait_for 'scores of s' scored
on r query --federated --encoder "$work/r/encoder.rounds" --holders 2 'SELECT ?x { <e3> <next> ?x }'
on r stop
on s stop
has audit audit --rows 60 --draws 100000 --sessions 1000 --labels 32768

ok 'every key is on the page, and every key of the page is printed' python3 "$keys" "$page" "$work/json"
finish
