#!/bin/sh
# A question that two agents can answer only together: policy, budget, records, who is missing.
. "$(dirname "$0")/lib.sh"

# A hospital knows which genes cause which illness, a maker which drugs treat it; illnesses and drugs have
# the same names in both.
python3 - "$work" <<'PY'
import sys
work = sys.argv[1]
with open(f"{work}/hospital.tsv", "w") as f:
    for i in range(40):
        f.write(f"gene{i}\tcauses\tillness{i % 20}\nward{i % 4}\tkeeps\tdrug{i % 30}\n")
        f.write(f"gene{i}\tnear\tgene{(i + 1) % 40}\n")
with open(f"{work}/maker.tsv", "w") as f:
    for i in range(30):
        f.write(f"drug{i}\ttreats\tillness{i % 20}\nplant{i % 3}\tmakes\tdrug{i}\n")
        f.write(f"drug{i}\tlike\tdrug{(i + 20) % 30}\n")
PY
owner() { # NAME LINES
	address=127.0.0.1:$(free_port)
	"$fkge" -q -d "$work/$1" init --name "$1" --listen $address >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: $address
model: {dim: 16, gamma: 4}
train: {epochs: 20, eval_every: 10, threads: 1, lr: 0.02, batch: 64, negatives: 8, patience: 0}
federation: {names_every_s: 0, epochs_per_round: 1, max_rounds: 1, sleep_s: 0, local_rounds: 0}
query: {$2}
YAML
	"$fkge" -q -d "$work/$1" import "$work/$1.tsv" >/dev/null && "$fkge" -q -d "$work/$1" train >/dev/null
}
question='SELECT ?d { <gene7> <causes>/^<treats> ?d }'
ask() { run -d "$work/hospital" query --federated --json "$@" "$question"; }
says_of() { # EXPRESSION over r, the answer
	python3 - "$out" "$1" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
best = [a["name"] for a in r.get("answers", [])]
sys.exit(not eval(sys.argv[2]))
PY
}
restart() { # NAME LINES: with another section query
	sed -i "s/^query: .*/query: {$2}/" "$work/$1/agent.yaml"
	kill -HUP "$(eval echo "\$pid_$1")"
}

owner hospital 'answer: nothing'
owner maker 'answer: nothing'
befriend hospital maker
ok 'the agents start' eval 'start hospital && start maker'
ok 'names are compared' wait_for names peer_is hospital "$(id_of maker)" shared_entities 50

ok 'alone it cannot be asked' says 1 'no relation' -d "$work/hospital" query "$question"
ask
ok 'an owner answers nothing by default' says_of 'not best and not r["missing"] and not r["asked"]'
ok 'it is said that nobody answers' grep -q 'Nobody answers over treats' "$err"
ok 'nothing is on record' prints 'No step' -d "$work/maker" queries list

# ---- its owner lets it ----
restart maker 'rules: "facts * treats", steps_per_day: 7, rows_per_day: 150'
answers() { ask "$@" && says_of 'r["asked"]'; }
ok 'its owner lets it answer facts' wait_for 'an answer' answers
ok 'which is what the two know together' says_of 'set(best[:2]) == {"drug7", "drug27"}'
ok 'one edge of each' eval 'ask --explain && says_of "[e[\"agent\"] for e in r[\"answers\"][0][\"edges\"]] == [\"hospital\", \"maker\"] and all(e[\"known\"] for e in r[\"answers\"][0][\"edges\"])"'
ok 'in words' prints 'known  by maker' -d "$work/hospital" query --federated --explain "$question"
ok 'the budget of a day is all' eval 'ask && says_of "\"used up\" in r[\"missing\"][0][\"why\"] and r[\"missing\"][0][\"name\"] == \"maker\""'
kill -9 "$pid_maker"
wait "$pid_maker" 2>/dev/null
ask
ok 'a partner that is not there is missing' says_of '"link" in r["missing"][0]["why"]'
restart_all() { start maker && wait_for link peer_is maker "$(id_of hospital)" linked True; }
ok 'it is back' restart_all
used_up() { ask && says_of '"used up" in r["missing"][0]["why"]'; }
ok 'and knows what it has answered' wait_for budget used_up
restart maker 'answer: soft'
soft() { ask && says_of 'r["asked"] and not r["asked"][0]["facts"]'; }
ok 'softly' wait_for soft soft
ok 'no edge of it is known' says_of 'all(a["truth"] < 1 for a in r["answers"])'

# ---- records ----
ok 'both have them' prints 'asked by hospital  over ^treats  from' -d "$work/maker" queries list
ok 'as asker' prints 'we asked maker  over ^treats' -d "$work/hospital" queries list -p maker --number 1
run -d "$work/hospital" queries list --json
id=$(member "$out" steps 0 id)
ok 'one of them' prints "the asker's signature holds, the owner's holds" -d "$work/maker" queries show "${id%????????}"
for who in hospital maker; do
	ok "$who exports" exits 0 -d "$work/$who" queries export -o "$work/$who.json.q"
done
ok 'they hold' prints 'The records hold' queries verify "$work/hospital.json.q" "$work/maker.json.q"
sed 's/"rows": 50/"rows": 6/' "$work/maker.json.q" >"$work/forged.q"
ok 'what was changed does not' says 9 'was changed' queries verify "$work/forged.q"
# a maker that has forgotten a step, and signs the rest
python3 - "$work" <<'PY'
import json, sys
x = json.load(open(sys.argv[1] + "/maker.json.q"))
x["steps"].pop()
json.dump(x, open(sys.argv[1] + "/cut.q", "w"))
PY
ok 'nor what was cut' says 9 'was changed' queries verify "$work/cut.q"
finish
