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
# of others that were killed so
for aside in training.state tune/trial-2.state tables.f32; do printf 'x zebra-7f x' >"$a/$aside.part"; done

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
{ printf 'head\trelation\ttail\n'; cat "$work/forget.tsv"; } >"$work/header.tsv"
ok 'a header is not passed over' says 4 'header.tsv:1; line 1 looks like a header' -d "$a" unlearn "$work/header.tsv"
ok 'no such file' exits 4 -d "$a" unlearn "$work/none.tsv"
cat "$work/ex/train.tsv" >"$work/all.tsv"
ok 'everything is too much' says 4 'nothing would be left' -d "$a" unlearn "$work/all.tsv"
ok 'no place for the receipt' says 1 'nowhere' -d "$a" unlearn "$work/forget.tsv" --receipt "$work/nowhere/r.json"
cp "$work/forget.tsv" "$work/forget.bak"
for other in "$a/store.db" "$a/identity.key" "$work/forget.tsv"; do
	ok "no receipt in place of ${other##*/}" says 1 'is there already' -d "$a" unlearn "$work/forget.tsv" --drop-tables --receipt "$other"
done
ok 'which is as it was' cmp "$work/forget.tsv" "$work/forget.bak"
ok 'no file at all' exits 2 -d "$a" unlearn
: >"$work/empty.tsv"
ok 'an empty one' says 4 'empty.tsv: no triples in it' -d "$a" unlearn "$work/empty.tsv"
ok 'quads, too' says 4 'no triples in it' -d "$a" unlearn --format trig "$work/empty.tsv"
start a
ok 'not under a running agent' says 1 'fkge -d' -d "$a" unlearn "$work/forget.tsv"
end a
ok 'nothing was changed' [ "$(files_with zebra-7f)" -ge 4 ]

# ---- a pass that moves nothing: it says so, and nothing is changed ----
cp -r "$a" "$work/f"
sed -i 's/lr: 0.02/lr: 1e-7/' "$work/f/agent.yaml"
f=$work/f
grep -v zebra "$work/forget.tsv" >"$work/weak.tsv"
digest_f() { run -d "$f" checkpoint list --json; member "$out" checkpoints 0 digest; }
kept=$(digest_f)
ok 'it did not forget' says 1 '--drop-tables' -d "$f" unlearn "$work/weak.tsv" --passes 2 --receipt "$work/f.json" --json
ok 'with --json too' [ "$(member "$out" exit)" -eq 1 ]
ok 'the receipt says that it did not' [ "$(member "$work/f.json" verdict reached)" = False ]
ok 'why' [ "$(member "$work/f.json" verdict verdict)" = remembered ]
ok 'after how much' [ "$(member "$work/f.json" verdict passes)" -eq 2 ]
ok 'by which figures' python3 -c 'import json, sys; f = json.load(open(sys.argv[1]))["verdict"]["local"]["after"]; sys.exit(not (f["mrr"] > 1.1 * f["reference_mrr"] and f["low"] <= f["difference"] <= f["high"]))' "$work/f.json"
ok 'it can be checked' prints 'NOT forgotten' unlearn --verify "$work/f.json" "$work/weak.tsv"
ok 'the tables are as they were' [ "$(digest_f)" = "$kept" ]
ok 'files are as they were' test -e "$f/training.state"
ok 'its receipt may be replaced' says 1 '--drop-tables' -d "$f" unlearn "$work/weak.tsv" --passes 1 --receipt "$work/f.json"
ok 'anyway' says 1 'train --fresh' -d "$f" unlearn "$work/weak.tsv" --passes 1 --anyway --receipt "$work/f2.json"
ok 'its receipt says both' [ "$(member "$work/f2.json" verdict reached) $(member "$work/f2.json" verdict applied)" = 'False True' ]
ok 'they are out of the graph' says 4 'triples are not in the graph' -d "$f" unlearn "$work/weak.tsv"
agent few 2
run -d "$work/few" import "$work/few.tsv" --replace --valid 0.02 --test 0.02
run -d "$work/few" train
run -d "$work/few" export "$work/exfew" --triples
head -5 "$work/exfew/train.tsv" >"$work/weak.tsv"
ok 'too few of valid: it offers what would do' says 1 '--retrain' -d "$work/few" unlearn "$work/weak.tsv"
cp -r "$work/few" "$work/stopped"
cp -r "$work/few" "$work/test"
head -1 "$work/exfew/test.tsv" >"$work/tested.tsv"
ok 'of a triple of test no rank is made up' prints 'forgotten (none to rank)' -d "$work/test" unlearn "$work/tested.tsv" --receipt "$work/t.json"
ok 'for the tables have learnt nothing but train' [ "$(member "$work/t.json" verdict verdict)" = not_trained ]
head -1 "$work/exfew/valid.tsv" >"$work/held.tsv"
ok 'nor the ones that are left then' prints 'nothing but that train' -d "$work/test" unlearn "$work/held.tsv"
# what was in train when the tables were trained is of test now: they have learnt it
cp -r "$a" "$work/moved"
run -d "$a" export "$work/exm" --triples
grep jump "$work/exm/train.tsv" | head -5 >"$work/moved.tsv"
cat "$work/moved.tsv" >>"$work/exm/test.tsv"
grep -vxFf "$work/moved.tsv" "$work/exm/train.tsv" >"$work/rest.tsv" && mv "$work/rest.tsv" "$work/exm/train.tsv"
ok 'the same names, another split' exits 0 -d "$work/moved" import "$work/exm" --replace
ok 'it is not known that they never learnt it' says 0 'the 5 triples of valid and test' -d "$work/moved" unlearn "$work/moved.tsv" --receipt "$work/m.json"
ok 'so they are unlearned' [ "$(member "$work/m.json" verdict reference asked) $(member "$work/m.json" set test)" = '5 5' ]
ok 'until they rank like unseen ones' python3 -c 'import json, sys; f = json.load(open(sys.argv[1]))["verdict"]["local"]; sys.exit(not (not f["before"]["like_unseen"] and f["after"]["like_unseen"]))' "$work/m.json"
# of tables that came from elsewhere nothing is known either, nor of what goes on from them
cp -r "$work/few" "$work/came"
sed 's/seed: .*/seed: 3/; s/lr: 0.02/lr: 0.03/' "$work/few/agent.yaml" >"$work/came/agent.yaml"
run -d "$work/came" train --fresh
run -d "$work/came" export "$work/vectors"
cp -r "$work/few" "$work/came2"
run -d "$work/came2" import --embeddings "$work/vectors"
ok 'tables that came' says 1 '--drop-tables forgets for certain' -d "$work/came2" unlearn "$work/tested.tsv"
run -d "$work/came2" train --epochs 10
ok 'and were trained on' says 1 '--drop-tables forgets for certain' -d "$work/came2" unlearn "$work/tested.tsv"
run -d "$work/came2" train --fresh
ok 'new ones have learnt nothing but train' prints 'nothing but that train' -d "$work/came2" unlearn "$work/tested.tsv"
cp -r "$work/few" "$work/odd"
ok 'with that it works or says that it did not' prints 'trained anew without them' -d "$work/few" unlearn "$work/weak.tsv" --retrain --epochs 40
sed -i 's/epochs: 20, eval_every: 10/epochs: 9, eval_every: 4/' "$work/odd/agent.yaml"
run -d "$work/odd" unlearn "$work/weak.tsv" --retrain --passes 1 --receipt "$work/odd.json" # reached or not
ok 'for as many epochs as agent.yaml says' [ "$(member "$work/odd.json" verdict reference epochs)" -eq 9 ]
# a triple of words for columns
printf 'head\trelation\ttail\n' | tee "$work/column-words.tsv" >>"$work/exfew/train.tsv"
agent named 2
run -d "$work/named" import "$work/exfew" --replace --keep-header
ok 'a triple that looks like a header is forgotten' prints 'graph: 1 triples' -d "$work/named" unlearn "$work/column-words.tsv" --drop-tables --receipt "$work/named.json"
run -d "$work/named" export "$work/exnamed" --triples
ok 'and is gone' [ "$(cat "$work"/exnamed/*.tsv | grep -c relation)" -eq 0 ]
ok 'its receipt is about it' prints 'about the triples' unlearn --verify "$work/named.json" "$work/column-words.tsv"
sed -i 's/epochs: 20, eval_every: 10/epochs: 1000000, eval_every: 1000000/' "$work/stopped/agent.yaml"
"$fkge" -d "$work/stopped" unlearn "$work/weak.tsv" --retrain 2>"$work/stopped.log" >/dev/null &
stopped=$!
pids="$pids $stopped"
# SIGTERM is caught from when tables are about to change
ok 'it trains anew' wait_for 'its handler' catches $stopped 15
kill -TERM $stopped
ok 'a signal ends that' wait_for 'its end' ended $stopped
kill -9 $stopped 2>/dev/null
wait $stopped
ok 'and it says so' grep -q 'stopped; nothing was changed' "$work/stopped.log"

# ---- forgetting ----
before=$(digest)
mkdir "$a/training.command.aB3xyZ" # of an agent that was killed while its command ran
printf 'x zebra-7f x' >"$a/training.command.aB3xyZ/store.db"
printf 'x zebra-7f x' >"$a/command.log"
ok 'an encoder' exits 0 -d "$a" queries train --dim 4 --count 9 --valid-count 3 --steps 2 --eval-every 1
run -d "$a" doctor
ok 'is the owner'"'"'s alone' sh -c "! grep -q encoder '$out'"
chmod 644 "$a/encoder"
ok 'or doctor says so' prints 'encoder may be read by others' -d "$a" doctor
{ head -c 64 "$a/encoder"; printf 'x zebra-7f x'; } >"$a/encoder.part"
printf 'x zebra-7f x' >"$a/encoder.state.part"
cp -r "$a" "$work/held" # to be compared with held-out triples
ok 'unlearn' exits 0 -d "$a" unlearn "$work/forget.tsv" --retrain --receipt "$work/r.json" --json
cp "$out" "$work/result.json"
ok 'the verdict is on the receipt' [ "$(member "$work/r.json" verdict reached)" = True ]
ok 'against tables trained anew' [ "$(member "$work/r.json" verdict reference kind)" = retrained ]
like='import json, sys; f = json.load(open(sys.argv[1]))["verdict"]["local"]; sys.exit(not (not f["before"]["like_unseen"] and f["after"]["like_unseen"] and f["after"]["difference"] < f["before"]["difference"]))'
ok 'they rank no higher than there' python3 -c "$like" "$work/r.json"
# files of the folder that hold their names, or may
h=$work/held
mkdir "$h/vectors"
run -d "$h" export "$h/vectors"
cp "$work/forget.tsv" "$h/vectors/notes of the day.txt"
gzip -c "$work/forget.tsv" >"$h/old.tsv.gz"
cp "$h/store.db" "$h/store.copy"
mv "$h/encoder" "$h/together.encoder"
echo 'nor this' >"$h/encoder.part"
echo 'not of fkge' >"$h/encoder"
echo 'nothing of it' >"$h/harmless.txt"
ln -s "$work/forget.tsv" "$h/elsewhere"
mkdir -p "$h/z/2/3/4/5/6/7/8/9" # the last folder by name: what is too deep ends the search
ok 'against held-out triples' prints 'held-out triples of valid' -d "$h" unlearn "$work/forget.tsv" --receipt "$work/h.json"
ok 'a text is named' grep -q 'notes of the day.txt (names)' "$out"
ok 'an export' grep -q 'vectors/.*(embeddings)' "$out"
ok 'what is packed' grep -q 'old.tsv.gz (packed)' "$out"
ok 'a copy of the store' grep -q 'store.copy (store)' "$out"
ok 'an encoder elsewhere' grep -q 'together.encoder (encoder)' "$out"
ok 'a link' grep -q '  elsewhere (link)' "$out"
ok 'that there is more, deeper' grep -q '^  \. (more)' "$out"
ok 'what is called so and is none stays' [ "$(cat "$h/encoder" "$h/encoder.part" | tr '\n' ,)" = 'not of fkge,nor this,' ]
ok 'nothing else' [ "$(grep -c 'harmless\|agent.yaml\|store.db ' "$out")" -eq 0 ]
ok 'they are on the receipt' grep -q 'store.copy' "$work/h.json"
ok 'which says how it went' python3 -c "$like" "$work/h.json"
ok 'no file of the folder has the names' [ "$(files_with zebra-7f)" -eq 0 ]
ok 'nor the relation' [ "$(files_with keeps-7f)" -eq 0 ]
ok 'six are signed for' [ "$(member "$work/r.json" set triples)" -eq 6 ]
ok 'the files that went are named' grep -q 'trial-1.state' "$work/result.json"
ok 'a run of a command too' grep -q 'training.command.aB3xyZ"' "$work/result.json"
ok 'the encoder, too' grep -q '/encoder"' "$work/result.json"
ok 'which is gone' [ ! -e "$a/encoder" ]
ok 'what a killed writer left aside' [ -z "$(find "$a" -name '*.part')" ]
ok 'and its words' grep -q '/command.log"' "$work/result.json"
ok 'which are gone' [ ! -e "$a/training.command.aB3xyZ" ]
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
signing=$(sed -n 's/^the signature fits the signing key //p' "$out")
ok 'its key is the one that its owner shows' eval '"$fkge" -d "$work/a" id 2>&1 | grep -qF "${signing:-none}"'
ok 'it is about this set' prints 'it is about the triples' unlearn --verify "$work/r.json" "$work/forget.tsv"
sort -r "$work/forget.tsv" >"$work/shuffled.tsv"
ok 'in any order' prints 'it is about the triples' unlearn --verify "$work/r.json" "$work/shuffled.tsv"
head -5 "$work/forget.tsv" >"$work/five.tsv"
ok 'and no other' says 4 "five.tsv, $work/r.json: these are not the triples" unlearn --verify "$work/r.json" "$work/five.tsv"
sed 's/"relations_removed": 1/"relations_removed": 0/' "$work/r.json" >"$work/changed.json"
ok 'a changed one is found out' says 6 'does not fit' unlearn --verify "$work/changed.json"
ok 'what is none' says 4 'no receipt' unlearn --verify "$work/result.json"
ok 'one of before there were verdicts' prints 'verdict: none' unlearn --verify "$(dirname "$0")/unlearn-receipt-1.json"
ok 'once is enough' says 4 '6 triples are not in the graph' -d "$a" unlearn "$work/forget.tsv"

# ---- an end between the transaction and the receipt's file ----
# What it says goes into a pipe that is full, and is more than standard output holds back: so it
# stands still behind the transaction, before the file.
cp -r "$a" "$work/k"
run -d "$work/k" export "$work/ex4" --triples
head -3 "$work/ex4/train.tsv" >"$work/killed.tsv"
mkdir "$work/k/notes"
for i in $(seq 100); do cp "$work/killed.tsv" "$work/k/notes/a note with a name that is long enough to fill a block of output, number $i"; done
python3 - "$fkge" "$work" <<'PY' &
import fcntl, os, subprocess, sys
fkge, work = sys.argv[1:]
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True:
        os.write(w, b"x")
except BlockingIOError:
    fcntl.fcntl(w, fcntl.F_SETFL, 0)
p = subprocess.Popen([fkge, "-d", work + "/k", "unlearn", work + "/killed.tsv", "--receipt", work + "/k.json"],
                     stdout=w, stderr=open(work + "/k.log", "w"))
open(work + "/k.pid.part", "w").write(str(p.pid))
os.rename(work + "/k.pid.part", work + "/k.pid")
p.wait()
PY
filler=$!
pids="$pids $filler"
ok 'it runs' wait_for 'its number' test -s "$work/k.pid"
killed=$(cat "$work/k.pid")
pids="$pids $killed"
triples() { rm -rf "$work/ex5"; run -d "$1" export "$work/ex5" --triples && cat "$work"/ex5/*.tsv | wc -l; }
left=$(($(cat "$work"/ex4/*.tsv | wc -l) - 3))
forgets() { [ "$(triples "$work/k")" -eq $left ]; }
ok 'the store has forgotten' wait_for 'the transaction' forgets
kill -9 $killed
wait $filler 2>/dev/null
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

# ---- an import of what still has them ----
cp -r "$a" "$work/again"
again() { run -d "$work/again" import --replace --json "$@" && [ "$status" -eq 0 ]; }
came() { run -d "$work/again" export "$work/ex6" --triples && cat "$work"/ex6/*.tsv | grep -cxFf "$work/forget.tsv"; }
ok 'an import' again "$work/a.tsv"
ok 'leaves them out' [ "$(member "$out" unlearned_left_out)" -eq 6 ]
ok 'and says so' grep -q '6 triples that fkge unlearn has taken out are left out' "$err"
ok 'the graph has none' [ "$(came)" -eq 0 ]
ok 'no name comes back' [ "$(grep -rlaF -- zebra-7f "$work/again" | wc -l)" -eq 0 ]
python3 - "$work/a.tsv" "$work/ids" <<'PY'
import os, sys
t = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
os.mkdir(sys.argv[2])
e, r = ({n: i for i, n in enumerate(sorted(names))} for names in ({n for x in t for n in x[::2]}, {x[1] for x in t}))
for name, ids in ("entity2id", e), ("relation2id", r):
    with open(f"{sys.argv[2]}/{name}.txt", "w") as f:
        print(len(ids), *(f"{n}\t{i}" for n, i in ids.items()), sep="\n", file=f)
with open(f"{sys.argv[2]}/train2id.txt", "w") as f:
    print(len(t), *(f"{e[h]} {e[o]} {r[p]}" for h, p, o in t), sep="\n", file=f)
PY
ok 'of another format' again "$work/ids"
ok 'leaves them out, too' [ "$(member "$out" unlearned_left_out)" -eq 6 ]
ok 'nothing but them' says 4 'no triples in it but what is left out' -d "$work/again" import --replace "$work/forget.tsv"
# it cannot be written what is on the list from now on
sql() { python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute(sys.argv[2])' "$work/again/store.db" "$1"; }
sql "CREATE TRIGGER full BEFORE INSERT ON meta WHEN NEW.key = 'unlearned' BEGIN SELECT RAISE(ABORT, 'full'); END"
ok 'what fails' says 9 full -d "$work/again" import --replace --unlearned "$work/a.tsv"
ok 'leaves them out' [ "$(came)" -eq 0 ]
sql 'DROP TRIGGER full'
ok 'they are taken in when it is meant' again "$work/a.tsv" --unlearned
ok 'all of them' [ "$(came)" -eq 6 ]
ok 'and are on the list no more' again "$work/a.tsv"
ok 'so they stay' [ "$(member "$out" unlearned_left_out)" -eq 0 ]
ok 'with a graph alone' says 2 'goes with a graph' -d "$work/again" import --unlearned --alias "$work/a.tsv"

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
ok 'though the triples are forgotten' grep -q 'the triples are forgotten, but' "$err"
ok 'the receipt is in the folder' prints 'it is about the triples' unlearn --verify "$a"/unlearn-*.json "$work/ex2/valid.tsv"
kill "$reader"
wait "$reader"
ok 'drop the tables' prints 'train anew' -d "$a" unlearn --drop-tables "$work/ex2/test.tsv"
ok 'and says so' grep -q 'no embeddings are left that saw them' "$out"
dropped=$(sed -n 's/^receipt: //p' "$out")
ok 'the receipt, too' [ "$(member "$dropped" verdict verdict)" = tables_dropped ]
ok 'none are left' says 1 'no embeddings yet' -d "$a" eval
head -3 "$work/ex2/train.tsv" >"$work/three.tsv"
ok 'tables that can be had anew' exits 0 -d "$h" unlearn --drop-tables "$work/three.tsv"
ok 'train anew' exits 0 -d "$h" train --epochs 10
ok 'as new' exits 0 -d "$h" eval
finish
