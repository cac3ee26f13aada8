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
ok 'the secret is not drawn while it runs' says 9 'in use' -d "$work/v" secret

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

# ---- the agent ends in between: who is a partner has used the line, and nobody has who is not ----
# both_or_neither PARTNERS: so many there were before; who was greeted is one of them
both_or_neither() {
	times=$("$fkge" -d "$work/v" invite --list | sed -n "s/^$id .* used \([01]\) of 1.*/\1/p")
	[ "$(partners)" -eq $(($1 + times)) ] && [ "$(let_in)0" -le "${times}0" ]
}
seed=${FKGE_TEST_SEED:-$(date +%s)}
echo "# seed $seed (FKGE_TEST_SEED=$seed repeats the moments)"
for turn in 1 2 3 4 5 6 7 8; do
	before=$(partners)
	invitation "once$turn"
	flood 1 "once$turn" &
	knocks=$!
	python3 -c "import random, time; time.sleep(random.Random(($seed, $turn).__hash__()).random() * .03)"
	kill -9 "$pid_v"
	wait $knocks "$pid_v" 2>/dev/null
	ok "killed ($turn): a partner and a use, or neither" both_or_neither "$before"
	start v
	flood 2 "once$turn"
	ok "killed ($turn): one more, or none" [ "$(partners)" -eq $((before + 1)) ]
	ok "killed ($turn): and it is used up" used 'used up' 1
done
"$fkge" -q -d "$work/v" stop
ok 'and the agent would start' prints 'fkge serve can load all of it' -d "$work/v" doctor
finish
