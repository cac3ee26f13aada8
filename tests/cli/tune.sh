#!/bin/sh
# tune: random search and halving, killed and taken up again, without a look at test.
. "$(dirname "$0")/lib.sh"

agent a 1
sed -i 's/eval_every: 10/eval_every: 4/' "$work/a/agent.yaml"
# Three folders with the same train and valid: no test, some test, another test
python3 - "$work" <<'PY'
import os, random, sys
work = sys.argv[1]
lines = sorted(set(open(work + "/a.tsv").read().splitlines()))
random.seed(4)
random.shuffle(lines)
names = sorted({l.split("\t")[0] for l in lines[:-50]})
tests = {"none": [], "one": lines[-20:],
         "two": [f"{random.choice(names)}\tnext\t{random.choice(names)}" for _ in range(40)]}
for folder, test in tests.items():
    os.mkdir(f"{work}/{folder}")
    for split, what in (("train", lines[:-50]), ("valid", lines[-50:-20]), ("test", test)):
        if what:
            open(f"{work}/{folder}/{split}.tsv", "w").write("".join(l + "\n" for l in what))
PY
run -q -d "$work/a" import --replace "$work/none"
dir=$work/a/tune
record=$dir/tune.json
cat >"$work/space.yaml" <<'YAML'
search: {method: halving, trials: 9, epochs: 4, eta: 3, seed: 2}
model:
  dim: [4, 8, 16]
train:
  lr: {from: 1e-3, to: 0.1, scale: log}
  negatives: {from: 2, to: 16}
YAML
# same FILE FILE: the same trials with the same scores
same() {
	python3 - "$1" "$2" <<'PY'
import json, sys
def trials(f):
    t = json.load(open(f))["trials"]
    for x in t:
        del x["seconds"]
    return t
a, b = map(trials, sys.argv[1:3])
sys.exit(not (a == b and len(a) > 1))
PY
}
check() { # Python over the result j
	python3 - "$out" "$1" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
t = j.get("trials", [])
sys.exit(not eval(sys.argv[2]))
PY
}

# ---- a whole search ----
ok 'halving' exits 0 -d "$work/a" tune "$work/space.yaml" --json
cp "$out" "$work/whole.json"
ok 'nine trials on three rungs' check 'sorted(x["epochs"] for x in t) == [4] * 6 + [12] * 2 + [36]'
ok 'its epochs are counted' check 'j["spent_epochs"] == 6 * 4 + 2 * 12 + 36'
ok 'the best is the best' check 'j["best"]["valid_mrr"] == max(x["valid_mrr"] for x in t)'
ok 'the longest trial was ahead of the dropped ones' \
	check '[x for x in t if x["epochs"] == 36][0]["valid_mrr"] >= max(x["valid_mrr"] for x in t if x["epochs"] == 4)'
ok 'no filter knows test' check 'j["protocol"]["filter"] == ["train", "valid"]'
ok 'seeds are recorded' check 'j["seed"] == 1 and j["search_seed"] == 2'
no_states() { ! ls "$dir"/*.state >/dev/null 2>&1; }
ok 'no tables are left behind' no_states
ok 'again: nothing is left to do' exits 0 -d "$work/a" tune "$work/space.yaml" --json
ok 'the same result' same "$out" "$work/whole.json"
ok 'a table and a fragment' prints '# best of 9 trials: valid MRR' -d "$work/a" tune "$work/space.yaml"
descends() {
	python3 - "$out" "$work/whole.json" <<'PY'
import json, sys
rows = [[c.strip() for c in l.split("|")[1:-1]] for l in open(sys.argv[1]) if l.startswith("| ")]
j = json.load(open(sys.argv[2]))
assert rows[0][:2] == ["trial", "valid MRR"], rows
assert [float(r[1]) for r in rows[1:]] == [float("%.4f" % x) for x in sorted((t["valid_mrr"] for t in j["trials"]), reverse=True)], rows
assert int(rows[1][0]) == j["best"]["trial"], rows
PY
}
ok 'the best stands first' descends
ok 'with the epochs after which it was so' grep -q " after $(member "$work/whole.json" best best_epoch) epochs " "$out"
ok 'its folder is the owner'"'"'s alone' [ "$(stat -c %a "$dir")" = 700 ]
sed -n '/^# best/,$p' "$out" >"$work/fragment.yaml"
agent b 1
cat "$work/fragment.yaml" >"$work/b/agent.yaml"
ok 'the fragment is agent.yaml' exits 0 -d "$work/b" id

# ---- a last trial that was trained and is not on the record ----
both() { grep -c '"epochs": 20' "$work/cut/tune.json" 2>/dev/null | grep -q "^2"; }
# caught FACTOR: both trials of the first rung are on the record, and the search goes on
caught() {
	cat >"$work/two.yaml" <<-YAML
		search: {method: halving, trials: 2, epochs: 20, eta: $1, seed: 2}
		train:
		  lr: {from: 1e-3, to: 0.1, scale: log}
	YAML
	rm -rf "$work/cut"
	"$fkge" -q -d "$work/a" tune "$work/two.yaml" -o "$work/cut" >"$work/cut.out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	while kill -0 $pid 2>/dev/null; do
		if both; then
			# so the next record cannot be written
			kill -s STOP $pid && both && mkdir "$work/cut/tune.json.part" && return
			kill -s KILL $pid
		fi
	done
	return 1
}
# a fast machine, or one whose other core is taken, is past the second rung before the first was seen: then a longer one
seen_first_rung() { caught 50 || caught 500 || caught 5000; }
ok 'both trials are on the record' seen_first_rung
kill -s CONT $pid
wait $pid
rmdir "$work/cut/tune.json.part"
ok 'its tables are kept' [ -n "$(ls "$work"/cut/*.state)" ]
ok 'it goes on' exits 0 -q -d "$work/a" tune "$work/two.yaml" -o "$work/cut" --json
ok 'and still knows what counting reaches' check '0 < j["valid_floor"] < 1'

# ---- a trial that went up all rungs is one training ----
cp -R "$work/a" "$work/twin"
python3 - "$work" "$out" <<'PY'
import json, sys
work = sys.argv[1]
t = [x for x in json.load(open(work + "/whole.json"))["trials"] if x["epochs"] == 36][0]
s = t["settings"]
open(work + "/twin/agent.yaml", "w").write(
    f"model: {{dim: {s['model.dim']}, gamma: 4}}\n"
    f"train: {{lr: {s['train.lr']}, negatives: {s['train.negatives']}, epochs: 36, eval_every: 4, threads: 1, batch: 64, patience: 0}}\n")
open(work + "/longest", "w").write(f"{t['valid_mrr']} {t['best_epoch']} {t['last_mrr']}")
PY
ok 'its settings by hand' exits 0 -d "$work/twin" train --json
ok 'the same scores at the same epochs' \
	[ "$(member "$out" valid_mrr) $(member "$out" epochs) $(member "$out" curve valid 8 mrr)" = "$(cat "$work/longest")" ]

# ---- killed ----
# killed METHOD EPOCHS: a search of so many is left alone, another one is killed at each record; $in_time counts the
# kills that it had not ended before
killed() {
	sed "s/halving/$1/; s/epochs: 4/epochs: $2/" "$work/space.yaml" >"$work/$1.yaml"
	rm -rf "$work/alone" "$work/killed"
	run -d "$work/a" tune "$work/$1.yaml" -o "$work/alone" --json
	cp "$out" "$work/alone.json"
	kills=0 in_time=0
	while [ $kills -lt 60 ]; do
		before=$(cksum "$work/killed/tune.json" 2>/dev/null)
		"$fkge" -q -d "$work/a" tune "$work/$1.yaml" -o "$work/killed" --json >"$work/killed.json" 2>"$work/tune.log" &
		pid=$!
		while [ "$(cksum "$work/killed/tune.json" 2>/dev/null)" = "$before" ] && kill -0 $pid 2>/dev/null; do :; done
		signal=$([ $((kills % 2)) -eq 0 ] && echo KILL || echo INT)
		kill -s "$signal" $pid 2>/dev/null || break
		wait $pid 2>/dev/null || in_time=$((in_time + 1))
		kills=$((kills + 1))
	done
	wait $pid 2>/dev/null
	echo "# killed $kills times, $in_time in time"
	[ $in_time -gt 0 ]
}
for method in halving random; do
	killed_in_time() { killed $method 40 || killed $method 400 || killed $method 4000; } # a fast machine: a longer one
	ok "$method: killed" killed_in_time
	run -d "$work/a" tune "$work/$method.yaml" -o "$work/killed" --json
	ok "$method: again and again, it comes to the same" same "$out" "$work/alone.json"
done

# ---- a trial's state that is ahead of the record ----
printf 'search: {trials: 3, epochs: 4, eta: 2}\ntrain: {lr: [0.01, 0.02, 0.03]}\n' >"$work/three.yaml"
ok 'a trial twice' exits 0 -d "$work/a" tune "$work/three.yaml" -o "$work/three" --json
cp "$out" "$work/three.json"
rm "$work/three/tune.json"
ok 'from nothing' exits 0 -d "$work/a" tune "$work/three.yaml" -o "$work/three" --json
ok 'the same trials' same "$out" "$work/three.json"

# ---- test is not read ----
for k in one two; do
	ok "graph $k" exits 0 -d "$work/a" import --replace "$work/$k"
	ok "searched $k" exits 0 -d "$work/a" tune "$work/three.yaml" -o "$work/test-$k" --json
	cp "$out" "$work/test-$k.json"
done
entities() { # both graphs must number the same names alike, or the comparison says nothing
	python3 -c '
import sys
names = lambda k: {n for s in ("train", "valid") for l in open(f"{sys.argv[1]}/{k}/{s}.tsv") for n in l.strip().split("\t")[::2]}
tests = {n for k in ("one", "two") for l in open(f"{sys.argv[1]}/{k}/test.tsv") for n in (l.split("\t")[0], l.strip().split("\t")[2])}
sys.exit(not tests <= {n.strip() for n in names("one")})' "$work"
}
ok 'test names nobody new' entities
ok 'another test split, the same search' same "$work/test-one.json" "$work/test-two.json"

# ---- quick ----
agent q 1
"$fkge" -q -d "$work/q" import --replace "$work/none" >/dev/null
ok 'a quick search' exits 0 -d "$work/q" tune --quick --seconds 100 --json
ok 'of twelve trials' check 'len(t) == 12 and j["method"] == "halving" and not j["out_of_time"]'
ok 'the first is agent.yaml as it is' \
	check 't[0]["settings"]["train.lr"] == 0.02 and t[0]["settings"]["train.corrupt"] == "auto"'
ok 'it trains as long as any' check 't[0]["epochs"] == max(x["epochs"] for x in t) == 18'
ok 'nothing that partners must agree on' check 'all(k.startswith("train.") for k in t[1]["settings"])'
ok 'the best is no worse' check 'j["best"]["valid_mrr"] >= t[0]["valid_mrr"] and 0 < j["valid_floor"] < 1'
ok 'on a sample of valid' check 'j["valid_limit"] == 1000'
cp "$work/q/agent.yaml" "$work/as-it-was"
member "$out" best settings train.loss >"$work/best"
ok 'again, and applied' prints 'Counting, which learns nothing, has' -d "$work/q" tune --quick --seconds 100 --apply
ok 'is in agent.yaml' grep -q "loss: $(cat "$work/best")" "$work/q/agent.yaml"
ok 'which is still good' exits 0 -d "$work/q" train --epochs 1
sed -i 's/eval_every: 10/eval_every: 5/' "$work/as-it-was"
cp "$work/as-it-was" "$work/q/agent.yaml"
ok 'a quick search of other settings begins anew' exits 0 -d "$work/q" tune --quick --seconds 100 --json
cp "$out" "$work/quick.json"
run -d "$work/q" tune --quick --seconds 0.001 --json
ok 'with no time, one trial comes to its end' check 'j["out_of_time"] and sum(x["epochs"] > 0 for x in t) == 1'
ok 'and says so' prints 'The time is up' -d "$work/q" tune --quick --seconds 0.001
ok 'with time again, the same as at once' exits 0 -d "$work/q" tune --quick --seconds 100 --json
ok '... trial by trial' same "$out" "$work/quick.json"
cp "$work/q/agent.yaml" "$work/no-preset.yaml"
sed -i 's/^model: {/model: {preset: best, /' "$work/q/agent.yaml"
ok 'a preset has chosen already' says 2 'model.preset chooses' -d "$work/q" tune --quick --fresh
cp "$work/no-preset.yaml" "$work/q/agent.yaml"
ok 'a space takes the place of a quick search' exits 0 -d "$work/q" tune "$work/space.yaml"
ok '... not the other way' says 2 'is of another search' -d "$work/q" tune --quick
ok 'a space and --quick' exits 2 -d "$work/q" tune "$work/space.yaml" --quick
ok 'seconds of a space' exits 2 -d "$work/q" tune "$work/space.yaml" --seconds 5
sed -i 's/patience: 0/patience: 0, filtered: false, shared_chunk: 0, dp: {epsilon: 8}/' "$work/q/agent.yaml"
ok 'not in private training' says 2 'train.dp.epsilon: a search trains again' -d "$work/q" tune --quick --fresh

# ---- budget, mistakes, --apply ----
printf 'search: {method: random, trials: 5, epochs: 4, budget: 10}\ntrain: {lr: {from: 0.01, to: 0.1}}\n' >"$work/budget.yaml"
ok 'a budget' exits 0 -d "$work/a" tune "$work/budget.yaml" -o "$work/budget" --json
ok 'is kept' check 'j["spent_epochs"] == 8 and j["out_of_budget"] and [x["epochs"] for x in t] == [4, 4, 0, 0, 0]'
sed 's/budget: 10/budget: 8/' "$work/budget.yaml" >"$work/exact.yaml"
ok 'of two trials to the epoch' exits 0 -d "$work/a" tune "$work/exact.yaml" -o "$work/exact" --json
ok 'has two' check '[x["epochs"] for x in t] == [4, 4, 0, 0, 0] and j["out_of_budget"]'
cat >"$work/holds.py" <<'PY'
# FLAG PATH COMMAND...: runs it while PATH is locked, and gives its status; "later": it waits for the lock, which is given
# back then
import fcntl, os, subprocess, sys
how, path, command = sys.argv[1], sys.argv[2], sys.argv[3:]
held = os.open(path, os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_SH)
child = subprocess.Popen(command)
def waits():
    return any("->" in l and f" {child.pid} " in l for l in open("/proc/locks"))
while how == "later" and not waits():
    if child.poll() is not None:
        sys.exit(99)  # it has not waited
if how == "later":
    fcntl.flock(held, fcntl.LOCK_UN)
sys.exit(child.wait())
PY
# two COMMAND...: says that another one is at work
two() { ! python3 "$work/holds.py" now "$work/exact/lock" "$fkge" "$@" >"$out" 2>"$err" && grep -q 'another search is at work here' "$err"; }
ok 'two searches in one folder at once are one too many' two -d "$work/a" tune "$work/exact.yaml" -o "$work/exact"
touch "$work/budget/trial-7.state"
ok 'another space in the same folder' says 2 'is of another search' -d "$work/a" tune "$work/three.yaml" -o "$work/budget"
ok 'unless begun anew' exits 0 -d "$work/a" tune "$work/three.yaml" -o "$work/budget" --fresh
ok 'which leaves nothing of the one before' [ ! -e "$work/budget/trial-7.state" ]
printf 'search: {method: random, trials: 2, epochs: 5, budget: 4}\ntrain: {lr: [0.01, 0.02]}\n' >"$work/short.yaml"
ok 'of less than one trial' says 2 'search.budget (4) is below search.epochs (5)' -d "$work/a" tune "$work/short.yaml" -o "$work/short"
printf 'search: {method: random, trials: 2, epochs: 5, budget: 4}\nmodel: {preset: [fast, none]}\n' >"$work/short.yaml"
ok '... after what a preset says' says 2 'search.budget (4) is below what the next one trains' -d "$work/a" tune "$work/short.yaml" -o "$work/short"
printf 'train:\n  lr: [0.1, much]\n' >"$work/bad.yaml"
ok 'a bad value: file, line, key' says 2 "bad.yaml:2: train.lr: 'much' is not allowed here" -d "$work/a" tune "$work/bad.yaml"
ok 'no file' exits 4 -d "$work/a" tune "$work/none.yaml"
ok 'no words' exits 2 -d "$work/a" tune
printf 'search: {trials: 4, epochs: 2, eta: 2}\ntrain: {batch: [64, 32768], negatives: [4, 60000]}\n' >"$work/large.yaml"
ok 'values that do not go together' exits 0 -d "$work/a" tune "$work/large.yaml" -o "$work/large" --json
ok 'make no trial, and it is said why' check 'sum("batch" in x.get("refused", "") for x in t) == 1 and sum(x["epochs"] > 0 for x in t) == 3'
printf 'search: {method: random, trials: 3, epochs: 1}\nmodel: {kind: [transr, distmult, transd]}\n' >"$work/kinds.yaml"
sed 's/dim: 16/kind: transr, dim: 16, rel_dim: 8/' "$work/no-preset.yaml" >"$work/q/agent.yaml"
ok 'a width of relations that not every model has' exits 0 -d "$work/q" tune "$work/kinds.yaml" -o "$work/kinds" --json
ok 'have no scores' check 'all((x["valid_mrr"] is None and x["last_mrr"] is None) == ("refused" in x) for x in t)'
ok 'refuses the others' check '[x["settings"]["model.kind"] for x in t if "model.rel_dim" in x.get("refused", "")] == ["distmult"]'
printf 'search: {method: random, trials: 2, epochs: 1}\nmodel: {rel_dim: [8, 16]}\n' >"$work/widths.yaml"
cp "$work/no-preset.yaml" "$work/q/agent.yaml"
ok 'or is what varies' exits 0 -d "$work/q" tune "$work/widths.yaml" -o "$work/widths" --json
ok '... likewise' check '[x["settings"]["model.rel_dim"] for x in t if "model.rel_dim" in x.get("refused", "")] == [8]'
cat >"$work/a/agent.yaml" <<'YAML'
# ours
name: a   # the name
listen: 127.0.0.1:0
model: {dim: 16, gamma: 4}
train:
  # not the learning rate
  lr: 0.02  # this is
  threads: 1
YAML
printf 'search: {method: random, trials: 2, epochs: 2}\nmodel: {dim: [6], gamma: [5]}\ntrain: {lr: [0.05], margin: {from: 2, to: 3}}\n' >"$work/apply.yaml"
ok 'applied' exits 0 -d "$work/a" tune "$work/apply.yaml" -o "$work/apply" --apply
ok 'a value is another' grep -qx '  lr: 0.05  # this is' "$work/a/agent.yaml"
ok 'in braces too' grep -qx 'model: {dim: 6, gamma: 5}' "$work/a/agent.yaml"
ok 'what was missing is there' grep -q '^  margin: 2' "$work/a/agent.yaml"
ok 'all else is as it was' [ "$(grep -c '^# ours$\|^name: a   # the name$\|^  # not the learning rate$\|^  threads: 1$' "$work/a/agent.yaml")" -eq 4 ]
ok 'its mode is that of a secret' [ "$(stat -c %a "$work/a/agent.yaml")" = 600 ]
# key by key, another command may change the file meanwhile: they wait for each other
in_turn() { python3 "$work/holds.py" later "$work/a" "$fkge" -q -d "$work/a" tune "$work/apply.yaml" -o "$work/apply" --apply >"$out" 2>"$err"; }
ok 'it waits for whoever else changes the file' in_turn
mv "$work/a/agent.yaml" "$work/elsewhere.yaml" && ln -s "$work/elsewhere.yaml" "$work/a/agent.yaml"
sed -i 's/lr: 0.05/lr: 0.02/' "$work/elsewhere.yaml"
ok 'where agent.yaml is a link' exits 0 -d "$work/a" tune "$work/apply.yaml" -o "$work/apply" --apply
ok 'its target is changed' grep -qx '  lr: 0.05  # this is' "$work/elsewhere.yaml"
ok 'and it stays a link' [ -L "$work/a/agent.yaml" ]
ok 'applying changes no search' exits 0 -d "$work/a" tune "$work/apply.yaml" -o "$work/apply"

# ---- which preset ----
run -q -d "$work/p" init --name p
sed -i 's/^\( *\)threads: 0/\1threads: 1/' "$work/p/agent.yaml"
run -q -d "$work/p" import "$work/none"
printf 'search: {method: random, trials: 3, epochs: 25}\nmodel: {preset: [none, fast, balanced]}\n' >"$work/presets.yaml"
ok 'presets are trials' exits 0 -d "$work/p" tune "$work/presets.yaml" --apply --json
ok 'each trains as long as it says' check '{x["settings"]["model.preset"]: x["epochs"] for x in t} == {"none": 25, "fast": 20, "balanced": 20}'
ok 'and chooses, where agent.yaml has what init writes' check 'len({x["valid_mrr"] for x in t}) == 3'
best=$(member "$out" best valid_mrr)
word=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["best"]["settings"]["model.preset"])' "$out")
ok 'the best is one of them' [ "$word" = fast -o "$word" = balanced ]
ok 'applying it changes no search' exits 0 -d "$work/p" tune "$work/presets.yaml"
ok 'train by it' exits 0 -d "$work/p" train --json
ok 'has its figure' [ "$(member "$out" valid_mrr)" = "$best" ]
finish
