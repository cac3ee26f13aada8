#!/bin/sh
# Attack: a stranger with any number of keys, and an owner who turns them away, must not keep an agent
# from starting again, nor hide a newcomer from its owner.  $2: tests/hostile/knock.
. "$(dirname "$0")/../cli/lib.sh"
knock=$2
status=0

peers() { "$fkge" -d "$work/v" --json peer list | python3 -c '
import json, sys
print(sum(1 for p in json.load(sys.stdin)["peers"] if sys.argv[1] in ("any", p["standing"])))' "$1"; }
at_most() { [ "$(peers "$1")" -le "$2" ]; }
is_pending() { "$fkge" -d "$work/v" --json peer pending | grep -qF "$1"; }
reject_all() {
	"$fkge" -d "$work/v" --json peer pending | python3 -c '
import json, sys
for p in json.load(sys.stdin)["peers"]: print(p["id"])' >"$work/waiting"
	xargs -r -n 8 "$fkge" -q -d "$work/v" peer reject <"$work/waiting" >/dev/null
}
flood() { "$knock" "$(value v port)" "$key" "$@" >"$work/flood"; }
word() { tr ' ' '\n' <"$work/flood" | sed -n "/^$1\$/{n;p}"; }

agent v 1 'local_rounds: 0'
"$fkge" -q -d "$work/v" train >/dev/null
key=$(id_of v)
start v

# ---- many keys from one address ----
flood 1 127.0.0.10
newcomer=$(word last)
ok 'a newcomer waits for the owner' is_pending "$newcomer"
since=$(date +%s)
flood 320 127.0.0.9
# 64 in advance, and 2 a second while it lasted
unread=$((320 - 64 - 2 * ($(date +%s) - since + 2)))
ok 'one address: most of 320 greetings are closed unread' [ "$(word closed)" -ge "$unread" ]
ok 'one address: none is let in' [ "$(word answered)" -eq 0 ]
ok 'one address: 4 of its keys wait, and the newcomer does' at_most pending 5
ok 'one address: the newcomer is not hidden' is_pending "$newcomer"

# ---- many keys from as many addresses ----
flood 240 127.1.0.1+
ok 'many addresses: 64 keys wait at most' at_most pending 64
flood 1 127.0.0.11
ok 'many addresses: who comes last is seen' is_pending "$(word last)"

# ---- an owner who rejects: 320 rows and more, of which 256 stay ----
i=0
while [ $i -lt 7 ]; do
	flood 60 "127.2.$i.1+"
	reject_all
	i=$((i + 1))
	# so many keys a minute are heard of; the agent's own start makes that anew
	kill -9 "$pid_v"
	wait "$pid_v" 2>/dev/null
	start v
done
ok 'an owner who rejects: many were rejected' [ "$(peers rejected)" -ge 200 ]
ok 'an owner who rejects: 256 are remembered at most' at_most rejected 256
ok 'the agent stops' exits 0 -d "$work/v" stop
ok 'and doctor finds what serve needs' prints 'fkge serve can load all of it' -d "$work/v" doctor

# ---- a store that an earlier version filled until it would not open ----
python3 - "$work/v/store.db" <<'PY'
import os, storedb, sys
db = storedb.connect(sys.argv[1])
with db:
    for i in range(700):
        db.execute("INSERT INTO peer (key, sign_key, name, address, status, seen_ms) VALUES (?, ?, '', '', ?, 1)",
                   (os.urandom(32), bytes(32), (0, 2, 3)[i % 3]))
PY
ok 'doctor finds a full table no fault' prints 'fkge serve can load all of it' -d "$work/v" doctor
start v
wait_for 'the table shrinks' at_most any 600
ok 'and the agent starts, and forgets' at_most any 600
forget=$("$fkge" -d "$work/v" --json peer list | python3 -c '
import json, sys
print(next(p["id"] for p in json.load(sys.stdin)["peers"] if p["standing"] == "rejected"))')
ok 'the owner has one forgotten' exits 0 -d "$work/v" peer forget "$forget"
ok 'which is gone' says 1 'is known' -d "$work/v" peer reject "$(echo "$forget" | cut -c1-12)"
"$fkge" -q -d "$work/v" stop
finish
