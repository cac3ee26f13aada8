#!/bin/sh
# Questions over several steps: asked, and drawn from graphs.
. "$(dirname "$0")/lib.sh"

ok 'help of queries sample has an example' prints Example queries sample --help

# ---- queries sample ----
ok 'a graph is wanted' says 2 'GRAPH and -o' queries sample -o "$work/q"
ok 'a file is wanted' says 2 'GRAPH and -o' queries sample "$work"
ok 'no type is called 4p' says 2 '4p' queries sample "$work" -o "$work/q" --types 1p,4p
ok 'other is no type' says 2 'other' queries sample "$work" -o "$work/q" --types other
ok 'a graph that is not there' says 4 "$work/none" queries sample "$work/none" -o "$work/q"
"$fkge" -q synth -e 300 -t 4000 --seed 3 -o "$work/g" >/dev/null
ok 'all types' exits 0 queries sample "$work/g" -n 20 --types all -o "$work/q" --json
ok 'as many as asked for' [ "$(wc -l <"$work/q") $(member "$out" types 13 type) $(member "$out" types 13 queries)" = '280 pni 20' ]
ok 'the same again' exits 0 queries sample "$work/g" -n 20 --types all -o "$work/again"
ok 'the same seed makes the same bytes' cmp "$work/q" "$work/again"
ok 'with easy answers' exits 0 queries sample "$work/g" -n 20 --types 2p,pin --seed 2 --easy -o "$work/q"
# every hard answer is checked once more, in another language, and that it is none of the known graph
cat >"$work/check.py" <<'PY'
import collections, json, sys
def read(name): return [tuple(l.rstrip("\n").split("\t")) for l in open(sys.argv[1] + "/" + name)]
known, graph = collections.defaultdict(set), collections.defaultdict(set)
for name, to in (("train.tsv", (known, graph)), ("valid.tsv", (known, graph)), ("test.tsv", (graph,))):
    for h, r, t in read(name):
        for g in to:
            g[h, r].add(t)
            g[t, "^" + r].add(h)
def walk(g, anchor, steps):
    at = {anchor}
    for s in steps:
        at = set().union(*(g[x, s] for x in at))
    return at
n = 0
for line in open(sys.argv[2]):
    q, sets = json.loads(line), []
    for g in graph, known:
        branch = [walk(g, a, s) for a, s in zip(q["anchors"], q["relations"])]
        sets.append(branch[0] - branch[1] if q["type"] == "pin" else branch[0])
    assert set(q["hard"]) == sets[0] - sets[1] and q["hard"], q
    assert set(q["easy"]) == sets[0] & sets[1], q
    assert len(q["missing"]) == len(q["hard"]) and min(q["missing"]) >= 1, q
    n += 1
sys.exit(n != 40)
PY
ok 'answers are right' python3 "$work/check.py" "$work/g" "$work/q"
ok 'more 1p than there are: all of them, and so it says' says 0 '1p: there are ' queries sample "$work/g" -n 1000000 --types 1p \
	-o "$work/q"
every_1p() { # each triple of test that is not known already, both ways, once
	python3 - "$work/g" "$work/q" <<'PY'
import json, sys
read = lambda f: {tuple(l.rstrip("\n").split("\t")) for l in open(sys.argv[1] + "/" + f + ".tsv")}
new = read("test") - read("train") - read("valid")
want = {(h, r) for h, r, t in new} | {(t, "^" + r) for h, r, t in new}
got = [(q["anchors"][0], q["relations"][0][0]) for q in map(json.loads, open(sys.argv[2]))]
sys.exit(len(got) != len(set(got)) or set(got) != want)
PY
}
ok 'no more and no fewer' every_1p
# each triple in both directions, a relation and its twin
mkdir "$work/both"
for s in train valid test; do
	awk -F'\t' -v OFS='\t' '{ print; print $3, $2 "_inverse", $1 }' "$work/g/$s.tsv" >"$work/both/$s.tsv"
done
ok 'relations under two names are found' says 0 'in the other direction: ' queries sample "$work/both" -n 40 -o "$work/q" --json
ok 'all of them' [ "$(member "$out" relations)" = "$(($(member "$out" twins) * 2))" ]
one_name() { # no query has a condition twice, steps back, or comes again by the twin's name
	python3 - "$work/q" <<'PY'
import json, sys
def one(step):
    back, name = step[0] == "^", step.lstrip("^")
    return name.replace("_inverse", ""), back != name.endswith("_inverse")
seen = set()
for q in map(json.loads, open(sys.argv[1])):
    branches = [[one(s) for s in b] for b in q["relations"]]
    last = [one(q["last"])] if "last" in q else []
    whole = sorted(zip(q["anchors"], map(tuple, branches)))
    assert len(set(whole)) == len(whole), q
    for b in branches:
        for x, y in zip(b + last, (b + last)[1:]):
            assert x[0] != y[0] or x[1] == y[1], q
    assert (q["type"], str(whole), str(last)) not in seen, q
    seen.add((q["type"], str(whole), str(last)))
PY
}
ok 'and are one relation' one_name
ok 'without any nothing is said' exits 0 queries sample "$work/g" -n 5 --types 2i -o "$work/q"
ok 'not a word' [ "$(grep -c 'in the other direction' "$err")" = 0 ]
ok 'for training all answers are hard' exits 0 queries sample "$work/g" -n 5 --types 2i --split train --answers 9 -o "$work/q" --json
ok 'so there are no easy ones' [ "$(member "$out" types 0 easy)" = 0 ]
mkdir "$work/trained" && cp "$work/g/train.tsv" "$work/trained"
ok 'without test there is none of test' says 4 'no triple of test' queries sample "$work/trained" -o "$work/none.jsonl"
"$fkge" -q split "$work/g" -k 3 --by relations -o "$work/r3" >/dev/null
ok 'of three graphs' exits 0 queries sample "$work/r3/0" "$work/r3/1" "$work/r3/2" -n 9 --types 1p,2p,pi -o "$work/q" --json
ok 'no graph holds a whole one' [ "$(member "$out" types 0 queries) $(member "$out" types 1 queries)" = '0 9' ]
cat >"$work/cross.py" <<'PY'
import json, sys
held = [{l.split("\t")[1] for f in ("train", "valid", "test") for l in open(f"{sys.argv[1]}/{k}/{f}.tsv")} for k in range(3)]
for line in open(sys.argv[2]):
    steps = {s.lstrip("^") for b in json.loads(line)["relations"] for s in b}
    assert steps <= set.union(*held) and not any(steps <= h for h in held), line
PY
ok 'checked by their relations' python3 "$work/cross.py" "$work/r3" "$work/q"
ok 'a folder that cannot be written' exits 1 queries sample "$work/g" -n 1 -o "$work/none/q"

# ---- query ----
ok 'help of query has an example' prints Example query --help
cat >"$work/drugs.tsv" <<'TSV'
aspirin	treats	headache
aspirin	treats	fever
ibuprofen	treats	fever
placebo	treats	headache
gene7	causes	fever
gene7	causes	headache
gene8	causes	fever
ibuprofen	harms	Max Mustermann
TSV
"$fkge" -q -d "$work/a" init --name a --listen off >/dev/null
ok 'without a graph it says what to do' says 1 'import GRAPH' -d "$work/a" query 'SELECT ?x { ?x <treats> <fever> }'
"$fkge" -q -d "$work/a" import "$work/drugs.tsv" >/dev/null
answers() { # QUERY ARGS...: names of the answers, in one line
	run -d "$work/a" query "$@" --json
	[ "$status" -eq 0 ] && python3 -c 'import json, sys; print(*[a["name"] for a in json.load(open(sys.argv[1]))["answers"]])' "$out"
}
ok 'an edge' [ "$(answers 'SELECT ?x { ?x <treats> <fever> }')" = 'aspirin ibuprofen' ]
ok 'two steps' [ "$(answers 'SELECT ?x { <gene8> <causes> ?i . ?x <treats> ?i }')" = 'aspirin ibuprofen' ]
ok 'as a path' [ "$(answers 'SELECT ?x { <gene8> <causes>/^<treats> ?x }')" = 'aspirin ibuprofen' ]
ok 'AND' [ "$(answers 'SELECT ?x { ?x <treats> <fever>, <headache> }')" = aspirin ]
ok 'OR' [ "$(answers 'SELECT ?x { { ?x <treats> <fever> } UNION { ?x <treats> <headache> } }')" = 'aspirin ibuprofen placebo' ]
ok 'NOT, and a name with a blank' [ "$(answers 'SELECT ?x { ?x <treats> <fever> FILTER NOT EXISTS { ?x <harms> "Max Mustermann" } }')" = aspirin ]
ok 'its type is a known one' [ "$(member "$out" type) $(member "$out" variable) $(member "$out" found)" = '2in x 1' ]
ok 'LIMIT' [ "$(answers 'SELECT ?x { ?x <treats> ?y . <gene7> <causes> ?y } LIMIT 2')" = 'aspirin ibuprofen' ]
ok 'of three' [ "$(member "$out" found)" = 3 ]
ok 'and --top, where that is less' [ "$(answers 'SELECT ?x { ?x <treats> <fever> } LIMIT 2' --top 1)" = aspirin ]
ok 'not where it is more' [ "$(answers 'SELECT ?x { ?x <treats> <fever> } LIMIT 1' --top 2)" = aspirin ]
for o in '--beam 3' '--norm min' '--truth softmax' '--cache 8' '--precision float32' '--threads 1' '-c 1'; do
	ok "triples alone have no use for $o" says 2 'goes with search, not with --exact' -d "$work/a" query --exact 'SELECT ?x { ?x <treats> <fever> }' $o
done
ok 'but for --known' [ "$(answers --exact 'SELECT ?x { ?x <treats> <fever> }' --known train --top 1)" = aspirin ]
ok 'nothing is known of nothing' eval 'names=$(answers "SELECT ?x { ?x <treats> <fever> }" --known none) && [ -z "$names" ]'
ok 'for people' prints '?x fever <-treats-' -d "$work/a" query 'SELECT ?x { ?x <treats> <fever> }'
ok 'how many more there are' says 0 '1 of 2 answers' -d "$work/a" query -k 1 'SELECT ?x { ?x <treats> <fever> }'
ok 'that there are none' says 0 'no answer' -d "$work/a" query 'SELECT ?x { <fever> <treats> ?x }'
printf 'SELECT ?x {\n  ?x <treats> <fever>\n}\n' >"$work/q.rq"
ok 'from a file' [ "$(answers -f "$work/q.rq")" = 'aspirin ibuprofen' ]
printf 'SELECT ?x {\n  OPTIONAL { ?x <treats> <fever> }\n}\n' >"$work/q.rq"
ok 'a wrong file: file, line, column' says 4 "$work/q.rq: line 2, column 3: OPTIONAL" -d "$work/a" query -f "$work/q.rq"
ok 'a file that is not there' says 4 "$work/none" -d "$work/a" query -f "$work/none"
ok 'a wrong query: line, column' says 2 'line 1, column 8: ' -d "$work/a" query 'SELECT * { ?x <treats> <fever> }'
ok 'a name that the graph does not have' says 1 "column 25: the graph has no entity 'cough'" -d "$work/a" query 'SELECT ?x { ?x <treats> <cough> }'
ok 'but one like it' says 1 "no relation 'treat'; did you mean 'treats'?" -d "$work/a" query 'SELECT ?x { ?x <treat> <fever> }'
"$fkge" -q -d "$work/b" init --name b --listen off >/dev/null
ok 'a table for questions without answers' exits 0 -d "$work/b" import "$work/drugs.tsv" --valid 0.2
ok 'and its tables' exits 0 -d "$work/b" train --epochs 2
# Programs that are handed a socket as standard input cannot open it by a name.
cat >"$work/handed.py" <<'PY'
import socket, subprocess, sys
mine, its = socket.socketpair()
p = subprocess.Popen(sys.argv[2:], stdin=its, stdout=subprocess.PIPE)
its.close()
mine.sendall(open(sys.argv[1], "rb").read())
mine.shutdown(socket.SHUT_WR)
sys.stdout.buffer.write(p.communicate()[0])
sys.exit(p.returncode)
PY
echo '{"type":"1p","anchors":["gene8"],"relations":[["causes"]]}' >"$work/one.jsonl"
echo 'SELECT ?x { ?x <treats> <fever> }' >"$work/one.rq"
ok 'questions from a socket' [ "$(python3 "$work/handed.py" "$work/one.jsonl" "$fkge" -q -d "$work/b" query --json --batch - | grep -c '"answers"')" = 1 ]
ok 'a question, too' [ "$(python3 "$work/handed.py" "$work/one.rq" "$fkge" -q -d "$work/b" query --json --exact -f - | grep -c '"rank"\|"name"')" -gt 0 ]
run -d "$work/b" query --json -k 5 'SELECT ?x { ?x <treats> <fever> } LIMIT 1'
ok 'LIMIT of a search' [ "$(grep -c '"rank"' "$out")" = 1 ]
many() { # 42 conditions of two steps
	printf 'SELECT ?x {'
	for first in treats causes harms; do for second in treats causes harms; do for e in fever gene7 aspirin placebo ibuprofen; do
		echo "?x <$first>/<$second> <$e> ."
	done; done; done | head -n 42
	printf '}'
}
many >"$work/many.rq"
ok 'truths that are too small are said' says 0 '1 question has no answer of a truth above 0' -d "$work/b" query --known none -f "$work/many.rq"
ok 'and how they are kept' exits 0 -d "$work/b" query --known none --norm min -f "$work/many.rq"
ok 'which keeps them' eval 'grep -q "^    1  " "$out" && ! grep -q "above 0" "$err"'
cat >"$work/ask.jsonl" <<'JSONL'
{"type":"1p","anchors":["gene7"],"relations":[["causes"]]}
{"type":"1p","anchors":["gene9"],"relations":[["causes"]]}
not a query
{"type":"1p","anchors":["gene8"],"relations":[["causes"]],"hard":["fever"]}
JSONL
asked() { # lines with answers, lines with errors, the sum
	says 4 "ask.jsonl:2: anchors: the graph has no entity 'gene9'" -d "$work/b" query --batch "$work/ask.jsonl" --json &&
		python3 - "$out" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert [l.get("line") for l in lines] == [1, 2, 3, 4, None], lines
assert ["answers" in l for l in lines] == [True, False, False, True, False], lines
assert ["error" in l for l in lines] == [False, True, True, False, True], lines
assert (lines[4]["queries"], lines[4]["failed"], lines[4]["exit"]) == (2, 2, 4), lines
PY
}
ok 'a batch that is asked needs no answers, and goes on past bad lines' asked
ok 'unknown names may be left out, too' says 4 '1 of 3 queries could not' -d "$work/b" query --batch "$work/ask.jsonl" --skip-unknown
ok 'and are counted there' grep -q '^1 queries with an entity or relation' "$err"
ok 'which is said' says 4 '2 of 4 queries could not be answered' -d "$work/b" query --batch "$work/ask.jsonl"
ok 'to rank answers are wanted' says 4 'ask.jsonl:1: hard: a list of names is wanted' -d "$work/b" query --batch "$work/ask.jsonl" --evaluate
# ---- hard answers that this graph does not lead to ----
mkdir "$work/csv"
cp "$work/drugs.tsv" "$work/csv/train.tsv"
echo 'gene8,causes,headache' >"$work/csv/test.csv"
"$fkge" -q -d "$work/n" init --name n --listen off >/dev/null
ok 'a split in a form that is not read is named' says 0 'Warning: test.csv is not read' -d "$work/n" import "$work/csv" --valid 0.2 --test 0
ok 'in JSON, too' exits 0 -d "$work/n" import "$work/csv" --valid 0.2 --test 0 --replace --json
ok 'by its name' [ "$(member "$out" unread)" = "['test.csv']" ]
"$fkge" -q -d "$work/n" train --epochs 2 >/dev/null 2>&1
cat >"$work/far.jsonl" <<'JSONL'
{"type":"1p","anchors":["gene8"],"relations":[["causes"]],"hard":["headache","ibuprofen"]}
{"type":"1p","anchors":["headache"],"relations":[["harms"]],"hard":["fever"]}
JSONL
ok 'what nothing leads to is said' says 0 '3 of 3 hard answers follow from no triples of train to test of this graph' \
	-d "$work/n" query --batch "$work/far.jsonl" --evaluate
ok 'the protocol does not name a split without triples' flat_has \
	'protocol hard answers of the file, for this graph has no triples of test, among all entities that are no answer on train to valid;'
ok 'nor is that silent' grep -q 'This graph has no triples of test' "$err"
ok 'in JSON' exits 0 -d "$work/n" query --batch "$work/far.jsonl" --evaluate --json
ok 'as numbers' [ "$(member "$out" not_found) $(member "$out" protocol filter)" = "3 ['train', 'valid']" ]
printf 'a b\tis with\tc\n' >"$work/blank.tsv"
"$fkge" -q -d "$work/blank" init --name blank --listen off >/dev/null
"$fkge" -q -d "$work/blank" import "$work/blank.tsv" >/dev/null 2>&1
ok 'a relation with a blank' prints '    1  c' -d "$work/blank" query 'SELECT ?x { "a b" <is\u0020with> ?x }'
ok 'is no text, and how it is written is said' says 2 '<a\u0020relation>' -d "$work/blank" query 'SELECT ?x { "a b" "is with" ?x }'
ok 'an encoder ranks what is evaluated' says 2 'goes with --evaluate' -d "$work/a" query --batch "$work/q" --encoder "$work/e"

goes_with() { # OPTION=VALUE WITH OTHERS...: it would say nothing
	option=$1 with=$2
	shift 2
	says 2 "${option%%=*} goes with $with" -d "$work/a" query "$option" "$@"
}
one='SELECT ?x { ?x <treats> <fever> }'
ok '--limit without its file' goes_with --limit=3 --batch "$one"
ok '--skip-unknown' goes_with --skip-unknown --batch "$one"
ok 'nor across agents' goes_with --skip-unknown --batch --batch "$work/q" --federated
ok '--split' goes_with --split=valid --evaluate --batch "$work/q"
for option in --points=5 --want=5 --want-known=5 --patience=5 --tell-own; do
	ok "$option" goes_with $option --federated "$one"
done
ok '--holders' goes_with --holders=2 '--federated --encoder' "$one" --federated
for option in --beam=5 --norm=min --known=train --truth=sigmoid --precision=bfloat16 --cache=5 -c=1; do
	ok "$option with an encoder" goes_with $option 'search, not with --encoder' --batch "$work/q" --evaluate --encoder "$work/e"
done
ok 'nor across agents' goes_with --beam=5 'search, not with --encoder' "$one" --federated --encoder "$work/e"
ok '--want with an encoder' goes_with --want=2 '--federated, and no --encoder' "$one" --federated --encoder "$work/e"

# ---- queries train ----
ok 'help of queries train has an example' prints Example queries train --help
"$fkge" -q -d "$work/t" init --name t --listen off >/dev/null
"$fkge" -q -d "$work/t" import "$work/g" >/dev/null
train_to() { # STEPS FILE ARGS...
	steps=$1
	encoder=$2
	shift 2
	run -d "$work/t" queries train --dim 8 --count 40 --valid-count 4 --batch 64 --lr 0.02 --eval-every 5 --threads 2 \
		--steps "$steps" -o "$work/$encoder" --json "$@"
	[ "$status" -eq 0 ]
}
for kind in gqe q2p tree-lstm; do
	ok "$kind trains" train_to 15 "$kind" -e $kind
	"$fkge" -q queries sample "$work/g" -n 5 --types all -o "$work/all" >/dev/null
	ok "$kind ranks" exits 0 -d "$work/t" query --batch "$work/all" --evaluate --encoder "$work/$kind" --json
	ok "$kind says what it left out" [ "$(member "$out" queries) $(member "$out" not_encoded)" = '45 25' ]
	ok "$kind is asked for answers of this graph" [ "$(member "$out" not_found)" = 0 ]
done
ok 'no encoder is a missing file' says 4 'no-such: No such file' -d "$work/t" query --batch "$work/all" --evaluate \
	--encoder "$work/no-such"
grep '"type":"[23pi]*n[pi]*"' "$work/all" >"$work/negated"
ok 'of negation alone nothing is left, and that is said' says 4 'negated: nothing is left to rank: 25 queries with negation' \
	-d "$work/t" query --batch "$work/negated" --evaluate --encoder "$work/gqe"
{ head -n 1 "$work/all"; echo; head -n 2 "$work/all"; echo; echo; } >"$work/gap"
ok 'an empty line is called that' says 4 'gap:2: not a JSON object: an empty line' -d "$work/t" query --batch "$work/gap" \
	--evaluate --encoder "$work/gqe"
{ cat "$work/all"; echo; echo; } >"$work/ends"
ok 'empty lines at the end are none' exits 0 -d "$work/t" query --batch "$work/ends" --evaluate --encoder "$work/gqe" --json
ok 'of them' [ "$(member "$out" queries)" = 45 ]
bad_lines() { # N: so many behind a good file, half of them of unknown names
	cat "$work/all"
	for i in $(seq "$1"); do
		echo '{"type":"1p","anchors":["nobody"],"relations":[["r0"]],"hard":["e0"]}'
		echo "not a query"
	done
}
bad_lines 1 | head -n 71 >"$work/one.bad"
ok 'one bad line is the error' says 4 "fkge: $work/one.bad:71: anchors: the graph has no entity 'nobody'" -d "$work/t" query \
	--batch "$work/one.bad" --evaluate --encoder "$work/gqe"
bad_lines 15 >"$work/bad"
ok 'all that is wrong is said before anything is ranked' says 4 "bad: 30 lines are no queries of this graph" -d "$work/t" query \
	--batch "$work/bad" --evaluate --encoder "$work/gqe" --json
ok 'the first twenty of it' [ "$(grep -c 'no entity\|not a JSON' "$err")" = 20 ]
ok 'in JSON, too' [ "$(member "$out" bad_lines 19)" = "$work/bad:90: not a JSON object: '[' or '{' expected near 'not'" ]
ok 'from a pipe, too' eval '! cat "$work/bad" | "$fkge" -d "$work/t" query --batch - --evaluate --encoder "$work/gqe" 2>"$err" >"$out"'
ok 'by its lines' grep -q "/dev/stdin:71: anchors: the graph has no entity 'nobody'" "$err"
bad_lines 15 | grep -v 'not a query' >"$work/unknown"
ok 'unknown names may be left out' says 0 '15 queries with an entity or relation that this graph does not have are left out' \
	-d "$work/t" query --batch "$work/unknown" --evaluate --encoder "$work/gqe" --skip-unknown --json
ok 'and are counted' [ "$(member "$out" strange) $(member "$out" queries)" = '15 45' ]
ok 'if they are known, none is' exits 0 -d "$work/t" query --batch "$work/all" --evaluate --encoder "$work/gqe" --skip-unknown --json
ok 'as they are' [ "$(member "$out" strange) $(member "$out" queries)" = '0 45' ]
grep nobody "$work/unknown" >"$work/nobody"
ok 'also where none is left' says 4 '15 queries with an entity or relation' -d "$work/t" query --batch "$work/nobody" --evaluate \
	--encoder "$work/gqe" --skip-unknown
ok 'other faults stay faults' says 4 'bad: 15 lines are no queries' -d "$work/t" query --batch "$work/bad" --evaluate \
	--encoder "$work/gqe" --skip-unknown
ok 'a part of it' train_to 10 part -e q2p
ok 'and the rest' train_to 15 part -e q2p
ok 'has the same bits' cmp "$work/part" "$work/q2p"
ok 'and so has what it goes on from' cmp "$work/part.state" "$work/q2p.state"
ok 'a part that ends between two looks' train_to 7 odd -e q2p
ok 'and the rest, looked at as in one run' train_to 15 odd -e q2p
ok 'has the same bits, too' cmp "$work/odd" "$work/q2p"
ok 'and goes on from the same' cmp "$work/odd.state" "$work/q2p.state"
ok 'other settings do not go on' says 2 'begun with other settings' -d "$work/t" queries train -e q2p --dim 8 -o "$work/part"
ok 'the same queries from a file' exits 0 queries sample "$work/g" -n 40 --types benchmark --split train -o "$work/train.jsonl"
ok 'train from files' train_to 5 files --queries "$work/train.jsonl" --valid "$work/train.jsonl"
sort -r "$work/train.jsonl" >"$work/other.jsonl"
ok 'nor do other queries, as many as before' says 2 'other settings or queries' -d "$work/t" queries train --dim 8 --batch 64 \
	--lr 0.02 --eval-every 5 --threads 2 --steps 10 --queries "$work/other.jsonl" --valid "$work/train.jsonl" -o "$work/files"
ok 'these do' train_to 10 files --queries "$work/train.jsonl" --valid "$work/train.jsonl"
echo mine >"$work/notes"
ok 'a file that is no encoder stays' says 1 'is no encoder, so it stays' -d "$work/t" queries train --fresh -o "$work/notes"
ok 'as it was' [ "$(cat "$work/notes")" = mine ]
mv "$work/odd.state" "$work/odd.kept"
ok 'so does an encoder that nothing goes on from' says 1 '--fresh puts another' -d "$work/t" queries train -o "$work/odd"
ok 'unless that is meant' train_to 5 odd -e gqe --fresh
# a head that says a gigabyte over a small body: refused before anything is allocated
cat >"$work/swollen.py" <<'PY'
import hashlib, json, resource, subprocess, sys
fkge, folder, questions, path = sys.argv[1:]
b = open(path, "rb").read()
n = int.from_bytes(b[8:16], sys.byteorder)
head = json.loads(b[16:16 + n])
head["dim"] = 4096
text = json.dumps(head).encode()
b = b[:8] + len(text).to_bytes(8, sys.byteorder) + text + b[16 + n:-32]
open(path + ".swollen", "wb").write(b + hashlib.blake2b(b, digest_size=32).digest())
r = subprocess.run([fkge, "-d", folder, "query", "--batch", questions, "--evaluate", "--encoder", path + ".swollen"],
                   capture_output=True, text=True)
print(r.stderr)
assert r.returncode == 4 and "bytes of tables" in r.stderr, r
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 600000, "memory"
PY
ok 'nor a head that promises more than there is' python3 "$work/swollen.py" "$fkge" "$work/t" "$work/all" "$work/q2p"
digests() { # of the graph and of the file, in words and for programs
	run -d "$work/t" query --batch "$work/all" --evaluate --encoder "$work/gqe"
	cp "$out" "$work/words"
	run -d "$work/t" query --batch "$work/all" --evaluate --encoder "$work/gqe" --json
	python3 - "$work/words" "$out" "$work/all" <<'PY'
import hashlib, json, sys
words, j = open(sys.argv[1]).read().splitlines(), json.load(open(sys.argv[2]))
file = hashlib.blake2b(open(sys.argv[3], "rb").read(), digest_size=32).hexdigest()
sys.exit(not (j["file_digest"] == file and words[0] == "graph     digest " + j["graph"][:32] and
	      words[1] == f"queries   digest {file[:32]}, {sys.argv[3]}"))
PY
}
ok 'figures begin with what they are of' digests
piped() { # what has been read of a pipe is gone: no digest, and the same figures
	cp "$out" "$work/of-file"
	cat "$work/all" | "$fkge" -d "$work/t" query --batch /dev/stdin --evaluate --encoder "$work/gqe" --json >"$out" &&
		python3 - "$work/of-file" "$out" <<'PY'
import json, sys
file, pipe = (json.load(open(f)) for f in sys.argv[1:])
sys.exit(not (pipe["file_digest"] is None and pipe["file"] == "/dev/stdin" and pipe["mean"] == file["mean"]))
PY
}
ok 'of a pipe there is no digest' piped
ok 'of another graph it says so' says 4 'another graph' -d "$work/a" query --batch "$work/all" --evaluate --encoder "$work/gqe"
printf x >>"$work/gqe"
ok 'a damaged one is refused' says 4 'damaged' -d "$work/t" query --batch "$work/all" --evaluate --encoder "$work/gqe"

# ---- queries federate ----
ok 'help of queries federate has an example' prints Example queries federate --help
ok 'one graph is no federation' says 2 'two graphs' queries federate "$work/g"
federate() { # ARM ARGS...: figures without what differs between arms into $work/ARM
	arm=$1
	shift
	run queries federate "$work/r3/0" "$work/r3/1" "$work/r3/2" --arm "$arm" --dim 8 --lr 0.02 --batch 64 --rounds 4 \
		--round-steps 5 --look-every 2 --count 20 --valid-count 3 --test-count 3 --cross-count 3 --json "$@"
	cp "$out" "$work/$arm"
	[ "$status" -eq 0 ]
}
for arm in local central fede fedr fedcqa; do ok "owners: $arm" federate $arm; done
cp "$work/fedcqa" "$work/before"
ok 'the same again' federate fedcqa -e gqe
ok 'the same figures' cmp "$work/fedcqa" "$work/before"
cat >"$work/arms.py" <<'PY'
import json, sys
r = {a: json.load(open(f"{sys.argv[1]}/{a}")) for a in ("local", "central", "fede", "fedr", "fedcqa")}
for a, x in r.items():
    assert ("cross_graph" in x) == (a in ("central", "fede", "fedcqa")), a
    assert (x["bytes"] > 0) == (a.startswith("fed")), a
    assert len(x["members"]) == 3 and x["rounds"] == 4 and 0 < x["in_graph"]["mrr"] < 1, a
# masks cancel: FedCQA's rows are FedE's, but for the rounding of 2^-18
assert abs(r["fede"]["in_graph"]["mrr"] - r["fedcqa"]["in_graph"]["mrr"]) < 0.01
assert abs(r["fede"]["cross_graph"]["mrr"] - r["fedcqa"]["cross_graph"]["mrr"]) < 0.01
assert r["local"]["in_graph"]["mrr"] != r["fede"]["in_graph"]["mrr"]
c = r["central"]
assert c["train_queries"] > 0 and not any("train_queries" in m for m in c["members"])
assert all(m["train_queries"] > 0 for m in r["local"]["members"])
assert [c["settings"][k] for k in ("count", "valid_count", "test_count", "cross_count")] == [20, 3, 3, 3]
PY
ok 'masks change nothing, and who is alone cannot ask across' python3 "$work/arms.py" "$work"

ok 'no query across: no figures of any' federate central --cross-count 0
ok 'and none are said' [ "$(python3 -c 'import json, sys; print("cross_graph" in json.load(open(sys.argv[1])))' "$out")" = False ]
# walks over train have two answers each, those of valid and test one
for k in 0 1; do
	mkdir "$work/two$k"
	for h in a b; do for t in x y; do printf '%s\tp%s\t%s\n' $h $k $t; done; done >"$work/two$k/train.tsv"
	printf 'a\tq%s\tx\nb\tq%s\ty\n' $k $k >"$work/two$k/valid.tsv"
	printf 'a\ts%s\tx\nb\ts%s\ty\n' $k $k >"$work/two$k/test.tsv"
done
ok 'nothing to train on together is said' says 4 'give no queries' queries federate "$work/two0" "$work/two1" --arm central \
	--answers 1 --dim 8

ok 'a query is wanted' says 2 'a query is wanted' -d "$work/a" query
ok 'what is evaluated is not known' says 2 'all has the triples of test' -d "$work/a" query --batch "$work/q" --evaluate --known all
ok 'and one alone' says 2 'a query is wanted' -d "$work/a" query -f "$work/q.rq" 'SELECT ?x { ?x <treats> <fever> }'
finish
