#!/bin/sh
# What one owner does alone: every command's help, wrong usage, config, import, training, answers.
. "$(dirname "$0")/lib.sh"

# ---- help and usage ----
for c in init id import export split synth train tune eval predict similar unlearn serve status stop doctor invite join version \
	'peer list' 'peer show' 'peer pending' 'peer add' 'peer accept' 'peer reject' 'peer revoke' 'peer forget' \
	'ledger show' 'ledger quote' 'ledger verify' 'ledger export' 'ledger close' \
	'checkpoint list' 'checkpoint save' 'checkpoint restore'; do
	# shellcheck disable=SC2086
	ok "help of $c has an example" prints Example $c --help
done
ok 'the table of commands' prints 'predict' --help
ok 'no command at all' says 2 'needs a command'
ok 'a misspelt command is guessed' says 2 "did you mean 'train'" trian
ok 'a misspelt subcommand is guessed' says 2 "did you mean 'peer accept'" peer acept x
ok 'an unknown option' exits 2 eval --sidez tail
ok 'a value that is not allowed' says 2 'allowed are both, tail, head' eval --sides left
ok 'version' prints fkge version
ok 'as an option' prints 'fkge 0.' --version
ok 'or a letter' prints 'fkge 0.' -V
ok 'help as a letter' prints 'predict' -h
ok 'options before a subcommand' prints fkge -q config -d /none --help
ok 'are those of all commands alone' says 2 'fkge config: unrecognized option' config --top 3 get
ok 'help of a command' prints 'Example' help train
ok 'no such command: one message' says 2 "no command 'bogus' (fkge --help lists them)" bogus

# ---- making an agent ----
a=$work/a
ok 'nothing there yet' says 1 'make one with' -d "$a" eval
ok 'init' exits 0 -d "$a" init --name acme --listen 127.0.0.1:0
ok 'a name that peers refuse is refused first' says 2 'peers take names of at most 64' -d "$work/no" init \
	--name "$(printf 'n%.0s' $(seq 70))"
ok 'nothing was made' [ ! -e "$work/no" ]
ok 'nor one with control characters' says 2 'control characters' -d "$work/no" init --name "$(printf 'a\033b')"
ok 'init twice is refused' says 1 'is there already' -d "$a" init
cut=$work/cut
ok 'an init' exits 0 -d "$cut" init --secret
cut_id=$("$fkge" -d "$cut" id)
cp "$cut/federation.key" "$work/cut.key"
rm "$cut/agent.yaml"
ok 'one that was cut off goes on' says 0 'goes on with its key' -d "$cut" init --secret
ok 'it is the same agent' [ "$("$fkge" -d "$cut" id)" = "$cut_id" ]
ok 'with the same secret' cmp -s "$cut/federation.key" "$work/cut.key"
rm "$cut/agent.yaml" "$cut/store.db"
mv "$cut/identity.key" "$cut/identity.key.next"
ok 'one that was cut off before its store goes on' says 0 'goes on with its key' -d "$cut" init --secret
ok 'it is the same agent still' [ "$("$fkge" -d "$cut" id)" = "$cut_id" ]
ok 'its keys are where they belong' [ ! -e "$cut/identity.key.next" ]
rm "$cut/agent.yaml"
mv "$cut/identity.key" "$cut/identity.key.next"
ok 'one that was cut off after its store goes on' says 0 'goes on with its key' -d "$cut" init --secret
ok 'as the same agent, too' [ "$("$fkge" -d "$cut" id)" = "$cut_id" ]
rm "$cut/agent.yaml" "$cut/store.db"
ok 'no empty store is put beside keys, which may have spent' says 1 'which knows what was spent' -d "$cut" init
ok 'none was made' [ ! -e "$cut/store.db" ]
rm "$cut/identity.key"
echo >"$cut/store.db"
ok 'no other agent is put beside a store' says 1 'the key of its agent is not' -d "$cut" init
mode() { [ "$(stat -c %a "$1")" = "$2" ]; }
ok 'the key is private' mode "$a/identity.key" 600
ok 'the folder is private' mode "$a" 700
chmod 644 "$a/identity.key"
ok 'a readable key is refused' says 6 'chmod 600' -d "$a" id
chmod 600 "$a/identity.key"
ok 'id as JSON' exits 0 -d "$a" id --json
ok 'id has a name' [ "$(member "$out" name)" = acme ]

# ---- agent.yaml ----
cp "$a/agent.yaml" "$work/good.yaml"
config() { printf "$1" >"$a/agent.yaml"; }
config 'name: x\nmodel: {kind: transe}\nmodle: 3\n'
ok 'unknown key: file, line, key' says 2 "agent.yaml:3: unknown key 'modle'; known are: name" -d "$a" id
config 'name: x\ntrain:\n  epochs: 12k\n'
ok 'not a number' says 2 "agent.yaml:3: train.epochs: '12k' is not allowed here; allowed: a whole number from 1" -d "$a" id
config 'train: {epochs: -1}\n'
ok 'out of range' says 2 "agent.yaml:1: train.epochs: '-1'" -d "$a" id
config 'train: {rare_weight: 0}\n'
ok 'nor what no training takes' says 2 "agent.yaml:1: train.rare_weight: '0' is not allowed here" -d "$a" id
config 'model:\n  kind: transx\n'
ok 'not one of the words' says 2 'allowed: transe | transe_l2 | transh' -d "$a" id
config 'name: [\n'
ok 'not YAML' says 2 'not YAML' -d "$a" id
config 'privacy: {epsilon_per_peer: 5, epsilon_total: 2}\n'
ok 'caps that contradict each other' says 2 'epsilon_total (2) is below' -d "$a" id
cp "$work/good.yaml" "$a/agent.yaml"
ok 'what init wrote is accepted' exits 0 -d "$a" id
sed -i 's/dim: 128/dim: 16/; s/threads: 2/threads: 1/; s/ lr: 0.001/ lr: 0.02/; s/epochs: 100 /epochs: 20 /' "$a/agent.yaml"

# ---- import ----
graph "$work/g.tsv" 1
printf 'a\tr\tb\na\tr\n' >"$work/bad.tsv"
ok 'a short line: file, line, status 4' says 4 'bad.tsv:2:' -d "$a" import "$work/bad.tsv"
ok 'no such file' exits 4 -d "$a" import "$work/none.tsv"
ok 'training without a graph' says 1 'import GRAPH' -d "$a" train
ok 'import' exits 0 -d "$a" import "$work/g.tsv" --json
ok 'import reports entities' [ "$(member "$out" entities)" = 100 ]
ok 'import twice is refused' says 1 'with --replace' -d "$a" import "$work/g.tsv"
ok 'import --replace' exits 0 -d "$a" import --replace "$work/g.tsv"
printf '@prefix e: <http://e.org/> .\ne:a e:p e:b , "x" , [] .\n' >"$work/g.ttl"
agent_of() { "$fkge" -q -d "$1" init --name "${1##*/}" --listen 127.0.0.1:0 >/dev/null; }
agent_of "$work/rdf"
ok 'import Turtle' exits 0 -d "$work/rdf" import --json "$work/g.ttl"
ok 'literals are left out' [ "$(member "$out" train) $(member "$out" literals_left_out)" = '2 1' ]
ok 'or kept' exits 0 -d "$work/rdf" import --json --replace --keep-literals --drop-blank-nodes "$work/g.ttl"
ok 'blank nodes are left out' [ "$(member "$out" train) $(member "$out" blank_nodes_left_out)" = '2 1' ]
ok 'not that format' says 4 'g.ttl:1: 1 column' -d "$work/rdf" import --replace --format tsv "$work/g.ttl"
ok 'no such format' says 2 'allowed are auto, tsv, openke, ntriples, turtle' -d "$work/rdf" import --format rdf "$work/g.ttl"
mkdir "$work/openke"
printf '1\n0 1 0\n' >"$work/openke/train2id.txt"
ok 'import OpenKE' prints '2 entities, 1 relations; 1 train' -d "$work/rdf" import --replace "$work/openke"
mkdir "$work/alone" "$work/whole" && cp "$work/g.tsv" "$work/alone/train.tsv" && cp "$work/alone/train.tsv" "$work/whole"
head -n 3 "$work/g.tsv" >"$work/whole/valid.tsv"
fresh() { exits 0 -d "$work/rdf" import --replace --json "$@"; }
ok 'a folder with train alone' fresh "$work/alone"
ok 'has nothing to be scored by, and what to do is said' grep -q -- '--replace and --valid 0.1 --test 0.1' "$err"
ok 'is split where that is asked for' fresh "$work/alone" --valid 0.2 --test 0.1
ok 'as asked' [ "$(member "$out" valid) $(member "$out" split_made)" = "$(($(wc -l <"$work/g.tsv") / 5)) True" ]
idle() { says 2 "$1" -d "$work/rdf" import --replace "$2" $3; }
ok 'one with valid is not' idle 'has valid or test of its own' "$work/whole" '--valid 0.2'
ok 'nor by a seed' idle 'has valid or test of its own' "$work/whole" '--seed 3'
for o in --keep-literals --drop-blank-nodes '--labels en'; do ok "$o goes with RDF" idle 'are for RDF' "$work/g.tsv" "$o"; done
for o in --keep-header --trim; do ok "$o goes with TSV" idle 'are for TSV' "$work/g.ttl" "$o"; done
for o in '--valid 0.1' --trim --keep-literals; do ok "$o not with --alias" idle 'go with a graph' "$work/g.tsv" "--alias $o"; done
printf 'a\tr\tb\nb\tr\tc\n' >"$work/tiny.tsv"
for o in --replace '--format tsv'; do ok "nor $o" says 2 'leave out --replace, --format' -d "$work/rdf" import --alias $o "$work/g.tsv"; done
ok 'too few triples for valid: so it says' says 0 'a larger --valid (0.5)' -d "$work/rdf" import --replace "$work/tiny.tsv"
ok 'or what that does not mend' says 0 'more triples' -d "$work/rdf" import --replace --valid 0.5 "$work/tiny.tsv"
printf 'c\tr\ta\n' | cat "$work/tiny.tsv" - >"$work/ring.tsv"
ok 'a share of three' says 0 'a larger --valid (0.34)' -d "$work/rdf" import --replace --valid 0.2 "$work/ring.tsv"
ok 'that brings one into valid' prints '2 train, 1 valid' -d "$work/rdf" import --replace --valid 0.34 "$work/ring.tsv"
mkdir "$work/untold" && cp "$work/g.tsv" "$work/untold/train.tsv" && cp "$work/whole/valid.tsv" "$work/untold/test.tsv"
ok 'no shares beside a test' says 0 '--replace and with valid beside train' -d "$work/rdf" import --replace "$work/untold"
exits 0 -d "$work/rdf" import --replace "$work/tiny.tsv"
ok 'train, too' says 4 'import it again, with --replace and --valid' -d "$work/rdf" train
printf 'e1\tx1\ne2\tx2\nnobody\tx3\n' >"$work/alias.tsv"
ok 'aliases' exits 0 -d "$a" import --alias "$work/alias.tsv" --json
ok 'aliases are counted' [ "$(member "$out" entities) $(member "$out" unknown)" = '2 1' ]
printf 'x\ty\n' >"$work/alias.tsv"
ok 'an alias table of strangers' says 4 'none of its 1 names' -d "$a" import --alias "$work/alias.tsv"
printf 'a\tx1\nr\tx2\n' >"$work/alias.tsv"
exits 0 -d "$work/rdf" import --alias "$work/alias.tsv"
ok 'another table' prints 'in place of the table before, of 2 aliases' -d "$work/rdf" import --alias "$work/alias.tsv"
: >"$work/no-alias.tsv"
ok 'an empty table takes it away' prints 'in place of the table before, of 2 aliases' -d "$work/rdf" import --alias "$work/no-alias.tsv"
ok 'none is left' exits 0 -d "$work/rdf" import --alias "$work/no-alias.tsv" --json
ok 'by the numbers, too' [ "$(member "$out" entities) $(member "$out" relations) $(member "$out" replaced)" = '0 0 0' ]
exits 0 -d "$work/rdf" import --alias "$work/alias.tsv"
piped() { cat "$work/alias.tsv" | "$fkge" -d "$work/rdf" import --alias /dev/stdin >"$out" 2>"$err"; status=$?; [ $status -eq 4 ] && grep -q 'put it into a file first' "$err"; }
ok 'none through a pipe, where relations would lose theirs' piped
ok 'the same names' exits 0 -d "$work/rdf" import --replace --json "$work/ring.tsv"
ok 'keep their aliases' [ "$(member "$out" aliases_dropped)" = 0 ]
ok 'others have none, and that is said' says 0 '2 aliases are dropped' -d "$work/rdf" import --replace "$work/g.tsv"

# ---- training ----
ok 'no embeddings yet' says 1 'fkge -d' -d "$a" eval
ok 'train' exits 0 -d "$a" train --json
ok 'a line a look for logs' grep -q '^epoch 20 of .*: loss .*, valid MRR ' "$err"
digest=$(member "$out" digest)
score=$(member "$out" valid_mrr)
ok 'the best state is the one reported' exits 0 -d "$a" eval --split valid --filter train+valid --json
ok 'same digest' [ "$(member "$out" checkpoint digest)" = "$digest" ]
ok 'same score on valid' [ "$(member "$out" metrics mrr)" = "$score" ]
rises() { python3 -c "import sys; sys.exit(not $1 >= $2)"; }
cp "$a/agent.yaml" "$work/train.yaml"
sed 's/  reg: none/  reg: l3/' "$work/train.yaml" >"$a/agent.yaml"
ok 'a regularizer without weight is pointed out' says 0 'nothing is regularised' -d "$work/a" train --epochs 1
cp "$work/train.yaml" "$a/agent.yaml"
ok 'the control arm' exits 0 -d "$a" train --rounds 3 --epochs 5 --json
ok 'the control arm never gets worse' rises "$(member "$out" valid_mrr)" "$score"
digest=$(member "$out" digest)
ok 'another protocol is said to be another' exits 0 -d "$a" eval --ties optimistic --json --floor --classify
ok 'custom protocol' [ "$(member "$out" protocol name) $(member "$out" protocol ties)" = 'custom optimistic' ]
record() { # everything that a figure depends on stands beside it
	python3 - "$out" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
p, c = j["protocol"], j["checkpoint"]
sys.exit(not (p["sides"] == "both" and p["filter"] == ["train", "valid", "test"]
              and p["candidates"] == "all" and p["table"] == "local" and len(c["digest"]) == 64
              and c["model"] == "transe" and c["dim"] == 16 and j["split"] == "test"
              and j["seed"] == 1 and j["limit"] == 0 and len(j["graph"]) == 64
              and j["arithmetic"] in ("scalar", "avx2", "avx512") and j["metrics"]["queries"] > 0))
PY
}
ok 'the record names all that a figure depends on' record
ok 'floor and classification' rises "$(member "$out" classification test_accuracy)" 0.3
graph_was=$(member "$out" graph)
ok 'switches change the record' exits 0 -d "$a" eval --sides tail --filter train --candidates typed \
	--ties pessimistic --limit 5 --seed 7 --split valid --floor --json
ok 'the floor is of the same queries' [ "$(member "$out" floor queries)" = "$(member "$out" metrics queries)" ]
changed() {
	python3 - "$out" "$graph_was" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
p = j["protocol"]
sys.exit(not ([p[k] for k in ("name", "sides", "filter", "candidates", "ties")] ==
              ["custom", "tail", ["train"], "typed", "pessimistic"] and j["split"] == "valid"
              and j["limit"] == 5 and j["seed"] == 7 and j["graph"] == sys.argv[2]
              and j["metrics"]["queries"] == j["metrics"]["tail_queries"] == 5))
PY
}
ok 'each of them' changed
ok 'in words too' prints 'tail sides, filter none, all candidates' -d "$a" eval --sides tail --filter none
ok 'predict a tail' exits 0 -d "$a" predict e1 next '?' -k 3 --json
ok 'three answers' [ "$(member "$out" answers 2 rank)" = 3 ]
ok 'predict a relation' prints next -d "$a" predict e1 '?' e2 -a
ok 'predict nothing' says 2 'exactly one' -d "$a" predict e1 next e2
ok 'predict a stranger' says 1 "no entity 'zz'" -d "$a" predict zz next '?'

# ---- out and back ----
ok 'export npy' exits 0 -d "$a" export "$work/npy"
ok 'names beside rows' [ "$(wc -l <"$work/npy/entities.txt")" -eq 100 ]
ok 'it knows what is written' says 2 'allowed are npy, tsv, word2vec, openke, safetensors, pykeen' -d "$a" export "$work/no" -f rotate
has_no_rotate() { ! grep -q 'pykeen, rotate' "$err"; }
ok 'and nothing else' has_no_rotate
ok 'of triples, too' says 2 'allowed are tsv, openke, pykeen' -d "$a" export "$work/no" --triples -f ntriples
ok 'rounds of pairs do not go on' says 2 'federation.mode is pairs' -d "$a" rounds resume
ok 'export tsv' exits 0 -d "$a" export "$work/tsv" --format tsv
ok 'rows by name' grep -q '^e7	' "$work/tsv/entities.tsv"
ok 'save' exits 0 -d "$a" checkpoint save
ok 'train from the beginning' exits 0 -d "$a" train --fresh --epochs 1
run -d "$a" checkpoint list --json
saved=$(python3 -c '
import json, sys
print([c["id"] for c in json.load(open(sys.argv[1]))["checkpoints"] if c["digest"] == sys.argv[2]][0])' "$out" "$digest")
ok 'restore' exits 0 -d "$a" checkpoint restore "$saved"
ok 'restored bit for bit' exits 0 -d "$a" eval --json
ok 'digest is back' [ "$(member "$out" checkpoint digest)" = "$digest" ]
ok 'save under a name' prints 'saved the best state' -d "$a" checkpoint save before-globex
ok 'the name is listed' prints before-globex -d "$a" checkpoint list
ok 'a name is given once' says 1 'is called' -d "$a" checkpoint save before-globex
named() { # COMMAND...: by the state of that name
	run -d "$a" "$@" -c before-globex --json
	[ "$status $(member "$out" checkpoint name)" = '0 before-globex' ]
}
ok 'predict goes by a name' named predict e1 next '?'
ok 'similar, too' named similar e1
ok 'eval, too' named eval
ok 'query, too' named query 'SELECT ?x { <e1> <next> ?x }'
ok 'export, too' named export "$work/of-a-name"
for c in 'predict e1 next ?' 'similar e1' eval "export $work/none"; do ok "${c%% *} of a name that is none" says 1 "no state has the number or the name 'globex'" -d "$a" $c -c globex; done
ok 'nor is what reads as an option' says 2 "'-x' cannot be a state's name" -d "$a" checkpoint save -- -x
ok 'a number is no name' says 2 'no number' -d "$a" checkpoint save 12
ok 'train from the beginning again' exits 0 -d "$a" train --fresh --epochs 1
ok 'restore by name' exits 0 -d "$a" checkpoint restore before-globex --json
ok 'it is the one of that name' [ "$(member "$out" checkpoint digest)" = "$digest" ]
run -d "$a" eval --json
ok 'and the best one now' [ "$(member "$out" checkpoint digest)" = "$digest" ]
# the same graph, split otherwise: the best state has learnt what it would be judged by
cp -r "$a" "$work/again"
ok 'another split' exits 0 -d "$work/again" import --replace "$work/g.tsv" --seed 7 --json
ok 'of which most was in train' [ "$(member "$out" learnt_before)" -gt 0 ]
ok 'says so' grep -q 'were in train before: figures of it' "$err"
ok 'the same split again' exits 0 -d "$work/again" import --replace "$work/g.tsv" --seed 7
ok 'has nothing to say' eval '! grep -q "best state stays" "$err"'
# a name is another one now: rows of a state before would stand under wrong names
cp -r "$a" "$work/renamed"
sed 's/\be7\b/elsewhere/' "$work/g.tsv" >"$work/renamed.tsv"
ok 'a name is changed' exits 0 -d "$work/renamed" import --replace "$work/renamed.tsv" --json
was=$(member "$out" saved_state)
ok 'the best state is a saved one' [ "$was" -gt 0 ]
ok 'which it says' grep -qF "checkpoint restore $was)" "$err"
for c in 'predict e1 next ?' 'similar e1' eval "export $work/none"; do
	ok "${c%% *} of a state before says so" says 4 'of another graph' -d "$work/renamed" $c -c before-globex
done
ok 'nor is it restored' says 4 'of another graph' -d "$work/renamed" checkpoint restore before-globex
ok 'with the old names again' exits 0 -d "$work/renamed" import --replace "$work/g.tsv"
ok 'it is' exits 0 -d "$work/renamed" checkpoint restore before-globex
run -d "$a" eval && cp "$out" "$work/eval-of-a"
ok 'with rows under their own names' exits 0 -d "$work/renamed" eval
ok 'as the figures show' cmp "$out" "$work/eval-of-a"
# a disk that is full in the middle: the best state is still there
cp -r "$a" "$work/half"
run -d "$work/half" export "$work/half.rows"
best_of_half() { run -d "$work/half" checkpoint list --json && python3 -c 'import json,sys; print([c["digest"] for c in json.load(open(sys.argv[1]))["checkpoints"] if c["kind"] == "best"])' "$out"; }
had=$(best_of_half)
python3 - "$work/half/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TRIGGER full BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
db.commit()
PY
other=$(run -d "$work/half" checkpoint list --json && python3 -c 'import json,sys; print(next(c["id"] for c in json.load(open(sys.argv[1]))["checkpoints"] if c["kind"] != "best"))' "$out")
ok 'restore on a full disk' says 9 'the disk is full' -d "$work/half" checkpoint restore "$other"
ok 'the best state stays' [ "$(best_of_half)" = "$had" ]
ok 'so with embeddings' says 9 'the disk is full' -d "$work/half" import --embeddings "$work/half.rows"
ok 'it stays' [ "$(best_of_half)" = "$had" ]
run -d "$work/half" config set eval.valid_limit 5
ok 'and where another protocol begins' says 9 'the disk is full' -d "$work/half" train --epochs 1
ok 'it stays, too' [ "$(best_of_half)" = "$had" ]
ok 'an unknown name' says 1 'no state has' -d "$a" checkpoint restore after-globex
ok 'restore of nothing' exits 1 -d "$a" checkpoint restore 999

# ---- ledger, status, doctor of an agent that never met anybody ----
ok 'an empty ledger holds' prints 'the ledger holds' -d "$a" ledger verify
ok 'status of a stopped agent' exits 5 -d "$a" status
ok 'stop of a stopped agent' exits 5 -d "$a" stop
run -d "$a" config set federation.epochs_per_round 65536
ok 'rounds of more epochs than can be counted' says 2 'at most 2147483647' -d "$a" train --rounds 65536
run -d "$a" config set federation.epochs_per_round 1
ok 'doctor' exits 0 -d "$a" doctor
run -q -d "$work/unjudged" init --listen off
printf 'a\tr\tb\nb\tr\tc\n' >"$work/few.tsv"
run -q -d "$work/unjudged" import "$work/few.tsv" --valid 0 --test 0
ok 'doctor misses valid' exits 1 -d "$work/unjudged" doctor
ok 'without which there is nothing to judge by' grep -q '^bad   graph .* without valid, better cannot be told from worse' "$out"
run -d "$a" config set query.rules "nothing $("$fkge" -d "$a" id) *; soft * *"
ok 'doctor names an id of query.rules that is no partner' prints 'query.rules names' -d "$a" doctor
run -d "$a" config unset query.rules
if grep -qw avx2 /proc/cpuinfo; then
	export OPENBLAS_CORETYPE=Prescott
	ok 'doctor sees an OpenBLAS that mistakes the processor' prints OPENBLAS_CORETYPE= -d "$a" doctor
	unset OPENBLAS_CORETYPE
	ok 'and none otherwise, for the program mends that' prints 'OpenBLAS uses its kernels' -d "$a" doctor
fi
chmod 644 "$a/identity.key"
ok 'doctor finds a readable key' exits 1 -d "$a" doctor
ok 'and says what to type' grep -q 'chmod 600' "$out"
chmod 600 "$a/identity.key"
ok 'join with rubbish' exits 4 -d "$a" join "$a/agent.yaml"
ok 'join with no file' says 4 'no such file' -d "$a" join "$work/none"
ok 'with what cannot be one' says 4 'too long' -d "$a" join "$work/$(printf '%0300d' 0)"

# ---- wrong usage, for programs; wrong folders ----
spaced="$work/it's a 1"
word="'$work/it'\\''s a 1'"
ok 'a folder with a space stands in quotes in advice' says 1 "fkge -d $word init" -d "$spaced" eval
ok 'of init' says 0 "fkge -d $word import GRAPH" -d "$spaced" init --name spaced --listen off
ok 'of who wants a graph' says 1 "fkge -d $word import GRAPH" -d "$spaced" train
advised() (eval "\"$fkge\" ${1#fkge }" >"$out" 2>"$err")
ok 'which a shell takes' advised "$(sed 's/.*: \(fkge .*\) GRAPH/\1/' "$err") '$work/tiny.tsv'"
ok 'of who wants tables' says 1 "fkge -d $word train" -d "$spaced" eval
for c in bogus 'config bogus' 'help bogus'; do
	ok "no command: $c" exits 2 $c --json
	ok 'with --json is an object' [ "$(member "$out" error | cut -d ' ' -f 1-3) $(member "$out" exit)" = "no command 'bogus' 2" ]
done
ok '--json behind -- is no option' exits 2 bogus -- --json
ok 'so there is no object' [ ! -s "$out" ]
run train --json --nope
ok 'wrong usage with --json is an object' [ "$(member "$out" error)" = "unrecognized option '--nope'" ]
ok 'with its exit status' [ "$(member "$out" exit) $status" = '2 2' ]
ok 'and a message' grep -qF -- '--nope' "$err"
run --json train --epochs x
ok 'so with --json before the command' [ "$(member "$out" exit) $status" = '2 2' ]
run train --json --help
ok 'help is no error' [ "$status" -eq 0 ]
ok 'usage in short' prints 'Usage: fkge' --usage
# ---- a folder that this user may not write to ----
cp -r "$a" "$work/still"
rm -f "$work"/still/store.db-shm "$work"/still/store.db-wal
set -- "$fkge"
if [ "$(id -u)" = 0 ]; then # whom no mode stops
	chmod 711 "$work"
	chown -R 65534 "$work/still"
	set -- setpriv --reuid=65534 --clear-groups "$fkge"
fi
chmod -R a-w "$work/still"
still() { "$@" -d "$work/still" eval >"$out" 2>"$err"; [ $? -ne 0 ] && grep -q 'store.db: .*; its folder cannot be written to' "$err"; }
if "$@" version >/dev/null 2>&1; then ok 'it says so, and what to do' still "$@"; fi
chmod -R u+w "$work/still"
# ---- a file system that is read-only ----
# frozen ARGS...: fkge, where the agent's folder is
frozen() {
	unshare -m sh -c 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"' "$a" \
		"$fkge" -d "$a" "$@" >"$out" 2>"$err" </dev/null
}
if unshare -m true 2>/dev/null && frozen version; then
	for c in eval 'ledger show' 'checkpoint list' 'peer list' 'invite --list' "backup $work/frozen"; do
		ok "read-only: $c" frozen $c
	done
	finds() { ! frozen doctor && grep -q '^bad .* on a read-only file system' "$out" && grep -q '^ok    store' "$out"; }
	ok 'doctor says what it is' finds
	rm -f "$a/store.db-shm"
	echo log >"$a/store.db-wal"
	stands() { ! frozen eval && grep -q 'store.db: .*; its folder cannot be written to' "$err"; }
	ok 'but no log is overlooked' stands
	rm "$a/store.db-wal"
	python3 -c '
import fcntl, sys, time
f = open(sys.argv[1])
fcntl.flock(f, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)' "$a/store.db.lock" >"$work/held" &
	owner=$!
	pids="$pids $owner"
	wait_for 'an owner elsewhere' test -s "$work/held"
	ok 'nor an owner, who may write' stands
	kill $owner
	ok 'read-only: without one' wait_for 'its end' frozen eval
fi

ok 'a folder without an agent is called that' says 1 'no agent lives here' -d "$work/none" status
ok 'for config, too' says 1 'no agent lives here' -d "$work/none" config get
mkdir "$work/lost" && cp "$a/identity.key" "$work/lost/"
for c in status id 'config get' serve 'peer list'; do
	ok "$c: one without agent.yaml is told from none" \
		says 1 'agent.yaml is missing, and the keys of an agent are there' -d "$work/lost" $c
done
rm "$work/lost/identity.key"
cp "$a/identity.key" "$a/agent.yaml" "$work/lost/"
for c in serve 'peer list' train; do
	ok "$c: without a store it sends to restore, not to a copy" \
		says 1 'fkge restore, which asks partners for what was spent since; never copy an older store.db' -d "$work/lost" $c
done
run -d "$work/lost" doctor
ok 'so does doctor' flat_has 'never copy an older store.db'
ok 'for stop, too' says 1 'no agent lives here' -d "$work/none" stop

printf 'head\trelation\ttail\na\tr\tb \nb \tr\tc\n' >"$work/odd.tsv"
# ---- other valid triples, of the same names ----
mkdir "$work/easy" "$work/other"
"$fkge" -q synth -e 60 -r 2 -t 400 -o "$work/whole60" >/dev/null
cp "$work/whole60/train.tsv" "$work/easy" && cp "$work/whole60/train.tsv" "$work/other"
head -n 30 "$work/whole60/train.tsv" >"$work/easy/valid.tsv"
cp "$work/whole60/valid.tsv" "$work/other"
"$fkge" -q -d "$work/judged" init --name judged >/dev/null
cat >"$work/judged/agent.yaml" <<Y
name: judged
listen: "off"
model: {kind: complex, dim: 16}
train: {epochs: 20, lr: 0.05, negatives: 16, eval_every: 5, patience: 0}
Y
"$fkge" -q -d "$work/judged" import "$work/easy" >/dev/null 2>&1
"$fkge" -q -d "$work/judged" train --json >"$work/easy.json"
exits 0 -d "$work/judged" import --replace "$work/easy"
run -d "$work/judged" checkpoint list --json
ok 'the same triples again leave a score as it is' [ "$(member "$out" checkpoints "kind=best" valid_protocol)" = standard ]
ok 'other valid triples are said' says 0 'with its score on the valid triples of before: fkge train judges it by these' \
	-d "$work/judged" import --replace "$work/other"
run -d "$work/judged" checkpoint list --json
ok 'the score is no score of theirs' [ "$(member "$out" checkpoints "kind=best" valid_protocol)" = 'standard (old valid)' ]
ok 'doctor says so' eval 'run -d "$work/judged" doctor; grep -q "best .*score on other valid triples" "$out" && ! grep -q floor "$out"'
ok 'it is not served' says 2 'judge it anew with fkge train --rounds 1' -d "$work/judged" serve
ok 'training judges it first' says 0 'on other valid triples; judging it by these' -d "$work/judged" train --epochs 5 --json
"$fkge" -d "$work/judged" eval --split valid --filter train+valid --json >"$work/judged.json" 2>/dev/null
ok 'and the best is the best by these' python3 - "$out" "$work/judged.json" "$work/easy.json" <<'PY'
import json, sys
now, judged, easy = (json.load(open(f)) for f in sys.argv[1:4])
sys.exit(not (now["valid_mrr"] == judged["metrics"]["mrr"] < easy["valid_mrr"]))
PY
ok 'which can be served' eval 'run -d "$work/judged" doctor; grep -q "^ok .*start" "$out"'

# ---- a training that diverges ----
wild() { # wild LR OPTIMIZER PROTOCOL: settings
	cat >"$work/wild/agent.yaml" <<Y
name: wild
listen: "off"
model: {kind: distmult, dim: 3}
eval: {protocol: $3}
train: {epochs: 20, lr: $1, optimizer: $2, loss: softmax, negatives: 0}
Y
}
"$fkge" -q -d "$work/wild" init >/dev/null
"$fkge" -q synth -e 40 -r 2 -t 150 -o "$work/few" >/dev/null
wild 100 sgd openke
"$fkge" -q -d "$work/wild" import "$work/few" >/dev/null
ok 'diverged tables are an error' says 1 'after 10 of 20 epochs the tables have diverged (a number of theirs is not finite): lower train.lr' -d "$work/wild" train
ok 'and no best state' says 1 'no embeddings yet' -d "$work/wild" eval
ok 'nor what serve serves' eval '! timeout -k 5 60 "$fkge" -d "$work/wild" serve >"$work/wild.log" 2>&1 && grep -q "have diverged: lower train.lr" "$work/wild.log"'
rm -f "$work/wild.log"
sed -i 's/epochs: 20/&, batch: 4/' "$work/wild/agent.yaml"
ok 'a report of one without a finite loss' says 1 'No picture: no loss is finite' -d "$work/wild" train --report "$work/wildly"
ok 'has its figures, and nothing of gnuplot' eval '[ -s "$work/wildly/curves.tsv" ] && ! grep -qi "gnuplot\|warning" "$err"'
wild 0.01 adam openke
ok 'with a lower rate they are' exits 0 -q -d "$work/wild" train --json
tame=$(member "$out" digest)
wild 100 sgd openke
ok 'by optimistic ties, too, others are no better' says 1 'lower train.lr; the best state is kept' -d "$work/wild" train
ok 'which is said' grep -q 'trained 10: the tables have diverged' "$out"
run -d "$work/wild" eval --json
ok 'the best state is that of before' [ "$(member "$out" checkpoint digest)" = "$tame" ]
ok 'begun anew, too' says 1 'lower train.lr; the best state is kept' -d "$work/wild" train --fresh
printf 'train:\n  lr: [0.01, 100]\nsearch: {method: random, trials: 2, epochs: 10, seed: 1}\n' >"$work/wild.yaml"
ok 'a search does not choose them' exits 0 -q -d "$work/wild" tune "$work/wild.yaml" --json
ok 'nor gives them a score' python3 -c '
import json, sys
t = json.load(open(sys.argv[1]))["trials"]
sys.exit(sorted(x["valid_mrr"] is None for x in t) != [False, True])' "$out"
# such a best state, as stores of before may have one
python3 - "$work/wild/store.db" <<'PY'
import hashlib, storedb, struct, sys
db = storedb.connect(sys.argv[1])
best, n, m, gamma = db.execute("SELECT id, n_ent, n_rel, gamma FROM checkpoint WHERE kind = 0").fetchone()
put = lambda b: db.execute("INSERT OR IGNORE INTO block VALUES (?, ?)", (hashlib.blake2b(b, digest_size=32).digest(), b))
rows = {tag: struct.pack("<f", float("nan")) * 3 * k for tag, k in (("e", n), ("r", m))}
scale = struct.pack("<2f", gamma, (gamma + 2) / 3)
for tag, b in rows.items():
    put(b)
    db.execute("UPDATE checkpoint_block SET hash = ? WHERE checkpoint = ? AND tag = ?",
               (hashlib.blake2b(b, digest_size=32).digest(), best, tag))
of = hashlib.blake2b(b"distmult\0" + struct.pack("<3Q", 3, n, m) + scale + rows["e"] + rows["r"], digest_size=32)
db.execute("UPDATE checkpoint SET digest = ?, score = 1 WHERE id = ?", (of.digest(), best))
db.commit()
PY
wild 0.01 adam openke
ok 'a best state that diverged is seen' eval 'run -d "$work/wild" doctor; grep -q "^bad .*best .*not finite" "$out"'
ok 'is not served' says 2 'training that diverged' -d "$work/wild" serve
ok 'and ranks by chance' python3 - "$fkge" "$work/wild" <<'PY'
import json, subprocess, sys
m = json.loads(subprocess.run([sys.argv[1], "-d", sys.argv[2], "eval", "--json"], capture_output=True).stdout)["metrics"]
sys.exit(m["hits1"] > 0)
PY
ok 'it counts as none' says 0 'is not finite): beginning anew' -d "$work/wild" train
ok 'so that the next one is the best' eval 'run -d "$work/wild" doctor; grep -q "^ok .*best " "$out"'

ok 'an agent for odd files' exits 0 -d "$work/odd" init --name odd
ok 'a header is left out, and said' says 0 'names the columns' -d "$work/odd" import "$work/odd.tsv"
ok 'spaces at the ends of names are said' grep -q '2 fields with a space' "$err"

# ---- a store of another time, a damaged one ----
python3 -c "import sqlite3; c = sqlite3.connect('$a/store.db'); c.execute('PRAGMA user_version = 999')"
ok 'a newer store is refused' exits 9 -d "$a" train
head -c 5000 /dev/urandom >"$a/store.db"
ok 'a damaged store is refused' exits 9 -d "$a" eval
finish
