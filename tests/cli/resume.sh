#!/bin/sh
# A training that is killed goes on with the same bits; curves and report.
. "$(dirname "$0")/lib.sh"
after=

# Two agents with the same graph and seed: a is left alone, b is killed again and again.
fresh() {
	rm -rf "${work:?}/$1"
	agent "$1" 1 && sed -i "s/epochs: 20, eval_every: 10/epochs: 800, eval_every: 4/
		s/^federation: {/federation: {${after:+after: $after, }/" "$work/$1/agent.yaml"
}
fresh a
state=$work/b/training.state

# same FILE FILE: what two trainings came to, and their curves but for the seconds
same() {
	python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
losses = lambda j: [(p["epoch"], p["loss"]) for p in j["curve"]["epochs"]]
keys = ["valid_mrr", "epochs", "improved", "digest", "epochs_trained", "ended", "settings"]
sys.exit(not (all(a[k] == b[k] for k in keys) and losses(a) == losses(b)
              and a["curve"]["valid"] == b["curve"]["valid"] and len(losses(a)) > 1))
PY
}

# killed OPTIONS...: train b and kill it once it has a state; where it ended before, again
killed() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		fresh b
		"$fkge" -q -d "$work/b" train "$@" >/dev/null 2>"$work/b.log" &
		pid=$!
		while [ ! -s "$state" ] && kill -0 "$pid" 2>/dev/null; do :; done
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
		[ -s "$state" ] && return 0
		echo "# try $try ended before it was killed"
	done
	return 1
}
# ended_by SIGNAL: and once more, some time after it went on; $cut counts those that it had not ended before
ended_by() {
	[ -s "$state" ] || return 0
	"$fkge" -d "$work/b" train --resume --json >"$work/b.json" 2>"$work/b.log" &
	pid=$!
	while ! grep -q 'Going on' "$work/b.log" && kill -0 "$pid" 2>/dev/null; do :; done
	kill -s "$1" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null || cut=$((cut + 1))
}
to_the_end() { # where the last kill came too late, b.json is there already
	[ ! -s "$state" ] && [ -s "$work/b.json" ] && return 0
	"$fkge" -q -d "$work/b" train --resume --json >"$work/b.json" 2>"$work/b.log"
}
no_state() { [ ! -e "$state" ]; }

# ---- until valid is flat ----
"$fkge" -q -d "$work/a" train --json >"$work/a.json"
ok 'killed' killed
cp "$state" "$work/first.state"
cp -a "$work/b" "$work/c"
# On another processor it goes on as well, with other bits, and what comes of it says so.
if grep -q '"arithmetic": "scalar"' "$work/a.json"; then
	count=$((count + 1)) && echo "ok $count - with another arithmetic # SKIP this machine has one"
else
	FKGE_ISA=scalar "$fkge" -d "$work/c" train --resume --json >"$work/c.json" 2>"$work/c.log"
	ok 'with another arithmetic' grep -q 'Warning: begun with avx.*, goes on with scalar' "$work/c.log"
	ok 'it is no training in one go' grep -q '"repeatable": false' "$work/c.json"
	ok 'as one without a kill is' grep -q '"repeatable": true' "$work/a.json"
fi
ok '--resume goes on as it began' says 2 'leave out' -d "$work/b" train --resume --epochs 3
sed -i 's/lr: 0.02/lr: 0.03/' "$work/b/agent.yaml"
ok 'not with other settings' says 2 "had '  lr: 0.02', agent.yaml says '  lr: 0.03'" -d "$work/b" train --resume
sed -i 's/lr: 0.03/lr: 0.02/' "$work/b/agent.yaml"
sed -i 's/epochs: 800/epochs: 799/' "$work/b/agent.yaml"
ok 'nor with fewer epochs' says 2 "had '  epochs: 800', agent.yaml says '  epochs: 799'" -d "$work/b" train --resume
sed -i 's/epochs: 799/epochs: 800/' "$work/b/agent.yaml"
printf x | dd of="$state" bs=1 seek=3000 conv=notrunc 2>/dev/null
ok 'not with a damaged state' says 4 'damaged' -d "$work/b" train --resume
printf x >"$state"
ok 'not with something else' says 4 'not a saved training' -d "$work/b" train --resume
for try in 1 2 3; do
	cp "$work/first.state" "$state"
	cut=0
	ended_by KILL
	ended_by INT
	ended_by HUP
	ended_by TERM
	[ $cut -eq 0 ] || break
done
ok 'and again, in the middle' [ $cut -gt 0 ]
ok 'to the end' to_the_end
ok 'the same bits as without a kill' same "$work/a.json" "$work/b.json"
ok 'then nothing is left to go on with' no_state
ok 'which is said' says 1 'no training was interrupted' -d "$work/b" train --resume
# The store holds every better score by now, the state none of them.
cp "$work/first.state" "$state"
ok 'the store may be ahead' exits 0 -d "$work/b" train --resume --json
cp "$out" "$work/b.json"
ok 'what it has is found again' same "$work/a.json" "$work/b.json"
cp "$work/first.state" "$state"
ok 'another best state' exits 0 -d "$work/b" train --fresh --epochs 1
cp "$work/first.state" "$state"
ok 'is not of that training' says 2 'has changed since' -d "$work/b" train --resume
graph "$work/other.tsv" 2
ok 'another graph' exits 0 -d "$work/b" import --replace "$work/other.tsv"
ok 'is another training' says 2 'another graph' -d "$work/b" train --resume

# ---- the control arm, which backtracks under federation.after: back ----
backtracks() { [ "$(member "$work/$1.json" improved)" -lt 100 ]; }
again_and_again() {
	for once in 1 2 3; do
		killed --rounds 100 --epochs 7 || return
		cut=0
		ended_by INT
		ended_by KILL
		ended_by INT
		[ $cut -eq 0 ] || return 0
	done
	return 1
}
for after in back keep; do
	fresh a
	"$fkge" -q -d "$work/a" train --rounds 100 --epochs 7 --json >"$work/a.json"
	cp "$work/a.json" "$work/$after.json"
	ok "$after: some rounds find nothing better" backtracks a
	ok "$after: rounds killed, and again in the middle" again_and_again
	ok "$after: rounds to the end" to_the_end
	ok "$after: the same rounds" same "$work/a.json" "$work/b.json"
done
after=
# what is shown of a look is what a round begins with, so where none goes back it is one training in pieces
fresh c
sed -i 's/eval_every: 4/eval_every: 7/; s/^federation: {/federation: {reset_optimizer: false, /' "$work/c/agent.yaml"
"$fkge" -q -d "$work/c" train --epochs 700 --json >"$work/c.json"
fresh a
sed -i 's/^federation: {/federation: {reset_optimizer: false, /' "$work/a/agent.yaml"
"$fkge" -q -d "$work/a" train --rounds 100 --epochs 7 --json >"$work/a.json"
ok 'keep: as one training that has as many looks' [ "$(member "$work/a.json" digest) $(member "$work/a.json" curve valid)" = \
	"$(member "$work/c.json" digest) $(member "$work/c.json" curve valid)" ]
ok 'back: is another' [ "$(member "$work/back.json" curve valid)" != "$(member "$work/keep.json" curve valid)" ]

# ---- a signal, and a new beginning ----
hears() { catches "$pid" 2; }
# interrupted EVERY [READY [OPTION]]: as soon as it is heard, or once READY holds
interrupted() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		fresh b
		[ $# -lt 3 ] || "$fkge" -q -d "$work/b" train --epochs 4 --json >"$work/first.json"
		sed -i "s/eval_every: 4/eval_every: $1/" "$work/b/agent.yaml"
		"$fkge" -q -d "$work/b" train ${3:-} --json >"$out" 2>"$err" &
		pid=$!
		while ! "${2:-hears}" && kill -0 "$pid" 2>/dev/null; do :; done
		kill -INT "$pid" 2>/dev/null
		status=0
		wait "$pid" || status=$?
		[ "$status" -ne 0 ] && [ -s "$state" ] && return 0
	done
	return 1
}
ok 'interrupted before a look' interrupted 800
ok 'status 1' [ "$status" -eq 1 ]
ok 'and what to do is said' grep -q "valid was not looked at yet, so there is no best state; fkge -d $work/b train --resume goes on" "$err"
ok 'and in the result' [ "$(member "$out" ended)" = interrupted ]
ok 'and done' exits 0 -q -d "$work/b" train --resume --json
ok 'nothing was lost' [ "$(member "$out" epochs_trained)" -eq 800 ]
ok 'interrupted again' interrupted 800
sed -i 's/epochs: 800/epochs: 810/' "$work/b/agent.yaml"
ok 'more epochs go on' exits 0 -q -d "$work/b" train --resume --json
cp "$out" "$work/b.json"
fresh a
sed -i 's/epochs: 800, eval_every: 4/epochs: 810, eval_every: 800/' "$work/a/agent.yaml"
"$fkge" -q -d "$work/a" train --json >"$work/a.json"
ok 'as if they had been wanted from the beginning' same "$work/a.json" "$work/b.json"
ok 'all of them' [ "$(member "$work/b.json" epochs_trained)" -eq 810 ]
# kinds: of the store's states, the newest first
kinds() {
	"$fkge" -d "$work/b" checkpoint list --json >"$work/list.json" &&
		python3 -c '
import json, sys
print(*(("" if c["digest"] == json.load(open(sys.argv[2]))["digest"] else "another ") + c["kind"]
        for c in json.load(open(sys.argv[1]))["checkpoints"]), sep=", ")' "$work/list.json" "$work/first.json"
}
ok 'begun anew, and interrupted before a look' interrupted 800 hears --fresh
ok 'it says what the best state is' grep -q 'the best state is that of before; fkge' "$err"
ok 'which has stayed so' [ "$(kinds)" = best ]
ok 'until there is another' exits 0 -q -d "$work/b" train --resume
ok 'then it is a saved one' [ "$(kinds)" = 'another best, saved' ]
fresh a
looked() { [ -s "$state" ]; } # it is written after a validation that was better
ok 'interrupted after a look' interrupted 1 looked
ok 'the best is kept' grep -q 'best state so far is kept' "$err"
sed -i 's/dim: 16/dim: 8/' "$work/b/agent.yaml"
ok 'a training that cannot begin' says 2 'put the old values back' -d "$work/b" train
sed -i 's/dim: 8/dim: 16/' "$work/b/agent.yaml"
ok 'leaves the interrupted one where it is' [ -s "$state" ]
run -d "$work/b" train --epochs 4
ok 'training without --resume begins anew, and says so' grep -q 'this one begins anew' "$err"

# ---- a preset's rate falls as long as it trains ----
preset() {
	fresh "$1" && sed -i "s/^model: .*/model: {preset: fast, dim: 16}/; s/^train: .*/train: {epochs: $2, eval_every: 800, threads: 1}/" "$work/$1/agent.yaml"
}
preset_cut() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		preset b 800
		"$fkge" -q -d "$work/b" train >/dev/null 2>"$work/b.log" &
		pid=$!
		while ! catches "$pid" 2 && kill -0 "$pid" 2>/dev/null; do :; done
		kill -INT "$pid" 2>/dev/null
		wait "$pid"
		[ -s "$state" ] && return 0
	done
	return 1
}
ok 'interrupted under a preset' preset_cut
sed -i 's/epochs: 800,/epochs: 810,/' "$work/b/agent.yaml"
ok 'more epochs would change its rate' says 2 'follow train.epochs: set it to 800 to go on' -d "$work/b" train --resume
ok 'which agent.yaml does not say' [ "$(grep -c 'agent.yaml says' "$err")" -eq 0 ]
sed -i 's/epochs: 810,/epochs: 810, schedule_epochs: 800,/' "$work/b/agent.yaml"
sed -i 's/, dim: 16/, dim: 8/' "$work/b/agent.yaml"
ok "the owner's keys are the owner's" says 2 "agent.yaml says '  dim: 8'" -d "$work/b" train --resume
sed -i 's/, dim: 8//' "$work/b/agent.yaml"
ok "and the preset's its own" says 2 "model.preset chooses '  dim: 64' now: set model.dim to 16 to go on" -d "$work/b" train --resume
sed -i 's/preset: fast/&, dim: 16/' "$work/b/agent.yaml"
ok 'with its rate it goes on' exits 0 -q -d "$work/b" train --resume --json
ok 'to the end' [ "$(member "$out" epochs_trained)" -eq 810 ]

# ---- curves and report ----
ok 'a report' exits 0 -d "$work/a" train --fresh --epochs 20 --report "$work/report" --json
ok 'an epoch a line' [ "$(wc -l <"$work/report/curves.tsv")" -eq 21 ]
looks() { awk -F '\t' 'NR > 1 && $5 != "" { n++ } END { exit n != 5 }' "$work/report/curves.tsv"; }
ok 'valid at each validation' looks
agrees() {
	python3 - "$out" "$work/report/curves.tsv" <<'PY'
import csv, json, sys
j = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2]), delimiter="\t"))
best = max(float(r["valid_mrr"]) for r in rows if r["valid_mrr"])
looks = [r for r in rows if r["valid_mrr"]]
same = [abs(float(r["valid_" + k]) - v[k]) < 1e-3 for r, v in zip(looks, j["curve"]["valid"]) for k in ("mrr", "mr", "hits1", "hits3", "hits10")]
sys.exit(not (abs(best - j["valid_mrr"]) < 1e-6 and abs(float(rows[-1]["loss"]) - j["loss"]) < 1e-6
    and len(same) == 25 and all(same) and [int(r["pass"]) for r in rows] == list(range(1, 21))))
PY
}
ok 'the same figures as in the result' agrees
# figure LINE FOLDER: of the report there
figure() { sed -n "s/^| $1 *| *\([0-9.]*\).*/\1/p" "$work/$2/report.md"; }
mebibytes() { awk -v x="$(figure 'peak memory' report)" 'BEGIN { exit !(x > 1 && x < 1000) }'; }
ok 'memory is in MiB' mebibytes
for what in 'dim: 16' 'digest of the graph' 'best epoch' 'seconds an epoch' 'peak memory' 'standard: both sides' '| seed'; do
	ok "the report has: $what" grep -qF "$what" "$work/report/report.md"
done
if command -v gnuplot >/dev/null; then
	ok 'a picture' grep -q '</svg>' "$work/report/curves.svg"
	picture() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/report/curves.svg"; }
	ok 'that is whole' picture
	ok 'and stands in the report' grep -q 'curves.svg' "$work/report/report.md"
else
	echo "# SKIP pictures: no gnuplot here (Debian: gnuplot-nox)"
fi
mkdir "$work/empty"
PATH=$work/empty run -d "$work/a" train --fresh --epochs 4 --report "$work/plain"
ok 'without gnuplot it works' [ "$status" -eq 0 ]
ok 'which is said' grep -q 'No picture: there is no program gnuplot here' "$err"
ok 'the rest is there' [ -s "$work/plain/curves.tsv" ]
ok 'and no picture' [ ! -e "$work/plain/curves.svg" ]
cp -r "$work/a" "$work/hasty"
run -d "$work/hasty" config set train.lr 1
ok 'a training that was better before its end' exits 0 -q -d "$work/hasty" train --fresh --epochs 20 --report "$work/hastily" --json
ok 'as it was' [ "$(member "$out" epochs)" -lt 20 ]
ok 'has its best epoch in the report' [ "$(figure 'best epoch' hastily)" = "$(member "$out" epochs)" ]
ok 'beside how many there were' [ "$(figure 'epochs trained' hastily)" = 20 ]
ok 'a report where none can be' exits 1 -d "$work/a" train --epochs 1 --report "$work/a/agent.yaml/x"
ok 'or a file is' exits 1 -d "$work/a" train --epochs 1 --report "$work/a/agent.yaml"
ok 'nothing was trained for it' [ "$(grep -c 'epoch 1' "$err")" -eq 0 ]
finish
