#!/bin/sh
# Forgetting triples: what is refused, what is left in the folder, the receipt.
. "$(dirname "$0")/lib.sh"

end() { # NAME: stop it and wait for its end
	run -d "$work/$1" stop
	eval "wait_for '$1 has ended' ended \$pid_$1"
}

agent a 1 || exit 1
a=$work/a
# zebra-7f and its relation are in one triple alone
printf 'e3\tkeeps-7f\tzebra-7f\n' >>"$work/a.tsv"
ok 'import' exits 0 -d "$a" import "$work/a.tsv" --replace --valid 0.05 --test 0.05
sed -i 's/^model: .*/model: {kind: rotate, dim: 32, gamma: 6}/; s/epochs: 20, eval_every: 10/epochs: 120, eval_every: 40/; s/negatives: 8/negatives: 16/' "$a/agent.yaml"
ok 'train' exits 0 -d "$a" train
ok 'save' exits 0 -d "$a" checkpoint save
printf 'x zebra-7f x' >"$a/store.db.v3.bak"
printf 'x zebra-7f x' >"$a/training.state"
printf 'x zebra-7f x' >"$a/training.state.4711.tmp" # of a kill -9 while it was written
mkdir "$a/tune"
printf 'x zebra-7f x' >"$a/tune/trial-1.state"

# the last triple, and five of train whose names stay
run -d "$a" export "$work/ex" --triples
{ grep zebra "$work/ex/train.tsv"; grep -v zebra "$work/ex/train.tsv" | head -5; } >"$work/forget.tsv"
ok 'six triples' [ "$(wc -l <"$work/forget.tsv")" -eq 6 ]
files_with() { grep -rlaF -- "$1" "$a" | wc -l; }
ok 'their names are in the folder' [ "$(files_with zebra-7f)" -ge 4 ]

# ---- refusals, after which all is as it was ----
digest() { run -d "$a" checkpoint list --json; member "$out" checkpoints 0 digest; }
before=$(digest)
{ cat "$work/forget.tsv"; printf 'e1\tnext\te50\nnobody\tnext\te1\n'; } >"$work/strange.tsv"
ok 'strangers are refused by line' says 4 'strange.tsv:7, ' -d "$a" unlearn "$work/strange.tsv"
ok 'both of them' grep -q 'strange.tsv:8' "$err"
ok 'no such file' exits 4 -d "$a" unlearn "$work/none.tsv"
cat "$work/ex/train.tsv" >"$work/all.tsv"
ok 'everything is too much' says 4 'nothing would be left' -d "$a" unlearn "$work/all.tsv"
ok 'no place for the receipt' says 1 'nowhere' -d "$a" unlearn "$work/forget.tsv" --receipt "$work/nowhere/r.json"
ok 'no file at all' exits 2 -d "$a" unlearn
start a
ok 'not under a running agent' says 9 'fkge -d' -d "$a" unlearn "$work/forget.tsv"
end a
ok 'nothing was changed' [ "$(files_with zebra-7f)" -ge 4 ]

# ---- forgetting ----
before=$(digest)
ok 'unlearn' exits 0 -d "$a" unlearn "$work/forget.tsv" --retrain --receipt "$work/r.json" --json
cp "$out" "$work/result.json"
ok 'no file of the folder has the names' [ "$(files_with zebra-7f)" -eq 0 ]
ok 'nor the relation' [ "$(files_with keeps-7f)" -eq 0 ]
ok 'six are signed for' [ "$(member "$work/r.json" set triples)" -eq 6 ]
ok 'the files that went are named' grep -q 'trial-1.state' "$work/result.json"
ok 'one state is left, another one' [ "$(digest)" != "$before" ]
ok 'and no other' [ "$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["checkpoints"]))' "$out")" -eq 1 ]
run -d "$a" export "$work/ex2" --triples
names() { cat "$work/$1"/*.tsv | cut -f1,3 | tr '\t' '\n' | sort -u | wc -l; }
ok 'names that went are counted' [ "$(member "$work/r.json" graph entities_removed)" -eq $(($(names ex) - $(names ex2))) ]
ok 'zebra-7f among them' [ "$(names ex2)" -lt "$(names ex)" ]
ok 'its relation too' [ "$(member "$work/r.json" graph relations_removed)" -eq 1 ]
in_both() { cat "$work"/ex2/*.tsv | grep -cxFf "$work/forget.tsv"; }
ok 'the graph has none of them' [ "$(in_both)" -eq 0 ]
ok 'and all others' [ "$(cat "$work"/ex2/*.tsv | wc -l)" -eq $(($(cat "$work"/ex/*.tsv | wc -l) - 6)) ]
python3 - "$work/r.json" >"$work/judged" <<'PY'
import json, sys
f = json.load(open(sys.argv[1]))["figures"]
b, a, r = f["before"], f["after"], f["retrained"]
print("worse" if a["forgotten"]["mrr"] < 0.6 * b["forgotten"]["mrr"] else "kept")
print("holds" if a["test"]["mrr"] > 0.5 * b["test"]["mrr"] else "lost")
anew = r["forgotten"]["mrr"] < 0.6 * b["forgotten"]["mrr"] and r["test"]["mrr"] > 0.5 * b["test"]["mrr"]
print("anew" if anew else "none")
PY
ok 'forgotten triples rank worse, test holds, also in tables that never saw them' [ "$(tr '\n' ' ' <"$work/judged")" = 'worse holds anew ' ]

# ---- the receipt ----
ok 'its signature fits' prints 'the signature fits' unlearn --verify "$work/r.json"
ok 'it is about this set' prints 'it is about the triples' unlearn --verify "$work/r.json" "$work/forget.tsv"
sort -r "$work/forget.tsv" >"$work/shuffled.tsv"
ok 'in any order' prints 'it is about the triples' unlearn --verify "$work/r.json" "$work/shuffled.tsv"
head -5 "$work/forget.tsv" >"$work/five.tsv"
ok 'and no other' says 4 'not the triples' unlearn --verify "$work/r.json" "$work/five.tsv"
sed 's/"relations_removed": 1/"relations_removed": 0/' "$work/r.json" >"$work/changed.json"
ok 'a changed one is found out' says 6 'does not fit' unlearn --verify "$work/changed.json"
ok 'what is none' says 4 'no receipt' unlearn --verify "$work/result.json"
ok 'once is enough' says 4 '6 triples are not in the graph' -d "$a" unlearn "$work/forget.tsv"

# ---- an end between the transaction and the receipt's file ----
# Its unfinished file is a pipe that nobody reads: the process stands still before the renaming.
cp -r "$a" "$work/k"
run -d "$work/k" export "$work/ex4" --triples
head -3 "$work/ex4/train.tsv" >"$work/killed.tsv"
sh -c 'mkfifo "$3/k.json.$$.tmp"; exec "$1" -d "$2" unlearn "$3/killed.tsv" --epochs 1 --decay 1 --receipt "$3/k.json"' \
	sh "$fkge" "$work/k" "$work" >"$work/k.log" 2>&1 &
killed=$!
pids="$pids $killed"
triples() { rm -rf "$work/ex5"; run -d "$1" export "$work/ex5" --triples && cat "$work"/ex5/*.tsv | wc -l; }
left=$(($(cat "$work"/ex4/*.tsv | wc -l) - 3))
forgets() { [ "$(triples "$work/k")" -eq $left ]; }
ok 'the store has forgotten' wait_for 'the transaction' forgets
kill -9 $killed
wait $killed 2>/dev/null
ok 'no receipt yet' [ -z "$(ls "$work/k.json" "$work"/k/unlearn-*.json 2>/dev/null)" ]
ok 'they are forgotten' says 4 '3 triples are not in the graph' -d "$work/k" unlearn "$work/killed.tsv"
ok 'and the receipt is there' prints 'it is about the triples' unlearn --verify "$work"/k/unlearn-*.json "$work/killed.tsv"
rm "$work"/k/unlearn-*.json
ok 'once' exits 0 -d "$work/k" checkpoint save
ok 'and no second time' [ -z "$(ls "$work"/k/unlearn-*.json 2>/dev/null)" ]
# a place that is there and cannot be written: no name is left for the unfinished file
head -1 "$work/ex5/train.tsv" >"$work/one.tsv"
long=$work/$(python3 -c 'print("r" * 250)').json
ok 'no file of such a name' says 1 'the receipt is kept' -d "$work/k" unlearn "$work/one.tsv" --epochs 1 --decay 1 --receipt "$long"
ok 'the next command' exits 0 -d "$work/k" checkpoint save
ok 'has put it into the folder' prints 'it is about the triples' unlearn --verify "$work"/k/unlearn-*.json "$work/one.tsv"

# ---- life goes on ----
ok 'eval' exits 0 -d "$a" eval --json
# not to the last digit: names that went were among the candidates when the receipt was written
near() { python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - float(sys.argv[2])) > 0.1)' "$@"; }
ok 'the tables are those of the receipt' near "$(member "$out" metrics mrr)" "$(member "$work/r.json" figures after test mrr)"
ok 'train' exits 0 -d "$a" train --epochs 10
ok 'the agent starts' start a
ok 'and stops' end a

# ---- without tables, and while another program reads the store ----
python3 - "$a/store.db" "$work/reads" <<'PY' &
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute("BEGIN")
db.execute("SELECT count(*) FROM info").fetchone()
open(sys.argv[2], "w").write("reads")
time.sleep(600)
PY
reader=$!
pids="$pids $reader"
ok 'another program reads' wait_for 'the reader' test -s "$work/reads"
ok 'what was deleted is not overwritten yet' says 9 'another program reads it' -d "$a" unlearn --drop-tables "$work/ex2/valid.tsv"
ok 'the receipt is in the folder' prints 'it is about the triples' unlearn --verify "$a"/unlearn-*.json "$work/ex2/valid.tsv"
kill "$reader"
wait "$reader"
ok 'drop the tables' prints 'train anew' -d "$a" unlearn --drop-tables "$work/ex2/test.tsv"
ok 'none are left' says 1 'no embeddings yet' -d "$a" eval
finish
