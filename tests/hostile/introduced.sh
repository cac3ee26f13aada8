#!/bin/sh
# Attack: a partner tells of an agent, under that agent's id, with a signing key of its own. The id is all that two
# owners compare, and the record of it holds: it is signed, though not by that agent. Whoever believed the key would
# refuse the agent itself for ever after. $2: tests/hostile/member.
. "$(dirname "$0")/../cli/lib.sh"
member=$2

for who in 'a 1' 'evil 2' 'b 3'; do agent $who; done
for who in a b; do sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"; done
a_id=$("$fkge" -q -d "$work/a" id) b_id=$("$fkge" -q -d "$work/b" id)
sign_key() { "$fkge" -q -d "$work/$1" --json id >"$work/$1.id" && member "$work/$1.id" sign_key; }
befriend a evil
start a
"$member" "$work/evil" "$work/evil.json" "$b_id" 2>>"$work/evil.log" &
evil=$!
pids="$pids $evil"
introduced() { prints "$b_id" -d "$work/a" peer introduced; }
ok 'it tells of b' wait_for 'the record' introduced
evil_id=$(id_of evil)
ok 'by the name of its own id, so the record is its' grep -q "$b_id *$evil_id *0.0.0.0:1" "$out"

# ---- the owners have compared the id ----
ok 'a adds b, without what no line may say' exits 0 -d "$work/a" peer add "$b_id"
ok 'and invites it' exits 0 -d "$work/a" invite --for "$b_id" -o "$work/line"
ok 'b joins' exits 0 -d "$work/b" join "$work/line"
start b
both_had_one() { at_least a rounds 1 && at_least b rounds 1; }
ok 'a and b have sessions' wait_for 'a session' both_had_one
ok 'nobody is blamed' sh -c "! grep -q 'another key\|does not prove' '$work/a.log' '$work/b.log'"
kill "$evil" && wait "$evil"
for who in a b; do
	"$fkge" -q -d "$work/$who" stop
	ok "$who: an export" exits 0 -d "$work/$who" ledger export "$work/$who.led"
done
b_signs=$(sign_key b)
ok 'the ledger of a names b by the key of b' grep -q "$b_signs" "$work/a.led"
ok 'and that of b agrees' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
finish
