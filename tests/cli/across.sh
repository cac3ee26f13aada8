#!/bin/sh
# A question that two agents can answer only together: policy, budget, records, who is missing.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/two_owners.sh"
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
theirs() { printf 'SELECT ?d { <gene7> <%s> ?d }' "$(printf "%$1s" '' | tr ' ' r)"; }
ok 'a long name of theirs is asked for' says 0 'Nobody answers over rrr' -d "$work/hospital" query --federated "$(theirs 512)"
ok 'but none that is too long' says 2 'over names of at most 512 bytes' -d "$work/hospital" query --federated "$(theirs 513)"
ask
ok 'it is said that nobody answers' grep -q 'Nobody answers over treats' "$err"
ok 'nothing is on record' prints 'No step' -d "$work/maker" queries list

# ---- its owner lets it ----
day=$(date -u +%F)
restart maker 'rules: "facts * treats", steps_per_day: 7, rows_per_day: 150'
answers() { ask "$@" && says_of 'r["asked"]'; }
ok 'its owner lets it answer facts' wait_for 'an answer' answers
ok 'which is what the two know together' says_of 'set(best[:2]) == {"drug7", "drug27"}'
ok 'one edge of each' eval 'ask --explain && says_of "[e[\"agent\"] for e in r[\"answers\"][0][\"edges\"]] == [\"hospital\", \"maker\"] and all(e[\"known\"] for e in r[\"answers\"][0][\"edges\"])"'
ok 'in words' prints 'known  by maker' -d "$work/hospital" query --federated --explain "$question"
used_up() { ask && says_of '"used up" in r["missing"][0]["why"] and r["missing"][0]["name"] == "maker"'; }
day_is_over() { [ "$(date -u +%F)" != "$day" ]; } # and another budget has begun
ok 'the budget of a day is all' eval 'used_up || { day_is_over && wait_for "the next one" used_up; }'
kill -9 "$pid_maker"
wait "$pid_maker" 2>/dev/null
ok 'a name of characters that are not printed ends' says 1 'no relation' -d "$work/hospital" query --federated 'SELECT ?x { <gene7> <q\u0001> ?x }'
ask
ok 'a partner that is not there is missing' says_of '"link" in r["missing"][0]["why"]'
restart_all() { start maker && wait_for link peer_is maker "$(id_of hospital)" linked True; }
ok 'it is back' restart_all
ok 'and knows what it has answered' wait_for budget used_up
# What an owner has no room for is said: under NOT it would be taken for untrue.
restart maker 'answer: facts'
part() { ask --want-known 1 && says_of '"--want-known" in r["missing"][0]["why"]'; }
ok 'more known answers than were wanted' wait_for 'a part' part
ok 'or where none was wanted' eval 'ask --want-known 0 && says_of "\"--want-known\" in r[\"missing\"][0][\"why\"]"'
ok 'none are missing where all came' eval 'ask && says_of "r[\"asked\"] and not r[\"missing\"]"'
known() { run -d "$work/hospital" query --json "$@" 'SELECT ?d { <ward1> <keeps> ?d FILTER NOT EXISTS { ?d <like> <drug7> } }'; }
known --federated
ok 'what partners know of NOT is not known here' says_of 'r["answers"] and not any(a["known"] for a in r["answers"])'
echo '{"type": "1p", "anchors": ["drug7"], "relations": [["treats"]], "hard": ["illness7"]}' >"$work/hard.jsonl"
figures() { run -d "$work/hospital" query --federated --batch "$work/hard.jsonl" --evaluate --json "$@"; }
ok 'figures by facts' eval 'figures && says_of "r[\"facts\"] is True"'
ok 'are no measure, and it is said' grep -q 'no measure of predictions' "$err"
# A name that the hospital alone has stays there, unless its owner says otherwise: nobody is asked.
ok 'a name of its own is not asked for' eval 'ask && says_of "[(m[\"name\"], m[\"relation\"]) for m in r[\"not_asked\"]] == [(\"maker\", \"causes\")] and \"federation.share\" in r[\"not_asked\"][0][\"why\"]"'
ok 'in words' prints 'not asked: maker over causes' -d "$work/hospital" query --federated "$question"
echo '{"type": "1p", "anchors": ["gene7"], "relations": [["causes"]], "hard": ["illness8"]}' >"$work/hard.jsonl"
ok 'nothing leaves' eval 'figures && says_of "r[\"across\"][\"bytes\"] == 0 and r[\"not_asked\"]"'
ok 'but where it is told' eval 'figures --tell-own && says_of "r[\"across\"][\"bytes\"] > 0 and not r[\"not_asked\"]"'
restart maker 'answer: facts, rules: "nothing * treats; nothing * <like>"'
run -d "$work/maker" doctor
ok 'a rule for no relation is found' flat_has "holds for nothing: the graph has no relation '<like>'"
ok 'one behind all others is refused' says 2 'never holds' -d "$work/maker" config set query.rules 'soft * *; nothing * treats'

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
ok 'all of it was compared' [ -z "$(grep 'no export' "$out")" ]
"$fkge" -q -d "$work/maker" id --json >"$work/id.json"
ok 'whose they are is for the owners to say' flat_has "maker, signing key $(member "$work/id.json" sign_id):"
ok 'one alone' prints 'The records hold' queries verify "$work/maker.json.q"
ok 'is not called compared' flat_has 'of maker: no export of theirs was given'
ok 'nor twice the same' exits 9 queries verify "$work/maker.json.q" "$work/maker.json.q"
ok 'which is said' flat_has 'FAULT: both exports are of one owner, maker, so nothing was compared'
sed 's/"rows": 50/"rows": 6/' "$work/maker.json.q" >"$work/forged.q"
ok 'what was changed does not' says 9 'was changed' queries verify "$work/forged.q"
sed 's/"fkge_queries": [0-9]*/"fkge_queries": 99/' "$work/maker.json.q" >"$work/newer.q"
ok 'one of a newer fkge is told' says 7 'of version 99, this fkge knows 1 to 3' queries verify "$work/newer.q"
sed 's/"fkge_queries": [0-9]*/"fkge_queries": 0/' "$work/maker.json.q" >"$work/none.q"
ok 'and one of no fkge' says 7 'of version 0, this fkge knows 1 to 3' queries verify "$work/none.q"
"$fkge" -q -d "$work/maker" ledger export "$work/maker.l" >/dev/null
ok 'an export of something else is no fault' says 4 'maker.l: this is not an export of fkge queries' \
	queries verify "$work/maker.l"
# a maker that has forgotten a step, and signs the rest
python3 - "$work" <<'PY'
import json, sys
x = json.load(open(sys.argv[1] + "/maker.json.q"))
x["steps"].pop()
json.dump(x, open(sys.argv[1] + "/cut.q", "w"))
PY
ok 'nor what was cut' says 9 'was changed' queries verify "$work/cut.q"

# an asker that puts two questions under one id: the owner, who has answered both, is not at fault for it
for who in hospital maker; do
	"$fkge" -q -d "$work/$who" stop
	cp -r "$work/$who" "$work/$who-twice"
done
wait
ok 'one id is used again' "$2" "$work/maker-twice" "$work/hospital-twice"
"$fkge" -q -d "$work/maker-twice" queries export -o "$work/twice.q" >/dev/null
ok 'the owner is not faulted for it' prints 'The records hold' queries verify "$work/twice.q"
ok 'it is noted' flat_has 'another one has this id'
ok 'nor beside the asker' prints 'The records hold' queries verify "$work/hospital.json.q" "$work/twice.q"
ok 'who has no record of them' [ "$(grep -c 'the other side has no record of it' "$out")" = 2 ]
# a maker that has another record of a step than the one that it signed, and one that has a record twice
python3 - "$work" <<'PY'
import sys, storedb
work = sys.argv[1]
db = storedb.connect(work + "/maker-twice/store.db")
db.execute("DELETE FROM step WHERE position = (SELECT max(position) - 2 FROM step)")
db.commit()
db = storedb.connect(work + "/hospital-twice/store.db")
names = [c[1] for c in db.execute("PRAGMA table_info(step)") if c[1] != "position"]
row = ", ".join(names)
db.execute(f"INSERT INTO step ({row}) SELECT {row} FROM step ORDER BY position LIMIT 1")
db.commit()
PY
for who in hospital maker; do
	"$fkge" -q -d "$work/$who-twice" queries export -o "$work/$who-twice.q" >/dev/null
done
ok 'who signed one thing and keeps another is found' says 9 '2 faults' \
	queries verify "$work/hospital.json.q" "$work/maker-twice.q"
ok 'and how' flat_has 'its owner has signed this, and something else under its id'
ok 'a record twice is found' says 9 '1 faults' queries verify "$work/hospital-twice.q"
ok 'as such' flat_has 'it stands there twice'

# ---- the asker's owner replaces its keys: records of before are its own still ----
exported() { "$fkge" -q -d "$work/$1" queries export -o "$work/$2.q" >/dev/null; }
exported hospital before-h
exported maker before-m
cp -r "$work/hospital" "$work/thief"
ok 'the asker has new keys' exits 0 -d "$work/hospital" key rotate -o "$work/keys"
ok 'its export names them' exported hospital after-h
ok 'and holds' prints 'The records hold' queries verify "$work/after-h.q"
ok 'its steps were asked, not answered' flat_has 'answered 0 steps'
ok 'with a partner who knows nothing yet' prints 'The records hold' queries verify "$work/after-h.q" "$work/before-m.q"
ok 'nothing is noted' [ -z "$(grep note "$out")" ]
ok 'its own of before is no other side' exits 9 queries verify "$work/after-h.q" "$work/before-h.q"
ok 'by any of its keys' flat_has 'both exports are of one owner, hospital'
ok 'the partner takes them' exits 0 -d "$work/maker" peer rotate "$work/keys"
ok 'and has the records of who asked' prints 'asked by hospital' -d "$work/maker" queries list -p hospital
exported maker after-m
ok 'its export holds' prints 'The records hold' queries verify "$work/after-m.q"
for other in before-h after-h; do
	ok "and with $other" prints 'The records hold' queries verify "$work/after-m.q" "$work/$other.q"
done
ok 'exports of nobody with new keys name none' eval '! grep -q rotations "$work/before-h.q"'
ok 'the others do' grep -q '"rotations"' "$work/after-h.q"

# ---- both go on, and who keeps a record back is found, whatever keys signed it ----
anew maker 5 # something new, for a session: names are compared again in it
sed -i 's/max_rounds: 1/max_rounds: 2/' "$work/maker/agent.yaml" "$work/hospital/agent.yaml"
start maker
start hospital
ok 'linked by the new keys' wait_for link peer_is maker "$(id_of hospital)" linked True
ok 'one more step' wait_for 'one more' soft
for who in hospital maker; do "$fkge" -q -d "$work/$who" stop; done
wait
exported hospital both-h
exported maker both-m
ok 'steps of both keys hold' prints 'The records hold' queries verify "$work/both-h.q" "$work/both-m.q"
steps_of() { python3 - "$work/$1.q" <<'PY'
import json, sys
steps = json.load(open(sys.argv[1]))["steps"]
print(len({s["asker"] for s in steps}), len({s["owner"] for s in steps}))
PY
}
ok 'they are of two keys and one' [ "$(steps_of both-h)" = '2 1' ]
# a maker that drops a step which the key of before has asked
python3 - "$work/maker/store.db" "$(member "$work/before-h.q" sign_key)" <<'PY'
import sys, storedb
db = storedb.connect(sys.argv[1])
[(at,)] = db.execute("SELECT max(position) FROM step WHERE asker = ?", [bytes.fromhex(sys.argv[2])])
db.execute("DELETE FROM step WHERE position = ?", [at])
db.commit()
PY
exported maker cut-m
ok 'who keeps one of them back is found' says 9 '2 faults' queries verify "$work/both-h.q" "$work/cut-m.q"
ok 'by the partner' flat_has 'its owner signed it and has it not'
ok 'and by its own count' flat_has '1 older steps are no longer kept, it says, and yet it has'
ok 'who had not answered yet is not' prints 'The records hold' queries verify "$work/both-h.q" "$work/before-m.q"
ok 'which is noted' flat_has "the owner's export was made before it: ask for a newer one"
# one that has forgotten all, and that there was anything
python3 - "$work/maker/store.db" <<'PY'
import sys, storedb
db = storedb.connect(sys.argv[1])
db.execute("DELETE FROM step")
db.execute("DELETE FROM sqlite_sequence WHERE name = 'step'")
db.commit()
PY
exported maker none-m
ok 'who keeps all of them back is found' exits 9 queries verify "$work/both-h.q" "$work/none-m.q"
ok 'step by step' [ "$(grep -c '^FAULT.*its owner signed it and has it not' "$out")" -eq "$(grep -c '"id"' "$work/both-h.q")" ]
# the same file without what says that the keys are of one owner
python3 - "$work/both-h.q" "$work/hidden.q" <<'PY'
import json, sys
x = json.load(open(sys.argv[1]))
del x["rotations"]
json.dump(x, open(sys.argv[2], "w"))
PY
"$fkge" -q -d "$work/thief" key rotate -o "$work/stolen" >/dev/null
exported thief thief
ok 'a thief of the old keys has other ones' exits 9 queries verify "$work/thief.q" "$work/both-m.q"
ok 'and is told apart' flat_has 'differ in what keys were replaced by'
ok 'what was replaced cannot be left out' says 9 'was changed' queries verify "$work/hidden.q"

# ---- private training: neither edges nor what valid says leave in a question ----
cp "$work/hospital.tsv" "$work/clinic.tsv"
owner clinic 'answer: nothing'
befriend clinic maker
sed -i 's/^train: {/train: {dp: {epsilon: 8, rate: 0.5}, filtered: false, shared_chunk: 0, /' "$work/clinic/agent.yaml"
ok 'tables of before do not ask' says 2 'trained without train.dp' -d "$work/clinic" query --federated "$question"
ok 'private ones' exits 0 -d "$work/clinic" train --fresh
start maker
start clinic
ok 'names are compared again' wait_for names peer_is clinic "$(id_of maker)" shared_entities 50
private() { run -d "$work/clinic" query --federated --explain --json "$@" "$question"; }
ok 'it asks' wait_for 'an answer' eval 'private && says_of "r[\"asked\"]"'
ok 'by its tables alone' says_of 'r["search"]["known"] == "none" and not any(e["known"] for a in r["answers"] for e in a["edges"])'
ok 'by no scale of valid' says_of '(r["search"]["truth"]["slope"], r["search"]["truth"]["offset"], r["search"]["truth"]["rows"]) == (1, 0, 0)'
ok 'and says so' grep -q 'by private tables alone' "$err"
ok 'known edges are refused' says 2 'edges of the graph would leave' -d "$work/clinic" query --federated --known all "$question"
ok 'an encoder, too' says 2 'encoders train without noise' -d "$work/clinic" query --federated --encoder x "$question"
ok 'alone it answers as ever' eval 'run -d "$work/clinic" query --json "SELECT ?i { <gene7> <causes> ?i }" && says_of "r[\"search\"][\"known\"] == \"all\""'

# ---- nor does the order of its triples, which ids follow: the mirror has them backwards, and the same tables ----
newest() { "$fkge" -d "$work/$1" checkpoint list --json >"$work/states" && member "$work/states" checkpoints 0 id; }
"$fkge" -q -d "$work/clinic" export -c "$(newest clinic)" "$work/tables" >/dev/null
tac "$work/clinic.tsv" >"$work/mirror.tsv"
owner mirror 'answer: nothing'
ok 'the mirror takes the tables' exits 0 -d "$work/mirror" import --embeddings "$work/tables"
ok 'as private ones' python3 - "$work/mirror/store.db" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
db.execute("UPDATE checkpoint SET protocol = 'private_steps/2', score = 40 WHERE kind = 0")
db.commit()
PY
private_train=$(grep '^train: ' "$work/clinic/agent.yaml")
sed -i "s/^train: .*/$private_train/" "$work/mirror/agent.yaml"
ok 'and starts' start mirror
python3 - >"$work/many.jsonl" <<'PY'
import json
for i in range(40):
    for kind, way in ("1p", "near"), ("2p", "near causes"), ("3p", "near near causes"):
        print(json.dumps({"type": kind, "anchors": [f"gene{i}"], "relations": [way.split()]}))
PY
says_all() { # NAME OPTIONS...: the answers to many questions, in the order of names, in $work/NAME.says
	who=$1
	shift
	run -d "$work/$who" query --federated --batch "$work/many.jsonl" --explain --top 200 --json -c "$(newest $who)" "$@"
	[ "$status" = 0 ] && python3 - "$out" >"$work/$who.says" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    for a in sorted(json.loads(line).get("answers", []), key=lambda a: a["name"]):
        print(a["name"], a["truth"].hex(), *(f"{e['head']}-{e['tail']}:{e['truth'].hex()}" for e in a["edges"]))
PY
}
mirrored() { says_all clinic "$@" && says_all mirror "$@" && [ "$(wc -l <"$work/mirror.says")" -gt 5000 ] &&
	cmp "$work/clinic.says" "$work/mirror.says"; }
ok 'to the last bit of each truth, its answers are those of the mirror' mirrored
ok 'and of equal truths the same go on' mirrored --norm min --beam 3

"$fkge" -q -d "$work/clinic" stop
sed -i 's/dp: {epsilon: 8, rate: 0.5}, //; s/^query:/privacy: {noisy_rows: true}\nquery:/' "$work/clinic/agent.yaml"
ok 'nor does what leaves with noise' says 2 'would leave without noise' -d "$work/clinic" query --federated "$question"
finish
