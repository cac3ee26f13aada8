#!/bin/sh
# An owner replaces its agent's keys: partners go on with the same ledger, counts and caps, and refuse
# the old keys; a thief who has those; a replacement that was cut off.
# Usage: rotation.sh FKGE
. "$(dirname "$0")/lib.sh"
fkge=$(realpath "$fkge")

stop() { # NAME...
	for who; do
		"$fkge" -q -d "$work/$who" stop
		eval "wait \$pid_$who"
	done
}
labels() { "$fkge" -d "$work/$1" --json ledger show >"$work/show" && member "$work/show" total_labels; }
has_labels() { [ "$(labels "$1")" = "$2" ]; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }
id_of() { "$fkge" -q -d "$work/$1" id; }
fingerprint() { "$fkge" -q -d "$work/$1" id --fingerprint; }
account() { "$fkge" -d "$work/$1" --json id >"$work/id.json" && member "$work/id.json" account; }
asleep() { [ "$(value "$1" state)" = sleep ] && [ "$(value "$1" queued)" = 0 ]; }
quiet() { asleep a && asleep b; }
linked() { peer_is a "$(id_of b)" linked True && peer_is b "$(id_of a)" linked True; }

for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat'
	printf '%s\n' 'ppat: {steps: 4, batch: 8}' 'privacy: {useless_sessions: spend}' >>"$work/$who/agent.yaml"
	sed -i 's/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 10/' "$work/$who/agent.yaml"
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
befriend a b
ok 'before: no text to show' says 1 'were never replaced' -d "$work/a" key show
start a
start b
ok 'before: a has hosted' wait_for 'rounds of a' at_least a rounds 1
ok 'before: b has hosted' wait_for 'rounds of b' at_least b rounds 1
ok 'before: quiet' wait_for 'sleep' quiet
ok 'a running agent keeps its keys' says 1 'is in use by process' -d "$work/a" key rotate
stop a b
ok 'before: what was spent' has_labels a 32
exported a before-a.json
exported b before-b.json
cp -r "$work/a" "$work/thief"
was=$(id_of a) account=$(account a)

# ---- the owner replaces them ----
ok 'key rotate' exits 0 -d "$work/a" key rotate -o "$work/keys"
ok 'its note names the fingerprint' grep -qF "$(fingerprint a)" "$err"
ok 'the text is its owner'"'"'s alone' [ "$(stat -c %a "$work/keys")" = 600 ]
ok 'another id' [ "$was" != "$(id_of a)" ]
ok 'the same account' [ "$account" = "$(account a)" ]
ok 'what was spent is spent' has_labels a 32
ok 'key show has the text again' exits 0 -d "$work/a" key show
ok 'the same' cmp -s "$out" "$work/keys"
exported a after-a.json
ok 'its export holds' exits 0 ledger verify "$work/after-a.json"
ok 'and fits the one of a partner who knows nothing yet' exits 0 ledger verify "$work/after-a.json" "$work/before-b.json"
ok 'old exports hold' exits 0 ledger verify "$work/before-a.json" "$work/before-b.json"

# ---- b decides ----
printf '# nothing\n' >"$work/none"
ok 'an empty text' says 4 'it has no rotation of keys' -d "$work/b" peer rotate "$work/none"
head -c 400 "$work/keys" >"$work/cut"
ok 'a text that was cut' says 4 'was cut or mistyped' -d "$work/b" peer rotate "$work/cut"
sed -e 's/^\(fkge-rotation1:.\{100\}\)_/\1A/' -e t -e 's/^\(fkge-rotation1:.\{100\}\)./\1_/' "$work/keys" >"$work/changed"
ok 'a text that was changed' says 9 'line 2' -d "$work/b" peer rotate "$work/changed"
"$fkge" -q -d "$work/b" peer accept "$(id_of a)" >/dev/null # by mistake: it is another peer now
ok '--check refuses what would not be taken' says 9 'that of another peer' -d "$work/b" peer rotate --check "$work/keys"
ok 'nor is it' says 9 'that of another peer' -d "$work/b" peer rotate "$work/keys"
for verb in revoke forget; do "$fkge" -q -d "$work/b" peer $verb "$(id_of a)" >/dev/null; done
ok '--check shows whose' prints "$was" -d "$work/b" peer rotate --check "$work/keys"
ok '--check: and the fingerprint' flat_has "$(fingerprint a)"
ok '--check changes nothing' prints "$was" -v -d "$work/b" peer list
ok '--check: nor does it for programs' exits 0 -d "$work/b" peer rotate --check "$work/keys" --json
ok '--check: which hear that' [ "$(member "$out" taken) $(member "$out" id)" = "False $(id_of a)" ]
"$fkge" -q -d "$work/x" init --listen off >/dev/null && "$fkge" -q -d "$work/x" key rotate -o "$work/keys-x" >/dev/null
cat "$work/keys" "$work/keys-x" >"$work/both"
ok 'texts of two agents' says 4 'it has rotations of several agents' -d "$work/b" peer rotate "$work/both"
ok 'b takes it' exits 0 -d "$work/b" peer rotate "$work/keys" --json
ok 'and says so' [ "$(member "$out" taken) $(member "$out" old_id)" = "True $was" ]
ok 'the partner has the new id' prints "$(id_of a)" -v -d "$work/b" peer list
ok 'once is enough' says 1 'taken before' -d "$work/b" peer rotate "$work/keys"
ok 'b: what was spent is spent' has_labels b 32
ok 'b: in the quote of another session too' prints 'with this peer 32 of 273 are spent' -d "$work/b" ledger quote a

# ---- both go on ----
anew a 5
anew b 6
sed -i 's/max_rounds: 1/max_rounds: 2/' "$work/a/agent.yaml" "$work/b/agent.yaml"
start a
start b
ok 'linked by the new keys' wait_for 'the link' linked
ok 'a hosts again' wait_for 'labels of a' at_least a rounds 2
ok 'b hosts again' wait_for 'labels of b' at_least b rounds 2
ok 'quiet again' wait_for 'sleep' quiet

# ---- the thief has the old keys ----
"$fkge" -q -d "$work/b" invite -o "$work/line" --address "$(sed -n 's/^listen: //p' "$work/b/agent.yaml")" >/dev/null
"$fkge" -q -d "$work/thief" join "$work/line" >/dev/null
sed -i 's/^listen: .*/listen: off/' "$work/thief/agent.yaml"
start thief
ok 'b refuses the old key' wait_for 'the refusal' logged b 'that its owner has replaced'
ok 'and does not let it in by mistake' says 1 'its owner has replaced this key' -d "$work/b" peer accept "$was"
ok 'it is none of those that wait' eval '! "$fkge" -d "$work/b" peer pending | grep -qF "$was"'
stop thief a b
# with an invitation that lets in whoever has it
sed -i 's/federation: {/federation: {accept: invited, /' "$work/b/agent.yaml"
"$fkge" -q -d "$work/b" secret >/dev/null
rm "$work/line" "$work/b.log"
start b
"$fkge" -q -d "$work/b" invite -o "$work/line" >/dev/null
"$fkge" -q -d "$work/thief" join --replace-secret "$work/line" >/dev/null
start thief
ok 'no invitation lets the old key in' wait_for 'the refusal' logged b 'that its owner has replaced'
ok 'none was used' prints 'used 0 of 1' -d "$work/b" invite --list
ok 'nor is one made for it' says 1 'its owner has replaced this key' -d "$work/b" invite --for "$was"
stop thief b
# with another link key, the old signing key is known still
cp -r "$work/thief" "$work/mixed"
sed -i "2s/.*/$(python3 -c 'import secrets; print(secrets.token_hex(32))')/" "$work/mixed/identity.key"
"$fkge" -q -d "$work/mixed" invite -o "$work/mixed.line" >/dev/null
ok 'nor is its signing key taken from a newcomer' says 6 'is, or was, that of another agent' -d "$work/b" join "$work/mixed.line"
ok 'who is not listed' eval '! "$fkge" -d "$work/b" peer list -v | grep -qF "$(id_of mixed)"'
ok 'the thief replaces the old keys, too' exits 0 -d "$work/thief" key rotate -o "$work/stolen"
ok 'b goes by the one that it took' says 9 'two who hold the old keys' -d "$work/b" peer rotate "$work/stolen"

# ---- one ledger, from the first key to the last ----
ok 'a: both sessions count' has_labels a 64
ok 'b: both sessions count' has_labels b 64
exported a last-a.json
exported b last-b.json
ok 'the entries of before are in it' starts_with "$work/last-a.json" "$work/before-a.json"
ok 'both hold, and are one story' exits 0 ledger verify "$work/last-a.json" "$work/last-b.json"
one_chain() { [ "$(member "$work/last-a.json" chains 0 partner)" = "$(account b)" ] && ! member "$work/last-a.json" chains 1 2>/dev/null; }
ok 'in one chain' one_chain
ok 'by the first account' [ "$(member "$work/last-b.json" chains 0 partner)" = "$account" ]
sed 's/"rotations": \[/"rotations": [ /; s/"fkge_ledger": 3/"fkge_ledger": 2/' "$work/last-a.json" >"$work/forged.json"
ok 'an export whose rotations are hidden' says 9 'rotations' ledger verify "$work/forged.json"
"$fkge" -q -d "$work/thief" ledger export "$work/thief.led" >/dev/null
ok 'the thief'"'"'s export differs' exits 9 ledger verify "$work/thief.led" "$work/last-b.json"
unwrap
ok 'and it is said how' grep -q 'differ in what keys' "$out"
ok 'the store holds' exits 0 -d "$work/a" doctor

# ---- cut off ----
cp "$work/a/identity.key" "$work/key-2"
now=$(id_of a)
ok 'replaced once more' exits 0 -d "$work/a" key rotate -o "$work/keys-3"
third=$(id_of a)
mv "$work/a/identity.key" "$work/a/identity.key.next" && cp "$work/key-2" "$work/a/identity.key"
ok 'cut off after the store: the next command that writes' exits 0 -d "$work/a" invite --address h:1
ok 'carries it through' [ "$(id_of a)" = "$third" ]
cp "$work/key-2" "$work/a/identity.key.next"
ok 'cut off before the store: the next command that writes' exits 0 -d "$work/a" invite --address h:1
ok 'keeps the keys' [ "$(id_of a)" = "$third" ]
ok 'and drops the others' [ ! -e "$work/a/identity.key.next" ]
ok 'b takes the newest of several' exits 0 -d "$work/b" peer rotate "$work/keys-3"
ok 'and has the last id' prints "$third" -v -d "$work/b" peer list

# ---- keys and a store of two times ----
cp -r "$work/a" "$work/early"
key_3=$work/early/identity.key
ok 'replaced a third time' exits 0 -d "$work/a" key rotate -o "$work/keys-4"
fourth=$(id_of a)
cp -r "$work/a" "$work/half"
mv "$work/half/identity.key" "$work/half/identity.key.next" && cp "$key_3" "$work/half/identity.key"
ok 'cut off: fkge id shows the keys that count' [ "$(id_of half)" = "$fourth" ]
ok 'doctor says so' prints 'was cut off' -d "$work/half" doctor
ok 'and changes nothing' [ -e "$work/half/identity.key.next" ]
ok 'a backup of it' exits 0 -d "$work/half" backup "$work/half.backup"
ok 'is whole' exits 0 backup --check "$work/half.backup"
ok 'and can be put back' exits 0 -d "$work/half.again" restore "$work/half.backup"
ok 'with the keys that count' [ "$(id_of half.again)" = "$fourth" ]
refused() { # AGENT TEXT: its keys are not those of its store
	says 9 "$2" -d "$work/$1" backup "$work/$1.backup" && [ ! -e "$work/$1.backup" ] &&
		says 9 "$2" -d "$work/$1" serve --until-quiet 1 && exits 1 -d "$work/$1" doctor && flat_has "$2"
}
cp -r "$work/half" "$work/lost" && rm "$work/lost/identity.key.next"
ok 'keys that were replaced, and no others' refused lost 'restore a backup of after that (fkge restore)'
cp "$work/a/identity.key" "$work/early"
ok 'keys of later than the store' refused early 'restore a backup of after that (fkge restore), and copy no store.db by hand'
cp -r "$work/a" "$work/swapped"
sed -i "2s/.*/$(python3 -c 'import secrets; print(secrets.token_hex(32))')/" "$work/swapped/identity.key"
ok 'the right signing key with another id' refused swapped 'does not know the keys'
# a backup of a program that did not look
cp -r "$work/half.backup" "$work/mixed.backup"
cp "$work/lost/identity.key" "$work/mixed.backup/identity.key"
python3 - "$work/mixed.backup" <<'PY'
import hashlib, re, sys
digest = lambda b: hashlib.blake2b(b, digest_size=32).hexdigest()
key, path = open(sys.argv[1] + "/identity.key", "rb").read(), sys.argv[1] + "/backup.txt"
text = open(path).read().split("end ")[0]
text = re.sub(r"file \d+ \w+ identity.key", f"file {len(key)} {digest(key)} identity.key", text)
open(path, "w").write(text + f"end {digest(text.encode())}\n")
PY
ok 'a backup with them is refused' says 9 'has keys that were replaced' backup --check "$work/mixed.backup"
ok 'and not put back' says 9 'has keys that were replaced' -d "$work/mixed.again" restore "$work/mixed.backup"

# ---- rounds: go on, and what members signed before holds ----
for who in r s; do
	agent $who 1 'mode: rounds'
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	echo 'rounds: {epochs: 1, max: 1, every_s: 0.1, join_s: 60, train_s: 600, stage_s: 300}' >>"$work/$who/agent.yaml"
done
befriend r s >/dev/null
start r
start s
signed() { "$fkge" -d "$work/$1" rounds show --json >"$work/round" && [ "$(member "$work/round" round members "$2" account fits)" = True ]; }
signed_by_one() { signed "$1" 0 || signed "$1" 1; }
ok 'rounds: r has an account' wait_for 'the account of s' signed_by_one r
ok 'rounds: s has an account' wait_for 'the account of r' signed_by_one s
stop r s
"$fkge" -q -d "$work/s" rounds export "$work/s-before.acc" >/dev/null
was_r=$(fingerprint r)
ok 'rounds: r has new keys' exits 0 -d "$work/r" key rotate -o "$work/keys-r"
ok 'rounds: s takes them' exits 0 -d "$work/s" peer rotate "$work/keys-r"
ok 'rounds: what s signed for r before still fits' signed_by_one r
ok 'rounds: what r signed for s, too' signed_by_one s
ok 'rounds: an export has those of the old key' prints '1 rounds written to' -d "$work/r" rounds export "$work/r.acc"
"$fkge" -q -d "$work/s" rounds export "$work/s.acc" >/dev/null
ok 'rounds: nobody is accused' exits 0 rounds verify "$work/r.acc" "$work/s.acc"
ok 'rounds: nor noted' [ -z "$(grep -e FAULT -e note "$out")" ]
ok 'rounds: both accounts hold' flat_has '2 records of rounds, 2 accounts that members have signed: the accounts hold'
ok 'rounds: it is said whose the old key was' flat_has 'replaced since'
ok 'rounds: with what the partner had before' exits 0 rounds verify "$work/r.acc" "$work/s-before.acc"
ok 'rounds: an export of nobody with new keys is as before' grep -q '"fkge_rounds": 2,' "$work/s-before.acc"
ok 'rounds: the others say so' grep -q '"fkge_rounds": 3,' "$work/r.acc"
ok 'rounds: the newest fingerprint counts' exits 0 rounds verify "$work/r.acc" "$work/s.acc" --member "r=$(fingerprint r)" --member "s=$(fingerprint s)"
ok 'rounds: the old one does not' says 9 'do not verify' rounds verify "$work/r.acc" --member "r=$was_r"
sed '/"rotations": \[/,/\],/d; s/"fkge_rounds": 3/"fkge_rounds": 2/' "$work/r.acc" >"$work/hidden.acc"
ok 'rounds: what was replaced cannot be left out' exits 9 rounds verify "$work/hidden.acc"
ok 'rounds: and it is said so' flat_has 'the export is not as its owner signed it'
sed -i 's/max: 1/max: 2/' "$work/r/agent.yaml" "$work/s/agent.yaml"
start r
start s
second() { "$fkge" -d "$work/$1" rounds list --json >"$work/list" && member "$work/list" rounds 1 number >"$work/number"; }
ok 'rounds: r goes on' wait_for 'the second round' second r
ok 'rounds: s goes on' wait_for 'the second round' second s
stop r s
ok 'rounds: those of both keys are in one export' prints '2 rounds written to' -d "$work/r" rounds export "$work/r.acc"
"$fkge" -q -d "$work/s" rounds export "$work/s.acc" >/dev/null
ok 'rounds: and hold' prints 'the accounts hold' rounds verify "$work/r.acc" "$work/s.acc"
finish
