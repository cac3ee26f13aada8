#!/bin/sh
# predict and similar: questions one by one and in batches, names that are not there.
. "$(dirname "$0")/lib.sh"

agent a 1
run -d "$work/a" train
fk() { run -d "$work/a" "$@"; }
tail_of() { member "$out" answers "$1" "$2"; }
sorted() { # key: members of a list of objects never rise
	python3 - "$out" "$1" <<'PY'
import json, sys
x = [a["score"] for a in json.load(open(sys.argv[1]))[sys.argv[2]]]
sys.exit(not (x and x == sorted(x, reverse=True)))
PY
}

# ---- one question ----
ok 'a tail' exits 0 -d "$work/a" predict e1 next '?' -k 3 --json
ok 'three answers' [ "$(tail_of 2 rank)" = 3 ]
ok 'the best comes first' sorted answers
known_left_out() { ! grep -q '"name": "e2"' "$out"; }
ok 'what the graph holds is left out' known_left_out
ok 'the same when said' exits 0 -d "$work/a" predict e1 next '?' -k 100 --filtered --json
ok 'still left out' known_left_out
ok 'not both' says 2 'say one of them' -d "$work/a" predict e1 next '?' --filtered --known
ok 'in whatever order' says 2 'say one of them' -d "$work/a" predict e1 next '?' --known --filtered
ok 'or marked' prints 'e2  (known)' -d "$work/a" predict e1 next '?' -k 100 -a
not_itself() { ! grep -q '"name": "e1"' "$out"; }
ok 'next has no loop' exits 0 -d "$work/a" predict e1 next '?' -k 100 --json
ok 'so the asked entity is no answer' not_itself
ok 'but of all it is one' prints ' e1' -d "$work/a" predict e1 next '?' -k 100 -a
ok 'nor to a question of one step' exits 0 -d "$work/a" query 'SELECT ?x { <e1> <next> ?x }' -k 100 --json
ok 'there' not_itself
ok 'of two steps it may be' prints ' e1' -d "$work/a" query 'SELECT ?x { <e1> <next>/^<next> ?x }' -k 100
printf 'e1\ttwice\te2\ne0\ttwice\te0\n' >"$work/loop.tsv"
"$fkge" -q -d "$work/l" init --name l --listen off >/dev/null
cp "$work/a/agent.yaml" "$work/l/agent.yaml"
mkdir "$work/loop" && cp "$work/loop.tsv" "$work/loop/train.tsv" && cp "$work/loop.tsv" "$work/loop/valid.tsv"
"$fkge" -q -d "$work/l" import "$work/loop" >/dev/null 2>&1
"$fkge" -q -d "$work/l" train --epochs 1 >/dev/null 2>&1
ok 'of a relation with a loop it is one' prints ' e1' -d "$work/l" predict e1 twice '?'
ok 'a head' prints 'e1  (known)' -d "$work/a" predict '?' next e2 -k 100 -a
ok 'a relation' prints 'next  (known)' -d "$work/a" predict e1 '?' e2 -a
ok 'typed: heads of twice' exits 0 -d "$work/a" predict '?' twice e4 -k 100 --typed -a --json
heads() {
	python3 - "$out" "$work/a.tsv" <<'PY'
import json, sys
heads = {l.split("\t")[0] for l in open(sys.argv[2]) if l.split("\t")[1] == "twice"}
got = {a["name"] for a in json.load(open(sys.argv[1]))["answers"]}
sys.exit(not (got == heads and len(heads) < 100))
PY
}
ok 'all of them and nobody else' heads
ok 'how they were looked for is said' [ "$(member "$out" typed) $(member "$out" filtered)" = 'True False' ]
ok 'the tables that answered are named' [ -n "$(member "$out" checkpoint digest)" ]
ok 'a saved state' exits 1 -d "$work/a" predict e1 next '?' -c 999
ok 'nothing is asked' says 2 'exactly one' -d "$work/a" predict e1 next e2
ok 'two things are asked' says 2 'exactly one' -d "$work/a" predict '?' next '?'
ok 'too few words' exits 2 -d "$work/a" predict e1 next
ok 'no answers are asked for' exits 2 -d "$work/a" predict e1 next '?' -k 0

# ---- names ----
ok 'an unknown entity' says 1 "no entity 'zz'" -d "$work/a" predict zz next '?'
guesses_nothing() { ! grep -q 'did you mean' "$err"; }
ok 'nothing is like it' guesses_nothing
ok 'other letters' says 1 "did you mean 'e1'" -d "$work/a" predict E1 next '?'
ok 'a letter too few' says 1 "no relation 'nxt'; did you mean 'next'?" -d "$work/a" predict e1 nxt '?'
ok 'a part of it' says 1 "did you mean 'twice'?" -d "$work/a" predict e1 wic '?'
long=http://kg.example.org/$(printf '%090d' 0)/resource/
printf '%s\n' "<${long}Berlin> <${long}in> <${long}Germany> ." "<${long}BerlinWall> <${long}in> <${long}Berlin> ." >"$work/train.nt"
mkdir "$work/r" && cp "$work/train.nt" "$work/r/train.nt" && cp "$work/train.nt" "$work/r/valid.nt"
"$fkge" -q -d "$work/rdf" init --name rdf >/dev/null
cp "$work/a/agent.yaml" "$work/rdf/agent.yaml"
"$fkge" -q -d "$work/rdf" import "$work/r" >/dev/null
"$fkge" -q -d "$work/rdf" train --epochs 1 >/dev/null 2>&1
ok "an IRI's last part, in other letters" says 1 "resource/Berlin', '..." -d "$work/rdf" predict berlin "${long}in" '?'
ok 'with letters too few' says 1 "resource/Germany'?" -d "$work/rdf" predict '?' "${long}in" germny

# ---- batches ----
printf 'e1\tnext\t?\n?\ttwice\te4\ne5\t?\te6\n' >"$work/q.tsv"
ok 'a batch' exits 0 -d "$work/a" predict --batch "$work/q.tsv" -k 2 -a
ok 'two lines a question' [ "$(wc -l <"$out")" -eq 6 ]
ok 'six columns, the triple completed' awk -F '\t' 'NF != 6 || $1 == "?" || $2 == "?" || $3 == "?" { exit 1 }' "$out"
ok 'a batch as JSON' exits 0 -d "$work/a" predict --batch "$work/q.tsv" -k 2 -a --json
each_line() {
	python3 - "$out" <<'PY'
import json, sys
x = [json.loads(l) for l in open(sys.argv[1])]
sys.exit(not (len(x) == 4 and x[1]["line"] == 2 and x[1]["question"] == ["?", "twice", "e4"]
              and len(x[2]["answers"]) == 2 and x[3]["questions"] == 3 and x[3]["exit"] == 0))
PY
}
ok 'an object a line, a sum at the end' each_line
same_as_alone() {
	run -d "$work/a" predict e5 '?' e6 -k 1 -a --json
	tail_of 0 score >"$work/alone"
	run -d "$work/a" predict --batch "$work/q.tsv" -k 1 -a --json
	sed -n 3p "$out" >"$work/line3"
	[ "$(member "$work/line3" answers 0 score)" = "$(cat "$work/alone")" ]
}
ok 'a batch answers what a question alone gets' same_as_alone
gzip -k "$work/q.tsv"
ok 'packed' exits 0 -d "$work/a" predict --batch "$work/q.tsv.gz"
printf 'e1\tnext\t?\ne1\tnxt\t?\nnonsense\ne5\t?\te6\n' >"$work/bad.tsv"
ok 'mistakes: line and reason, status 4' says 4 "bad.tsv:2: the graph has no relation 'nxt'; did you mean 'next'?" \
	-d "$work/a" predict --batch "$work/bad.tsv" -k 1
ok 'and the next one' grep -q 'bad.tsv:3: 1 column where 3 are wanted' "$err"
ok 'the others are answered' [ "$(wc -l <"$out")" -eq 2 ]
ok 'in JSON too' exits 4 -d "$work/a" predict --batch "$work/bad.tsv" --json
ok 'counted' grep -q '"questions":4,"failed":2' "$out"

# ---- a name that is a question mark ----
agent m 1
{ cat "$work/a.tsv"; printf '?\tnext\te1\n?\ttwice\te2\ne3\tnext\t?\n'; } >"$work/mark.tsv"
run -d "$work/m" import --replace "$work/mark.tsv"
run -d "$work/m" train
ok 'another word for what is missing' prints 'e1  (known)' -d "$work/m" predict '?' next _ -k 200 -a --missing _
ok 'the mark is a name' prints '?  (known)' -d "$work/m" predict _ next e1 -k 200 -a --missing _
ok 'the word is in the sentence' says 2 'write _ for exactly one' -d "$work/m" predict '?' next e1 --missing _
printf '?\tnext\t_\n' >"$work/mark.q"
ok 'in a batch, too' prints "$(printf '?\tnext\te1\t')" -d "$work/m" predict --batch "$work/mark.q" -k 200 -a --missing _

# ---- files that are not there: one status, whichever command wants them ----
gone=$work/gone
missing() { ok "no such file: $*" says 4 "$gone" "$@"; }
missing -d "$work/a" predict --batch "$gone"
missing -d "$work/a" import --replace "$gone"
missing -d "$work/a" import --alias "$gone"
missing -d "$work/a" import --embeddings "$gone"
missing -d "$work/a" unlearn "$gone"
missing -d "$work/a" unlearn --verify "$gone"
missing -d "$work/a" unlearn --verify "$gone" "$work/a.tsv"
missing -d "$work/a" tune "$gone"
missing -d "$work/a" join "$gone"
missing split "$gone" -k 2 --by relations -o "$work/parts"
missing experiment "$gone" -o "$work/x"
missing ledger verify "$gone"
missing ledger verify "$gone" "$gone.2"
ok 'where no agent is, ledger verify asks for a file' says 1 'names its file' -d "$work" ledger verify
missing rounds verify "$gone"
missing rounds verify "$gone" "$gone.2"
gone=$work/a.tsv/gone # a file where a folder is named
missing -d "$work/a" import --replace "$gone"
ok 'a batch and a question' exits 2 -d "$work/a" predict --batch "$work/q.tsv" e1 next '?'

# Each question is answered before the next one is there.
mkfifo "$work/in"
"$fkge" -d "$work/a" predict --batch - -k 1 <"$work/in" >"$out" 2>"$err" &
pid=$!
pids="$pids $pid"
exec 3>"$work/in"
printf 'e1\tnext\t?\n' >&3
ok 'a pipe that stays open' wait_for 'the first answer' test -s "$out"
printf 'e2\tnext\t?\n' >&3
exec 3>&-
ok 'and ends' wait "$pid"
ok 'with both answers' [ "$(wc -l <"$out")" -eq 2 ]
# nothing at all is no empty list of questions
closed() { "$fkge" -d "$work/a" "$@" >"$out" 2>"$err" <&- ; [ $? -eq 1 ] && grep -q '/dev/stdin: Bad file descriptor' "$err"; }
ok 'standard input that is closed is told' closed predict --batch -
ok 'to query, too' closed query --batch -
ok 'and as one question' closed query -f -
ok 'by its name' closed predict --batch /dev/stdin

# ---- similar ----
ok 'similar' exits 0 -d "$work/a" similar e1 -k 5 --json
ok 'the nearest first' sorted similar
itself() { ! grep -q '"name": "e1"' "$out"; }
ok 'not itself' itself
ok 'five of them' [ "$(member "$out" similar 4 rank)" = 5 ]
ok 'a relation among entities' says 1 'ask with --relations' -d "$work/a" similar next
ok 'by distance' exits 0 -d "$work/a" similar e1 --by distance --json
ok 'it is said which' [ "$(member "$out" by)" = distance ]
not_sorted() { ! sorted similar; }
ok 'the smallest distance first' not_sorted
ok 'relations' prints twice -d "$work/a" similar next --relations
ok 'typed' exits 0 -d "$work/a" similar e1 --typed
ok 'typed relations make no sense' says 2 'about entities' -d "$work/a" similar next --relations --typed
ok 'an entity is no relation' says 1 "no relation 'e1'" -d "$work/a" similar e1 --relations
ok 'no name' exits 2 -d "$work/a" similar
finish
