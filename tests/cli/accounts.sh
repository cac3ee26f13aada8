#!/bin/sh
# What members of rounds sign for each other, in an auditor's hands: exports of two real agents, and what
# somebody with the file, the other company or the owner itself may do to them. Each is found out, in words
# of its own, on a machine that has no agent.
. "$(dirname "$0")/lib.sh"

fkge=$(realpath "$fkge")
status=0
for who in a b; do
	agent $who 1 'mode: rounds'
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	cat >>"$work/$who/agent.yaml" <<YAML
rounds: {epochs: 1, max: 3, every_s: 0.1, join_s: 60, train_s: 600, stage_s: 300}
YAML
done
befriend a b

# signed NAME: it holds the other's account of all three rounds
signed() {
	"$fkge" -d "$work/$1" rounds list --json >"$out" && python3 - "$out" <<'PY'
import json, sys
rounds = json.load(open(sys.argv[1]))["rounds"]
good = [m["account"] for r in rounds if r["outcome"] == 0 for m in r["members"] if not m["own"]]
sys.exit(not (len(good) >= 3 and all(w and w["fits"] and w["same"] for w in good)))
PY
}
exported() { "$fkge" -q -d "$work/$1" rounds export "$work/$2" >/dev/null; }
# A folder of its own, and no agent's
verify() { (cd "$work/away" && FKGE_DIR=$work/away/none run rounds verify "$@"; echo "$status" >"$work/status"); status=$(cat "$work/status"); case " $* " in *" --json "*) ;; *) narrow || status=wide; unwrap ;; esac; }
# found_by WORDS FILE...: it ends with status 9, and says the words, naming round and member
found_by() {
	words=$1
	shift
	verify "$@"
	[ "$status" -eq 9 ] && grep -F -- "$words" "$out" | grep -q '^FAULT: ' && grep -q 'the accounts of rounds do not verify: ' "$err"
}
holds() {
	verify "$@"
	[ "$status" -eq 0 ] && grep -q ': the accounts hold$' "$out"
}
# forged STEP: what python does to a's export
forged() {
	python3 - "$work/a.acc" "$work/forged.acc" "$1" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
r = j["rounds"]
them = lambda x: next(m for m in x["members"] if m["key"] != j["owner"]["key"])
exec(sys.argv[3])
json.dump(j, open(sys.argv[2], "w"))
PY
}
# claim STEP: what a's owner does to its own store, and exports again
claim() {
	cp "$work/a/store.db" "$work/kept.db"
	python3 - "$work/a/store.db" "$1" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
db.execute("PRAGMA foreign_keys = ON")
round = db.execute("SELECT id FROM round WHERE number = (SELECT min(number) + 1 FROM round WHERE outcome = 0)").fetchone()[0]
db.execute(sys.argv[2], {"round": round})
db.commit()
PY
	rm -f "$work/forged.acc"
	exported a forged.acc
	cp "$work/a/store.db" "$work/refused.db"
	rm -f "$work/a/store.db"*
	cp "$work/kept.db" "$work/a/store.db"
}

ok 'a starts' start a
ok 'b starts' start b
ok 'a holds what b has signed' wait_for 'accounts of b' signed a
ok 'b holds what a has signed' wait_for 'accounts of a' signed b
ok 'a and b part' exits 0 -d "$work/a" peer revoke b
ok 'what b has signed wants its key' says 2 'has signed accounts of rounds that are on record' -d "$work/a" peer forget b
for who in a b; do "$fkge" -q -d "$work/$who" stop && eval "wait \$pid_$who"; done
ok 'so it does where no agent runs' says 2 'it stays revoked' -d "$work/a" peer forget b

mkdir "$work/away"
ok 'a hands out its accounts' prints 'rounds written to' -d "$work/a" rounds export "$work/a.acc"
ok 'so does b' exported b b.acc
ok 'they hold' holds "$work/a.acc"
ok 'against each other' holds "$work/b.acc" "$work/a.acc"
ok 'fingerprints are those that their owners show' eval 'grep -qF "a ($("$fkge" -d "$work/a" id | cut -c 1-9)), fingerprint $("$fkge" -d "$work/a" id --fingerprint):" "$out"'
ok 'of partners too' eval 'grep -qF "  b ($("$fkge" -d "$work/b" id | cut -c 1-9)), fingerprint $("$fkge" -d "$work/b" id --fingerprint)" "$out"'
ok 'for programs' eval 'verify "$work/a.acc" "$work/b.acc" --json; [ "$(member "$out" faults)$(member "$out" exports 1 name)" = 0b ]'
sed -i 's/^name: a$/name: "a\\x9b2J"/' "$work/a/agent.yaml"
ok 'a name that would move a cursor is no name' says 2 'without control characters' -d "$work/a" rounds export "$work/named.acc"
sed -i 's/^name: .*/name: a/' "$work/a/agent.yaml"
ok 'nor one that turns what follows it' says 2 'of direction' -d "$work/a" config set name "$(printf '\342\200\256abc')"
python3 - "$work/a.acc" "$work/named.acc" <<'PY'
import sys
text = open(sys.argv[1]).read()
assert text.count('"name": "a"') > 0
open(sys.argv[2], "w").write(text.replace('"name": "a"', '"name": "a\\u009b2J"'))
PY
ok 'nor is it one in an export' says 4 '"name" must be a text' rounds verify "$work/named.acc"
sed -i 's/\\u009b2J/\\u202e/' "$work/named.acc"
ok 'nor one that turns what follows it' says 4 '"name" must be a text without control characters of direction' rounds verify "$work/named.acc"
sed -i 's/^name: .*/name: a/' "$work/a/agent.yaml"
second=$(python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))["rounds"][1]
print("round %d (%s)" % (r["number"], r["id"][:8]))' "$work/a.acc")

# ---- who has the file ----
forged 'them(r[1])["rows_in"] += 1'
ok 'a figure edited' found_by "$second: the record of a (" "$work/forged.acc"
ok 'in words' grep -q 'was edited: its contents do not give its hash' "$out"
ok 'for programs, the round' eval 'verify "$work/forged.acc" --json; [ "$(member "$out" findings 0 id)" = "$(member "$work/a.acc" rounds 1 id)" ]'
forged 'them(r[1])["signed"]["rows_in"] += 1'
ok "a figure of b's edited" found_by 'was edited' "$work/forged.acc"
forged 'them(r[1])["fate"] = "late"'
ok 'a fate edited' found_by "$second: the record of a (" "$work/forged.acc"
forged 'r[1]["signature"] = r[0]["signature"]'
ok 'a signature of another round' found_by "$second: the record is not signed by a (" "$work/forged.acc"
forged 'del r[0]'
ok 'the first round deleted' found_by "$second: rounds before it were deleted from the export of a (" "$work/forged.acc"
forged 'del r[1]'
ok 'one between deleted' found_by 'rounds between them were deleted, or one was put out of its place' "$work/forged.acc"
forged 'del r[-1]'
ok 'the last one deleted' found_by 'rounds were taken away or added at its end' "$work/forged.acc"
forged 'j["parties"][0]["sign_key"] = j["owner"]["sign_key"]'
ok 'a key changed' found_by 'the export is not as its owner signed it: keys or names were changed' "$work/forged.acc"
forged 'j["parties"] = []'
ok 'a key taken away' found_by "the account of" "$work/forged.acc"
ok 'in words' grep -q 'cannot be checked: the export of a (.*) has no key of it' "$out"
forged 'r[1]["extra"] = 1'
ok 'something added' eval 'verify "$work/forged.acc"; [ "$status" -eq 9 ] && grep -qF "round 2 of the file: \"extra\" is no key of it" "$err"'
head -c 700 "$work/a.acc" >"$work/forged.acc"
ok 'a file cut short' eval 'verify "$work/forged.acc"; [ "$status" -eq 4 ] && grep -qF "forged.acc: rounds export: line" "$err"'
echo '{"fkge_ledger": 1}' >"$work/forged.acc"
ok 'another file' eval 'verify "$work/forged.acc"; [ "$status" -eq 4 ] && grep -qF "this is not an export of fkge rounds, but an export of a ledger: fkge ledger verify reads it" "$err"'
agent alone 9
ok 'one without rounds' exported alone alone.acc
ok 'holds, and nothing was checked' eval 'verify "$work/alone.acc"; [ "$status" -eq 0 ] && flat_has "there was nothing to check (agents in pairs have a ledger, and no rounds: fkge ledger verify)"'
ok 'whose ledger it is not' says 4 'this is not a ledger export of fkge, but an export of rounds: fkge rounds verify' ledger verify "$work/alone.acc"
ok 'no file' eval 'verify "$work/none.acc"; [ "$status" -ne 0 ] && grep -qF "none.acc" "$err"'

# ---- the owner, who signs whatever it likes ----
claim 'UPDATE round_member SET rows_in = rows_in - 1 WHERE round = :round AND rows_in > 0'
ok 'less came than was sent' found_by "$second: b (" "$work/forged.acc"
ok 'in words' grep -q 'says that it sent a (.*) [0-9]* rows, which says that it got [0-9]*' "$out"
claim 'UPDATE round_member SET floats_out = floats_out - 1 WHERE round = :round AND floats_out > 0'
ok 'less left than came' found_by ' numbers, which says that it got ' "$work/forged.acc"
ok 'and its own word for it is with b' found_by 'a (' "$work/forged.acc" "$work/b.acc"
ok 'in words' grep -q 'signed other figures for b (.*) than its own export has' "$out"
claim 'UPDATE round_member SET said_rows_in = said_rows_in + 1 WHERE round = :round AND signature IS NOT NULL'
ok "words put into b's mouth" found_by "$second: the account of b (" "$work/forged.acc"
ok 'in words' grep -q 'is forged: b (.*) did not sign it' "$out"
claim 'UPDATE round_member SET signature = zeroblob(64) WHERE round = :round AND signature IS NOT NULL'
ok 'a signature made up' found_by "$second: the account of b (" "$work/forged.acc"
claim "UPDATE round_member SET signature = zeroblob(64), refused = 'the signature is not the member''s' WHERE round = :round AND signature IS NOT NULL"
ok 'an account that was refused' found_by "$second: the account of b (" "$work/forged.acc"
ok 'in words' grep -q "was refused by a (.*): the signature is not the member's" "$out"
cp "$work/refused.db" "$work/a/store.db"
number=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rounds"][1]["number"])' "$work/a.acc")
ok 'its owner is shown so' prints "! the account of b was refused: the signature is not the member's" -d "$work/a" rounds show "$number"
ok 'as forged' grep -q '| forged *|' "$out"
ok 'for programs' prints "\"refused\": \"the signature is not the member's\"" -d "$work/a" rounds show "$number" --json
sql() { python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute(sys.argv[2])' "$work/a/store.db" "$1"; }
sql "UPDATE round_member SET said_rows_out = 0, refused = 'a number is too large: fo' WHERE refused IS NOT NULL"
ok 'what could not be read' prints '! the account of b was refused: a number is too large: fo' -d "$work/a" rounds show "$number"
ok 'is refused' grep -q '| refused |' "$out"
not_forged() { ! grep -q forged "$out"; }
ok 'and nobody has forged it' not_forged
rm -f "$work/a/store.db"*
cp "$work/kept.db" "$work/a/store.db"
claim "UPDATE round_member SET signature = NULL WHERE round = :round"
ok 'an account gone' found_by "$second: no account of b (" "$work/forged.acc"
ok "b's own export makes up for it" holds "$work/forged.acc" "$work/b.acc"
claim 'DELETE FROM round WHERE id = :round'
ok 'a round gone: alone it is a note' holds "$work/forged.acc"
ok 'in words' grep -q '^note: round .* follows round .*: of the numbers between them it has no record' "$out"
ok 'but b has its word' found_by "$second is not in the export of a (" "$work/b.acc" "$work/forged.acc"
ok 'in words' grep -q 'which has signed an account of it for b (' "$out"
ok 'whose signature is the fault' eval '! grep "^FAULT: " "$out" | grep -v "which has signed an account of it for b ("'
# a ended before it could write, so it has not signed either: only what b counted says that it was in it
unsigned() {
	cp "$work/b/store.db" "$work/kept_b.db"
	python3 - "$work/b/store.db" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
round = db.execute("SELECT id FROM round WHERE number = (SELECT min(number) + 1 FROM round WHERE outcome = 0)").fetchone()[0]
db.execute("UPDATE round_member SET signature = NULL WHERE round = ?", [round])
db.commit()
PY
	exported b unsigned.acc
	rm -f "$work/b/store.db"*
	cp "$work/kept_b.db" "$work/b/store.db"
}
ok 'b without its word' unsigned
ok 'then it is a note' holds "$work/unsigned.acc" "$work/forged.acc"
ok 'in words' grep -q "^note: $second is not in the export of a (.*), which was in it by the unsigned word of b (.*): it was stopped before it could write" "$out"
claim "UPDATE round SET secret_bits = 64 WHERE id = :round"
ok 'secret aggregation made up' found_by "$second: the account of b (" "$work/forged.acc"
ok 'against the other' found_by 'contradict each other: other secret_bits' "$work/b.acc" "$work/forged.acc"
"$fkge" -q -d "$work/a" rounds export "$work/spring.acc" --nonce spring >/dev/null
ok 'a nonce that was asked for' holds "$work/spring.acc" --nonce spring
ok 'another one' found_by "was made for another audit: with the nonce 'spring', not 'summer'" "$work/spring.acc" --nonce summer
ok 'none' found_by 'was made without a nonce' "$work/a.acc" --nonce summer
ok 'an old one' found_by 'is old: it was made' "$work/a.acc" --since 2999-01-01
sed 's/"spring"/"summer"/' "$work/spring.acc" >"$work/summer.acc"
ok 'a nonce written over' found_by 'the export is not as its owner signed it' "$work/summer.acc" --nonce summer
verify "$work/a.acc"
ok 'what was not checked is said' grep -q '^not checked: that the export of a (.*) is not an old one' "$out"
ok 'two exports of one' found_by 'two of the exports are of one owner, a (' "$work/a.acc" "$work/forged.acc"
ok 'the untouched ones hold' holds "$work/a.acc" "$work/b.acc"

# ---- whose keys they are ----
print_a=$("$fkge" -d "$work/a" id --fingerprint) print_b=$("$fkge" -d "$work/b" id --fingerprint)
ok 'fingerprints that are known' holds "$work/a.acc" "$work/b.acc" --member "a=$print_a" --member "b=$print_b"
ok 'it is said of them' grep -qF "), fingerprint $print_a, as given: " "$out"
ok 'a partner, too' holds "$work/a.acc" --member "a=$print_a" --member "b=$print_b"
ok 'another key for a name' found_by "a has the fingerprint $print_a in the export of a (" "$work/a.acc" --member "a=$print_b"
"$fkge" -q -d "$work/c" init
print_c=$("$fkge" -d "$work/c" id --fingerprint)
ok 'a key that nobody has' found_by "no export has a member with the fingerprint $print_c, which was given for c" "$work/a.acc" --member "a=$print_a" --member "c=$print_c"
ok 'an owner that was not given is noted' holds "$work/a.acc" "$work/b.acc" --member "a=$print_a"
ok 'in words' grep -q '^note: nothing was given to know the key of b (.*) by' "$out"
ok 'for programs' eval 'verify "$work/a.acc" --member "a=$print_a" --json; [ "$(member "$out" exports 0 given) $(member "$out" exports 0 parties 0 given)" = "True False" ]'
ok 'no fingerprint' eval 'verify "$work/a.acc" --member "a=abcd"; [ "$status" -eq 2 ] && grep -qF "abcd" "$err"'
ok 'no name' eval 'verify "$work/a.acc" --member "$print_a"; [ "$status" -eq 2 ] && grep -qF "NAME=FINGERPRINT" "$err"'
finish
