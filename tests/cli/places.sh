#!/bin/sh
# What a command writes takes the place of no file of another kind, and of none of an agent's own.
# Usage: places.sh FKGE
. "$(dirname "$0")/lib.sh"

agent a 1
"$fkge" -q -d "$work/a" train --epochs 1 >/dev/null 2>&1
cp -r "$work/a" "$work/kept"
echo mine >"$work/notes"
as_it_was() { cmp "$work/a/$1" "$work/kept/$1" >"$out" 2>&1; }
free() { [ ! -e "$1" ]; }

# stays NAME ARGS...: of a file of the agent's, of one that it does not have yet, of somebody's notes
stays() {
	what=$1
	shift
	for own in identity.key agent.yaml; do
		ok "$what: not in place of $own" says 1 "is a file of the agent's own" -d "$work/a" "$@" "$work/a/$own"
		ok '... which is as it was' as_it_was $own
	done
	ok "$what: nor of one that may come" says 1 "is a file of the agent's own" -d "$work/a" "$@" "$work/a/http.key"
	ok '... which is not there' free "$work/a/http.key"
	ok "$what: no other file goes" says 1 'so it stays: name another file' -d "$work/a" "$@" "$work/notes"
	ok '... it is as it was' grep -qx mine "$work/notes"
	ok "$what: nor what is no file" says 1 'is no regular file' -d "$work/a" "$@" "$work/pipe"
	ok '... it is one still' test -p "$work/pipe"
}
# again NAME ARGS...: a file of the same kind makes room, and so does an empty one
again() {
	what=$1
	shift
	: >"$work/$what"
	for n in 'an empty one' 'its own'; do
		ok "$what: in place of $n" exits 0 -d "$work/a" "$@" "$work/$what"
	done
}
mkfifo "$work/pipe"
for c in 'ledger export' 'rounds export' 'queries export -o' 'invite --address 127.0.0.1:1 -o' \
	"queries sample $work/a.tsv -n 3 -o" 'serve --until-quiet 0.1 --status-file'; do
	made=$(echo "$c" | cut -d' ' -f1,2 | tr ' ' '.')
	stays $made $c
	again $made $c
done
# what another program has set out anew is one still
python3 -m json.tool "$work/ledger.export" >"$work/set-out" && ok 'an export that was set out' exits 0 -d "$work/a" ledger export "$work/set-out"
(cd "$work/a" && ! "$fkge" ledger export identity.key 2>"$err") && ok "from within" as_it_was identity.key
ln -s "$work/notes" "$work/link"
ok 'a link is replaced' exits 0 -d "$work/a" ledger export "$work/link"
ok 'and what it pointed to is as it was' grep -qx mine "$work/notes"

# ---- keys, encoders ----
ok 'keys are not replaced before that' says 1 "of the agent's own" -d "$work/a" key rotate -o "$work/a/store.db"
ok '... they are as they were' as_it_was identity.key
ok 'nor where notes are' says 1 'so it stays' -d "$work/a" key rotate -o "$work/notes"
ok 'with another file they are' exits 0 -d "$work/a" key rotate -o "$work/keys"
ok 'the text may be written again' exits 0 -d "$work/a" key show -o "$work/keys"
ok 'in no place of notes' says 1 'so it stays' -d "$work/a" key show -o "$work/notes"
ok 'no encoder for a training' says 1 "of the agent's own" -d "$work/a" queries train --fresh -o "$work/a/training.state"
cp "$work/notes" "$work/enc.state"
ok 'nor its state for notes' says 1 'so it stays' -d "$work/a" queries train --fresh --steps 5 -o "$work/enc"
ok 'notes are as they were' grep -qx mine "$work/enc.state"
ok 'an encoder of rounds' says 1 "of the agent's own" -d "$work/a" queries encoder -o "$work/a/store.db"

# ---- folders ----
mkdir "$work/ex" "$work/rep" && cp "$work/notes" "$work/ex/README.md" && cp "$work/notes" "$work/rep/report.md"
ok 'an export leaves a README' says 1 'README.md is there and is no' -d "$work/a" export "$work/ex" --format safetensors
ok '... as it was' grep -qx mine "$work/ex/README.md"
ok 'a report leaves one' says 1 'report.md is there and is no' -d "$work/a" train --epochs 1 --report "$work/rep"
ok '... as it was' grep -qx mine "$work/rep/report.md"
"$fkge" synth --agents 2 --entities 60 --overlap 0.8 -o "$work/two" >/dev/null
printf 'experiment: {name: two, data: two, seeds: [1], rounds: 1, epochs: 1}\nmodel: {dim: 8}\nvariants: {single: }\n' >"$work/e.yaml"
ok 'so does an experiment' says 1 'holds a report already' experiment "$work/e.yaml" -o "$work/rep"
ok '... as it was' grep -qx mine "$work/rep/report.md"
rm "$work/ex/README.md" "$work/rep/report.md"
for n in first second; do
	ok "$n export" exits 0 -d "$work/a" export "$work/ex" --format safetensors
	ok "$n experiment" exits 0 experiment "$work/e.yaml" -o "$work/tables"
	ok "$n report" exits 0 -d "$work/a" train --epochs 1 --fresh --report "$work/rep"
done

# ---- keys behind links ----
mkdir "$work/vault"
linked() { rm -f "$work/a/$1"; ln -s "$work/vault/$1" "$work/a/$1"; }
printf '%064d\n' 42 >"$work/vault/federation.key"
chmod 600 "$work/vault/federation.key"
linked federation.key
run -d "$work/a" config set federation.accept invited
ok 'another secret' exits 0 -d "$work/a" secret
ok '... goes behind the link' test -h "$work/a/federation.key"
ok '... where the old one is no more' eval '! grep -q 0042 "$work/vault/federation.key"'
ok '... it is private' [ "$(stat -c %a "$work/vault/federation.key")" = 600 ]
ok 'a line with it' exits 0 -d "$work/a" invite --address h:1
mv "$work/vault/federation.key" "$work/vault/away"
ok 'behind a link to nothing there is no place' says 4 'is a link to a file that is not there' -d "$work/a" secret
ok '... which is seen before lines are revoked' eval 'mv "$work/vault/away" "$work/vault/federation.key" && run -d "$work/a" invite --list --json && member "$out" invitations 0 id >/dev/null'
for kind in http metrics; do
	touch "$work/vault/$kind.key"
	chmod 600 "$work/vault/$kind.key"
	linked $kind.key
	ok "the key of $kind" exits 0 -d "$work/a" http key --new $([ $kind = http ] || echo --metrics)
	ok '... goes behind the link' test -h "$work/a/$kind.key" -a -s "$work/vault/$kind.key"
done
mv "$work/a/identity.key" "$work/vault/"
linked identity.key
cp "$work/vault/identity.key" "$work/identity"
ok 'keys behind a link are not replaced' says 2 "mv '$work/vault/identity.key' '$work/a/identity.key'" -d "$work/a" key rotate
ok '... which leaves them' cmp "$work/vault/identity.key" "$work/identity"
ok '... and the agent' exits 0 -d "$work/a" eval
mv "$work/vault/identity.key" "$work/a/identity.key"
ok 'in their place they are' exits 0 -d "$work/a" key rotate

# ---- what a killed program leaves ----
run -d "$work/a" config set federation.psk_file shared.key
left() { # NAME...: all are there
	for name in "$@"; do [ -e "$work/a/$name" ] || return 1; done
}
gone() { # NAME...: none is
	for name in "$@"; do [ ! -e "$work/a/$name" ] || return 1; done
}
dead=999999999 # no process has such a number
keys="identity.key.next.$dead.tmp federation.key.$dead.tmp shared.key.$dead.tmp http.key.$dead.tmp agent.yaml.$dead.tmp"
mine="notes.$dead.tmp identity.key.tmp identity.key.x.tmp identity.key.$dead.tmp.old"
plant() { for name in "$@"; do echo secret >"$work/a/$name"; done; }
plant $keys $mine agent.yaml.$$.tmp
finds() { run -d "$work/a" doctor; grep -F "$1" "$out" | grep -q '^look  files .*left of a program that was killed'; }
for name in $keys; do ok "doctor names $name" finds "$name"; done
ok 'not what is being written' eval '! finds agent.yaml.$$.tmp'
ok 'who reads leaves all' left $keys $mine
ok 'who writes' exits 0 -d "$work/a" checkpoint save one
ok '... removes them' gone $keys
ok '... but not what is being written, nor what is not ours' left $mine agent.yaml.$$.tmp
touch -d '1 hour ago' "$work/a/agent.yaml.$$.tmp"
ok 'an old one is not being written' finds agent.yaml.$$.tmp
run -d "$work/a" checkpoint save two
ok '... and goes, whoever has that number now' gone agent.yaml.$$.tmp
finish
