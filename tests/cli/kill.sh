#!/bin/sh
# kill -9 in the middle of sessions that draw labels: a reserve a batch, so that most moments are between two
# writes of the ledger.  Nothing that was on a ledger is lost, no cap is passed, both tell the same story.
# The moment is a random number of ledger entries, not of seconds; the seed is said.
. "$(dirname "$0")/lib.sh"

fkge=$(realpath "$fkge")
seed=${FKGE_TEST_SEED:-$(date +%s)}
echo "# seed $seed (FKGE_TEST_SEED=$seed repeats the choices)"
for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat, gather_s: 0, lease_s: 5'
	cat >>"$work/$who/agent.yaml" <<YAML
ppat: {steps: 9, batch: 4, hidden: 8}
privacy: {useless_sessions: spend, epsilon_per_peer: 1.9, epsilon_total: 1.9, reserve_labels: 4}
YAML
	sed -i "s/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 5/; s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
done
befriend a b
id_a=$(id_of a) id_b=$(id_of b)
linked() { peer_is a "$id_b" linked True && peer_is b "$id_a" linked True; }
# grown NAME COUNT: waits until its ledger has so many entries more, or, in vain, grows no more
grown() { python3 - "$work/$1/store.db" "$2" <<'PY'
import sqlite3, sys, time
def count():
    try:
        db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=5)
        try:
            return db.execute("SELECT count(*) FROM ledger_entry").fetchone()[0]
        finally:
            db.close()
    except sqlite3.OperationalError:
        return None
first = last = count()
since = time.monotonic()
while time.monotonic() - since < (3 if last != first else 20):
    now = count()
    if now is not None and now != last:
        last, since = now, time.monotonic()
    if now is not None and first is not None and now >= first + int(sys.argv[2]):
        break
    time.sleep(0.002)
print(f"# {sys.argv[2]} asked for, {last - first} seen")
sys.exit(last - first < int(sys.argv[2]))
PY
}
chosen() { python3 -c 'import random, sys; r = random.Random(sys.argv[1]); print(r.choice("ab"), r.randint(1, 14))' "$seed.$1"; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }
asleep() { [ "$(value "$1" state)" = sleep ] && [ "$(value "$1" queued)" = 0 ]; }
quiet() { asleep a && asleep b; }
# shown NAME EXPRESSION: of the list `as_host`, what this agent's rows have cost by partner
shown() {
	"$fkge" -d "$work/$1" --json ledger show >"$work/show" && python3 - "$work/show" "$2" <<'PY'
import json, sys
as_host = [c["as_host"] for c in json.load(open(sys.argv[1]))["chains"]]
sys.exit(not eval(sys.argv[2]))
PY
}
bound() { shown "$1" 'all(h["labels"] <= h["labels_cap"] for h in as_host)'; }
drawn() { shown "$1" 'any(h["labels"] > 0 for h in as_host)'; }
begin() { # ROUND: both from tables that nobody has served, with leave to host twice more
	for who in a b; do
		sed -i "s/max_rounds: [0-9]*/max_rounds: $((2 * $1))/" "$work/$who/agent.yaml"
		anew $who $((seed % 1000 + $1)) --epochs 5
		start $who
	done
}

middle=0 # kills in the middle of sessions; four rounds, and more until there was one
round=0
while [ $round -lt 4 ] || { [ $middle -eq 0 ] && [ $round -lt 8 ]; }; do
	round=$((round + 1))
	set -- $(chosen $round)
	victim=$1 entries=$2
	other=$(echo ab | tr -d "$victim")
	begin $round
	grown $victim "$entries" && middle=$((middle + 1))
	eval "pid=\$pid_$victim"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	exported $victim before_$victim.led
	exported $other before_$other.led
	ok "kill $round: what $victim left holds" exits 0 ledger verify "$work/before_$victim.led"
	ok "kill $round: and what $other has meanwhile" prints 'the ledger holds' ledger verify "$work/before_$victim.led" "$work/before_$other.led"
	ok "kill $round: $victim starts again" start $victim
	ok "kill $round: they are linked" wait_for 'the link' linked # a file of before the kill may say sleep
	ok "kill $round: both come to rest" wait_for 'sleep' quiet
	for who in a b; do
		run -d "$work/$who" stop
		eval "pid=\$pid_$who"
		ok "kill $round: $who ends cleanly" wait "$pid"
		exported $who $who.led
		ok "kill $round: nothing on the ledger of $who is lost" starts_with "$work/$who.led" "$work/before_$who.led"
		ok "kill $round: the cap of $who is not passed" bound $who
	done
	ok "kill $round: both tell the same story" prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
done
ok 'a kill came in the middle of a session' [ $middle -gt 0 ]
# most often they were long ago
begin $((round + 1))
ok 'labels were drawn' wait_for 'labels of a' drawn a
ok 'on both sides' wait_for 'labels of b' drawn b
for who in a b; do
	run -d "$work/$who" stop
	eval "pid=\$pid_$who"
	ok "$who ends cleanly" wait "$pid"
done
finish
