#!/bin/sh
# A question across three agents by encoders of their rounds: the row of a relation from its owner, masked scores of
# all; policy, budget, records, who is missing.
. "$(dirname "$0")/lib.sh"

# The same hundred names; each agent knows one relation, and all know another.  Twenty more are a's and b's alone.
python3 - "$work" <<'PY'
import random, sys
random.seed(5)
rules = {"next": lambda i: i + 1, "jump": lambda i: i + 7, "twice": lambda i: 2 * i}
for who, own in zip("abc", rules):
    with open(f"{sys.argv[1]}/{who}.tsv", "w") as f:
        for i in range(100):
            f.write(f"e{i}\t{own}\te{rules[own](i) % 100}\n")
            if i < 20 and who != "c":
                f.write(f"f{i}\t{own}\tf{(i + 3) % 20}\n")
            if random.random() < 0.7:
                f.write(f"e{i}\tback\te{(i - 1) % 100}\n")
PY
place() { python3 -c 'import sys; n = int(sys.argv[1]) % (1 << 22) * 4 + int(sys.argv[2]); print(f"127.{n >> 16}.{n >> 8 & 255}.{n & 255}:7448")' $$ "$1"; }
member_of_rounds() { # NAME NUMBER
	"$fkge" -q -d "$work/$1" init --name "$1" --listen "$(place "$2")" >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: $(place "$2")
model: {dim: 16, gamma: 4}
train: {epochs: 2, threads: 1, lr: 0.02, batch: 64, negatives: 8, patience: 0}
federation: {mode: rounds, names_every_s: 0, judge: false, lease_s: 60}
rounds: {method: fedcqa, dim: 16, steps: 30, batch: 64, queries: 200, lr: 0.02, dropout: 0, min_members: 3,
  min_holders: 3, secret_bits: 32, epochs: 1, max: 4, eval_every: 2, every_s: 0, join_s: 60, train_s: 600, stage_s: 300}
query: {answer: nothing}
YAML
	"$fkge" -q -d "$work/$1" import "$work/$1.tsv" >/dev/null
}
settings() { # NAME LINES: with another section query
	sed -i "s/^query: .*/query: {$2}/" "$work/$1/agent.yaml"
	kill -HUP "$(eval echo "\$pid_$1")"
}
done_by() { [ "$(member "$work/$1.json" round done)" -ge "$2" ]; }
question='SELECT ?x { <e3> <next>/<jump> ?x }'
ask() { run -d "$work/a" query --federated --encoder "$work/a.encoder" --patience 2 --json "$@" "$question"; }
answers() { ask "$@" && [ "$status" -eq 0 ]; }
fails_with() { ask; [ "$status" -ne 0 ] && grep -qF -- "$1" "$err"; }
says_of() { # EXPRESSION over r, the answer
	python3 - "$out" "$1" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PY
}

member_of_rounds a 1
member_of_rounds b 2
member_of_rounds c 3
befriend a b
befriend a c
befriend b c
for who in a b c; do ok "$who starts" start $who; done
for who in a b c; do ok "rounds of $who" wait_for 'rounds' done_by $who 4; done
ok 'the encoder is written' exits 0 -d "$work/a" queries encoder -o "$work/a.encoder"

# ---- by default nothing ----
ok 'nobody answers over the relation' fails_with 'nobody answers over jump'
settings b 'answer: soft'
ok 'nor scores' wait_for 'a reason' fails_with 'it answers no scores (query.score_holders there)'
settings b 'answer: soft, score_holders: 3'
ok 'one alone is no use' wait_for 'a reason' fails_with 'c: it answers no scores'

# ---- all let it ----
settings c 'score_holders: 3'
ok 'all score' wait_for 'an answer' answers
ok 'every name is held by two others' says_of 'len(r["answers"]) == 10 and all(a["others"] == (2 if a["name"][0] == "e" else 0) for a in r["answers"])'
ok 'who it was' says_of 'sorted(m["name"] for m in r["members"]) == ["b", "c"] and r["missing"] == [] and r["unscored"] == 0'
cp "$out" "$work/first"
ok 'the same question has the same answers' answers
ok 'bit for bit' eval 'says_of "r[\"answers\"] == json.load(open(\"$work/first\"))[\"answers\"]"'
ok 'in words' prints '(2 of others)' -d "$work/a" query --federated --encoder "$work/a.encoder" -k 200 "$question"
key query.score_holders says 1 'it scores what at least 3 members hold' -d "$work/a" query --federated \
	--encoder "$work/a.encoder" --holders 2 --patience 1 "$question"
ok 'no question with negation' says 2 'types 1p to up alone' -d "$work/a" query --federated --encoder "$work/a.encoder" \
	'SELECT ?x { <e3> <next> ?x FILTER NOT EXISTS { <e1> <back> ?x } }'
cat >"$work/asked" <<'JSON'
{"type":"2p","anchors":["e3"],"relations":[["next","jump"]],"hard":["e11"]}
{"type":"1p","anchors":["e3"],"relations":[["^jump"]],"hard":["e96"]}
JSON
run -d "$work/a" query --federated --batch "$work/asked" --evaluate --encoder "$work/a.encoder" --json
ok 'a file is ranked' says_of 'r["queries"] == 2 and r["across"]["lacking"] == 0 and r["across"]["bytes"] > 1000'

# ---- records ----
ok 'both have them' prints 'asked by a masked scores of 100 names, by 1 vectors' -d "$work/c" queries list
ok 'as asker' prints 'we asked c masked scores of 100 names' -d "$work/a" queries list -p c --number 1
ok 'and of the row' prints "asked by a the encoder's row of jump" -d "$work/b" queries list --number 50
for who in a c; do ok "$who exports" exits 0 -d "$work/$who" queries export -o "$work/$who.q"; done
ok 'they hold' prints 'The records hold' queries verify "$work/a.q" "$work/c.q"

# ---- budget, and who is not there ----
settings c 'score_holders: 3, steps_per_day: 1'
ok 'the budget of a day is all' wait_for 'a reason' fails_with 'c: what it answers us in a day is used up'
kill -9 "$pid_c"
wait "$pid_c" 2>/dev/null
ok 'without a member there is no sum' wait_for 'a reason' fails_with 'c: there is no link to it'
settings b 'answer: soft, score_holders: 2'
without_c() { run -d "$work/a" query --federated --encoder "$work/a.encoder" --patience 2 --json -k 200 --holders 2 "$question" && [ "$status" -eq 0 ]; }
ok 'what c does not hold is scored without it' wait_for 'an answer' without_c
ok 'that and nothing else' says_of 'all(a["others"] == (1 if a["name"][0] == "f" else 0) for a in r["answers"]) and r["unscored"] == 100'
ok 'who is missing, and why' says_of '[(m["name"], m.get("relation"), m["why"]) for m in r["missing"]] == [("c", x, "there is no link to it") for x in ("jump", None)]'
ok 'in words, too' prints 'missing: scores of c: there is no link to it' -d "$work/a" query --federated --encoder "$work/a.encoder" --holders 2 "$question"
ok 'c may own the relation, too' grep -q '^missing: c over jump: there is no link to it' "$out"
run -d "$work/a" query --federated --batch "$work/asked" --evaluate --encoder "$work/a.encoder" --holders 2 --patience 2 --json
ok 'of a file' says_of 'r["across"]["lacking"] == 2 and len(r["missing"]) == 2 and r["missing"][0]["relation"] == "jump"'
ok 'both have the record of it' prints 'asked by a masked scores of 20 names' -d "$work/b" queries list --number 1
settings b 'answer: soft, score_holders: 3'
sed -i 's/steps_per_day: 1/steps_per_day: 500/' "$work/c/agent.yaml"
ok 'c starts again' start c
ok 'and scores by what it has kept' wait_for 'an answer' answers
ok 'as before' eval 'says_of "r[\"answers\"] == json.load(open(\"$work/first\"))[\"answers\"]"'
kill -9 "$pid_b"
wait "$pid_b" 2>/dev/null
ok 'who may have the relation is not there' wait_for 'a reason' fails_with 'whether b would: there is no link to it'
finish
