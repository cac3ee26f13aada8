#!/bin/sh
# Attack: one leaked invitation under federation.accept: invited fills the list of partners with keys (255 in six
# seconds, and the agent did not start again).  $2: tests/hostile/knock.
. "$(dirname "$0")/../cli/lib.sh"
knock=$2
status=0

partners() { "$fkge" -d "$work/v" --json peer list | python3 -c '
import json, sys
print(sum(1 for p in json.load(sys.stdin)["peers"] if p["standing"] == "partner"))'; }
# flood COUNT FILE: so many keys, each from an address of its own, show the line in the file
flood() { "$knock" "$(value v port)" "$(cat "$work/$2")" "$1" "127.4.$((n_flood = n_flood + 1)).1+" >"$work/flood"; }
n_flood=0
let_in() { tr ' ' '\n' <"$work/flood" | sed -n '/^answered$/{n;p}'; }
invitation() { # FILE [options]: its id is in $id
	line=$1
	shift
	"$fkge" -q -d "$work/v" --json invite -o "$work/$line" "$@" >"$out" && id=$(member "$out" invitation)
}

agent v 1 'accept: invited, local_rounds: 0'
sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/v/agent.yaml"
ok 'a secret is drawn' exits 0 -d "$work/v" secret
"$fkge" -q -d "$work/v" train >/dev/null
start v

ok 'an invitation' invitation once
flood 255 once
ok 'a leaked line lets in one key of 255' [ "$(let_in)" -eq 1 ]
ok 'and there is one partner' [ "$(partners)" -eq 1 ]
ok 'it is used up' prints "$id  used up   used 1 of 1" -d "$work/v" invite --list
ok 'one for five keys' invitation five --uses 5
flood 3 five
ok 'lets in three' [ "$(let_in)" -eq 3 ]
ok 'until it is revoked' exits 0 -d "$work/v" invite --revoke "$id"
flood 10 five
ok 'then nobody' [ "$(let_in)" -eq 0 ]
ok 'none that was not made here' says 1 'no invitation' -d "$work/v" invite --revoke 00000000

# ---- across a restart ----
ok 'one more' invitation late --uses 2
flood 1 late
"$fkge" -q -d "$work/v" stop
start v
flood 5 late
ok 'uses are counted across a restart' [ "$(let_in)" -eq 1 ]
ok 'the secret is not drawn while it runs' says 1 'in use' -d "$work/v" secret

# ---- another secret ----
ok 'a line of today' invitation old
"$fkge" -q -d "$work/v" stop
ok 'another secret' prints 'invitations are revoked' -d "$work/v" secret
start v
flood 5 old
ok 'the old lines let nobody in' [ "$(let_in)" -eq 0 ]
ok 'an honest guest has a new one' invitation new
agent g 2 'local_rounds: 0'
ok 'joins by it' exits 0 -d "$work/g" join "$work/new"
"$fkge" -q -d "$work/g" train >/dev/null
start g
ok 'and is in' wait_for 'g is linked' peer_is v "$(id_of g)" linked True
"$fkge" -q -d "$work/g" stop
start g
ok 'and in again, as a partner' wait_for 'g is linked again' peer_is v "$(id_of g)" linked True
ok 'revoked, the ticket does not help' exits 0 -d "$work/v" peer revoke g
ok 'it stays out' wait_for 'g is refused' logged g 'not accepted'
"$fkge" -q -d "$work/g" stop

# ---- who shows a good line and is no partner all the same ----
used() { prints "$id  $1   used $2 of 1" -d "$work/v" invite --list; } # STANDING TIMES
stranger_still() { ! "$fkge" -d "$work/v" peer list -v | grep -qF "$1"; }
cp -r "$work/g" "$work/mixed"
sed -i "2s/.*/$(python3 -c 'import secrets; print(secrets.token_hex(32))')/" "$work/mixed/identity.key"
sed -i 's/^listen: .*/listen: off/' "$work/mixed/agent.yaml"
ok 'a line' invitation lent
ok 'another key joins by it, with the signing key of somebody else' exits 0 -d "$work/mixed" join "$work/lent"
start mixed
ok 'it is refused at its HELLO' wait_for 'the refusal' logged v 'is, or was, that of another agent'
ok 'and hears why' wait_for 'the reason' logged mixed 'is, or was, that of another agent'
"$fkge" -q -d "$work/mixed" stop
ok 'it is no partner' stranger_still "$(id_of mixed)"
ok 'the line is as good as before' used 'good   ' 0
silent() { "$knock" "$(value v port)" "$(cat "$work/lent")" 1 127.4.9.9 silent >"$work/flood" && grep -q 'left 1' "$work/flood"; }
ok 'one that does not say HELLO is sent away' silent
ok 'and has used nothing' used 'good   ' 0
agent h 3 'local_rounds: 0'
ok 'an honest guest joins by the same line' exits 0 -d "$work/h" join "$work/lent"
"$fkge" -q -d "$work/h" train >/dev/null
start h
ok 'and is in' wait_for 'h is linked' peer_is v "$(id_of h)" linked True
ok 'now it is used' used 'used up' 1
"$fkge" -q -d "$work/h" stop

# ---- who names the signing key of an agent that is not known here ----
agent k 4 'local_rounds: 0'
ok 'a line' invitation claimed
k_signs=$("$fkge" -q -d "$work/k" --json id >"$out" && member "$out" sign_key)
claims() { "$knock" "$(value v port)" "$(cat "$work/claimed")" 1 127.4.9.8 "$k_signs" >"$work/flood" && grep -q 'left 1' "$work/flood"; }
ok 'it is sent away' claims
ok 'it is said why' logged v 'does not prove that the key that it signs with is its own'
ok 'and has used nothing' used 'good   ' 0
ok 'whose key it is joins by the same line' exits 0 -d "$work/k" join "$work/claimed"
"$fkge" -q -d "$work/k" train >/dev/null
start k
ok 'and is in' wait_for 'k is linked' peer_is v "$(id_of k)" linked True
"$fkge" -q -d "$work/k" stop

# ---- what the store cannot give: nothing has happened, and the next one comes in ----
# alias SQL: past the agent, which has the store open
alias() { python3 - "$work/v/store.db" "$1" <<'PY'
import sys, storedb
db = storedb.connect(sys.argv[1])
with db:
    db.execute(sys.argv[2])
PY
}
outcome() { grep -q "$1" "$work/flood"; }
standing() { "$fkge" -d "$work/v" --json peer list | python3 -c '
import json, sys
print(*(p["standing"] for p in json.load(sys.stdin)["peers"] if p["id"] == sys.argv[1]))' "$1"; }
stands() { [ "$(standing "$1")" = "$2" ]; }
ok 'a line' invitation broken
before=$(partners)
alias "INSERT INTO alias VALUES (x'', 'e', 99999999, x'41')"
flood 1 broken
ok 'names cannot be read: the newcomer is sent away' outcome 'left 1'
ok 'it is said why' logged v 'an alias for an id that has no name'
ok 'and has used nothing' used 'good   ' 0
ok 'it is no partner' [ "$(partners)" -eq "$before" ]
stranger=$(sed 's/.* //' "$work/flood")
ok 'nor does its owner make it one now' says 9 'an alias for an id' -d "$work/v" peer accept "$stranger"
ok 'nor is it said to be one' stands "$stranger" ''
alias 'DELETE FROM alias WHERE id = 99999999'
"$fkge" -q -d "$work/v" stop
start v
ok 'nor after a restart' stands "$stranger" ''
flood 1 broken
ok 'names can be read: the next one is in' outcome 'answered 1'
ok 'the line is used' used 'used up' 1
ok 'its owner accepts the other one' exits 0 -d "$work/v" peer accept "$stranger"
ok 'who is a partner then' stands "$stranger" partner
exits 0 -d "$work/v" peer revoke "$stranger"

# ---- its owner changes his mind while the newcomer is being written down ----
# locked: nobody else writes until $work/go is there, or for 4 s (less than the agent would wait)
locked() { python3 - "$work/v/store.db" "$work" <<'PY'
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open(sys.argv[2] + "/locked", "w").close()
until = time.time() + 4
while not os.path.exists(sys.argv[2] + "/go") and time.time() < until:
    time.sleep(.01)
PY
}
# goes_by VERB ID: the running agent does, on disk or not; its log says so only when it is there
goes_by() {
	case $1 in
	revoke) peer_is v "$2" standing revoked ;;
	forget) ! member "$work/v.json" peers "id=$2" standing ;;
	esac
} >/dev/null 2>&1
# meanwhile VERBS: the owner says these of a newcomer that is on no disk yet; $guest is its id
meanwhile() {
	invitation "off$((n_off = n_off + 1))"
	line=$(cat "$work/off$n_off") port=$(value v port)
	rm -f "$work/go" "$work/locked"
	locked &
	lock=$!
	wait_for 'the lock' [ -e "$work/locked" ]
	"$knock" "$port" "$line" 1 "127.5.$n_off.1" >"$work/flood" &
	knocks=$!
	wait_for 'the newcomer' logged v "is a partner by invitation $id"
	guest=$(sed -n "s/.* \([a-z0-9]*\) is a partner by invitation $id.*/\1/p" "$work/v.log")
	said=
	for verb; do
		"$fkge" -q -d "$work/v" peer "$verb" "$guest" >/dev/null &
		said="$said $!"
		wait_for "$verb" goes_by "$verb" "$guest"
	done
	touch "$work/go"
	wait $lock $knocks $said
	logged v "$guest came with an invitation and was refused: it was taken off the list meanwhile"
}
n_off=0
# in_tries COMMAND: again where the machine was too slow for the lock's 4 s, and it was a partner before that
in_tries() { for try in 1 2 3; do "$@" && return; done; return 1; }
ok 'revoked while it is written' in_tries meanwhile revoke
ok 'it is sent away' outcome 'left 1'
ok 'and stays so' stands "$guest" revoked
revoked=$guest
ok 'forgotten while it is written' in_tries meanwhile revoke forget
ok 'it is sent away, too' outcome 'left 1'
ok 'and nobody knows it' stands "$guest" ''
"$fkge" -q -d "$work/v" stop
start v
ok 'nor after a restart' stands "$guest" ''
ok 'the other one is revoked still' stands "$revoked" revoked

# ---- the agent ends in between: who is a partner has used the line, and nobody has who is not ----
# both_or_neither PARTNERS: so many there were before; who was greeted is one of them
both_or_neither() {
	times=$("$fkge" -d "$work/v" invite --list | sed -n "s/^$id .* used \([01]\) of 1.*/\1/p")
	[ "$(partners)" -eq $(($1 + times)) ] && [ "$(let_in)0" -le "${times}0" ]
}
seed=${FKGE_TEST_SEED:-$(date +%s)}
echo "# seed $seed (FKGE_TEST_SEED=$seed repeats the moments)"
# greeted: it says so when all is written.  unwritten: it is on no disk yet, for that is locked
greeted() { outcome 'answered 1' && [ "$times" -eq 1 ]; }
unwritten() { logged v "is a partner by invitation $id" && [ "$times" -eq 0 ]; }
# killed TURN: at a moment between the two; the last ones at these two
killed() {
	before=$(partners) too_late=
	rm -f "$work/once$1"
	invitation "once$1"
	if [ "$1" = unwritten ]; then
		rm -f "$work/go" "$work/locked"
		locked &
		lock=$!
		wait_for 'the lock' [ -e "$work/locked" ]
	fi
	flood 1 "once$1" &
	knocks=$!
	case $1 in
	greeted) wait $knocks ;;
	unwritten) wait_for 'the newcomer' logged v "is a partner by invitation $id" ;;
	*) python3 -c "import random, time; time.sleep(random.Random(($seed, $1).__hash__()).random() * .03)" ;;
	esac
	kill -9 "$pid_v"
	[ "$1" != unwritten ] || ! ended $lock || too_late=yes
	touch "$work/go"
	wait $knocks "$pid_v" 2>/dev/null
	both_or_neither "$before"
}
# in_time TURN: again where the machine was too slow for the lock's 4 s
in_time() {
	for try in 1 2 3; do
		killed "$1" || return
		[ -n "$too_late" ] || return 0
		start v
	done
	return 1
}
for turn in 1 2 3 4 5 6 greeted unwritten; do
	ok "killed ($turn): a partner and a use, or neither" in_time $turn
	case $turn in *d | *n) ok "killed ($turn): as it must be" $turn ;; esac
	start v
	flood 2 "once$turn"
	ok "killed ($turn): one more, or none" [ "$(partners)" -eq $((before + 1)) ]
	ok "killed ($turn): and it is used up" used 'used up' 1
done
"$fkge" -q -d "$work/v" stop
ok 'and the agent would start' prints 'fkge serve can load all of it' -d "$work/v" doctor
finish
