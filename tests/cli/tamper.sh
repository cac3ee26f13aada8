#!/bin/sh
# What somebody may do to a ledger, done to the stores and exports of real agents: an old backup put back, an
# entry edited, an entry deleted, a countersignature forged, two ledgers that diverge, a clock set back.  Each
# is found out, in words of its own.  ($2 is tests/cli/ahead.)
. "$(dirname "$0")/lib.sh"

ahead=$(realpath "$2")
fkge=$(realpath "$fkge")
stop() { # NAME...
	for who; do
		"$fkge" -q -d "$work/$who" stop
		eval "wait \$pid_$who"
	done
}
asleep() { [ "$(value "$1" state)" = sleep ] && [ "$(value "$1" queued)" = 0 ]; }
quiet() { asleep a && asleep b; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }
# news ROUNDS: better tables on both sides, and leave to host so many rounds in all
news() {
	for who in a b; do
		sed -i "s/max_rounds: [0-9]*/max_rounds: $1/" "$work/$who/agent.yaml"
		"$fkge" -q -d "$work/$who" train --fresh --epochs $((10 + 20 * $1)) >/dev/null
	done
}
both_host() { # ROUNDS: each hosts until it has that many
	start a && start b && wait_for "a hosts" at_least a rounds "$1" &&
		wait_for "b hosts" at_least b rounds "$1" && wait_for 'sleep' quiet && stop a b
}
keep() { # NAME: both stores as they are
	mkdir "$work/$1"
	for who in a b; do cp "$work/$who/store.db" "$work/$1/$who.db"; done
}
bring() { # NAME AGENT: that one's store as it was
	rm -f "$work/$2/store.db"*
	cp "$work/$1/$2.db" "$work/$2/store.db"
}
edit() { # AGENT SQL: what anybody can do who has the file
	python3 - "$work/$1/store.db" "$2" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
db.executescript(sys.argv[2])
db.commit()
PY
}
# found_by WORDS ARGS...: it ends with status 9, and says the words on either channel
found_by() {
	words=$1
	shift
	run "$@"
	narrow && unwrap && [ "$status" -eq 9 ] && cat "$out" "$err" | grep -qF -- "$words"
}
doctor_says() { # AGENT WORDS
	run -d "$work/$1" doctor
	[ "$status" -ne 0 ] && grep -F 'bad   store' "$out" | grep -qF -- "$2"
}
forged() { # STEP WORDS: what python does to a's export is found, and named
	python3 - "$work/a.led" "$work/forged.led" "$1" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
e = j["entries"]
exec(sys.argv[3])
json.dump(j, open(sys.argv[2], "w"))
PY
	found_by "$2" ledger verify "$work/forged.led"
}

for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat, gather_s: 0'
	printf '%s\n' 'ppat: {steps: 4, batch: 8}' 'privacy: {useless_sessions: spend}' >>"$work/$who/agent.yaml"
	sed -i "s/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 10/; s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
befriend a b
ok 'a session each way' both_host 1
keep first
exported a a.led
first=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["entries"]))' "$work/a.led")
news 2
ok 'and another' both_host 2
exported a a.led
exported b b.led
ok 'untouched, the two ledgers hold' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
keep second
last=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["entries"]))' "$work/a.led")

# ---- an entry edited ----
ok 'edited: in an export' forged 'e[1]["count"] = 8' 'entry 2 was edited: its contents do not give its hash'
edit a "DROP TRIGGER ledger_entry_update; UPDATE ledger_entry SET bytes = CAST(substr(bytes, 1, 208)
  || x'01' || substr(bytes, 210) AS BLOB) WHERE sequence = 2"
ok 'edited: the agent does not start' found_by 'entry 2 was edited' -d "$work/a" serve
ok 'edited: verify says so' found_by 'entry 2 was edited' -d "$work/a" ledger verify
ok 'edited: doctor says so' doctor_says a 'entry 2 was edited'
bring second a

# ---- an entry deleted ----
ok 'deleted: in an export' forged 'del e[2]' 'entry 3 was deleted: 4 follows 2'
edit a 'DROP TRIGGER ledger_entry_delete; DELETE FROM ledger_entry WHERE sequence = 3'
ok 'deleted: the agent does not start' found_by 'entry 3 was deleted' -d "$work/a" serve
ok 'deleted: doctor says so' doctor_says a 'entry 3 was deleted'
bring second a
edit a "DROP TRIGGER ledger_entry_delete; DELETE FROM ledger_entry WHERE sequence = $last"
ok 'deleted at the end: the agent does not start' found_by "was cut: $last entries were written" -d "$work/a" serve
bring second a
ok 'deleted at the end of an export' forged 'del e[-1]' 'was cut: it had'
ok 'deleted at the end of an export: the partner has it' found_by 'was rolled back or cut' ledger verify "$work/forged.led" "$work/b.led"
edit a 'DROP TRIGGER ledger_entry_delete'
ok 'the guards dropped, and nothing else: the agent does not start' found_by 'its guard ledger_entry_delete is gone' -d "$work/a" serve
bring second a

# ---- an export under another name, of another time, of more or less than was signed ----
owner_b() { # the steps that put b into the place of the owner
	echo 'b = json.load(open(sys.argv[1][:-5] + "b.led"))["owner"]; j["owner"] = b; j["parties"] = [p for p in j["parties"] if p["key"] != b["key"]]'
}
not_signed='whom it names as its owner, signed it'
ok "a cut copy under the partner's name" forged "del e[-1]; $(owner_b)" "$not_signed"
ok 'nor as the second one' found_by "$not_signed" ledger verify "$work/a.led" "$work/forged.led"
ok 'twice the same owner' found_by 'both exports are of one owner, a (' ledger verify "$work/a.led" "$work/a.led"
ok 'statements renamed' forged 'j["statement"] = j.pop("statements")' '"statements" is missing'
ok 'statements hidden' forged 'j["statement"] = j["statements"]; j["statements"] = []' '"statement" is no key of it'
ok 'a key too many' forged 'j["extra"] = 1' '"extra" is no key of it'
ok 'another time' forged 'j["time"] += 1000' "$not_signed"
"$fkge" -q -d "$work/a" ledger export "$work/pair.led" --peer b >/dev/null
ok 'of one pair, said to be whole' forged "j = json.load(open(sys.argv[1][:-5] + 'pair.led')); j['peer'] = None" "$not_signed"
ok 'of one pair, and says so' prints 'partial: of its pair with b' ledger verify "$work/pair.led"
ok 'against the partner it holds' prints 'the ledger holds' ledger verify "$work/pair.led" "$work/b.led"
echo '{"fkge_ledger": 1, "owner": null, "entries": []}' >"$work/v1.led"
ok 'an export of version 1' found_by 'which is not signed as a whole' ledger verify "$work/v1.led"
"$fkge" -q -d "$work/a" ledger export "$work/spring.led" --nonce spring >/dev/null
ok 'nonce' prints 'the ledger holds' ledger verify "$work/spring.led" --nonce spring
ok 'another nonce' found_by "with the nonce 'spring', not 'summer'" ledger verify "$work/spring.led" --nonce summer
ok 'no nonce' found_by 'was made without a nonce' ledger verify "$work/a.led" --nonce summer
ok 'too old' found_by 'is old: it was made' ledger verify "$work/a.led" --since 2999-01-01
id_start() { "$fkge" -d "$work/$1" id 2>/dev/null | cut -c 1-9; }
run ledger verify "$work/a.led"
ok 'who is who: the owner' grep -qF "export of a ($(id_start a)), made " "$out"
ok 'who is who: all of its id' grep -qF "fingerprint $("$fkge" -d "$work/a" id --fingerprint)" "$out"
ok 'who is who: the partner' grep -qF "b ($(id_start b))" "$out"
ok 'what was not checked: the end' grep -q '^not checked: whether a (.*) left entries out' "$out"
ok 'what was not checked: its age' grep -q '^not checked: that the export of a' "$out"

# ---- a countersignature forged ----
ok 'forged: in an export' forged 'e[1]["countersignature"] = "00" * 64' 'entry 2: bad countersignature by the client'
edit a "DROP TRIGGER ledger_countersign_update; UPDATE ledger_countersign SET signature = zeroblob(64)
  WHERE hash = (SELECT hash FROM ledger_entry WHERE sequence = 2);
  CREATE TRIGGER ledger_countersign_update BEFORE UPDATE ON ledger_countersign BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
ok 'forged: verify says so' found_by 'entry 2: bad countersignature by the client' -d "$work/a" ledger verify
ok 'forged: doctor says so' doctor_says a 'entry 2: bad countersignature by the client'
bring second a

# ---- two ledgers that diverge: from the same past, each goes on with a copy of the other ----
bring first a
bring first b
news 2
ok 'diverged: another second session each way' both_host 2
sessions_of() { grep -qE 'session with .* done|served .* rows' "$work/$1.log"; }
ok 'diverged: whose logs say so' eval 'sessions_of a && sessions_of b'
exported b other.led
ok 'diverged: two exports' found_by 'the two ledgers diverge at entry' ledger verify "$work/a.led" "$work/other.led"
bring second a
news 3
: >"$work/a.log"
: >"$work/b.log"
start a
start b
ok 'diverged: a says so' wait_for 'a hears' logged a 'our two ledgers differ from entry'
ok 'diverged: b says so' wait_for 'b hears' logged b 'our two ledgers differ from entry'
ok 'diverged: both name the first that does' [ "$(grep -o 'differ from entry [0-9]*' "$work/a.log" "$work/b.log" | grep -o '[0-9]*$' | sort -u)" = "$((first + 1))" ]
stop a b
ok 'diverged: no session' eval '! sessions_of a && ! sessions_of b'

# ---- an old backup put back ----
bring second a
bring first b
exported b old.led
ok 'old backup: alone it holds' exits 0 ledger verify "$work/old.led"
ok 'old backup: two exports' found_by 'was rolled back or cut' ledger verify "$work/a.led" "$work/old.led"
news 3
: >"$work/a.log"
: >"$work/b.log"
start a
start b
ok 'old backup: its owner is told' wait_for 'b hears' logged b 'our store is an older copy of itself'
ok 'old backup: the partner hands back' wait_for 'all is there' logged b 'ledger entries that both had signed'
stop a b
exported b again.led
ok 'old backup: spent stays spent' starts_with "$work/again.led" "$work/a.led"

# ---- a clock set back: entries of tomorrow, then the right time again ----
bring second a
bring second b
ok 'clock: a session dated tomorrow' "$ahead" "$work/a" "$work/b" 86400
ok 'clock: doctor knows' eval 'run -d "$work/a" doctor; grep -F "clock" "$out" | grep -qF "before the last entry of the ledger"'
news 3
: >"$work/a.log"
ok 'clock: they work on' both_host 3
ok 'clock: its owner is told' logged a 'the clock was set back'
exported a clock.led
exported b clock_b.led
ok 'clock: verify notes it, and the ledger holds' prints 'the ledger holds' ledger verify "$work/clock.led" "$work/clock_b.led"
unwrap
ok 'clock: in words' grep -q 'note: entry .*: the clock of .* was set back: the entry is dated 86[0-9]* s before' "$out"

# ---- contracts closed, by both owners at once: the next sessions make new ones ----
bring second a
bring second b
sed -i 's/^privacy: .*/privacy: {useless_sessions: spend, epsilon_per_peer: 3, epsilon_total: 9}/' "$work/a/agent.yaml"
ok 'close' prints 'is closed' -d "$work/a" ledger close b
run -d "$work/a" ledger close b
ok 'close: only once' [ "$status" -eq 1 ]
ok 'close: only once, in words' grep -q 'there is no open contract with b' "$err"
ok 'close: show knows' prints 'the contract is closed' -d "$work/a" ledger show
sed -n 1p "$work/a.tsv" >"$work/gone.tsv"
ok 'close: what is forgotten' exits 0 -d "$work/a" unlearn "$work/gone.tsv" --epochs 1 --decay 1
ok 'close: the wish stays' prints 'the contract is closed' -d "$work/a" ledger show
ok 'close: by the other too' prints 'is closed' -d "$work/b" ledger close a
news 3
ok 'close: they work on' both_host 3
exported a close_a.led
exported b close_b.led
ok 'close: both ledgers agree' prints 'the ledger holds' ledger verify "$work/close_a.led" "$work/close_b.led"
kinds() { python3 - "$work/close_b.led" <<'PY'
import json, sys
e = json.load(open(sys.argv[1]))["entries"]
of = {}
for x in e:
    if x["kind"] == "contract":
        of.setdefault(x["host"], []).append(x)
assert sorted(len(c) for c in of.values()) == [2, 2], "each has made one new contract"
new = [c[1] for c in of.values() if c[1]["epsilon_pair"] == 3]
assert len(new) == 1 and new[0]["countersignature"], "a's is of today's settings, and the partner has signed it"
assert all(c[1]["total_pair"] > 0 for c in of.values()), "spent stays spent"
PY
}
ok 'close: the partner has signed it, and spent stays spent' kinds
finish
