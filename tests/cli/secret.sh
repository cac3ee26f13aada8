#!/bin/sh
# A federation with a secret: whoever holds the invitation is in, from behind a wall too; and
# what the paper's translator puts on the ledger.
. "$(dirname "$0")/lib.sh"

ppat='translator: ppat, accept: invited, local_rounds: 0'
settings='
ppat: {steps: 40, batch: 8, teachers: 4, noise: laplace, lambda: 0.05}
privacy: {useless_sessions: spend, epsilon_per_peer: 2.0, epsilon_total: 3.0, reserve_labels: 16}'

agent a 1 "$ppat"
agent b 2 "$ppat"
printf '%s\n' "$settings" >>"$work/a/agent.yaml"
printf '%s\n' "$settings" >>"$work/b/agent.yaml"
sed -i 's/^listen: .*/listen: off/' "$work/b/agent.yaml"
ok 'without a secret no invitation can let in' says 2 'fkge secret' -d "$work/a" invite --address 127.0.0.1:1
ok 'one for one key can' exits 0 -d "$work/a" invite --address 127.0.0.1:1 --for "$(id_of b)"
"$fkge" -q -d "$work/a" peer revoke "$(id_of b)" >/dev/null
"$fkge" -q -d "$work/a" peer forget "$(id_of b)" >/dev/null
ok 'which is not for several' says 2 '--uses and --days' \
	-d "$work/a" invite --address 127.0.0.1:1 --for "$(id_of b)" --uses 2
printf '%064d\n' 42 >"$work/a/federation.key"
ok 'a secret that others may read is refused' says 6 'chmod 600' -d "$work/a" invite --address 127.0.0.1:1
chmod 600 "$work/a/federation.key"

ok 'a starts' start a
"$fkge" -q -d "$work/a" invite -o "$work/line"
sql() { python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: print(*db.execute(sys.argv[2]).fetchall())' "$work/b/store.db" "$1"; }
sql "CREATE TRIGGER full BEFORE INSERT ON peer BEGIN SELECT RAISE(ABORT, 'full'); END" >/dev/null
ok 'joining may fail' says 9 full -d "$work/b" join "$work/line"
ok 'then nothing of the line is kept' \
	[ "$(sql 'SELECT (SELECT count(*) FROM ticket) + (SELECT count(*) FROM pair_secret)')" = '(0,)' ]
ok 'nor its secret' [ ! -e "$work/b/federation.key" ]
sql 'DROP TRIGGER full' >/dev/null
ok 'b takes the line' exits 0 -d "$work/b" join "$work/line"
ok 'and with it the secret' cmp -s "$work/a/federation.key" "$work/b/federation.key"
ok 'which is private' [ "$(stat -c %a "$work/b/federation.key")" = 600 ]
b_id=$("$fkge" -d "$work/b" id)
ok 'b starts, listening nowhere' start b
ok 'b is in without being accepted' wait_for link peer_is a "$b_id" linked True
# a secret that is put there meanwhile is not the one that its links use
cp "$work/a/federation.key" "$work/in-force"
printf '%064d\n' 43 >"$work/a/federation.key"
ok 'no line has a secret that is not in force' says 1 'fkge reload --restart takes it' -d "$work/a" invite --address 127.0.0.1:1
cp "$work/in-force" "$work/a/federation.key"
ok 'by the one in force it is made' exits 0 -d "$work/a" invite --address 127.0.0.1:1
ok 'a has hosted b' wait_for rounds at_least a rounds 1
ok 'b has hosted a' wait_for rounds at_least b rounds 1
ok 'a rests' wait_for sleep is_value a state sleep
ok 'b rests' wait_for sleep is_value b state sleep
"$fkge" -q -d "$work/b" stop
"$fkge" -q -d "$work/a" stop
ok 'a ended cleanly' wait "$pid_a"
ok 'b ended cleanly' wait "$pid_b"

run -d "$work/a" ledger show --json
cp "$out" "$work/show.json"
spent=$(member "$work/show.json" chains 0 as_host labels)
cap=$(member "$work/show.json" chains 0 as_host labels_cap)
ok 'labels were spent, up to the last batch under the cap' [ "$spent" -gt $((cap - 16)) ]
ok 'within the cap' [ "$spent" -le "$cap" ]
ok 'epsilon too' python3 -c "
import json
h = json.load(open('$work/show.json'))['chains'][0]['as_host']
assert 0 < h['epsilon'] <= h['epsilon_cap'] == 2.0"
ok 'beside it what the paper would print, a query a batch' python3 -c "
import json
h = json.load(open('$work/show.json'))['chains'][0]['as_host']
assert 0 < h['epsilon_as_published'] < h['epsilon_by_accountant']['paper'] / 2"
ok 'in words too' prints 'as published, one query a batch of 8' -d "$work/a" ledger show
ok 'and in a quote' prints 'as published, one query a batch of 8' -d "$work/a" ledger quote b --labels 8
cp "$work/a/agent.yaml" "$work/a.yaml"
ok 'the owner lowers the budget' exits 0 -d "$work/a" config set privacy.epsilon_per_peer 0.5
ok 'that is the cap' prints 'of 0.5000 at delta' -d "$work/a" ledger show
run -d "$work/a" ledger show --json
ok 'of labels, too' python3 -c "
import json
h = json.load(open('$out'))['chains'][0]['as_host']
assert h['epsilon_cap'] == 0.5 and 0 <= h['labels_cap'] < $cap, h"
cp "$work/a.yaml" "$work/a/agent.yaml"
ok 'no session is left open' [ "$(member "$work/show.json" chains 0 unsettled)" = 0 ]
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
"$fkge" -q -d "$work/b" ledger export "$work/b.led" >/dev/null
ok 'both ledgers agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"

# ---- the secret of the pair, which the invitation has brought ----
# pair_secret FOLDER: the one that is proven, in hexadecimal
pair_secret() {
	python3 -c "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + '/store.db')
print(*(r[0].hex() for r in db.execute('SELECT secret FROM pair_secret WHERE proven = 1')))" "$1"
}
ok 'both know one secret that nobody else knows' [ -n "$(pair_secret "$work/a")" ]
ok 'the same' [ "$(pair_secret "$work/a")" = "$(pair_secret "$work/b")" ]
python3 -c "
import storedb, sys
db = storedb.connect(sys.argv[1] + '/store.db')
db.execute('DELETE FROM pair_secret')
db.commit()" "$work/b"
port=$(sed -n 's/.*started: listening on [^,]*, port \([0-9]*\),.*/\1/p' "$work/a.log" | head -1)
sed -i "s/^listen: .*/listen: 127.0.0.1:$port/" "$work/a/agent.yaml"
ok 'a starts again, where it was' start a
ok 'b starts, and has lost it' start b
ok 'b is not let in without it' wait_for refusal grep -q 'join it by a new invitation' "$work/b.log"
ok 'the owner of a sees why' wait_for reason grep -q 'without the secret that we share' "$work/a.log"
"$fkge" -q -d "$work/a" invite -o "$work/line2"
ok 'b joins by a new line' exits 0 -d "$work/b" join "$work/line2"
ok 'b is in again' wait_for link peer_is a "$b_id" linked True
"$fkge" -q -d "$work/b" stop
"$fkge" -q -d "$work/a" stop
ok 'a ended' wait "$pid_a"
ok 'b ended' wait "$pid_b"
ok 'the secret is another, and the same again' [ "$(pair_secret "$work/a")" = "$(pair_secret "$work/b")" ]

# ---- a line of another federation takes no secret away ----
agent o 3
agent q 4
"$fkge" -q -d "$work/o" secret >/dev/null 2>&1
"$fkge" -q -d "$work/o" invite --address 127.0.0.1:1 --for "$(id_of b)" -o "$work/line-b" 2>/dev/null
"$fkge" -q -d "$work/o" invite --address 127.0.0.1:1 --for "$(id_of q)" -o "$work/line-q" 2>/dev/null
cp "$work/b/federation.key" "$work/kept"
ok 'it is refused, and how many it would cost is said' says 2 \
	'another one is in federation.key: 1 partner would have no link' -d "$work/b" join "$work/line-b"
ok 'the secret is what it was' cmp -s "$work/kept" "$work/b/federation.key"
ok 'and o no partner' eval '! "$fkge" -d "$work/b" peer list | grep -q "^o "'
"$fkge" -q -d "$work/q" peer add "$("$fkge" -d "$work/a" id --line)" >/dev/null 2>&1
ok 'so it is where partners are linked without one' says 2 'this agent has none in federation.key: 1 partner would' \
	-d "$work/q" join "$work/line-q"
ok 'no secret is there' [ ! -e "$work/q/federation.key" ]
ok 'its owner may say so' exits 0 -d "$work/q" join --replace-secret "$work/line-q"
ok 'then it is there' cmp -s "$work/o/federation.key" "$work/q/federation.key"
"$fkge" -q -d "$work/o" secret >/dev/null 2>&1
"$fkge" -q -d "$work/o" invite --address 127.0.0.1:1 --for "$(id_of q)" -o "$work/line-q" 2>/dev/null
agent r 5 'psk_file: mine.key'
"$fkge" -q -d "$work/o" invite --address 127.0.0.1:1 --for "$(id_of r)" -o "$work/line-r" 2>/dev/null
ok 'a file that is named may still be missing' exits 0 -d "$work/r" join "$work/line-r"
ok 'the secret is put there' cmp -s "$work/o/federation.key" "$work/r/mine.key"
cp "$work/q/federation.key" "$work/kept"
ok 'a line in the name of a partner is no reason' says 2 'another one is in federation.key' -d "$work/q" join "$work/line-q"
ok 'the secret is what it was' cmp -s "$work/kept" "$work/q/federation.key"
ok 'its owner takes the one that a partner has drawn' says 0 '/q/federation.key.before.' -d "$work/q" join --replace-secret "$work/line-q"
ok 'it counts' cmp -s "$work/o/federation.key" "$work/q/federation.key"
ok 'and the old one is kept' cmp -s "$work/kept" "$work/q/federation.key.before"
ok 'for its owner alone' [ "$(stat -c %a "$work/q/federation.key.before")" = 600 ]
cp "$work/q/federation.key" "$work/kept2"
"$fkge" -q -d "$work/o" secret >/dev/null 2>&1
"$fkge" -q -d "$work/o" invite --address 127.0.0.1:1 --for "$(id_of q)" -o "$work/line-q" 2>/dev/null
ok 'and again' exits 0 -d "$work/q" join --replace-secret "$work/line-q"
ok 'the first stays' cmp -s "$work/kept" "$work/q/federation.key.before"
ok 'beside the second' cmp -s "$work/kept2" "$work/q/federation.key.before-2"

# ---- what is only a matter of time is no failure ----
sed -i 's/names_every_s: 0/names_every_s: 600/' "$work/a/agent.yaml"
printf 'e1\tanother\n' >"$work/alias.tsv"
ok 'a has another name' exits 0 -d "$work/a" import --alias "$work/alias.tsv"
ok 'a starts, and may not compare names again so soon' start a
doctor_waits() { prints 'look  peer       b: names are to be compared, which may not begin' -d "$work/a" doctor; }
ok 'for doctor that is a wait' doctor_waits
"$fkge" -q -d "$work/a" stop
ok 'a ended cleanly' wait "$pid_a"

# ---- an invitation is revoked by what its owner has of it ----
ok 'for several keys' exits 0 -d "$work/a" invite --uses 2 -o "$work/line3"
ok 'by its file' prints 'lets nobody in any more' -d "$work/a" invite --revoke "$work/line3"
ok 'it is the one' prints 'revoked   used 0 of 2' -d "$work/a" invite --list
"$fkge" -q -d "$work/a" invite --days 3 -o "$work/line4"
piped() { "$fkge" -q -d "$work/a" invite --revoke - <"$work/line4" >"$out"; }
ok 'by standard input' piped
both_revoked() { run -d "$work/a" invite --list && [ "$(grep -c ' revoked ' "$out")" = 2 ]; }
ok 'both are' both_revoked
"$fkge" -q -d "$work/a" invite --for "$(id_of b)" -o "$work/line5"
ok 'one that is for one key has no id' says 4 'lets nobody in by itself' -d "$work/a" invite --revoke "$work/line5"
ok 'the line itself is no argument' says 2 'the line itself is no argument' -d "$work/a" invite --revoke "$(cat "$work/line4")"
ok 'a quote beyond the cap says so' prints 'does not fit' -d "$work/a" ledger quote b --labels 1000000

# ---- an address that is every machine's ----
every() { says 2 'stands for every address of a machine' -d "$work/a" invite --address "$1:7447"; }
for host in 0.0.0.0 0 '[::]' '[0:0::0]' '[::ffff:0.0.0.0]'; do ok "no invitation to $host" every "$host"; done
sed -i 's/^listen: .*/listen: 0.0.0.0:7447/' "$work/a/agent.yaml"
ok 'nor to where it listens' says 2 'listens on every address' -d "$work/a" invite
ok 'nor is it advertised' says 2 'stands for every address of a machine' -d "$work/a" config set advertise 0.0.0.0:7447
ok 'to one machine' exits 0 -d "$work/a" invite --address 7.7.7.7:7447 -o "$work/line6"
python3 - "$work/line6" <<'PY'
import base64, hashlib, re, sys
text = open(sys.argv[1]).read().strip().split(":")[1]
body = base64.b32decode(text.upper() + "=" * (-len(text) % 8))[:-4]
assert body.count(b"7.7.7.7") == 1
body = body.replace(b"7.7.7.7", b"0.0.0.0")
check = hashlib.blake2b(body, digest_size=16, key=b"fkge invite 1   ").digest()[:4]
open(sys.argv[1], "w").write("fkge1:" + base64.b32encode(body + check).decode().rstrip("=").lower() + "\n")
PY
ok 'nor is a line of another program taken' says 4 'stands for every address of a machine' -d "$work/b" join "$work/line6"
finish
