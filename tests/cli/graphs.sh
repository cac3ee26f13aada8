#!/bin/sh
# Graphs made: one dealt to several agents, and generated ones.
. "$(dirname "$0")/lib.sh"

for c in split synth; do ok "help of $c has an example" prints Example $c --help; done

# ---- split ----
# twelve relations in two communities that share two entities; names with blanks and quotes survive
python3 - "$work/g.tsv" <<'PY'
import random, sys
random.seed(1)
seen = set()
with open(sys.argv[1], "w") as f:
    for i in range(1200):
        r = i % 12
        base = (r % 2) * 40
        x = (random.randrange(base, base + 41) % 80, random.randrange(base, base + 41) % 80)
        if (x, r) not in seen:
            seen.add((x, r))
            f.write(f'e {x[0]}"\tr{r}\te {x[1]}"\n')
PY
ok 'split wants all of it' says 2 'are needed' split "$work/g.tsv" --parts 3
ok 'one part is none' exits 2 split "$work/g.tsv" --parts 1 --by relations -o "$work/x"
ok 'ratios are three' says 2 'train:valid:test' split "$work/g.tsv" -k 2 --by relations --ratios 8:2 -o "$work/x"
ok 'more parts than relations' says 2 'of a graph that has 12' split "$work/g.tsv" -k 13 --by relations -o "$work/x"
ok 'nothing was made' [ ! -e "$work/x" ]
ok 'a bad file: file, line, status 4' says 4 'lib.sh:1' split "$(dirname "$0")/lib.sh" -k 2 --by relations -o "$work/x"
ok 'split by relations' exits 0 split "$work/g.tsv" -k 3 --by relations --seed 4 -o "$work/r3" --json
ok 'four relations each' [ "$(member "$out" parts 0 relations) $(member "$out" parts 2 relations)" = '4 4' ]
same_triples() { # FOLDER: its parts hold every triple of g.tsv once
	cat "$1"/*/train.tsv "$1"/*/valid.tsv "$1"/*/test.tsv | sort >"$work/dealt"
	sort "$work/g.tsv" | cmp -s - "$work/dealt"
}
ok 'every triple is dealt once' same_triples "$work/r3"
ok 'a second run into the same folder is refused' says 1 'holds parts already' split "$work/g.tsv" -k 2 --by relations -o "$work/r3"
ok 'the same again' exits 0 split "$work/g.tsv" -k 3 --by relations --seed 4 -o "$work/again"
ok 'the same seed makes the same bytes' diff -r "$work/r3" "$work/again" -x split.json
ok 'the record has the seed' [ "$(member "$work/r3/split.json" seed)" = 4 ]
# its table: a line is part, relations, entities, triples, share and the three splits
shares() {
	python3 - "$out" "$1" <<'PY'
import sys
rows = [[c.strip(" %") for c in l.split("|")[1:-1]] for l in open(sys.argv[1]) if l.startswith("|")][2:]
triples = [int(r[3]) for r in rows]
assert len(rows) == 3 and sum(triples) == int(sys.argv[2]), rows
assert all(int(r[3]) == sum(map(int, r[5:8])) for r in rows), rows
assert all(abs(float(r[4]) - 100 * n / sum(triples)) < 0.051 for r, n in zip(rows, triples)), rows
PY
}
ok 'the share of a part is that of its triples' shares "$(wc -l <"$work/g.tsv")"
mkdir -p "$work/stray/0"
ok 'nor beside a part that has no record' says 1 'holds parts already' split "$work/g.tsv" -k 2 --by relations -o "$work/stray"
ok 'split by communities' exits 0 split "$work/g.tsv" -k 2 --by communities --ratios 90:5:5 -o "$work/c2" --json
ok 'the communities are found' [ "$(member "$out" shared_entities 0 1) $(member "$out" parts 1 relations)" = '2 6' ]
ok 'the mean is over pairs of parts' [ "$(member "$out" shared_mean)" = 2.0 ]
ratios() { # 90:5:5 of each part, as far as every name of valid and test stays in train
	python3 - "$out" <<'PY'
import json, sys
for p in json.load(open(sys.argv[1]))["parts"]:
    n = p["train"] + p["valid"] + p["test"]
    assert p["valid"] == p["test"] == int(n * 0.05) > 0, p
PY
}
ok 'the ratios are those of each part' ratios
ok 'valid and test have each their own' exits 0 split "$work/g.tsv" -k 2 --by communities --ratios 80:5:15 -o "$work/c3" --json
ok 'in this order' [ "$(($(member "$out" parts 0 valid) * 2))" -lt "$(member "$out" parts 0 test)" ]
ok 'every triple is dealt once here too' same_triples "$work/c2"
"$fkge" -q -d "$work/a" init --name a --listen 127.0.0.1:0 >/dev/null
ok 'a part can be imported' exits 0 -d "$work/a" import "$work/c2/0" --json
ok 'nothing of valid and test is strange to train' [ "$(member "$out" unseen_entities) $(member "$out" unseen_relations)" = '0 0' ]

# ---- synth ----
lines() { [ "$(cat "$1"/*.tsv | wc -l) $(cat "$1"/*.tsv | sort -u | wc -l)" = "$2 $2" ]; }
ok 'synth wants a size' says 2 'are needed' synth -o "$work/s"
ok 'overlap of nobody' says 2 'goes with --agents' synth -e 100 --overlap 0.5 -o "$work/s"
ok 'more triples than fit' says 2 'bear at most' synth -e 100 -t 100000 -o "$work/s"
ok 'as many as fit where nobody says how many' prints '216 train, 11 valid, 11 test' synth -e 50 -o "$work/small"
ok 'with many relations, too' exits 0 synth -e 20 -r 30 -o "$work/few"
ok 'synth' exits 0 synth -e 2000 -t 20000 --seed 5 -o "$work/s" --json
ok 'all entities are there' [ "$(member "$out" graphs 0 entities)" = 2000 ]
ok 'as many triples as asked for, none twice' lines "$work/s" 20000
ok 'a graph that is there is not written over' says 1 'holds a graph already' synth -e 100 -o "$work/s"
ok 'nor is one that is not ours' says 1 'holds a graph already' synth -e 100 -o "$work/c2/0"
ok 'it is as it was' lines "$work/s" 20000
mkdir "$work/half" && echo 'a	r	b' >"$work/half/test.tsv"
ok 'nor is a test split alone' says 1 'holds a graph already' synth -e 100 -o "$work/half"
ok 'synth again' exits 0 synth -e 2000 -t 20000 --seed 5 -o "$work/t"
ok 'the same seed makes the same bytes here too' diff -r "$work/s" "$work/t"
ok 'another seed' exits 0 synth -e 2000 -t 20000 --seed 6 -o "$work/u"
differ() { ! cmp -s "$1" "$2"; }
ok 'makes another graph' differ "$work/s/train.tsv" "$work/u/train.tsv"
ok 'it can be imported' exits 0 -d "$work/a" import --replace "$work/s" --json
ok 'nothing is a repeat, a loop or strange to train' [ "$(member "$out" duplicates) $(member "$out" self_loops) $(member "$out" unseen_entities)" = '0 0 0' ]
# the disk is full, here at 64 KiB
full() { (ulimit -f 128; exec "$fkge" -d "$work/a" "$@" >"$out" 2>"$err"); }
ok 'what has no room' eval '! full export --triples "$work/new/deep"'
ok 'says so' grep -q 'train.tsv: File too large' "$err"
ok 'and leaves no folder' [ ! -e "$work/new" ]
mkdir "$work/there" && echo mine >"$work/there/notes"
ok 'nor in one that was there' eval '! full export --triples "$work/there"'
ok 'what is in that stays' [ "$(ls "$work/there")" = notes ]
# ---- what is cut off leaves nothing that reads as whole ----
# train.tsv fits, valid.tsv does not
big='-e 800 -t 10000 --ratios 30:60:10'
ok 'a graph that has no room' eval '! full synth $big -o "$work/new"'
ok 'says so of it' grep -q 'valid.tsv: File too large' "$err"
ok 'and leaves no folder of it' [ ! -e "$work/new" ]
ok 'nor a part in a folder that was there' eval '! full synth $big -o "$work/there"'
ok 'which has what it had' [ "$(ls -A "$work/there")" = notes ]
ok 'so that it goes there with room' exits 0 synth $big -o "$work/there"
ok 'and nothing else is there' [ "$(ls -A "$work/there" | tr '\n' ' ')" = 'notes synth.json test.tsv train.tsv valid.tsv ' ]
awk 'BEGIN { for (i = 0; i < 9; i++) print "a" i "\tr" i "\tb" i; for (i = 0; i < 9000; i++) print "a" i "\tr9\tb" i }' >"$work/uneven.tsv"
ok 'parts of which one has no room' eval '! full split "$work/uneven.tsv" -k 2 --by relations --seed 4 -o "$work/new"'
ok 'it was not the first' grep -q '/1/train.tsv: File too large' "$err"
ok 'and leaves none' [ ! -e "$work/new" ]
mkdir -p "$work/cut/new.part" && echo 'a	r	b' >"$work/cut/new.part/train.tsv"
ok 'what a run that was killed has left' exits 0 synth -e 100 -o "$work/cut"
ok 'is gone' [ "$(ls -A "$work/cut" | tr '\n' ' ')" = 'synth.json test.tsv train.tsv valid.tsv ' ]
cut_off() { # FOLDER NAME...: as a run leaves it that is killed before the last of these names is in place
	folder=$1
	shift
	mkdir "$folder/new.part"
	printf -- '-%s\0' "$@" >"$folder/new.part/stage.list"
	while [ $# -gt 1 ]; do shift; done
	mv "$folder/$1" "$folder/new.part/"
}
cp -r "$work/cut" "$work/whole"
echo mine >"$work/cut/notes"
cut_off "$work/cut" valid.tsv test.tsv synth.json train.tsv
ok 'one that was killed between its files is undone' exits 0 synth -e 200 -o "$work/cut"
ok 'with all that it left' [ "$(ls -A "$work/cut" | tr '\n' ' ')" = 'notes synth.json test.tsv train.tsv valid.tsv ' ]
ok 'by the new one' [ "$(member "$work/cut/synth.json" entities)" = 200 ]
mkdir "$work/whole/new.part"
ok 'one that was killed behind its last file is whole, and stays' says 1 'holds a graph already' synth -e 200 -o "$work/whole"
ok 'as it was' [ "$(ls -A "$work/whole" | tr '\n' ' ')$(member "$work/whole/synth.json" entities)" = 'synth.json test.tsv train.tsv valid.tsv 100' ]
echo mine >"$work/whole/new.part"
ok 'what is not ours is not undone' says 1 'new.part' synth -e 200 -o "$work/whole"
ok 'and stays, too' [ "$(cat "$work/whole/new.part")" = mine ]
ok 'parts' exits 0 split "$work/g.tsv" -k 2 --by relations -o "$work/halves"
cut_off "$work/halves" 0 1 split.json
ok 'likewise undone' exits 0 split "$work/g.tsv" -k 2 --by relations --seed 7 -o "$work/halves"
ok 'with all of it' [ "$(ls -A "$work/halves" | tr '\n' ' ')$(member "$work/halves/split.json" seed)" = '0 1 split.json 7' ]
"$fkge" -q synth -e 2000000 -o "$work/killed" 2>/dev/null &
killed=$!
pids="$pids $killed"
wait_for 'a graph that is being written' [ -e "$work/killed/new.part/train.tsv.part" ]
ok 'two at once are one too many' says 1 'another program is writing there' synth -e 100 -o "$work/killed"
kill -9 $killed
wait $killed 2>/dev/null
ok 'a graph of which the writer was killed is none' says 4 'no train.tsv' -d "$work/a" import --replace "$work/killed"
ok 'and another one goes there' exits 0 synth -e 100 -o "$work/killed"
ok 'whole' [ "$(ls -A "$work/killed" | tr '\n' ' ')" = 'synth.json test.tsv train.tsv valid.tsv ' ]

ok 'two agents' exits 0 synth -e 2000 --agents 2 --overlap 0.25 -o "$work/w" --json
names() { cut -f1,3 "$1"/train.tsv | tr '\t' '\n' | sort -u; }
names "$work/w/0" >"$work/names0"
names "$work/w/1" >"$work/names1"
shared=$(comm -12 "$work/names0" "$work/names1" | wc -l)
ok 'each has all its entities' [ "$(cat "$work/names0" "$work/names1" | wc -l)" -eq 4000 ]
ok 'a quarter of them is shared' [ "$shared" -gt 425 -a "$shared" -lt 575 ]
ok 'they know different triples of it' differ "$work/w/0/train.tsv" "$work/w/1/train.tsv"
finish
