#!/bin/sh
# RDF at the command line: prefixes, labels, predictions as triples.
. "$(dirname "$0")/lib.sh"

a=$work/a
ok 'an agent' exits 0 -d "$a" init --name a --listen 127.0.0.1:0
fk() { run -d "$a" "$@"; }
cat >"$work/g.ttl" <<'TTL'
@prefix e: <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:a e:p e:b , e:c , e:d . e:b e:p e:c , e:d . e:c e:p e:d . e:d e:q e:a , e:b . e:b e:q e:a .
e:α e:p <http://e.org/x/y> , "l \"q\"\n"@en . <http://e.org/x/y> e:q e:α .
e:a rdfs:label "Ahasver"@en , "Aa"@de , "A" . e:b rdfs:label "Be" , "Bee"@en-GB . e:q rdfs:label "asks" .
e:c rdfs:label "nur deutsch"@de . e:gone rdfs:label "in no triple"@en .
e:d rdfs:label """two
lines"""@en .
TTL
take() { exits 0 -d "$a" import --replace --valid 0.2 --test 0 "$work/g.ttl" "$@"; }

# ---- prefixes ----
ok 'no IRI' says 2 'an IRI is wanted behind the =' -d "$a" import "$work/g.ttl" -p e=e
ok 'no =' says 2 "PREFIX=IRI is wanted" -d "$a" import "$work/g.ttl" -p http://e.org/
ok 'no prefix' says 2 'begins with a letter' -d "$a" import "$work/g.ttl" -p '_=http://e.org/'
ok 'one prefix, two IRIs' says 2 'there twice' -d "$a" import "$work/g.ttl" -p e=http://e.org/ -p e=http://f.org/
ok 'not with --alias' says 2 'toward one peer' -d "$a" import --alias "$work/g.ttl" -p e=http://e.org/ --peer x
ok 'with prefixes' take -p e=http://e.org/ --prefix ex:=http://e.org/x/ --labels en --keep-literals --json
ok 'they are counted' [ "$(member "$out" prefixes) $(member "$out" labels)" = '2 4' ]
sed -i 's/dim: 128/dim: 8/; s/epochs: 100 /epochs: 1 /' "$a/agent.yaml"
ok 'train' exits 0 -d "$a" train
ok 'a name with a prefix' exits 0 -d "$a" predict e:a e:p '?' -a -k 20
ok 'answers have it' grep -q '  e:c  (known)' "$out"
ok 'and their labels' grep -q '  e:b  "Bee"  (known)' "$out"
ok 'the longer IRI goes first' grep -q ' ex:y$' "$out"
ok 'other alphabets' grep -q ' e:α$' "$out"
ok 'a line end in a label is none here' grep -q 'e:d  "two?lines"  (known)' "$out"
ok 'another language is not shown' [ "$(grep -c deutsch "$out")" = 0 ]
ok 'whole names still' exits 0 -d "$a" predict http://e.org/a http://e.org/p '?'
ok 'for programs whole names, and labels' exits 0 -d "$a" predict e:d e:q '?' -a -k 20 --json
labelled() {
	python3 - "$out" <<'PY'
import json, sys
x = {a['name']: a.get('label') for a in json.load(open(sys.argv[1]))['answers']}
sys.exit(not (x['http://e.org/a'] == 'Ahasver' and x['http://e.org/c'] is None))
PY
}
ok 'so' labelled
ok 'an unknown prefix' says 1 "no entity 'f:a'" -d "$a" predict f:a e:p '?'
printf 'e:a\te:p\t?\n' >"$work/questions"
ok 'a batch' prints "$(printf 'e:a\te:p\te:')" -d "$a" predict --batch "$work/questions" -a
ok 'similar' prints 'e:a  "Ahasver"' -d "$a" similar e:b -k 20
ok 'a relation' prints 'e:q  "asks"' -d "$a" similar e:p --relations
ok 'a query needs no PREFIX' prints 'e:b  "Bee"  (known)' -d "$a" query 'SELECT ?x { e:a e:p ?x }' -k 20
ok 'exactly, too' prints 'e:b  "Bee"' -d "$a" query --exact 'SELECT ?x { e:a e:p ?x }'
ok 'its own PREFIX goes first' says 1 'http://f.org/a' -d "$a" query 'PREFIX e: <http://f.org/> SELECT ?x { e:a e:p ?x }'
ok 'why' prints '  e:a  e:p  e:b  1.0000  known' -d "$a" query --explain 'SELECT ?x { e:a e:p ?x }'

# ---- predictions as triples ----
rdf() { # KIND FILE COMMAND...: fkge's triples into FILE
	kind=$1 file=$2
	shift 2
	exits 0 -d "$a" "$@" --format "$kind" && cp "$out" "$work/$file"
}
printf '?\te:q\te:a\ne:a\t?\te:α\n?\te:p\thttp://e.org/x/y\ne:α\te:p\t?\n' >"$work/asked"
ok 'answers as N-Triples' rdf ntriples p.nt predict --batch "$work/asked" -a -k 20
ok 'and as RDF-star' rdf rdf-star p.star predict --batch "$work/asked" -a -k 20
ok 'one question' rdf ntriples one.nt predict e:a e:q '?'
ok 'of a query the predicted edges' rdf rdf-star q.star query 'SELECT ?x { e:a e:q/e:p ?x }' -k 5
relations_of() { sed -E 's/^<< [^ ]+ <[^>]*\/([^>]*)> .*/\1/' "$1" | sort -u | tr '\n' ' '; }
ok 'of what must not be' rdf rdf-star not.star query 'SELECT ?x { e:a e:q ?x FILTER NOT EXISTS { ?x e:p e:α } }' -k 5
ok 'nothing is said' [ "$(relations_of "$work/not.star")" = 'q ' ]
either='SELECT ?x { { e:a e:p ?x } UNION { e:a e:q ?x } }'
ok 'of two branches' rdf rdf-star one.star query "$either" -k 3
ok 'nothing where a known edge suffices' [ ! -s "$work/one.star" ]
ok 'of others, too' rdf rdf-star or.star query "$either" -k 20
ok 'one edge for each answer' eval '[ -s "$work/or.star" ] && [ -z "$(cut -d " " -f 4 "$work/or.star" | sort | uniq -d)" ]'
ok 'not with --json' says 2 'leave out one' -d "$a" predict e:a e:q '?' --json --format ntriples
ok 'nor what is not predicted' says 2 'leave out --exact' -d "$a" query --exact 'SELECT ?x { e:a e:q ?x }' --format ntriples
compare() { # both say the same triples with the same truths; what is known has 1
	python3 - "$work" <<'PY'
import re, sys
def lines(name): return open(sys.argv[1] + '/' + name, encoding='utf-8').read().splitlines()
term = r'(<[^<>"{}|^`\\ ]*>|_:\w[\w.-]*|"(?:[^"\\\n]|\\[tnr"\\]|\\u[0-9A-F]{4})*"(?:@[\w-]+|\^\^<[^ ]*>)?)'
number = r'"([01]\.\d{6})"\^\^<http://www.w3.org/2001/XMLSchema#decimal>'
def star(name):
    found = {}
    for l in lines(name):
        m = re.fullmatch(f'<< {term} {term} {term} >> <urn:fkge:truth> {number} \\.', l)
        assert m[1][0] != '"', l
        found[m.groups()[:3]] = float(m[4])
    return found
def plain(name):
    said, about = [], {}
    for l in lines(name):
        m = re.fullmatch(f'{term} {term} {term} \\.', l)
        if m[1].startswith('_:t'):
            about.setdefault(m[1], {})[re.split('[#:]', m[2][1:-1])[-1]] = m[3]
        else:
            said.append(m.groups())
    found = {(a['subject'], a['predicate'], a['object']): float(re.match(number, a['truth'])[1])
             for a in about.values()}
    assert sorted(found) == sorted(said) and len(said) > 15
    return found
a, b = star('p.star'), plain('p.nt')
assert a == b, (a, b)
assert a['<http://e.org/b>', '<http://e.org/q>', '<http://e.org/a>'] == 1
assert any(t < 1 for t in a.values()) and any(o == r'"l \"q\"\n"@en' for s, p, o in a)
edges = star('q.star')
assert edges and all(p in ('<http://e.org/q>', '<http://e.org/p>') and t < 1 for (s, p, o), t in edges.items())
PY
}
ok 'both are well formed and say the same' compare
ok 'what RDF cannot say is counted' says 0 '1 triples are left out' -d "$a" predict '?' e:q e:a -k 20 --format rdf-star
if command -v rapper >/dev/null; then
	ok 'Raptor reads it' rapper -q -c -i ntriples "$work/p.nt"
fi
b=$work/b
ok 'another agent' exits 0 -d "$b" init --name b --listen off
ok 'takes the triples alone in' exits 0 -d "$b" import "$work/p.nt" --drop-blank-nodes --keep-literals --valid 0 --test 0
ok 'as TSV' exits 0 -d "$b" export --triples "$work/b.tsv"
back() { # the same triples, their names as the graph had them
	grep -v '^_:t' "$work/p.nt" | sed 's/^<\([^>]*\)> <\([^>]*\)> \(.*\) \.$/\1\t\2\t\3/; s/\t<\([^>]*\)>$/\t\1/' | sort >"$work/want"
	sort "$work/b.tsv/train.tsv" | cmp - "$work/want"
}
ok 'and has the same names' back

# ---- names that are no IRIs ----
printf 'a b\tr/s\t"q\nNote: x\tr/s\ta b\n_:x@1\tr/s\t100%%\né\tr/s\tNote: x\na b\tr/s\té\ntruth\tr/s\ta b\na b\tr/s\ttruth\n' >"$work/odd.tsv"
for name in 'x 1' x.1 x_ x. é× é.; do printf '_:%s\tr/s\ta b\na b\tr/s\t_:%s\n' "$name" "$name"; done >>"$work/odd.tsv"
cp "$a/agent.yaml" "$b/agent.yaml"
ok 'names of TSV' exits 0 -d "$b" import --replace "$work/odd.tsv" --valid 0.2 --test 0
ok 'train' exits 0 -d "$b" train
run -d "$b" predict '?' r/s 'a b' -a -k 99 --format ntriples
cp "$out" "$work/odd.nt"
ok 'a space' grep -q '^<urn:fkge:Note%3A%20x> <urn:fkge:r%2Fs> <urn:fkge:a%20b> \.$' "$work/odd.nt"
ok 'a quote' grep -q '^<urn:fkge:%22q> ' "$work/odd.nt"
ok 'a blank node' grep -q '^_:nx.1 ' "$work/odd.nt"
ok 'none is another' [ "$(grep -c '^_:n.* <urn:fkge:r%2Fs> ' "$work/odd.nt")" -eq 7 ]
ok 'another alphabet' grep -q '^<urn:fkge:é> ' "$work/odd.nt"
ok 'percent' grep -q '^<urn:fkge:100%25> ' "$work/odd.nt"
ok 'what stands for a truth is no name' grep -q '^<urn:fkge:name:truth> <urn:fkge:r%2Fs> ' "$work/odd.nt"
ok 'all of it can be read' exits 0 -d "$b" import --replace "$work/odd.nt"
# a name, and the IRI that stands for it: one of them in the place of a relation
clash() { # NAME IRI
	for h in "$1" b c d; do for t in b c d; do printf '%s\tr\t%s\n%s\t%s\t%s\n' "$h" $t $t "$2" "$h"; done; done >"$work/clash.tsv"
	"$fkge" -q -d "$b" import --replace "$work/clash.tsv" --valid 0.2 --test 0 >/dev/null
	"$fkge" -q -d "$b" train --fresh --epochs 1 >/dev/null
	says 4 "'$1' and '$2'" -d "$b" predict b r '?' --format ntriples &&
		says 4 "'$1' and '$2'" -d "$b" query --format rdf-star 'SELECT ?x { b r ?x }'
}
ok 'two names of one IRI are said' clash 'a%b' urn:fkge:a%25b
ok 'also for truth' clash truth urn:fkge:name:truth
# names that begin as a term does, and are none
cat >"$work/near.tsv" <<'TSV'
http://e.org/a b	http://e.org/r{1}	"bad \q"
"t"@e1	http://e.org/r{1}	http://e.org/a b
"t"^^<int>	http://e.org/r{1}	http://e.org/a b
"\u00e9"@en-GB	http://e.org/r{1}	"\u00e"
"bad \q"	http://e.org/r{1}	"t"@e1
"\u00e"	http://e.org/r{1}	"t"^^<int>
http://e.org/a b	http://e.org/r{1}	"\u00e9"@en-GB
TSV
ok 'such names' exits 0 -d "$b" import --replace "$work/near.tsv" --valid 0.2 --test 0
ok 'train' exits 0 -d "$b" train --fresh
run -d "$b" predict 'http://e.org/a b' 'http://e.org/r{1}' '?' -a --format ntriples
cp "$out" "$work/near.nt"
ok 'an IRI with a space is none' grep -q '^<urn:fkge:http%3A%2F%2Fe.org%2Fa%20b> <urn:fkge:http%3A%2F%2Fe.org%2Fr%7B1%7D> ' "$work/near.nt"
ok 'a literal is one' grep -qF ' "\u00e9"@en-GB .' "$work/near.nt"
ok 'a broken escape makes none' grep -qF ' <urn:fkge:%22bad%20%5Cq%22> .' "$work/near.nt"
ok 'nor does a broken language' grep -qF ' <urn:fkge:%22t%22%40e1> .' "$work/near.nt"
ok 'nor a relative datatype' grep -qF ' <urn:fkge:%22t%22%5E%5E%3Cint%3E> .' "$work/near.nt"
ok 'all of it can be read, too' exits 0 -d "$b" import --replace "$work/near.nt" --keep-literals --drop-blank-nodes

# ---- what is forgotten has no label ----
printf 'http://e.org/d\thttp://e.org/q\thttp://e.org/a\nhttp://e.org/b\thttp://e.org/q\thttp://e.org/a\n' >"$work/out.tsv"
for t in b c d; do printf 'http://e.org/a\thttp://e.org/p\thttp://e.org/%s\n' "$t"; done >>"$work/out.tsv"
ok 'all of one entity is forgotten' exits 0 -d "$a" unlearn --drop-tables "$work/out.tsv"
ok 'its label too' [ "$(grep -c Ahasver "$a/store.db")" = 0 ]
ok 'others stay' prints 'e:d  "two?lines"' -d "$a" query --exact 'SELECT ?x { e:b e:p ?x }'
ok 'an import does not bring it back' take
ok 'and says so' grep -q '5 triples that fkge unlearn has taken out are left out' "$err"
ok 'but where that is meant' take --unlearned
ok 'imported without, names are whole' take
ok 'so' prints ' http://e.org/b' -d "$a" query --exact 'SELECT ?x { <http://e.org/a> <http://e.org/p> ?x }'
ok 'and prefixes none' says 2 'no PREFIX says' -d "$a" query 'SELECT ?x { e:a e:p ?x }'

# ---- blank nodes ----
for k in 1 2 3 4 5 6; do printf '_:x <urn:p> <urn:%s> .\n<urn:%s> <urn:p> _:b%s .\n' $k $k $k; done >"$work/blank.nt"
head -n 11 "$work/blank.nt" >"$work/less.nt"
ok 'two agents' exits 0 -d "$work/c" init --name c --listen off
run -d "$work/e" init --name e --listen off
nodes() { # AGENT FILE: the names of labelled nodes after its import, in $out
	run -d "$work/$1" import --replace --valid 0 --test 0 "$2" && rm -rf "$work/nodes" &&
		run -d "$work/$1" export --triples "$work/nodes" && grep -oh '_:[xb][^	]*' "$work/nodes/train.tsv" | sort -u >"$out"
}
ok 'blank nodes' nodes c "$work/blank.nt"
cp "$out" "$work/nodes.c"
ok 'each has its name' [ "$(wc -l <"$work/nodes.c")" = 7 ]
printf '_:x\tthing\n' | sed "s/_:x/$(tail -n 1 "$work/nodes.c")/" >"$work/alias.tsv"
ok 'one has an alias' prints 'aliases for 1 entities' -d "$work/c" import --alias "$work/alias.tsv"
ok 'a triple less' nodes c "$work/less.nt"
ok 'the others are called as before' eval 'comm -13 "$work/nodes.c" "$out" >"$work/new"; [ ! -s "$work/new" ] && [ "$(wc -l <"$out")" = 6 ]'
ok 'nobody else calls them so' eval 'nodes e "$work/blank.nt" && [ "$(comm -12 "$work/nodes.c" "$out" | wc -l)" = 0 ]'
printf '_:x <urn:p> <urn:2> .\n' >"$work/one.nt"
ok 'a triple of one is forgotten' exits 0 -d "$work/c" unlearn --drop-tables "$work/one.nt"
ok 'known again' says 0 '1 triple that fkge unlearn has taken out is left out' -d "$work/c" import --replace "$work/less.nt"
keyless() { # AGENT: its folder as an earlier fkge left it, without a key for blank nodes
	python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute("DELETE FROM meta WHERE key = \"blanks\"")' "$work/$1/store.db"
}
former() { # an agent l whose list of unlearned triples is an earlier fkge's: names by a hash of blank.nt
	mark=$(python3 -c 'import hashlib, sys
print(hashlib.blake2b(open(sys.argv[1], "rb").read(), digest_size=16).hexdigest()[:12])' "$work/blank.nt")
	rm -rf "$work/l"
	sed "s/ \.$//; s/_:[a-z0-9]*/&@$mark/g; s/[<>]//g; s/ /\t/g" "$work/blank.nt" >"$work/blank.tsv"
	grep "^_:x@$mark.urn:p.urn:[23]$" "$work/blank.tsv" >"$work/gone.tsv"
	run -d "$work/l" init --name l --listen off && import_l "$work/blank.tsv" &&
		run -d "$work/l" unlearn --drop-tables "$work/gone.tsv" && keyless l
}
import_l() { run -d "$work/l" import --replace --valid 0 --test 0 "$@"; }
left_out() { [ "$status" = 0 ] && grep -q "^$1 triples\? that fkge unlearn has taken out" "$err"; }
ok 'a list of before' former
ok 'no file brings its triples back unsaid' says 4 'less.nt: fkge unlearn has taken out 2 triples here when blank nodes had other' \
	-d "$work/l" import --replace "$work/less.nt"
printf 'urn:a\turn:p\turn:b\n' | cat "$work/gone.tsv" - >"$work/other.tsv"
ok 'names that are there are known' eval 'import_l "$work/other.tsv"; left_out 2'
ok 'and still no file' says 4 'other names' -d "$work/l" import --replace "$work/less.nt"
ok 'taken in where that is meant' eval 'import_l "$work/less.nt" --unlearned; [ "$status" = 0 ] && ! left_out 2'
ok 'and from then on' eval 'import_l "$work/less.nt"; [ "$status" = 0 ]'
printf '<urn:s> <urn:p> [ <urn:p> <urn:o> ] .\n' >"$work/place.ttl"
sed '$a <urn:s> <urn:p> [ <urn:p> <urn:o> ] .' "$work/less.nt" >"$work/running.ttl"
run -d "$work/e" import --replace --valid 0.2 --test 0 "$work/running.ttl"
start e
printf 'name: e\nlisten: off\ntrain: {filtered: false, shared_chunk: 0, dp: {epsilon: 8}}\n' >"$work/e/agent.yaml"
ok 'a running agent does not begin private training on it' says 2 'named by its place in the file (_:.' -d "$work/e" reload --restart
ok 'and goes on' exits 0 -d "$work/e" stop
ok 'a node without a label' exits 0 -d "$work/c" import --replace --valid 0 --test 0 "$work/place.ttl"
printf 'name: c\nlisten: off\ntrain: {filtered: false, shared_chunk: 0, dp: {epsilon: 8}}\n' >"$work/c/agent.yaml"
ok 'but not for private training' says 4 'place.ttl:1: a blank node without a label' -d "$work/c" import --replace --valid 0 --test 0 "$work/place.ttl"
printf 'name: c\nlisten: off\n' >"$work/c/agent.yaml"
run -d "$work/c" import --replace --valid 0 --test 0 "$work/place.ttl"
printf 'name: c\nlisten: off\ntrain: {filtered: false, shared_chunk: 0, dp: {epsilon: 8}}\n' >"$work/c/agent.yaml"
ok 'nor when that comes later' says 2 'named by its place in the file (_:.' -d "$work/c" train
ok 'is it served' says 2 'named by its place' -d "$work/c" serve --until-quiet 1
(cd "$work" && mkfifo pipe.ttl && cat place.ttl >pipe.ttl) &
ok 'through a pipe it is said, too' says 4 'without a label, which train.dp' -d "$work/c" import --replace --valid 0 --test 0 "$work/pipe.ttl"
for k in $(seq 40); do echo "_:x$k <urn:p$((k % 4))> <urn:$k> ."; done >"$work/whole.nt"
"$fkge" -q split "$work/whole.nt" --parts 2 --by relations -o "$work/part" >/dev/null
run -d "$work/c" import --replace --unlearned --valid 0 --test 0 "$work/part/0/train.tsv"
ok 'nor what split has named by a hash' says 2 'named by a hash of a file' -d "$work/c" train
ok 'labels are fine' nodes c "$work/less.nt"
run -d "$work/c" import --replace --valid 0.2 --test 0 "$work/less.nt"
ok 'names of an earlier fkge are not trained on privately' eval 'keyless c && says 2 "import --replace" -d "$work/c" train'
ok 'nor served' says 2 'named by a hash of a file' -d "$work/c" serve --until-quiet 1
run -d "$work/c" doctor
ok 'doctor says it' grep -q 'would not start: the graph has a blank node that is named by a hash' "$out"
run -d "$work/c" import --replace --unlearned --valid 0.2 --test 0 "$work/less.nt"
ok 'but after an import' exits 0 -d "$work/c" train
ok 'and exported' exits 0 -d "$work/c" export "$work/c.rows" --format tsv
ok 'but with names of before private tables are not' eval 'keyless c && says 2 "named by a hash of a file" -d "$work/c" export "$work/c.rows2" --format tsv'
ok 'nothing was written' [ ! -e "$work/c.rows2" ]
finish
