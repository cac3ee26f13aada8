#!/bin/sh
# align: pairs of graphs' names into alias files that import reads; import --alias --match.
. "$(dirname "$0")/lib.sh"

has() { # KEY VALUE ...: the result has those
	while [ $# -ge 2 ]; do
		grep -q "\"$1\": $2,\{0,1\}$" "$out" || return 1
		shift 2
	done
}

ok 'help has an example' prints Example align --help

# ---- pairs ----
mkdir "$work/pairs"
printf 'x\ty\nX\tY\n' >"$work/pairs/a-b.tsv"
printf 'z\ty\nZ\tY\n' | gzip >"$work/pairs/c-b.tsv.gz"
ok 'wants pairs and a folder' says 2 'are needed' align "$work/pairs"
ok 'a folder of pairs' exits 0 align "$work/pairs" -o "$work/n" --json
ok 'is counted' has lines 4 pairs 4 classes 2 conflicts 0
ok 'graph by graph' [ "$(member "$out" graphs 2 name) $(member "$out" graphs 2 names) $(member "$out" graphs 2 aliases)" = 'c 2 2' ]
printf 'Z\tshared:a:X\nz\tshared:a:x\n' >"$work/want"
ok 'the names are shared' cmp "$work/want" "$work/n/c.tsv"
ok 'not into that folder again' says 1 'holds aliases already' align "$work/pairs" -o "$work/n"
cp -r "$work/n" "$work/cut"
mkdir "$work/cut/new.part"
printf -- '-a.tsv\0-b.tsv\0-c.tsv\0' >"$work/cut/new.part/stage.list" # as one that is killed before c is there
mv "$work/cut/c.tsv" "$work/cut/new.part/"
echo other >"$work/cut/a.tsv"
ok 'a run that was killed between two files is undone' exits 0 align "$work/pairs" -o "$work/cut"
ok 'and all is there anew' diff -r "$work/n" "$work/cut"
tac "$work/pairs/a-b.tsv" | awk -F'\t' '{ print $2 "\t" $1 }' >"$work/links"
ok 'in another order, with graphs said' exits 0 -q align "$work/pairs/c-b.tsv.gz" "b:a=$work/links" -o "$work/n2"
ok 'the same names' diff -r "$work/n" "$work/n2"
mkdir "$work/ends" && cp "$work/links" "$work/ends/b-a.txt" && zstd -q "$work/pairs/a-b.tsv" -o "$work/ends/a-b.tsv.zst"
gzip -dc "$work/pairs/c-b.tsv.gz" >"$work/ends/c-b.tsv" && echo 'no pairs' >"$work/ends/.hidden"
ok 'with other ends, one pair twice' prints '2 things from 4 pairs in 6 lines; 0 conflicts, 0 pairs left out' align "$work/ends" -o "$work/n4"
ok 'the same names again' diff -r "$work/n" "$work/n4"
ok 'which graphs?' says 2 "say A:B=$work/links" align "$work/links" -o "$work/n3"
ok 'a graph with itself' says 2 "pairs of 'a' with itself" align "a:a=$work/links" -o "$work/n3"
ok 'a graph with a bad name' says 2 "'..' is no name" align "..:a=$work/links" -o "$work/n3"
ok 'no such file' says 4 nowhere align "$work/nowhere" -o "$work/n3"
printf 'x\ty\nx\n' >"$work/p-q.tsv"
ok 'bad input: file and line' says 4 'p-q.tsv:2: 1 column' align "$work/p-q.tsv" -o "$work/n3"
mkdir "$work/empty"
ok 'a folder without pairs' says 4 'no file of pairs' align "$work/empty" -o "$work/n3"
ok 'no order, so no first' says 2 'here no order counts' align "$work/pairs" -o "$work/n3" --match first

# of q's names one line has no room
mkdir "$work/few" && awk 'BEGIN { for (i = 0; i < 3000; i++) print "x" i "\ty" i "-of-q-which-are-much-longer" }' >"$work/few/p-q.tsv"
ok 'names without room' eval '! (ulimit -f 200; exec "$fkge" align "$work/few" -o "$work/n3" >"$out" 2>"$err")'
ok 'are told' grep -q 'q.tsv: cannot write: File too large' "$err"
ok 'and nothing of them is there' [ ! -e "$work/n3" ]

# ---- conflicts ----
printf 'q\tz\n' >"$work/pairs/a-c.tsv"
ok 'conflicts are refused' says 4 "1 conflict as above" -q align "$work/pairs" -o "$work/n3"
ok 'with the pairs that lead there' grep -q "two of a are one: q = c:z ($work/pairs/a-c.tsv:1) = b:y ($work/pairs/c-b.tsv.gz:1) = a:x ($work/pairs/a-b.tsv:1)" "$err"
ok 'nothing is written' [ ! -e "$work/n3" ]
ok 'for programs, too' exits 4 align "$work/pairs" -o "$work/n3" --json
ok 'they are listed' [ "$(member "$out" conflict_lines 0 | cut -d: -f1)" = 'two of a are one' ]
awk 'BEGIN { for (i = 0; i < 23; i++) print "x" i "\ty" i "\nz" i "\ty" i }' >"$work/many-b.tsv"
ok 'of many' exits 4 align "$work/many-b.tsv" -o "$work/n3"
ok 'the first are told' [ "$(grep -c '^two of many are one' "$err")" -eq 20 ]
ok 'and how many more there are' grep -qx '... and 3 more' "$err"
ok 'unique leaves the thing out' exits 0 align "$work/pairs" -o "$work/u" --match unique
ok 'that alone' [ "$(cat "$work/u"/?.tsv | wc -l)" -eq 3 ]
ok 'best leaves a pair out' exits 0 align "$work/pairs" -o "$work/best" --match best --json
ok 'which is counted' has pairs_left_out 1
printf 'Z\tshared:a:X\nz\tshared:a:q\n' >"$work/want"
ok 'of equal ones by the names' cmp "$work/want" "$work/best/c.tsv"

# ---- into an agent ----
printf 'x\tr\tX\nX\tr\tq\nq\tr\tx\nx\tr\tq\nX\tr\tx\n' >"$work/g.tsv"
run -q -d "$work/agent" init
run -q -d "$work/agent" import "$work/g.tsv"
ok 'import reads it' exits 0 -d "$work/agent" import --alias "$work/n/a.tsv" --json
ok 'all of it' has entities 2 clashes 0 shadowed 0
printf 'x\tA\nx\tB\nq\tA\nX\tx\nr\tA\nr\tB\n' >"$work/many"
ok 'names with two partners are refused' says 4 "$work/many: 3 lines as above" -q -d "$work/agent" import --alias "$work/many"
ok 'all at once' [ "$(grep -c "^$work/many:[236]: " "$err")" -eq 3 ]
ok 'first' exits 0 -d "$work/agent" import --alias --match first "$work/many" --json
ok 'the first pairs count' has entities 2 relations 1 clashes 3
ok 'unique' exits 0 -d "$work/agent" import --alias --match unique "$work/many" --json
ok 'undisputed pairs count' has entities 1 relations 0 shadowed 1
ok 'an alias that is an own name is said' says 0 'own names of something else' -d "$work/agent" import --alias --match unique "$work/many"
printf 'x\tA\nx\tB\n' >"$work/both"
ok 'unique may leave nothing' says 4 '--match leaves out every line' -d "$work/agent" import --alias --match unique "$work/both"
ok 'best wants a score' says 4 "$work/many:1: no third column" -d "$work/agent" import --alias --match best "$work/many"
sed 's/$/\t1/; 2s/1$/2/' "$work/many" >"$work/scored"
ok 'best' prints 'aliases for 3 entities and 1 relations' -d "$work/agent" import --alias --match best "$work/scored"
ok 'match goes with alias' says 2 'go with --alias' -d "$work/agent" import --match best "$work/g.tsv"
finish
