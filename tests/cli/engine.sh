#!/bin/sh
# examples/engine/run: a run that is killed goes on with the same bits, and is on record when it is finished.
. "$(dirname "$0")/lib.sh"
root=$2

# One small graph stands in for the benchmarks.
mkdir -p "$work/data" "$work/graph"
"$fkge" -q synth -e 60 -r 4 -t 600 --ratios 8:1:1 -o "$work/graph"
cat >"$work/data/unpack" <<'UNPACK'
#!/bin/sh
to=$2
[ "$1" != lod ] || to=$2/whisky
mkdir -p "$to" && cp "$(dirname "$0")"/../graph/*.tsv "$to"
UNPACK
chmod +x "$work/data/unpack"

# engine OUT OPTIONS...: two stages of a run with a short name
engine() {
	to=$1
	shift
	"$root/examples/engine/run" --fkge "$fkge" --data "$work/data" --out "$work/$to" --seeds 1 \
		--threads 1 --set epochs=300 --set eval_every=30 --set 'then=lr:0.01,epochs:200,eval_every:20' "$@" \
		lod-whisky-chosen >"$work/engine.log" 2>&1
}
record() { ls "$work/$1"/tries/*.json 2>/dev/null; }
state() { ls "$work/$1"/agents/*/training.state 2>/dev/null; }

# same OUT: its record says what whole's says, curves and digests included
same() {
	python3 - "$(record whole)" "$(record "$1")" <<'PY'
import json, sys
def said(path):
    j = json.load(open(path))
    return [(s["digest"], s["valid_mrr"], s["epochs"], s["ended"], s["curve"]["valid"],
             [(p["epoch"], p["loss"]) for p in s["curve"]["epochs"]]) for s in j["train"]["stages"]], j["valid"]["metrics"]
a, b = map(said, sys.argv[1:])
sys.exit(not (a == b and len(a[0]) == 2 and len(a[0][0][5]) == 300))
PY
}

ok 'left alone' engine whole
ok 'it is on record' record whole
ok 'and its folder is gone' [ -z "$(ls "$work/whole/agents")" ]

# killed SIGNAL: fkge, or with TERM the runner, as often as it is found at work with a state
killed() {
	kills=0
	for begin in 1 2 3 4 5; do
		rm -rf "${work:?}/$1"
		kill_it "$1" || return 1
		[ "$kills" -eq 0 ] || break
	done
	echo "# killed $kills times"
	[ "$kills" -gt 0 ] || return 1
	[ -n "$(record "$1")" ] || engine "$1"
}
kill_it() {
	for try in 1 2 3 4; do
		engine "$1" &
		runner=$!
		before=$(cksum "$(state "$1")" /dev/null 2>/dev/null)
		while [ "$(cksum "$(state "$1")" /dev/null 2>/dev/null)" = "$before" ] && kill -0 $runner 2>/dev/null; do :; done
		target=$(pgrep -f -- "-d $work/$1/agents")
		[ "$1" = TERM ] && target=$(pgrep -f -- "--out $work/$1 ")
		# shellcheck disable=SC2086
		[ -n "$target" ] && kill -s "$1" $target 2>/dev/null && kills=$((kills + 1))
		wait $runner
		[ -z "$(state "$1")" ] || [ -z "$(record "$1")" ] || return 1
		[ -n "$(record "$1")" ] && break
	done
	return 0
}
ok 'fkge is killed: nothing is on record before the end' killed KILL
ok 'the same bits' same KILL
ok 'the runner is ended: nothing either' killed TERM
ok 'the same bits' same TERM

# ---- --minutes ----
engine short --minutes 0.0001
ok 'minutes that are over: not finished' [ $? -ne 0 ]
ok 'which is said' grep -q 'not finished, and not recorded: --minutes 0.0001 are over' "$work/engine.log"
ok 'nor on record' [ -z "$(record short)" ]
ok 'more minutes: goes on' engine short
ok 'the same bits' same short
ok 'what is on record is not run again' engine short --fkge /nonexistent

# ---- two models as one ----
ensemble() {
	"$root/examples/engine/run" --fkge "$fkge" --data "$work/data" --out "$work/two" --seeds 1 --threads 1 \
		"$@" fb15k-237-complex-broad-2 >"$work/engine.log" 2>&1
}
ok 'an ensemble is trained, put together and ranked' ensemble
ok 'on record are both models and it' python3 - "$work/two/runs" <<'PY'
import json, sys
one, two, both = (json.load(open(f"{sys.argv[1]}/fb15k-237-complex-broad{s}.json"))
                  for s in ("-seed1", "-seed2", "-2-seed1"))
assert [s["seed"] for s in both["train"]["stages"]] == [1, 2]
assert one["train"]["stages"][0]["digest"] != two["train"]["stages"][0]["digest"]
assert both["settings"]["model"]["dim"] == 2 * one["settings"]["model"]["dim"]
assert both["train"]["cpu_s"] > one["train"]["cpu_s"] + two["train"]["cpu_s"]
assert both["test"]["metrics"]["mrr"] > 0
PY
ok "the models' folders are kept" [ "$(ls "$work/two/agents" | wc -l)" -eq 2 ]
rm -rf "$work"/two/agents/*seed2 "$work"/two/runs/*-2-seed1.json
ok 'without their tables there is none' eval '! ensemble'
ok 'which is said' grep -q 'the tables of fb15k-237-complex-broad were not kept' "$work/engine.log"
finish
