#!/bin/sh
# Attack: a listed partner floods what nobody waits for, holds sessions by signs of life, or comes and goes; an
# honest one must go on being served.  $2: tests/hostile/partner.
. "$(dirname "$0")/../cli/lib.sh"
partner=$2
status=0
patience=240

attack() { # MODE [VICTIM]: a, if not another; the keys are those of evil
	: >"$work/evil.log" # here and now: what it said before is not said again
	"$partner" "$work/evil/identity.key" "$(value "${2:-a}" port)" "$(id_of "${2:-a}")" "$1" >>"$work/evil.log" 2>&1 &
	evil=$!
	pids="$pids $evil"
}
enough() { kill -9 "$evil"; wait "$evil" 2>/dev/null; }
said() { grep -c "^$1\$" "$work/evil.log"; }
count_at_least() { [ "$(said "$1")" -ge "$2" ]; }
about() { python3 - "$work/${3:-a}.json" "$1" "$2" <<'PY'
import json, sys
path, who, key = sys.argv[1:]
print([p.get(key, 0) for p in json.load(open(path))["peers"] if p["id"] == who][0])
PY
}
served() { [ "$(about "$(id_of "$1")" sessions "${2:-a}")" -gt 0 ]; }
# one_more NAME SEED: one that is honest and new comes, and is served
one_more() {
	agent "$1" "$2" 'local_rounds: 0' && befriend a "$1" &&
		"$fkge" -q -d "$work/$1" train >/dev/null && start "$1" && wait_for "$1 is served" served "$1"
}

agent a 1 'local_rounds: 0, lease_s: 5'
"$fkge" -q -d "$work/evil" init --name evil --listen 127.0.0.1:0 >/dev/null
sed -i 's/max_rounds: 2, /max_rounds: 1000, /' "$work/a/agent.yaml"
sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/a/agent.yaml"
befriend a evil
"$fkge" -q -d "$work/a" train >/dev/null
start a
ok 'an honest one is served' one_more b 2

# ---- many small keys ----
attack keys
ok 'keys: its link is closed' wait_for 'evil is shut out' count_at_least down 1
ok 'keys: and refused from then on' wait_for 'evil is refused' count_at_least refused 3
ok 'keys: its owner can read why' wait_for 'the reason' logged a 'of 5 times; its link rests'
ok 'keys: an honest one is served' one_more c 3
ok 'keys: it comes again, and goes again' wait_for 'the second time' count_at_least down 2
ok 'keys: one line each time' [ "$(grep -c 'its link rests' "$work/a.log")" -le 3 ]
enough
ok 'keys: few lines in all' [ "$(grep -c evil "$work/a.log")" -le 20 ]
ok 'the owner wants it again' exits 0 -d "$work/a" peer accept evil

# ---- signs of life ----
attack hold
ok 'hold: a session is held' wait_for 'evil holds one' count_at_least held 1
ok 'hold: it ends for want of progress' wait_for 'it is over' logged a 'the peer took longer than its work takes'
ok 'hold: an honest one is served' one_more d 4
ok 'hold: and another' one_more e 5
ok 'hold: it has held few' [ "$(said held)" -le 6 ]
enough

# ---- a long one: others are served beside it ----
agent g 7 'local_rounds: 0, lease_s: 300'
sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/g/agent.yaml"
agent h 8 'local_rounds: 0'
befriend g evil && befriend g h
"$fkge" -q -d "$work/g" train >/dev/null
"$fkge" -q -d "$work/h" train >/dev/null
start g
attack hold g
ok 'beside: a session is held' wait_for 'evil holds one' count_at_least held 1
start h
ok 'beside: an honest one is served' wait_for 'h is served' served h g
ok 'beside: while it is held' [ "$(said held) $(said over)" = '1 0' ]
ok 'beside: g says that it has one' wait_for 'one' is_value g sessions_now 1
enough
ok 'beside: g stops' exits 0 -d "$work/g" stop

# ---- links that come and go ----
lines=$(wc -l <"$work/a.log")
attack flap
ok 'flap: it hears that we are busy' wait_for 'evil hears it' count_at_least busy 20
ok 'flap: few lines of it' [ $(($(wc -l <"$work/a.log") - lines)) -le 20 ]
ok 'flap: an honest one is served' one_more f 6
enough
ok 'a stops' exits 0 -d "$work/a" stop
finish
