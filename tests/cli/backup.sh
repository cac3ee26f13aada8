#!/bin/sh
# A backup taken from a running agent, more spending, the folder lost, the backup put back: the partner hands
# back what both have signed since, spent stays spent, and sessions go on.
. "$(dirname "$0")/lib.sh"

stop() { # NAME...
	for who; do
		"$fkge" -q -d "$work/$who" stop
		eval "wait \$pid_$who"
	done
}
asleep() { [ "$(value "$1" state)" = sleep ] && [ "$(value "$1" queued)" = 0 ]; }
quiet() { asleep a && asleep b; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }
same_entries() { # two exports of other times
	python3 -c 'import json, sys; a, b = (json.load(open(x))["entries"] for x in sys.argv[1:]); sys.exit(a != b)' "$@"
}
entries() { python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["entries"]))' "$work/$1"; }
# labels FILE AGENT: that agent's entries say that so many were spent
labels() { python3 - "$work/$1" "$("$fkge" --json -d "$work/$2" id | python3 -c 'import json, sys; print(json.load(sys.stdin)["sign_key"])')" <<'PY'
import json, sys
mine = [e for e in json.load(open(sys.argv[1]))["entries"] if e["host"] == sys.argv[2]]
print(max(e["total_lineage"] for e in mine))
PY
}
news() { # AGENT ROUNDS: better tables, and leave to host so many rounds in all
	sed -i "s/max_rounds: [0-9]*/max_rounds: $2/" "$work/$1/agent.yaml"
	anew "$1" "$2" --epochs $((10 + 20 * $2))
}
both_host() { # ROUNDS_A ROUNDS_B: each hosts until it has that many
	start a && start b && wait_for "a hosts" at_least a rounds "$1" &&
		wait_for "b hosts" at_least b rounds "$2" && wait_for 'sleep' quiet
}
doctor_prints() { # AGENT WORDS
	run -d "$work/$1" doctor
	grep -qF -- "$2" "$out"
}

for who in a b; do
	agent $who 1 'local_rounds: 0, translator: ppat, gather_s: 0'
	printf '%s\n' 'ppat: {steps: 4, batch: 8}' 'privacy: {useless_sessions: spend}' >>"$work/$who/agent.yaml"
	sed -i "s/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 10/; s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
befriend a b
ok 'a session each way' both_host 1 1

# ---- beside the running agent ----
ok 'a backup of a, which runs' prints '1 partners' -d "$work/a" backup "$work/kept"
ok 'it says what it holds' grep -q 'store.db' "$out"
ok 'nobody else may read it' [ "$(stat -c %a "$work/kept" "$work/kept/identity.key" "$work/kept/store.db" | tr '\n' ' ')" = '700 600 600 ' ]
ok 'it replaces nothing' says 1 'a backup replaces nothing' -d "$work/a" backup "$work/kept"
ok 'nothing half-made is left' [ "$(ls -d "$work"/kept* | wc -l)" = 1 ]
ok 'it is whole' prints 'Every file is as it was' backup --check "$work/kept"
stop a b
ok 'a backup of a, which is stopped' prints '1 partners' -d "$work/a" backup "$work/later"
exported a before.led

# ---- how votes fell is for the owner's eyes ----
run -d "$work/a" ledger show
by_votes=$(tr -s ' \n' ' ' <"$out" | sed -n 's/.*for your eyes alone, by how the votes on 32 of the 32 labels fell ([^)]*): epsilon \([0-9.]*\), .*/\1/p')
ok 'ledger show has it' test -n "$by_votes"
unsaid() { # COMMAND: no word of it; the figure may be the public one
	run -d "$work/a" "$@"
	[ "$status" -eq 0 ] && ! grep -qF -e 'eyes' -e 'votes' "$out"
}
ok 'its JSON has not' unsaid --json ledger show
ok 'nor has report' unsaid --json report
ok 'nor has what verifies' unsaid ledger verify "$work/before.led"
ok 'nor has an export' sh -c "! grep -qaF votes '$work/before.led'"

# ---- damage ----
damaged() { # FILE: one byte of it is another
	rm -rf "$work/bad"
	cp -r "$work/kept" "$work/bad"
	python3 - "$work/bad/$1" <<'PY'
import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[len(b) // 2] ^= 1
open(sys.argv[1], "wb").write(b)
PY
	run backup --check "$work/bad"
	[ "$status" -eq 9 ] && grep -qF "$1" "$err" || return 1
	run -d "$work/from_bad" restore "$work/bad"
	[ "$status" -eq 9 ] && [ ! -e "$work/from_bad" ]
}
for file in store.db agent.yaml identity.key backup.txt; do ok "one bit of $file" damaged $file; done
rm "$work/bad/identity.key"
cp "$work/kept/backup.txt" "$work/kept/store.db" "$work/kept/agent.yaml" "$work/bad"
ok 'a file is gone' says 1 'identity.key' -d "$work/from_bad" restore "$work/bad"
ok 'no backup at all' says 4 'no backup is there' backup --check "$work/nothing"
ok 'not over an agent' says 1 'is not empty' -d "$work/a" restore "$work/kept"

# ---- more is spent; then the folder is lost ----
news a 2
news b 2
ok 'a second session each way' both_host 2 2
stop b
kill -9 "$pid_a"
exported a after.led
rm -rf "$work/a"
ok 'restored' prints 'must never run again' -d "$work/a" restore "$work/kept"
ok 'it says who is asked' grep -q '^  b$' "$out"
exported a old.led
ok 'it has what the backup had' same_entries "$work/old.led" "$work/before.led"
ok 'and less than was spent' [ "$(entries old.led)" -lt "$(entries after.led)" ]
ok 'doctor knows' doctor_prints a 'restored: 1 partners have not been asked yet'

# ---- alone it spends nothing; with the partner it goes on ----
news a 3
start a
ok 'a waits' wait_for 'a says so' logged a 'nothing of ours is spent before 1 partners'
stop a
exported a alone.led
ok 'alone: nothing was written' [ "$(entries alone.led)" = "$(entries old.led)" ]
news b 3
ok 'both go on' both_host 2 3
ok 'the partner has handed back what was lost' logged a "has handed back $(($(entries after.led) - $(entries old.led))) ledger entries"
nobody_is_blamed() { ! grep -q 'rolled back\|differ' "$work/a.log" "$work/b.log"; }
ok 'nobody is blamed' nobody_is_blamed
stop a b
exported a a.led
exported b b.led
ok 'both ledgers agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
ok 'spent stays spent' starts_with "$work/a.led" "$work/after.led"
ok 'and more was spent' [ "$(labels a.led a)" -gt "$(labels after.led a)" ]
ok 'doctor knows that, too' doctor_prints a 'restored, and every partner has been asked'
ok 'the store holds' doctor_prints a 'signatures and checkpoints hold'

# ---- the partner never comes back ----
rm -rf "$work/a"
ok 'restored again' exits 0 -d "$work/a" restore "$work/later"
unspoken() { ! grep -qi 'held back' "$out"; }
ok 'who trains without noise does not hear of private training' unspoken
run -d "$work/a" doctor
ok 'nor from doctor' unspoken
ok 'who is not waited for' says 1 'not waited for' -d "$work/a" restore --without nobody
# c became one before a backup, and was forgotten after it: it is in no list of peers
agent c 3
id_c=$("$fkge" -q -d "$work/c" id | head -n 1)
ok 'a third one' exits 0 -d "$work/a" peer accept "$id_c"
ok 'a backup with it' prints '2 partners' -d "$work/a" backup "$work/three"
rm -rf "$work/a"
ok 'that one restored' prints "$id_c" -d "$work/a" restore "$work/three"
rm -rf "$work/a"
ok 'once more, for programs' exits 0 -d "$work/a" restore "$work/three" --json
who_waits() { python3 -c 'import json, sys; sys.exit(sorted(json.load(open(sys.argv[1]))["waits"]) != sorted(sys.argv[2:]))' "$out" "$@"; }
ok 'which hear by ids who is asked first' who_waits "$id_c" "$(id_of b)"
ok 'revoked' exits 0 -d "$work/a" peer revoke "$id_c"
ok 'and forgotten' exits 0 -d "$work/a" peer forget "$id_c"
ok 'doctor: the whole id of who was forgotten' doctor_prints a "not asked yet: $id_c, which is no partner any more"
ok 'and the name of the partner' doctor_prints a 'not asked yet: b, '
ok 'nobody begins like that' says 1 'fkge doctor lists who is' -d "$work/a" restore --without zzzz
ok 'without the forgotten one, by a short id' prints 'counted nowhere' -d "$work/a" restore --without "$(echo "$id_c" | cut -c 1-9)"
ok 'it is gone from the list' sh -c "! '$fkge' -d '$work/a' doctor | grep -q '$id_c'"
ok 'without the partner' prints 'counted nowhere' -d "$work/a" restore --without b
ok 'once' says 1 'not waited for' -d "$work/a" restore --without b
ok 'doctor: nobody is waited for' doctor_prints a 'every partner has been asked'

# ---- private training that the backup knows nothing of ----
agent d 5
sed -i 's/patience: 0}/patience: 0, filtered: false, shared_chunk: 0}/' "$work/d/agent.yaml"
echo 'privacy: {delta: 1e-5}' >>"$work/d/agent.yaml"
private() { # turned on, as the owner did it after the backup
	sed -i 's/shared_chunk: 0}/shared_chunk: 0, dp: {epsilon: 8, rate: 0.5}}/' "$work/d/agent.yaml"
}
stated() { # NUMBER of statements
	"$fkge" -d "$work/d" --json ledger show >"$work/show" &&
		python3 -c "import json, sys; t = json.load(open('$work/show')).get('training') or {}; sys.exit(len(t.get('trainings', [])) != $1)"
}
sed -i 's/federation: {/federation: {accept: invited, /' "$work/d/agent.yaml"
"$fkge" -q -d "$work/d" secret >/dev/null
"$fkge" -q -d "$work/d" invite --address h:1 -o "$work/line-d" >/dev/null
ok 'a backup before train.dp' exits 0 -d "$work/d" backup "$work/bare"
private
ok 'private training spends' exits 0 -d "$work/d" train
ok 'and states it' stated 2
rm -rf "$work/d"
ok 'its folder is lost, and put back' exits 0 -d "$work/d" restore "$work/bare"
ok 'train.dp is off in it: not a word of that' unspoken
ok 'what the owner decided since is not in it, and that is said' flat_has 'is a partner again, by its old keys: fkge peer revoke'
ok 'no invitation is open' prints revoked -d "$work/d" invite --list
ok 'not one' eval '! grep -qw good "$out"'
private
ok 'turned on: nothing is spent a second time' says 1 'restore --without training' -d "$work/d" train
ok 'nor stated' stated 0
ok 'doctor says so' doctor_prints d 'private training is held back'
ok 'the owner lets go' prints 'lower train.dp.epsilon' -d "$work/d" restore --without training
ok 'once' says 1 'not waited for' -d "$work/d" restore --without training
ok 'and it trains' exits 0 -d "$work/d" train
ok 'its statements are in a backup' exits 0 -d "$work/d" backup "$work/stated" --json
ok 'each of them' stated "$(member "$out" statements)"
ok 'and are counted' [ "$(member "$out" statements)" -gt "$(member "$out" entries)" ]

# ---- a copy put back by hand is found out by the partner, and completed ----
news a 4
news b 4
ok 'they go on once more' both_host 2 4
stop a b
ok 'the lost entries came back' starts_with "$work/a.led" "$work/after.led"
exported a a.led
exported b b.led
ok 'both ledgers agree in the end' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"

# ---- what an agent uses beside its store ----
for file in encoder http.key metrics.key; do (umask 022 && echo "this is $file" >"$work/b/$file"); done
ok 'a backup of b' prints 'encoder' -d "$work/b" backup "$work/beside"
ok 'and back' exits 0 -d "$work/b.again" restore "$work/beside"
for file in encoder http.key metrics.key; do
	ok "$file is in it" cmp -s "$work/b/$file" "$work/b.again/$file"
	ok "$file is the owner's alone" [ "$(stat -c %a "$work/beside/$file" "$work/b.again/$file" | tr '\n' ' ')" = '600 600 ' ]
done

# ---- a copy of the folder that another program has made ----
cp -r "$work/b" "$work/b.copy"
ok 'a backup of a copy' exits 0 -d "$work/b.copy" backup "$work/of_copy"
ok 'is put back' exits 0 -d "$work/b.third" restore "$work/of_copy"
ok 'as one that asks its partner first' doctor_prints b.third 'restored: 1 partners have not been asked yet'

# ---- the federation's secret, wherever it lies ----
agent s 7
s=$work/s
"$fkge" -q -d "$s" secret >/dev/null
cp "$s/federation.key" "$work/secret"
ln -s "$s" "$work/way"
mkdir "$s/sub"
# kept NAME SETTING: the file at that path in the folder is in the backup, and the agent that is put back finds it
kept() {
	rm -rf "$work/sb" "$work/sr"
	run -d "$s" config set federation.psk_file "$2"
	run --json -d "$s" backup "$work/sb"
	[ "$status" -eq 0 ] && [ "$(member "$out" left_out)" = None ] && [ ! -s "$err" ] &&
		cmp -s "$work/secret" "$work/sb/$1" && run backup --check "$work/sb" && [ "$status" -eq 0 ] &&
		run -d "$work/sr" restore "$work/sb" && [ "$status" -eq 0 ] && cmp -s "$work/secret" "$work/sr/$1" || return
	mv "$s" "$s.away" # where the old folder is no more
	run -d "$work/sr" config get federation.psk_file
	finds=$(grep -cF "$s/" "$out")
	run -d "$work/sr" serve --until-quiet 0.1
	mv "$s.away" "$s"
	[ "$status" -eq 0 ] && [ "$finds" = 0 ]
}
ok 'a secret of this folder' kept federation.key ./federation.key
ok 'by its whole path' kept federation.key "$s/federation.key"
ok 'by a link to the folder' kept federation.key "$work/way/federation.key"
cp -p "$s/federation.key" "$s/sub/other.key"
ok 'below it' kept other.key sub/other.key
cp -p "$s/federation.key" "$s/sub/store.db"
ok 'by a name that another file has' kept federation.key sub/store.db
for name in lock http.key store.db-wal store.db-journal; do
	cp -p "$s/federation.key" "$s/sub/$name"
	ok "by one that is the agent's own, $name" kept federation.key "sub/$name"
done
cp -p "$s/federation.key" "$work/outside.key"
run -d "$s" config set federation.psk_file "$work/outside.key"
# left_out COMMAND...: says so, to people also with -q, and to programs
left_out() {
	rm -rf "$work/sr"
	run -q --json "$@" && [ "$status" -eq 0 ] && [ "$(member "$out" left_out)" = "$work/outside.key" ] &&
		grep -qF "not in the backup: $work/outside.key" "$err"
}
rm -rf "$work/sb"
ok 'one outside is not in it, which is said' left_out -d "$s" backup "$work/sb"
ok 'by its check, too' left_out backup --check "$work/sb"
ok 'and when it is put back' left_out -d "$work/sr" restore "$work/sb"

# ---- one that is cut off ----
mkfifo "$work/b/federation.key" # which keeps it waiting
"$fkge" -q -d "$work/b" backup "$work/killed" >/dev/null 2>&1 &
pid_killed=$!
pids="$pids $pid_killed"
half() { ls "$work"/killed.*/agent.yaml; } >/dev/null 2>&1
asleep() { [ "$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid_killed/status")" = S ]; }
looks=0
waits_there() { # asleep at two looks: at the pipe, for a disk is waited for in state D
	if half && asleep; then looks=$((looks + 1)); else looks=0; fi
	[ $looks -ge 2 ]
}
ok 'a backup under way' wait_for 'the pipe' waits_there
rm "$work/b/federation.key"
ok 'another one beside it' exits 0 -d "$work/b" backup "$work/killed"
ok 'leaves it alone' half
kill -9 "$pid_killed"
wait "$pid_killed" 2>/dev/null
ok 'killed: its files are left' half
rm -rf "$work/killed"
mkdir "$work/killed.backup" && cp "$work/beside"/* "$work/killed.backup" # the owner's
ok 'the next one to that place' exits 0 -d "$work/b" backup "$work/killed"
ok 'says that they are gone' grep -q 'cut off' "$err"
ok 'and they are' [ "$(ls -d "$work"/killed* | wc -l)" = 2 ]
ok 'the owner'"'"'s are not' exits 0 backup --check "$work/killed.backup"
finish
