#!/bin/sh
# The ledger as an auditor meets it: shown, quoted, exported, forged, rolled back; and a budget that is lowered.
. "$(dirname "$0")/lib.sh"

stop() { # NAME...
	for who; do
		"$fkge" -q -d "$work/$who" stop
		eval "wait \$pid_$who"
	done
}
asleep() { [ "$(value "$1" state)" = sleep ] && [ "$(value "$1" queued)" = 0 ]; }
quiet() { asleep a && asleep b; }
shows() { run -d "$work/$1" ledger show && flat_has "$2"; }
sent_by() { "$fkge" -d "$work/$1" --json ledger show >"$work/show" && member "$work/show" own rows_sent; }
labels() { "$fkge" -d "$work/$1" --json ledger show >"$work/show" && member "$work/show" total_labels; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }

fkge=$(realpath "$fkge")
settings='ppat: {steps: 4, batch: 8}'
for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat'
	echo "$settings" >>"$work/$who/agent.yaml"
	sed -i 's/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 10/' "$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
# a keeps its port, or b would not find it again
port=$(free_port)
sed -i "s/^listen: .*/listen: 127.0.0.1:$port/" "$work/a/agent.yaml"
start a
ok 'quote of nobody: as of a new partner' says 0 'so these are the figures of a new partner' -d "$work/a" ledger quote b
ok 'quote of nobody: the price' grep -q '32 labels: with this peer 0 of 273 are spent' "$out"
ok 'quote of nobody: what is not known' grep -q 'it is not known what is shared (--rows N)' "$err"
ok 'quote of nobody: as if so many were shared' prints 'on which all 100 teachers agree' -d "$work/a" ledger quote b --rows 5000
ok 'invite' exits 0 -d "$work/a" invite --for "$("$fkge" -d "$work/b" id)" -o "$work/line"
ok 'join' exits 0 -d "$work/b" join "$work/line"
ok 'before: nothing is on it' says 0 'Nothing is on the ledger yet' -d "$work/a" ledger show
start b
# ---- what buys nothing is not paid for, unless the owner says so ----
ok 'a refuses' wait_for 'refusal by a' logged a 'numbers a row need 17: nothing useful, so nothing is spent'
ok 'b refuses' wait_for 'refusal by b' logged b 'numbers a row need 17: nothing useful, so nothing is spent'
ok 'status says why' wait_for 'trouble' grep -q 'trouble.*nothing useful, so nothing is spent' "$work/a.json"
stop a b
ok 'nothing was spent' says 0 'Nothing is on the ledger yet' -d "$work/a" ledger show
ok 'quote says that it is refused' prints 'refuses to host such a session (privacy.useless_sessions)' -d "$work/a" ledger quote b
echo 'privacy: {useless_sessions: spend}' >>"$work/a/agent.yaml"
echo 'privacy: {useless_sessions: spend, accountant: pld}' >>"$work/b/agent.yaml"
start a
start b
ok 'a has hosted' wait_for 'rounds of a' at_least a rounds 1
ok 'b has hosted' wait_for 'rounds of b' at_least b rounds 1
ok 'quiet' wait_for 'sleep' quiet
# as another process works it out, which has no bound to show meanwhile
"$fkge" -d "$work/b" --json ledger show >"$work/show"
priced() { [ "$(member "$work/b.json" privacy epsilon)" = "$(member "$work/show" total_epsilon)" ]; }
ok 'status: by pld, once it is worked out' wait_for 'the price' priced
stop a b

# ---- what an auditor reads ----
ok 'show: the price' shows a "this agent's rows: 32 of 273 one-bit labels, epsilon 0.5"
ok 'show: the mechanism' shows a '4 teachers, gaussian noise, sigma 40'
ok 'show: the accountants' shows a 'by accountant: exact 0.5'
accountants() { # each that judges labels, as programs are told
	"$fkge" -d "$work/a" --json ledger show >"$work/show" && python3 - "$work/show" "$out" <<'PY'
import json, re, sys
by = json.load(open(sys.argv[1]))["chains"][0]["as_host"]["epsilon_by_accountant"]
said = re.search(r"by accountant: (.*)", open(sys.argv[2]).read()).group(1)
assert said == ", ".join(f"{k} {v:.4f}" for k, v in by.items() if v is not None) and said.count(",") >= 2, (said, by)
PY
}
ok 'all of them' accountants
ok 'show: what is protected' shows a 'protected: none of the aligned rows of this agent, which went to b as they are, whatever epsilon says'
ok 'show: rows sent' eval 'shows a "rows sent: $(sent_by a) as they are, 0 with noise"'
ok 'show: in all' shows a "this agent in all: $(sent_by a) rows sent as they are, 0 with noise; 32 labels, 0 maps"
ok 'show: in 80 columns' narrow
ok 'show: what is not' shows a "not protected: b's aligned rows: this agent has all distances"
ok 'show: all partners' shows a "toward all partners: 32 labels, epsilon 0.5"
ok 'show: none unfinished' shows a '0 sessions unfinished'
ok 'quote says what fits' prints 'it fits' -d "$work/a" ledger quote b --labels 241
ok 'and what does not' prints 'it does not fit' -d "$work/a" ledger quote b --labels 242
ok 'quote: by each accountant' grep -q 'by gnmax: epsilon' "$out"
ok 'quote: by the tightest' grep -q 'by pld: epsilon' "$out"
ok 'quote: what it buys' grep -q 'it buys nothing useful' "$out"
ok 'quote: and what to do instead' grep -q 'instead: federation.translator procrustes: .* epsilon 0' "$out"
quoted() { # WORTH KEY...: with --json
	want=$1
	shift
	"$fkge" -d "$work/a" --json ledger quote b --labels 1000 >"$work/quote" 2>/dev/null && [ "$(member "$work/quote" "$@")" = "$want" ]
}
ok 'quote: how many fit' quoted 241 fit
ok 'quote: the verdict' quoted nothing useful worth
ok 'quote: the accountant that decides' quoted exact by_accountant 0 accountant
sed -i 's/translator: ppat/translator: map/' "$work/a/agent.yaml"
ok 'quote of a map: too few rows' quoted nothing useful worth
ok 'quote of a map: one release' prints '1 release: ' -d "$work/a" ledger quote b
sed -i 's/translator: map/translator: ppat/' "$work/a/agent.yaml"
ok 'audit measures what is on it' prints 'ledger, b: 32 labels: epsilon is at least' -d "$work/a" audit --rows 60 --draws 100000 --sessions 2000 --labels 65536 --alpha 1e-9
exported a a.led
exported b b.led
nowhere() { (cd / && HOME=/nonexistent FKGE_DIR=/nonexistent "$fkge" ledger verify "$@") >"$out" 2>"$err"; }
ok 'an export verifies with nothing else' nowhere "$work/a.led"
ok 'and says what was spent' flat_has 'rows: 32 of 273 one-bit labels, epsilon 0.5'
ok 'in 80 columns, too' narrow
ok 'two do' nowhere "$work/a.led" "$work/b.led"

# ---- rows that left before training was private ----
cp -r "$work/a" "$work/p"
sed -i 's/patience: 0}/patience: 0, filtered: false, shared_chunk: 0, dp: {epsilon: 8, rate: 0.5}}/' "$work/p/agent.yaml"
sed -i 's/^privacy: {/privacy: {delta: 1e-5, /' "$work/p/agent.yaml"
ok 'then all at once: whether a triple was trained on' shows a 'as they are, and with them whether a triple was trained on; shared'
began=$(date -u +%F)
ok 'it trains privately from now on' exits 0 -d "$work/p" train --fresh
still_open() { for day in $began $(date -u +%F); do shows p "whether a triple was trained on, in what left before $day" && return; done; return 1; }
ok 'what was sent before is still open' still_open
ok 'in 80 columns, as all' narrow
exported p p.led
ok 'for an auditor, too' prints 'whether a triple was trained on, in what left before' ledger verify "$work/p.led"
agent q 4
sed -i 's/patience: 0}/patience: 0, filtered: false, shared_chunk: 0, dp: {epsilon: 8, rate: 0.5}}/' "$work/q/agent.yaml"
echo 'privacy: {delta: 1e-5}' >>"$work/q/agent.yaml"
ok 'another one always did' exits 0 -d "$work/q" train
ok 'of which nothing left' shows q 'not protected: shared names, their number'

# forged STEP WORDS: what python does to the entries is found, and named
forged() {
	python3 - "$work/a.led" "$work/forged.led" "$1" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
e = j["entries"]
exec(sys.argv[3])
json.dump(j, open(sys.argv[2], "w"))
PY
	run ledger verify "$work/forged.led"
	narrow || return
	unwrap
	[ "$status" -eq 9 ] && grep -qF -- "$2" "$out"
}
ok 'fewer labels' forged 'e[1]["count"] = 8' 'entry 2 was edited'
ok 'another cap' forged 'e[0]["cap_pair"] = 10**6' 'entry 1 was edited'
ok 'an entry less' forged 'del e[1]' 'entry 2 was deleted'
ok 'a signature of another' forged 'e[1]["signature"] = e[2]["signature"]' 'bad signature by the host'
ok 'a countersignature of another' forged 'e[1]["countersignature"] = e[2]["countersignature"]' 'bad countersignature'
ok 'no countersignature' forged 'e[1]["countersignature"] = None' 'missing countersignature'
ok 'two entries change places' forged 'e[1], e[2] = e[2], e[1]' 'was deleted'
ok 'the end cut off' forged 'del e[-1]' 'was cut: it had'
ok 'and against the partner' exits 9 ledger verify "$work/forged.led" "$work/b.led"
ok 'in words' grep -q 'rolled back or cut' "$out"

# ---- a lowered budget binds the contract that stands ----
mkdir "$work/old"
cp "$work/b/store.db" "$work/old/"
sed -i 's/^privacy: .*/privacy: {useless_sessions: spend, epsilon_per_peer: 0.5, epsilon_total: 0.5}/' "$work/a/agent.yaml"
# news NAME ROUNDS: a better table for its partner, and leave to host so many rounds in all
news() {
	sed -i "s/max_rounds: [0-9]*/max_rounds: $2/" "$work/$1/agent.yaml"
	anew "$1" "4$2" --epochs 60
}
news a 2
news b 2
start a
start b
ok 'b goes on' wait_for 'b hosts' at_least b rounds 2
ok 'a says why not' wait_for 'a is told' logged a 'no labels are left toward it'
ok 'quiet again' wait_for 'sleep' quiet
stop a b
ok 'a has spent no more' [ "$(labels a)" = 32 ]
ok 'b has' [ "$(labels b)" -gt 32 ]
ok 'a quotes its own setting' prints 'it does not fit' -d "$work/a" ledger quote b --labels 8
day=$(date -u +%F) # before the export is made
exported a a.led
exported b b.led
ok 'and both agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"

# ---- what its writer alone says it gave back is not given back ----
python3 - "$work" <<'PY'
import copy, sys
from ledgerfile import Key, read, seal, sign, write
w = sys.argv[1]
a, b = Key(w + "/a"), Key(w + "/b")
x, y = read(w + "/a.led"), read(w + "/b.led")
seal(y, b)
assert y == read(w + "/b.led"), "sealed as the program does"
# b's last labels: reserved, signed by both, and settled by b alone, to none
last = max(k for k, e in enumerate(y["entries"]) if e["kind"] == "reserve" and e["count"] and e["host"] == b.public)
number, settle = y["entries"][last]["sequence"], y["entries"][last + 1]
assert settle["kind"] == "settle" and settle["session"] == y["entries"][last]["session"]

for z in (x, y):
    z["entries"] = [e for e in z["entries"] if e["sequence"] <= number]
settle = copy.deepcopy(settle)
settle.update(count=0, total_pair=settle["total_pair"] - settle["count"], rows=0, floats=0, transcript="0" * 64,
              total_lineage=settle["total_lineage"] - settle["count"])
sign(settle, b)
y["entries"].append(settle)
seal(x, a)
seal(y, b)
write(x, w + "/cut_a.led")
write(y, w + "/cut_b.led")

PY
spent_in() { "$fkge" --json ledger verify "$@" >"$work/json" && json_of spent; }
json_of() { python3 -c "import json, sys; print(json.dumps(json.load(open('$work/json'))[sys.argv[1]]))" "$1"; }
spent_in "$work/cut_a.led" >"$work/spent_a"
spent_in "$work/cut_b.led" >"$work/spent_b"
spent_in "$work/cut_a.led" "$work/cut_b.led" >"$work/spent_ab"
spent_in "$work/cut_b.led" "$work/cut_a.led" >"$work/spent_ba"
ok 'its export: as much was spent as by its partner' cmp "$work/spent_a" "$work/spent_b"
ok 'both: whichever is first' cmp "$work/spent_ab" "$work/spent_ba"
ok 'as each alone' cmp "$work/spent_a" "$work/spent_ab"
ok 'and that is said' prints 'that it gives back count as spent until then' ledger verify "$work/cut_b.led"

# ---- made in advance; without a partner ----
python3 - "$work" <<'PY'
import sys
from ledgerfile import Key, read, seal, write
w = sys.argv[1]
a, x = Key(w + "/a"), read(w + "/a.led")
made = x["time"]
x["time"] = made + 7200 * 1000
seal(x, a)
write(x, w + "/later.led")
print(x["time"] // 1000, file=open(w + "/later.time", "w"))
x["time"] = made
x["entries"] = []
seal(x, a)
write(x, w + "/empty.led")
PY
before=$(date +%s)
ok 'in advance: found' exits 9 ledger verify "$work/later.led" --since "$day"
after=$(date +%s)
unwrap
# by as much as it is, between the seconds before and after the command
in_advance() {
	said=$(sed -n 's/.*FAULT: the export of a .* is dated \([0-9]*\) s later than now.*/\1/p' "$out")
	at=$(cat "$work/later.time")
	[ "$said" -ge $((at - after - 1)) ] && [ "$said" -le $((at - before)) ]
}
ok 'in advance: named' in_advance
ok 'without a partner: it holds, with a word' prints 'whether a (' ledger verify "$work/empty.led" --since "$day"
unwrap
ok 'of other partners' grep -q '^not checked: whether a .* has had other partners' "$out"
ok 'and of its time' grep -q "^not checked: that the export of a .* is not an old one, but by its owner's clock" "$out"
ok 'of this agent itself, just now: no word of that' eval 'prints "the ledger holds" -d "$work/a" ledger verify; ! flat_has "is not an old one"'

# ---- a store put back from an old copy ----
rm -f "$work/b/store.db"*
cp "$work/old/store.db" "$work/b/"
exported b old.led
ok 'alone it holds' exits 0 ledger verify "$work/old.led"
ok 'against the partner it does not' exits 9 ledger verify "$work/old.led" "$work/a.led"
news b 3
: >"$work/a.log"
: >"$work/b.log"
start a
start b
ok 'its owner is told' wait_for 'b hears' logged b 'our store is an older copy of itself'
ok 'the partner hands back' wait_for 'all is there' logged b 'ledger entries that both had signed'
ok 'quiet once more' wait_for 'sleep' quiet
stop a b
exported a a2.led
exported b b.led
ok 'nothing was written over it' starts_with "$work/b.led" "$work/a.led"
ok 'both agree again' prints 'the ledger holds' ledger verify "$work/a2.led" "$work/b.led"
ok 'so may an older export be' exits 9 ledger verify "$work/a.led" "$work/b.led"

# ---- lines of 80 columns, with names as long as they may be ----
long=$(printf '%064d' 7)
python3 - "$work/a/store.db" "$long" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
db.execute("UPDATE peer SET name = ?", (sys.argv[2],))
db.commit()
PY
sed -i "s/^name: .*/name: own$(printf '%060d' 8)/" "$work/a/agent.yaml"
run -d "$work/a" ledger show
ok 'long names: show' narrow
ok 'long names: they are there' grep -q "$long" "$out"
"$fkge" -q -d "$work/a" ledger export "$work/long.led" >/dev/null
ok 'long names: verify' prints 'the ledger holds' ledger verify "$work/long.led"
start a
run -d "$work/a" status
ok 'long names: status' narrow
ok 'long names: status names the peer by its id, too' flat_has "$long ($("$fkge" -d "$work/b" id 2>/dev/null | cut -c 1-9))"
ok 'long names: status has rows beside epsilon' flat_has 'rows as they are, 0 with noise; epsilon'
stop a

# ---- one identity everywhere ----
run -d "$work/b" id
ok 'id: on standard output alone' [ "$(wc -l <"$out")" = 1 ]
ok 'id: every other form beside it' grep -qF "$("$fkge" -d "$work/b" id --fingerprint)" "$err"
own=$("$fkge" -d "$work/b" id --json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["sign_id"][:9])')
ok 'id: and the signing key' grep -qF "$own" "$err"

# ---- a host that goes before it settles: what its partner's rows came to is not called protected ----
for who in host guest; do
	agent $who 1 "local_rounds: 0, translator: ppat, roles: $([ $who = host ] && echo host || echo client)"
	echo 'ppat: {steps: 10000000, batch: 32, sigma: 1e6}' >>"$work/$who/agent.yaml"
	echo 'privacy: {useless_sessions: spend}' >>"$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
start host
"$fkge" -q -d "$work/host" invite --for "$(id_of guest)" -o "$work/line" >/dev/null
"$fkge" -q -d "$work/guest" join "$work/line" >/dev/null
start guest
# the first reserve is of no labels: what the host may say of them is said from the next one on
reserves() { shows guest 'what it reserved counts as spent: ' && ! flat_has 'counts as spent: 0'; }
ok 'a session that takes long' wait_for 'a reserve of labels' reserves
kill -9 "$pid_host"
wait "$pid_host" 2>/dev/null
may_have_gone() { "$fkge" -d "$work/guest" --json ledger show >"$work/show" && [ "$(member "$work/show" own rows_unsettled)" = "$1" ]; }
ok 'its client counts what may have gone' wait_for 'the end of the session' may_have_gone 100
ok 'its client: nothing is certain' shows guest 'nothing is certain of its aligned rows, which host may have had in a session that it has not settled'
ok 'its client: in all' shows guest 'protected: names that no partner has, and their rows; nothing is certain'
ok 'its client: nothing is counted' shows guest 'not counted: rows sent in 1 session that host has not settled'
ok 'its host: as labels say' shows host 'protected: any one aligned row of this agent against guest'
stop guest
ok 'its client: the count stays' shows guest 'in 1 session that host has not settled: as many as 100, by this agent'"'"'s own count'
ok 'its client: of this partner' [ "$(member "$work/show" chains 0 rows_unsettled)" = 100 ]
finish
