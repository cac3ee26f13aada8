#!/bin/sh
# Training past memory, from fkge train to what uses its tables: train.partitions, train.memory_mib.
. "$(dirname "$0")/lib.sh"

# agent NAME MORE: settings of train behind the usual ones
fresh() {
	rm -rf "${work:?}/$1"
	"$fkge" -q -d "$work/$1" init >/dev/null
	cat >"$work/$1/agent.yaml" <<Y
name: $1
listen: "127.0.0.1:0"
model: {kind: transe, dim: 8, gamma: 6}
train: {epochs: 12, lr: 0.02, batch: 64, negatives: 16, eval_every: 3, patience: 0$2}
Y
	"$fkge" -q -d "$work/$1" import "$work/graph"
}
"$fkge" -q synth -e 400 -t 4000 -o "$work/graph" >/dev/null
has() { # has FILE EXPRESSION, j being the object
	python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1" "$2"
}
same() { # of two trainings: what they came to
	python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
losses = lambda j: [(p["epoch"], p["loss"]) for p in j["curve"]["epochs"]]
keys = ["valid_mrr", "epochs", "digest", "epochs_trained"]
sys.exit(not (all(a[k] == b[k] for k in keys) and losses(a) == losses(b) and len(losses(a)) == 12
              and a["curve"]["valid"] == b["curve"]["valid"]))
PY
}
gone() { [ ! -e "$work/$1/training.state" ] && [ ! -e "$work/$1/training.parts" ]; }

# ---- by hand: eight partitions ----
fresh a ", partitions: 8"
"$fkge" -q -d "$work/a" train --json >"$work/a.json"
key train.partitions has "$work/a.json" \
	'j["past_memory"]["partitions"] == 8 and j["past_memory"]["buffer"] == 4 and j["epochs_trained"] == 12'
ok 'which swaps no more than its order' has "$work/a.json" 'j["past_memory"]["swaps"] == 12 * 9'
ok 'leaves tables alone' gone a
"$fkge" -q -d "$work/a" eval --split valid --filter train+valid --json >"$work/eval.json"
ok 'which eval ranks like the training did' python3 - "$work/a.json" "$work/eval.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit(not (a["valid_mrr"] == b["metrics"]["mrr"] and a["digest"] == b["checkpoint"]["digest"]))
PY
fresh m ""
"$fkge" -q -d "$work/m" train --json >"$work/m.json"
ok 'and which learned nearly what one in memory learns' python3 - "$work/a.json" "$work/m.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit(not (a["valid_mrr"] > 0.75 * b["valid_mrr"] > 0.05))
PY

# ---- from the best tables on ----
cp -r "$work/a" "$work/g"
sed -i 's/lr: 0.02/lr: 1e-9/' "$work/g/agent.yaml"
ok 'where nothing is better' says 0 'would do these epochs again' -d "$work/g" train --epochs 3 --json
ok 'more of them might help' grep -q 'give it more --epochs, another train.seed' "$err"
ok 'as it says' has "$out" "j['improved'] == 0 and j['digest'] == '$(member "$work/a.json" digest)'"
ok 'the file is left alone' cmp "$work/a/tables.f32" "$work/g/tables.f32"
sed -i 's/patience: 0/patience: 2/' "$work/g/agent.yaml"
ok 'where patience ends it, more epochs would not' says 0 'give it a larger train.patience, another train.seed' \
	-d "$work/g" train --epochs 30 --json
ok 'it did' has "$out" "j['improved'] == 0 and j['epochs_trained'] == 6"
ok 'nor at the last epoch' says 0 'give it a larger train.patience and more --epochs' -d "$work/g" train --epochs 6
sed -i 's/patience: 2/patience: 0/; s/gamma: 6/gamma: 3/' "$work/g/agent.yaml"
ok 'another gamma' says 2 'and gamma 6, agent.yaml says transe, 8, 0, 3' -d "$work/g" train --epochs 3
ok 'leaves it too' cmp "$work/a/tables.f32" "$work/g/tables.f32"

# ---- a training that diverges ----
fresh d ", partitions: 8"
cp "$work/a/tables.f32" "$work/d"
sed -i 's/lr: 0.02/lr: 100, optimizer: sgd, reg: l2, reg_weight: 1/' "$work/d/agent.yaml"
ok 'diverged tables are an error' says 1 'the tables have diverged (a number of theirs is not finite): lower train.lr; the best state is kept' \
	-d "$work/d" train
ok 'and the best ones stay' eval '"$fkge" -d "$work/d" eval --split valid --filter train+valid --json >"$work/d.json" && has "$work/d.json" "j[\"checkpoint\"][\"digest\"] == \"$(member "$work/a.json" digest)\""'
ok 'without anything to go on with' gone d
printf '\0\0\300\177' | dd of="$work/d/tables.f32" bs=4 seek=1030 conv=notrunc 2>/dev/null # as older ones may be
ok 'tables that hold a NaN are seen' eval 'run -d "$work/d" doctor; grep -q "^bad .*best .*not finite" "$out"'
sed -i 's/lr: 100, optimizer: sgd, reg: l2, reg_weight: 1/lr: 0.02/' "$work/d/agent.yaml"
ok 'and count as none' says 0 'not finite): beginning anew' -d "$work/d" train --json
ok 'so that others are the best' same "$work/a.json" "$out"

# ---- killed again and again ----
killed() { # killed SIGNAL ARGS...: once it has a state
	signal=$1
	shift
	"$fkge" -q -d "$work/b" train --json "$@" >"$work/b.json" 2>"$work/b.log" &
	pid=$!
	while [ ! -s "$work/b/training.state" ] && kill -0 "$pid" 2>/dev/null; do :; done
	kill -s "$signal" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	[ -s "$work/b/training.state" ]
}
many_kills() {
	for try in 1 2 3 4 5; do
		fresh b ", partitions: 8"
		killed KILL && break
	done
	cp -r "$work/b" "$work/cut"
	killed TERM --resume || return 0
	killed KILL --resume || true
}
to_the_end() {
	[ ! -s "$work/b/training.state" ] && [ -s "$work/b.json" ] && return 0
	"$fkge" -q -d "$work/b" train --resume --json >"$work/b.json" 2>"$work/b.log"
}
many_kills
ok 'killed, it goes on to its end' to_the_end
ok 'with the same bits' same "$work/a.json" "$work/b.json"
ok 'and nothing is left' gone b
cp -r "$work/cut" "$work/kept"
ok 'what it liked best is not dropped by the way' says 2 'training.parts alone' -d "$work/kept" train
# a best state that came since is not taken for that of before, nor is what was trained lost behind it
"$fkge" -q -d "$work/m" export "$work/vectors" >/dev/null
cp -r "$work/cut" "$work/came"
ok 'tables may come in between' exits 0 -q -d "$work/came" import --embeddings "$work/vectors"
ok 'from which it does not go on' says 2 'has changed since' -d "$work/came" train --resume
ok 'and nothing of it goes' [ -s "$work/came/training.state" -a -s "$work/came/training.parts/triples" ]
# better tables than those that an older state comes to stay, but where they are the ones to be replaced
better() { # better AGENT: as if a's tables had that score, and were others
	python3 - "$work/a/tables.f32" "$work/$1/tables.f32" "$(member "$work/a.json" valid_mrr)" \
		"$(member "$work/a.json" digest)" <<'PY'
import hashlib, struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
end = next(k for k in range(4095, 0, -1) if b[k]) + 1
at = bytes(b[:end]).index(struct.pack("<d", float(sys.argv[3])))
struct.pack_into("<d", b, at, 0.75)
b[bytes(b[:end]).index(bytes.fromhex(sys.argv[4]))] ^= 1
b[end - 32:end] = hashlib.blake2b(bytes(b[:end - 32]), digest_size=32).digest()
open(sys.argv[2], "wb").write(b)
PY
}
cp -r "$work/cut" "$work/older"
better older
cp "$work/older/tables.f32" "$work/better"
ok 'an older state goes on' says 0 'are better (valid MRR 0.7500)' -d "$work/older" train --resume --json
ok 'and leaves better tables' cmp "$work/older/tables.f32" "$work/better"
ok 'whose score it says' has "$out" 'j["valid_mrr"] == 0.75'
replaced() {
	"$fkge" -q -d "$work/older" train --fresh --drop-tables --json >"$work/older.json" && has "$work/older.json" 'j["valid_mrr"] < 0.75' &&
		! cmp -s "$work/older/tables.f32" "$work/better"
}
ok 'which only beginning anew would lose, which is refused' says 2 'copy that file first, or fkge export them' \
	-d "$work/older" train --fresh
ok 'and leaves them' cmp "$work/older/tables.f32" "$work/better"
ok 'unless that is meant' replaced
# ---- other valid triples, of the same names ----
mkdir "$work/half"
cp "$work/graph/train.tsv" "$work/graph/test.tsv" "$work/half"
head -n 60 "$work/graph/valid.tsv" >"$work/half/valid.tsv"
cp -r "$work/a" "$work/judged"
better judged
"$fkge" -q -d "$work/judged" import --replace "$work/half" >/dev/null
ok 'a score on other valid triples stands in the way of nothing' exits 0 -d "$work/judged" train --json
ok 'it is judged anew' has "$out" 'j["valid_mrr"] < 0.75'

cut_older() { # begun anew where there are tables, and killed
	for try in 1 2 3 4 5; do
		fresh b ", partitions: 8"
		cp "$work/a/tables.f32" "$work/b"
		killed KILL --fresh --drop-tables && return
	done
	return 1
}
ok 'begun anew and killed' cut_older
better b # as if it had put its own in place, and an older state went on
ok 'it goes on' exits 0 -q -d "$work/b" train --resume
ok 'and leaves its own better ones' cmp "$work/b/tables.f32" "$work/better"
# a state of eight partitions, as if memory had decided that: what memory says now does not count
unsaid() {
	python3 - "$work/kept" <<'PY'
import hashlib, struct, sys
path = sys.argv[1] + "/training.state"
b = open(path, "rb").read()
n, = struct.unpack_from("<Q", b, 8)
head = b[16:16 + n].replace(b"partitions: 8", b"partitions: 0")
assert head != b[16:16 + n]
b = b[:8] + struct.pack("<Q", len(head)) + head + b[16 + n:-32]
open(path, "wb").write(b + hashlib.blake2b(b, digest_size=32).digest())
PY
	sed -i 's/, partitions: 8/, sampling: uniform/' "$work/kept/agent.yaml"
	"$fkge" -q -d "$work/kept" train --resume --json >"$work/kept.json" && same "$work/a.json" "$work/kept.json"
}
ok 'and its partitions are those of before' unsaid
# what is refused leaves it as it was
cp -r "$work/m" "$work/mixed" # with a best state in the store
echo state >"$work/mixed/training.state"
sed -i 's/patience: 0/&, partitions: 8/' "$work/mixed/agent.yaml"
ok 'past memory from a best state in memory' says 2 'was trained in memory' -d "$work/mixed" train
ok 'is refused, and takes nothing' [ -s "$work/mixed/training.state" ]
ok 'nor says so' [ "$(grep -c 'begins anew' "$err")" -eq 0 ]
# begun anew, it takes the best state's place once it has one
rm "$work/mixed/training.state"
sed -i 's/epochs: 12/epochs: 1000000/; s/eval_every: 3/eval_every: 1000000/' "$work/mixed/agent.yaml"
"$fkge" -q -d "$work/mixed" train --fresh >/dev/null 2>"$work/mixed.log" &
pid=$!
pids="$pids $pid"
wait_for 'its handler' catches $pid 15
kill -TERM $pid
wait $pid
# kind: of the agent's state of this digest
kind() { "$fkge" -d "$work/mixed" checkpoint list --json >"$work/list.json" &&
	member "$work/list.json" checkpoints "digest=$(member "$work/m.json" digest)" kind; }
ok 'begun anew and stopped, it leaves the best state' [ "$(kind)" = best ]
"$fkge" -q -d "$work/mixed" train --fresh --epochs 1 >/dev/null
# gone on with: from the best state that it is to replace, and from no other
cut_anew() {
	for try in 1 2 3 4 5; do
		fresh b ", partitions: 8"
		"$fkge" -q -d "$work/b" import --embeddings "$work/vectors" >/dev/null && killed KILL --fresh && return
	done
	return 1
}
ok 'begun anew and killed' cut_anew
cp -r "$work/b" "$work/other"
ok 'it goes on beside the best state of before' exits 0 -q -d "$work/b" train --resume
ok 'which is a saved one then' eval 'run -d "$work/b" checkpoint list && grep -q saved "$out" && ! grep -q best "$out"'
"$fkge" -q -d "$work/a" export "$work/vectors2" >/dev/null
"$fkge" -q -d "$work/other" import --embeddings "$work/vectors2" >/dev/null
ok 'but not beside another' says 2 'has changed since' -d "$work/other" train --resume
ok 'done, its tables are the best' [ "$(kind) $(ls "$work/mixed/tables.f32")" = "saved $work/mixed/tables.f32" ]
cp -r "$work/cut" "$work/cut3"
rm "$work"/cut/training.parts/3.*
cp -r "$work/cut" "$work/cut2"
ok 'a partition that is missing is said' says 4 'training.parts/3.' -d "$work/cut" train --resume
head -n 1 "$work/graph/train.tsv" >"$work/forget.tsv"
ok 'nothing is forgotten from a training cut off' says 2 'training.parts' -d "$work/cut" unlearn "$work/forget.tsv"
ok 'but with all tables' exits 0 -q -d "$work/cut2" unlearn --drop-tables "$work/forget.tsv"
ok 'which go' gone cut2

# ---- its tables cannot be put in place ----
fresh e ", partitions: 8"
sed -i 's/epochs: 12/epochs: 1000000/' "$work/e/agent.yaml"
"$fkge" -q -d "$work/e" train >/dev/null 2>"$work/e.log" &
pid=$!
pids="$pids $pid"
ok 'a training that has a best' wait_for 'its state' test -s "$work/e/training.state"
mkdir "$work/e/tables.f32"
kill -TERM $pid
wait $pid
ok 'fails when it is stopped' [ $? -eq 1 ]
ok 'says that it is not in place' grep -q 'stopped after .* could not be put in place; .*train --resume goes on; .*tables.f32' "$work/e.log"
rmdir "$work/e/tables.f32"
"$fkge" -q -d "$work/e" train --resume >/dev/null 2>"$work/e2.log" &
pid=$!
pids="$pids $pid"
ok 'it goes on' wait_for 'its handler' catches $pid 15
kill -TERM $pid
wait $pid
ok 'and then its best is' [ -s "$work/e/tables.f32" ]

# ---- what a batch takes counts, whatever the tables are ----
fresh large ", memory_mib: 40, shared_chunk: 0, corrupt: both"
sed -i 's/batch: 64, negatives: 16/batch: 4096, negatives: 1024/' "$work/large/agent.yaml"
ok 'batches that do not fit' says 2 'train.memory_mib: not even two of' -d "$work/large" train
fresh large ", memory_mib: 10, loss: softmax"
sed -i 's/batch: 64, negatives: 16/batch: 8192, negatives: 0/' "$work/large/agent.yaml"
ok 'nor lines of scores' says 2 'train.negatives 0' -d "$work/large" train

# ---- who uses the tables ----
head -n 1 "$work/graph/test.tsv" | { IFS="$(printf '\t')" read -r h r t; echo "$h $r $t" >"$work/triple"; }
read -r h r t <"$work/triple"
ok 'predict' prints "$t" -d "$work/a" predict "$h" "$r" '?' -k 400 -a
ok 'export' exits 0 -d "$work/a" export "$work/exported"
exported() { # the rows in eval's digest, by an agent that has them in memory
	sed -i 's/, partitions: 8//' "$work/a/agent.yaml"
	fresh c "" && "$fkge" -q -d "$work/c" import --embeddings "$work/exported" >/dev/null &&
		"$fkge" -q -d "$work/c" eval --split valid --filter train+valid --json >"$work/c.json" &&
		has "$work/c.json" "j['checkpoint']['digest'] == '$(python3 -c 'import json; print(json.load(open("'"$work/a.json"'"))["digest"])')'"
}
ok 'what was exported is bit for bit that' exported
doctor_knows() { run -d "$work/a" doctor; grep -q '^ok .*best .*, trained past memory (tables.f32)' "$out"; }
ok 'doctor knows them' doctor_knows
ok 'no list has them, which is said' says 0 'not in the store' -d "$work/a" checkpoint list
ok 'not an agent that serves' says 2 'past memory' -d "$work/a" serve
ok 'nor forgetting' says 2 'past memory' -d "$work/a" unlearn "$work/forget.tsv"
backed_up() {
	"$fkge" -q -d "$work/a" backup "$work/backup" >/dev/null &&
		"$fkge" -q -d "$work/back" restore "$work/backup" >/dev/null 2>&1 &&
		cmp "$work/a/tables.f32" "$work/back/tables.f32"
}
ok 'a backup has them' backed_up
# other triples of the same names leave them of use, as they do what was trained in memory
again() { # again FOLDER: the graph, with train in another order, five of its triples in valid and one more
	mkdir "$1"
	{ sed '1,5d' "$work/graph/train.tsv" | tac; awk -F '\t' 'NR == 6 { print $3 "\t" $2 "\t" $1 }' "$work/graph/train.tsv"; } >"$1/train.tsv"
	{ cat "$work/graph/valid.tsv"; head -n 5 "$work/graph/train.tsv"; } >"$1/valid.tsv"
	cp "$work/graph/test.tsv" "$1"
}
again "$work/graph2"
cp -r "$work/a" "$work/names"
sed -i 's/epochs: 12/epochs: 3, partitions: 8/' "$work/names/agent.yaml"
ok 'a graph of the same names' says 0 'The best state stays, and 5 triples' -d "$work/names" import --replace "$work/graph2"
ok 'which its tables rank' exits 0 -q -d "$work/names" eval --split valid
ok 'and doctor knows' eval 'run -d "$work/names" doctor; grep -q "best .*trained past memory" "$out"'
ok 'and a training begins from' exits 0 -q -d "$work/names" train --json
ok 'not anew' has "$out" 'j["epochs"] in (12, 15)'
cp -r "$work/cut3" "$work/cut4"
"$fkge" -q -d "$work/cut4" import --replace "$work/graph2" >/dev/null 2>&1
ok 'but none goes on' says 2 'another graph' -d "$work/cut4" train --resume
"$fkge" -q synth -e 300 -t 3000 --seed 7 -o "$work/graph3" >/dev/null
ok 'other names are said' says 0 'cannot be used any more: '"$work"'/names/tables.f32 is of another graph' \
	-d "$work/names" import --replace "$work/graph3"
ok 'and refused' says 4 'is of another graph' -d "$work/names" eval --split valid
ok 'until the old ones are back' eval '"$fkge" -q -d "$work/names" import --replace "$work/graph" >/dev/null && "$fkge" -q -d "$work/names" eval --split valid >/dev/null'
other_count() { # a sound table of one entity less
	cp -r "$work/a" "$work/less"
	sed -i 's/epochs: 12/epochs: 12, partitions: 8/' "$work/less/agent.yaml"
	python3 - "$work/less/tables.f32" <<'PY'
import hashlib, struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
word = next(w for w in range(16, 256) if struct.unpack_from("<4Q", b, 8 + 2 * w)[:2] == (8, 8))
at = 8 + 2 * word + 16  # behind two words, dim and rel_dim
n, = struct.unpack_from("<Q", b, at)
struct.pack_into("<Q", b, at, n - 1)
del b[4096:4096 + 32]
end = next(k for k in range(4064, 0, -1) if any(b[k:k + 1])) + 1
head = end - 32
b[head:end] = hashlib.blake2b(bytes(b[:head]), digest_size=32).digest()
open(sys.argv[1], "wb").write(b)
PY
}
ok 'a table of another size' other_count
ok 'is refused by training' says 2 'is of another graph' -d "$work/less" train
ok 'and by who reads it' says 4 '399 entities' -d "$work/less" predict "$h" "$r" '?'
ok 'but forgetting for certain' exits 0 -q -d "$work/back" unlearn --drop-tables "$work/forget.tsv"
ok 'leaves none' [ ! -e "$work/back/tables.f32" ]
ok 'nor training in memory' says 2 'past memory' -d "$work/a" train
cp "$work/a/tables.f32" "$work/left"
ok 'an option for that alone' says 2 '--drop-tables: with --fresh alone' -d "$work/a" train --drop-tables
ok 'but anew, which would lose them' says 2 'would be lost, for no saved state has them' -d "$work/a" train --fresh --epochs 3
ok 'and does not' cmp "$work/left" "$work/a/tables.f32"
cp -r "$work/a" "$work/saved"
ok 'saved' exits 0 -d "$work/saved" checkpoint save kept
ok 'they are not lost' exits 0 -q -d "$work/saved" train --fresh --epochs 3
ok 'but that state' eval '"$fkge" -d "$work/saved" checkpoint list --json >"$work/list.json" && [ "$(member "$work/list.json" checkpoints name=kept digest)" = "$(member "$work/a.json" digest)" ]'
ok 'but where that is meant' exits 0 -q -d "$work/a" train --fresh --drop-tables --epochs 3
ok 'whose tables those are then' [ ! -e "$work/a/tables.f32" ]
"$fkge" -q -d "$work/a" eval --split valid --json >"$work/best.json"
cp "$work/left" "$work/a/tables.f32" # as if it had been killed before these went
best_is_used() {
	"$fkge" -q -d "$work/a" eval --split valid --json >"$work/again.json" && cmp "$work/best.json" "$work/again.json"
}
ok 'also where an end between the two has left them' best_is_used
ok 'and training goes on from there' exits 0 -q -d "$work/a" train --epochs 3

# ---- by itself, where the tables do not fit ----
"$fkge" -q synth -e 40000 -t 80000 -o "$work/wide" >/dev/null
wide() { # wide MORE: peak of one epoch in $work/wide.json
	rm -rf "$work/w"
	"$fkge" -q -d "$work/w" init >/dev/null
	cat >"$work/w/agent.yaml" <<Y
name: w
listen: "127.0.0.1:0"
model: {kind: transe, dim: 64}
train: {epochs: 1, batch: 256, negatives: 8, eval_every: 1, threads: 1$1}
eval: {valid_limit: 50}
Y
	"$fkge" -q -d "$work/w" import "$work/wide"
	"$fkge" -q -d "$work/w" train --json >"$work/wide.json"
}
wide ""
ok 'in memory it takes more than 45 MiB' has "$work/wide.json" \
	'j["peak_bytes"] > 45 << 20 and "past_memory" not in j'
wide ", memory_mib: 26"
key train.memory_mib has "$work/wide.json" \
	'j["peak_bytes"] <= 1.1 * (26 << 20) and j["past_memory"]["partitions"] > 3'
# A batch of more than there are: no more is counted, nor taken.
fresh f ", shared_chunk: 0, memory_mib: 50"
sed -i 's/batch: 64, negatives: 16/batch: 32768, negatives: 1024/' "$work/f/agent.yaml"
"$fkge" -q synth -e 100 -t 400 -o "$work/few" >/dev/null
"$fkge" -q -d "$work/f" import --replace "$work/few" >/dev/null
ok 'a batch is no larger than train' exits 0 -q -d "$work/f" train --json
ok 'nor past memory, nor above its limit' has "$out" '"past_memory" not in j and j["peak_bytes"] < 50 << 20'
sed -i 's/memory_mib: 26/memory_mib: 18/' "$work/w/agent.yaml"
ok 'less than it can do with' says 2 'train.memory_mib: not even two of' -d "$work/w" train --fresh
finish
