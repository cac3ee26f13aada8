#!/bin/sh
# `fkge train` by several ranks of one machine, started by OpenMPI's mpirun; $2: is it built with MPI?
. "$(dirname "$0")/lib.sh"

fresh() { # fresh AGENT MORE: settings of train behind the usual ones
	rm -rf "${work:?}/$1"
	"$fkge" -q -d "$work/$1" init >/dev/null
	cat >"$work/$1/agent.yaml" <<Y
name: $1
listen: "127.0.0.1:0"
model: {kind: transe, dim: 16, gamma: 6}
train: {epochs: 40, lr: 0.02, batch: 32, eval_every: 10, patience: 0, threads: 1$2}
Y
	"$fkge" -q -d "$work/$1" import "$work/graph" >/dev/null
}
has() { # has FILE EXPRESSION, j being the object
	python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1" "$2"
}
"$fkge" -q synth -e 400 -t 4000 -o "$work/graph" >/dev/null

if [ "$2" != true ]; then
	fresh a ""
	export OMPI_COMM_WORLD_SIZE=2 # as a rank of mpirun's would find it
	ok 'without MPI several ranks are refused' says 2 'built without MPI' -d "$work/a" train
	unset OMPI_COMM_WORLD_SIZE
	echo '# built without MPI: no ranks are tried'
	finish
fi

# by_ranks N AGENT OPTIONS...: what rank 0 prints is in AGENT.json; other programs may have the cores
by_ranks() {
	n=$1 who=$2
	shift 2
	mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$n" \
		"$fkge" -q -d "$work/$who" train --json "$@" >"$work/$who.json" 2>"$work/$who.log" </dev/null
}
same() { # of two trainings: what they came to
	python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
losses = lambda j: [(p["epoch"], p["loss"]) for p in j["curve"]["epochs"]]
keys = ["valid_mrr", "epochs", "digest", "epochs_trained"]
sys.exit(not (all(a[k] == b[k] for k in keys) and losses(a) == losses(b) and len(losses(a)) == 40
              and a["curve"]["valid"] == b["curve"]["valid"]))
PY
}
gone() { [ ! -e "$work/$1/training.state" ] && [ ! -e "$work/$1/training.parts" ]; }

# ---- two and four ranks, against one process ----
fresh one ", negatives: 16, sampling: uniform"
"$fkge" -q -d "$work/one" train --json >"$work/one.json" 2>"$work/one.log"
for n in 2 4; do
	fresh "r$n" ", negatives: 16"
	ok "$n ranks train" by_ranks $n "r$n"
	ok 'as long as they were asked to' has "$work/r$n.json" 'j["exit"] == 0 and j["epochs_trained"] == 40'
	ok 'nearly what one process learns' python3 - "$work/r$n.json" "$work/one.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit(not (a["valid_mrr"] > 0.85 * b["valid_mrr"] > 0.05))
PY
	ok 'in the steps of the schedule' has "$work/r$n.json" "j['ranks']['ranks'] == $n and j['ranks']['steps'] == 40 * (2 * $n - 1)"
	ok 'sending the bytes that it says' has "$work/r$n.json" \
		"len(j['ranks']['each']) == $n and all(r['moved_bytes'] == r['moved_expected'] > 0 and r['relation_bytes'] == r['relation_expected'] > 0 for r in j['ranks']['each'])"
	ok 'and leave tables alone' gone "r$n"
	"$fkge" -q -d "$work/r$n" eval --split valid --filter train+valid --json >"$work/eval.json"
	ok 'which eval ranks like the ranks did' python3 - "$work/r$n.json" "$work/eval.json" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
sys.exit(not (a["valid_mrr"] == b["metrics"]["mrr"] and a["digest"] == b["checkpoint"]["digest"]))
PY
	fresh again ", negatives: 16"
	by_ranks $n again
	ok 'the same bits again' same "$work/r$n.json" "$work/again.json"
done
ok 'from those tables it goes on' by_ranks 2 r2 --epochs 2
ok 'for as long' has "$work/r2.json" 'j["epochs_trained"] == 2'
by_ranks 2 again --fresh --epochs 40
ok 'or begins again' has "$work/again.json" 'j["epochs_trained"] == 40'

# ---- a rank is lost ----
# killed OPTIONS...: a rank above 0 by -9, once there is a state; what is left can go on
killed() {
	mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 \
		"$fkge" -q -d "$work/k" train --json "$@" >"$work/k.json" 2>"$work/k.log" </dev/null &
	job=$!
	while [ ! -s "$work/k/training.state" ] && kill -0 $job 2>/dev/null; do :; done
	rank=$(pgrep -P $job fkge | tail -n 1)
	slack_ns=$(cat "/proc/$rank/timerslack_ns" 2>/dev/null) # root alone may read it
	[ -n "$rank" ] && kill -9 "$rank" 2>/dev/null
	wait $job && return 1
	! pgrep -P $job >/dev/null && [ -s "$work/k/training.state" ]
}
lost() {
	for try in 1 2 3 4 5; do
		fresh k ", negatives: 16"
		killed && return
	done
	return 1
}
ok 'a rank that is killed ends the job' lost
ok 'the kernel did not make its pauses longer' [ "${slack_ns:-1000}" -le 1000 ]
ok 'other ranks do not go on' says 2 'mpirun -n 4' -d "$work/k" train --resume
fewer() { ! by_ranks 2 k --resume && grep -qF 'mpirun -n 4' "$work/k.log"; }
ok 'nor fewer' fewer
cp -r "$work/k" "$work/cut"
"$fkge" -q -d "$work/one" export "$work/vectors" >/dev/null
came() { # a best state that is not of that training, and has come since
	cp -r "$work/k" "$work/came"
	"$fkge" -q -d "$work/came" import --embeddings "$work/vectors" >/dev/null
	! by_ranks 4 came --resume && grep -qF 'has changed since' "$work/came.log" && ! gone came
}
ok 'nor beside another best state' came
ok 'as many do' by_ranks 4 k --resume
ok 'with the same bits' same "$work/r4.json" "$work/k.json"
ok 'and nothing is left' gone k
missing() {
	rm "$work"/cut/training.parts/5.*
	! by_ranks 4 cut --resume && grep -qF 'training.parts/5.' "$work/cut.log"
}
ok 'a partition that is missing is said' missing

# ---- rank 0 is interrupted: the best is in the store, and named by a state, too ----
interrupted() {
	fresh i ", negatives: 16"
	mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 \
		"$fkge" -q -d "$work/i" train --json --epochs 1000000 >"$work/i.json" 2>"$work/i.log" </dev/null &
	job=$!
	wait_for 'its state' test -s "$work/i/training.state" || return
	kill -INT "$(pgrep -P $job fkge | head -n 1)"
	wait $job
	has "$work/i.json" 'j["exit"] == 1 and j["ended"] == "interrupted"' && ! gone i
}
ok 'ranks are interrupted' interrupted
cp -r "$work/i" "$work/later"
ok 'what is in the store is no reason not to begin from it' exits 0 -q -d "$work/i" train --epochs 1 --json
ok 'which it does' has "$out" "j['epochs'] >= $(member "$work/i.json" epochs) > 0"
lost_best() { # a best of the state alone: another score than the store's
	python3 - "$work/later/training.state" <<'PY'
import hashlib, re, struct, sys
b = open(sys.argv[1], "rb").read()
n, = struct.unpack_from("<Q", b, 8)
head = re.sub(rb'("score": ?)[0-9.e-]+', rb'\g<1>0.99', b[16:16 + n])
assert head != b[16:16 + n]
b = b[:8] + struct.pack("<Q", len(head)) + head + b[16 + n:-32]
open(sys.argv[1], "wb").write(b + hashlib.blake2b(b, digest_size=32).digest())
PY
	says 2 'training.parts alone' -d "$work/later" train
}
ok 'but a better one that it has not' lost_best

# ---- what is refused, before a row is trained ----
refused() { # refused TEXT MORE OPTIONS...
	text=$1
	fresh no "$2"
	shift 2
	! by_ranks 2 no "$@" && grep -qF -- "$text" "$work/no.log" && has "$work/no.json" 'j["exit"] == 2' &&
		gone no
}
kept() { # TEXT: settings that are refused take nothing from a training that was cut off
	cp -r "$work/r2" "$work/kept"
	mkdir "$work/kept/training.parts"
	echo state | tee "$work/kept/training.state" >"$work/kept/training.parts/triples"
	sed -i 's/negatives: 16/negatives: 4, update: racing, shared_chunk: 0/' "$work/kept/agent.yaml"
	! by_ranks 2 kept && grep -qF -- "$1" "$work/kept.log" && ! gone kept && [ -s "$work/kept/training.parts/triples" ]
}
ok 'and leaves what was interrupted' kept 'update racing'
ok 'partitions of ones own' refused 'train.partitions: leave it 0' ', partitions: 8'
ok 'racing threads' refused 'update racing' ', update: racing, negatives: 4, shared_chunk: 0'
ok 'private training' refused 'dp.epsilon' ', filtered: false, shared_chunk: 0, dp: {epsilon: 4}'
ok 'rounds' refused '--rounds' '' --rounds 2 --epochs 1
fresh few ""
printf 'a\tr\tb\nb\tr\tc\n' >"$work/few.tsv"
few() {
	mkdir -p "$work/three" && cp "$work/few.tsv" "$work/three/train.tsv" && printf 'a\tr\tc\n' >"$work/three/valid.tsv"
	"$fkge" -q -d "$work/few" import --replace "$work/three" >/dev/null 2>&1
	! by_ranks 2 few && grep -qF 'too few for 2 ranks' "$work/few.log"
}
ok 'fewer entities than partitions' few

# ---- against all entities: whole tables on each rank ----
all=', loss: softmax, negatives: 0, corrupt: both'
fresh one "$all"
sed -i 's/threads: 1/threads: 3/' "$work/one/agent.yaml"
"$fkge" -q -d "$work/one" train --json >"$work/one.json" 2>"$work/one.log"
fresh k "$all"
ok 'three ranks train against all entities' by_ranks 3 k
ok 'with the bits of three threads' same "$work/one.json" "$work/k.json"
ok 'and say so' has "$work/k.json" "j['ranks'] == {'ranks': 3, 'tables': 'whole'}"
"$fkge" -q -d "$work/k" eval --split valid --filter train+valid --json >"$work/eval.json"
ok 'eval finds the score' has "$work/eval.json" "j['metrics']['mrr'] == $(python3 -c '
import json, sys; print(json.load(open(sys.argv[1]))["valid_mrr"])' "$work/k.json")"
cut() { # a rank is lost once there is a state, or it was too late for that: then again
	for try in 1 2 3 4 5; do
		fresh k "$all"
		killed && return
	done
	return 1
}
ok 'a rank that is killed ends the job' cut
cp -r "$work/k" "$work/anew"
ok 'one process begins anew from the best' exits 0 -d "$work/anew" train --epochs 1
fewer() { ! by_ranks 2 k --resume && grep -qF 'mpirun -n 4' "$work/k.log"; }
ok 'fewer do not go on' fewer
ok 'as many do' by_ranks 4 k --resume
fresh four "$all"
by_ranks 4 four
ok 'with the same bits' same "$work/four.json" "$work/k.json"
ok 'a report is written' by_ranks 2 four --epochs 2 --report "$work/report"
ok 'with its curve' [ -s "$work/report/report.md" ]

ok 'rounds are not by ranks' refused '--rounds' "$all" --rounds 2 --epochs 1
fresh no "$all"
projected() {
	sed -i 's/kind: transe/kind: transr/' "$work/no/agent.yaml"
	! by_ranks 2 no && grep -qF 'model.kind transr' "$work/no.log"
}
ok 'nor projections' projected
fresh no "$all, memory_mib: 1"
too_large() {
	sed -i 's/dim: 16/dim: 256/' "$work/no/agent.yaml"
	! by_ranks 2 no && grep -qF 'do not fit train.memory_mib' "$work/no.log"
}
ok 'nor tables that one rank has no memory for' too_large

[ -n "${FKGE_TEST_ALL:-}" ] || finish # ./run test all

# What the graph decides is decided as for one process, with as many threads.
alike() { # alike GRAPH SED: trained with agent.yaml changed so; both say what was chosen
	for who in one k; do
		fresh $who ', loss: softmax, negatives: 0'
		sed -i "$2" "$work/$who/agent.yaml"
		"$fkge" -q -d "$work/$who" import "$work/$1" --replace >/dev/null
	done
	sed -i 's/threads: 1/threads: 2/' "$work/one/agent.yaml"
	"$fkge" -d "$work/one" train --json >"$work/one.json" 2>"$work/one.log"
	by_ranks 2 k && same "$work/one.json" "$work/k.json"
}
# each of two relations has many heads and few tails
awk 'BEGIN { for (i = 0; i < 400; i++) for (r = 0; r < 2; r++) printf "e%d\tr%d\tof%d\n", i, r, i % (3 + r) }' >"$work/lean.tsv"
ok 'tails are asked' alike lean.tsv '$a eval: {protocol: tail}'
ok 'since the graph leans to them' grep -q 'train.corrupt tail' "$work/one.log"
ok 'a preset chooses a model' alike graph 's/^model: .*/model: {preset: balanced, dim: 16}/'
ok 'as all entities are asked' grep -q 'model.kind complex_reciprocal' "$work/one.log"

# ---- past memory: the tables stay a file ----
fresh past ', negatives: 16, memory_mib: 1'
sed -i 's/dim: 16/dim: 256/' "$work/past/agent.yaml"
ok 'tables that do not fit are trained' by_ranks 2 past --epochs 2
ok 'into the file of such' [ -s "$work/past/tables.f32" ]
ok 'which eval maps' prints 'MRR' -d "$work/past" eval --split valid

# ---- another protocol begins ----
cp -r "$work/r2" "$work/p"
echo 'eval: {valid_limit: 5}' >>"$work/p/agent.yaml"
ok 'the best of the protocol before is no bar' by_ranks 2 p --epochs 1
ok 'it is a saved one' eval 'run -d "$work/p" checkpoint list && grep -q "saved.*standard " "$out" && grep -q "best.*standard/5" "$out"'
finish
