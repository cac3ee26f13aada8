#!/bin/sh
# What an owner decides counts once it is on disk, and not before: a running agent whose store takes no more.
# Usage: decisions.sh FKGE
. "$(dirname "$0")/lib.sh"
agent a 1 'accept: invited'
agent b 2
a=$work/a
ok 'a secret' exits 0 -d "$a" secret
b_id=$(id_of b 2>/dev/null)
in_store() { python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute(sys.argv[2])' "$a/store.db" "$1"; }
full() { in_store "CREATE TRIGGER full BEFORE $1 BEGIN SELECT RAISE(ABORT, 'no room'); END"; }
roomy() { in_store 'DROP TRIGGER full'; }

# undecided NAME OPERATION WORD COMMAND...: the decision fails, the agent ends of it, and nobody was told that it counts
undecided() {
	deed=$1 on=$2 word=$3
	shift 3
	: >"$work/a.log"
	start a
	wait_for 'the first training' is_value a state sleep
	full "$on"
	ok "$deed fails" says 9 'no room' -d "$a" "$@"
	ok 'the agent ends of it' wait_for 'its end' ended "$pid_a"
	kill -9 "$pid_a" 2>/dev/null
	code=0
	wait "$pid_a" || code=$?
	ok 'with that status' [ "$code" = 9 ]
	ok 'its log does not say that it counts' [ "$(grep -c "the owner said: $word" "$work/a.log")" = 0 ]
	roomy
}

start a
"$fkge" -q -d "$a" invite -o "$work/line" --address 127.0.0.1:1
ok 'a decision that counts is in the log' grep -q 'the owner said: invite$' "$work/a.log"
"$fkge" -q -d "$a" stop
wait "$pid_a"
undecided 'taking an invitation back' 'INSERT ON invitation' uninvite invite --revoke "$work/line"
ok 'it is good still' prints ' good ' -d "$a" invite --list
undecided 'inviting' 'INSERT ON invitation' invite invite --address 127.0.0.1:1 -o "$work/line2"
ok 'there is one invitation' [ "$("$fkge" -d "$a" invite --list --json | grep -c '"id"')" = 1 ]
for half in '--uses 1.5' '--days 2.5' '--uses 0' '--days 3651'; do
	ok "invite $half" says 2 "${half% *} '${half#* }': a whole number from 1 to" -d "$a" invite --address 127.0.0.1:1 $half
done
ok 'another, for as many keys and days as the owner says' exits 0 -d "$a" invite --address 127.0.0.1:1 --uses 3 --days 2 -o "$work/line4" --json
other=$(member "$out" invitation)
ok 'which are told' [ "$(member "$out" uses) $(member "$out" days)" = '3 2' ]
ok 'the line is in the file alone' [ "$(grep -c fkge1: "$out") $(grep -c '^fkge1:' "$work/line4") $(stat -c %a "$work/line4")" = '0 1 600' ]
as_asked() { # both invitations are there: for a key and 30 days, for three and two days
	run -d "$a" invite --list --json && python3 - "$out" "$other" <<'PY'
import json, sys, time
all = {i["id"]: i for i in json.load(open(sys.argv[1]))["invitations"]}
days = lambda i: (i["until_ms"] / 1000 - time.time()) / 86400
mine = all.pop(sys.argv[2])
[first] = all.values()
assert (mine["uses"], mine["used"]) == (3, 0) and 1.9 < days(mine) <= 2, mine
assert first["uses"] == 1 and 29.9 < days(first) <= 30, first
PY
}
ok 'and kept to' as_asked
in_store 'UPDATE invitation SET used = 2 WHERE uses = 3'
ok 'one is taken back by its file, and it is said who came in before' says 0 '2 came in by it and are partners' -d "$a" \
	invite --revoke "$work/line4"
ok 'it is the one' grep -qx "$other lets nobody in any more" "$out"
ok 'the other is good still' [ "$("$fkge" -q -d "$a" invite --list | grep -c ' good ')" = 1 ]
{ cat "$work/line4" && head -c 4000 /dev/zero | tr '\0' ' '; } >"$work/long"
ok 'a line is not longer than a line can be' says 4 'one line of at most' -d "$work/b" join "$work/long"
undecided 'rejecting' 'INSERT ON peer' reject peer reject "$b_id"
ok 'nobody is known' says 0 'No peers yet' -d "$a" peer list
"$fkge" -q -d "$a" peer accept "$b_id" >"$out" && "$fkge" -q -d "$a" peer revoke "$b_id" >"$out"
undecided 'forgetting' 'DELETE ON peer' forget peer forget "$b_id"
ok 'it is known still' prints revoked -d "$a" peer list
"$fkge" -q -d "$a" peer forget "$b_id" >"$out"
"$fkge" -q -d "$work/b" invite --address 127.0.0.1:1 --for "$(id_of a 2>/dev/null)" -o "$work/line3"
undecided 'joining' 'INSERT ON pair_secret' join join "$work/line3"
ok 'nothing of the line is there' says 0 'No peers yet' -d "$a" peer list

# ---- no more partners than an agent can start with ----
python3 - >"$work/ids" <<'PY'
import base64, hashlib, os
text = lambda b: base64.b32encode(b).decode().rstrip("=").lower()
for _ in range(257):
    key = os.urandom(32)
    print(text(key) + text(hashlib.blake2b(key, digest_size=16, key=b"fkge key text 1 ").digest())[:4])
PY
head -n 255 "$work/ids" | xargs -n 8 "$fkge" -q -d "$work/b" peer accept >"$out" 2>"$err"
count_listed() { "$fkge" -q -d "$work/b" peer list | grep -c partner; }
ok 'with a, as many as can be' [ "$(count_listed)" = 256 ]
one_more=$(tail -n 1 "$work/ids") full='there are 256 partners, as many as can be'
ok 'one more is refused' says 1 "$full" -d "$work/b" peer accept "$one_more"
ok 'by an invitation, too' says 1 "$full" -d "$work/b" invite --address 127.0.0.1:1 --for "$one_more"
"$fkge" -q -d "$work/z" init --name z --listen off >"$out" 2>"$err"
ok 'and by a line' says 1 "$full" -d "$work/b" peer add "$("$fkge" -d "$work/z" id --line)"
ok 'one of them may be accepted again' exits 0 -d "$work/b" peer accept "$(head -n 1 "$work/ids")"
start b
ok 'the agent starts with them' is_value b running True
ok 'nor does it take one more then' says 1 "$full" -d "$work/b" peer accept "$one_more"
finish
