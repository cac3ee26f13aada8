#!/bin/sh
# Attack: one of three members of rounds joins, keeps its link alive, and sends nothing more. The owners allow an
# hour for training; the others go on when three times the longest training and 20 s have passed, and twice stage_s.
# $2: tests/hostile/member.
. "$(dirname "$0")/../cli/lib.sh"
member=$2
patience=180

in_rounds() { # NAME SEED
	agent "$1" "$2" 'mode: rounds' || return
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$1/agent.yaml"
	cat >>"$work/$1/agent.yaml" <<YAML
rounds: {first_epochs: 1, epochs: 1, eval_every: 100, every_s: 0.5, join_s: 10, train_s: 3600, stage_s: 5}
YAML
}
round() { member "$work/$1.json" round "$2"; } # NAME KEY
done_by() { [ "$(round "$1" done)" -ge "$2" ]; }
records() { "$fkge" -d "$work/$1" rounds list -n 0 --json >"$work/$1.rounds"; } # NAME
# of NAME PYTHON: about the list of its rounds
of() {
	records "$1" && python3 - "$work/$1.rounds" "$2" <<'PY'
import json, sys
rounds = json.load(open(sys.argv[1]))["rounds"]
took = lambda r: (r["finished_ms"] - r["started_ms"]) / 1000
fates = lambda who: [m["fate"] for r in rounds for m in r["members"] if m["name"] == who]
if not eval(sys.argv[2]):
    sys.exit(f"# {len(rounds)} rounds, the longest {max(map(took, rounds), default=0):.1f} s, evil: {fates('evil')}")
PY
}
was_late() { grep -q '"round_fate": *"late"' "$work/good.json" "$work/other.json"; } # who is not silent never is
more() { # N: good and other finish so many rounds from now
	n=$1
	for who in good other; do eval "goal_$who=$(($(round $who done) + n))"; done
	for who in good other; do eval "goal=\$goal_$who" && wait_for "$n rounds of $who" done_by $who "$goal" || return; done
}

for who in 'good 1' 'other 2' 'evil 3'; do in_rounds $who; done
befriend good other && befriend good evil && befriend other evil
"$member" "$work/evil" "$work/evil.json" silent 2>>"$work/evil.log" &
evil=$!
pids="$pids $evil"
evil_id=$(id_of evil 2>/dev/null)
start good
start other
ok 'it joins, is late, and an owner reads it' wait_for 'evil to be late' was_late
ok 'its link is up' wait_for 'its link' peer_is good "$evil_id" linked True
ok 'the others go on' more 3
ok 'it is still there' kill -0 "$evil"
# 40 s of waiting, and what a busy machine adds; an hour is what it could be
ok 'no round of good lasts longer than 90 s' of good 'max(map(took, rounds)) < 90'
ok 'none of the other either' of other 'max(map(took, rounds)) < 90'
kill -9 "$evil"
wait "$evil" 2>/dev/null
for who in good other; do ok "$who stops" exits 0 -d "$work/$who" stop; done
finish
