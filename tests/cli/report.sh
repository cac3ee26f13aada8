#!/bin/sh
# What partners brought: before, alone, with them; in pairs with federation.control and in rounds
# with the arm made afterwards.
. "$(dirname "$0")/lib.sh"

end() { # NAME: stop it and wait for its end
	run -d "$work/$1" stop
	eval "wait_for '$1 has ended' ended \$pid_$1"
}
meet() { # A B: each is the other's partner from now on; both run
	"$fkge" -q -d "$work/$1" invite --for "$(id_of "$2")" -o "$work/line" >/dev/null &&
		"$fkge" -q -d "$work/$2" join "$work/line" >/dev/null
}
arms() { member "$work/$1.json" arms "$2"; }
is_behind() { [ "$(arms "$1" alone_behind)" -gt 0 ]; }
same_arms() { [ "$(arms "$1" alone_epochs)" -ge "$2" ] && [ "$(arms "$1" alone_behind)" = 0 ]; }
# FILE: the figures of all arms are there, intervals hold them, differences are paired
sound='
import json, sys
j = json.load(open(sys.argv[1]))
for split in ("valid", "test"):
    s = j[split]
    for k, v in s.items():
        if isinstance(v, dict) and "mean" in v:
            assert v["low"] <= v["mean"] <= v["high"], (split, k, v)
    w, b, a = s["with_partners"], s["before"], s["alone"]
    assert abs(s["with_partners_less_before"]["mean"] - (w["mean"] - b["mean"])) < 1e-9
    assert abs(s["with_partners_less_alone"]["mean"] - (w["mean"] - a["mean"])) < 1e-9
    assert b["epochs"] == 0 and a["epochs"] == w["epochs"] > 0, (a, b, w)
    assert s["protocol"]["name"] == "standard"
assert j["valid"]["protocol"]["filter"] == ["train", "valid"]
'

# ---- pairs ----
agent a 1 'local_rounds: 0, control: true'
agent b 2 'local_rounds: 0'
"$fkge" -q -d "$work/a" train >/dev/null
"$fkge" -q -d "$work/b" train >/dev/null
ok 'before there are partners' says 1 'no partner has had a part' -d "$work/a" report
run -d "$work/a" eval --split valid --filter train+valid --json
first=$(member "$out" metrics mrr)
start a
start b
meet a b
ok 'sessions' wait_for sessions at_least a rounds 2
ok 'the arm alone has caught up' wait_for 'the arm alone' same_arms a 10
ok 'status has the arms' prints 'valid before partners' -d "$work/a" status
ok 'while it serves' prints 'with partners less before' -d "$work/a" report
ok 'the running agent has the folder' says 1 'in use' -d "$work/a" report --control
end a
end b
ok 'report' exits 0 -d "$work/a" report --json
cp "$out" "$work/report"
ok 'the figures fit each other' python3 -c "$sound" "$work/report"
close() { python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - float(sys.argv[2])) > 1e-9)' "$@"; }
ok 'before is as it was before' close "$first" "$(member "$work/report" valid before mean)"
run -d "$work/a" eval --json
ok 'with partners is what eval says' close "$(member "$out" metrics mrr)" "$(member "$work/report" test with_partners mean)"
ok 'in pairs there are no rounds' [ "$(member "$work/report" rounds)" = '[]' ]
ok 'each session says what it came to' [ "$(member "$work/report" sessions 0 partners 0)" = b ]
ok 'and with whom' [ "$(member "$work/report" sessions 0 ids 0)" = "$(id_of b)" ]
ok 'from the score of before' close "$first" "$(member "$work/report" sessions 0 before)"
ok 'by partner' [ "$(member "$work/report" partners 0 trainings)" -ge 2 ]
ok 'who that is' [ "$(member "$work/report" partners 0 id)" = "$(id_of b)" ]
ok 'for people' prints 'sessions, by partner' -d "$work/a" report
b_id=$(id_of b | cut -c 1-9)
ok 'by a name that others may have, too, and what nobody else has' grep -q "^  b ($b_id) .* trainings on its rows" "$out"
ok 'in each session' grep -q "; from b ($b_id)" "$out"
ok 'the same again' exits 0 -d "$work/a" report --json
ok 'bit for bit' cmp "$out" "$work/report"
kept() { run -d "$work/$1" checkpoint list --json; python3 -c 'import json, sys; print([c["digest"] for c in json.load(open(sys.argv[1]))["checkpoints"] if c["kind"] == sys.argv[2]])' "$out" "$2"; }
before=$(kept a before)
# b had no arm while it served: it is made now, with the same epochs
# key federation.control : the arm of a, above, was trained beside it
ok 'without control there is none' prints 'report --control' -d "$work/b" report
ok 'it is made afterwards' prints 'with partners less alone' -d "$work/b" report --control
run -d "$work/b" report --json
ok 'with as many epochs' python3 -c "$sound" "$out"
# tables and history stay through a restart
start a
ok 'they are there at the next start' close "$(arms a before)" "$first"
ok 'the arm has nothing to do' wait_for 'the arm alone' same_arms a 10
end a
ok 'before is never replaced' [ "$(kept a before)" = "$before" ]
# an arm that cannot be saved
cp -r "$work/a" "$work/u"
sql() { python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute(sys.argv[2])' "$work/$1/store.db" "$2"; }
sql u "UPDATE checkpoint SET kind = 1 WHERE kind IN (5, 7)" # as if it had trained nothing yet
sql u "CREATE TRIGGER full BEFORE INSERT ON checkpoint WHEN NEW.kind = 7 BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
start u
ok 'is said' wait_for 'its warning' grep -q 'trained no further before the next start: .*the disk is full' "$work/u.log"
ok 'it waits' wait_for 'the arm alone' is_behind u
end u
ok 'nor is it tried again and again' [ "$(grep -c 'the disk is full' "$work/u.log")" -eq 1 ]
sql u 'DROP TRIGGER full'
start u
ok 'it goes on at the next start' wait_for 'the arm alone' same_arms u 10
end u

# an arm that an earlier fkge has trained: there is nothing that it goes on from
cp -r "$work/a" "$work/u2"
sql u2 "UPDATE checkpoint SET kind = 5 WHERE kind = 7 AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE kind = 5)"
sql u2 "UPDATE checkpoint SET kind = 1 WHERE kind = 7"
ok 'it is left out' prints 'Not there: the same epochs alone' -d "$work/u2" report
ok 'with a word' grep -q 'of an earlier fkge' "$err"
ok 'and made anew' prints 'with partners less alone' -d "$work/u2" report --control
run -d "$work/u2" report --json
ok 'as the one of a' [ "$(member "$out" test alone)" = "$(member "$work/report" test alone)" ]

# ---- where nothing comes of partners, the arm is the same bit for bit ----
# before is what the owner trained, as if a partner had begun to have a part; then rounds of its own alone
lone() { # NAME AFTER
	agent "$1" 5 "local_rounds: 12, control: true, gather_s: 0.05, patience: 0, after: $2"
	sed -i 's/max_rounds: 2/max_rounds: 12/; s/lr: 0.02/lr: 0.2/' "$work/$1/agent.yaml"
	"$fkge" -q -d "$work/$1" train --epochs 5 >/dev/null
	python3 - "$work/$1/store.db" <<'PY'
import storedb, struct, sys
with storedb.connect(sys.argv[1]) as db:
    columns = ", ".join(c[1] for c in db.execute("PRAGMA table_info(checkpoint)") if c[1] not in ("id", "kind"))
    best, score = db.execute("SELECT id, score FROM checkpoint WHERE kind = 0").fetchone()
    before = db.execute(f"INSERT INTO checkpoint (kind, {columns}) SELECT 4, {columns} FROM checkpoint WHERE id = ?",
                        (best,)).lastrowid
    db.execute("INSERT INTO checkpoint_block SELECT ?, tag, position, hash FROM checkpoint_block WHERE checkpoint = ?",
               (before, best))
    history = (b"\x87\xa1v\x01\xa1b\xc3\xa1s\xcb" + struct.pack(">d", score)  # agent/core/history.c, as msgpack
               + b"\xa1d\xc2\xa1h\xc2\xa1e\x00\xa1g\x90")
    db.execute("INSERT OR REPLACE INTO meta VALUES ('history', ?)", (history,))
PY
	start "$1"
}
lone keep keep
lone back back
for k in keep back; do
	ok "$k: own rounds" wait_for 'own rounds' at_least $k local_rounds 12
	ok "$k: the arm alone has caught up" wait_for 'the arm alone' same_arms $k 60
	end $k
	ok "$k: the best are the same" [ "$(kept $k best)" = "$(kept $k alone)" ]
done
ok 'keep: so is what they go on from' [ "$(kept keep latest)" = "$(kept keep alone_latest)" ]
ok 'keep: which is another' [ "$(kept keep latest)" != "$(kept keep best)" ]
ok 'back: it went back' [ "$(kept back alone)" = "$(kept back alone_latest)" ]
run -d "$work/keep" report --json
ok 'so nothing is said to have come' [ "$(member "$out" test with_partners_less_alone mean)" = 0.0 ]
ok 'and what the intervals are over' prints 'another seed' -d "$work/keep" report

# ---- another graph: before is what its own first tables were ----
cp -r "$work/a" "$work/h"
sed -i 's/max_rounds: 2/max_rounds: 3/' "$work/h/agent.yaml"
run -d "$work/h" export "$work/other" --triples
sed -i 's/\be7\b/elsewhere/' "$work"/other/*.tsv
sql h "CREATE TRIGGER full BEFORE INSERT ON triples BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
ok 'an import that fails' says 9 'the disk is full' -d "$work/h" import --replace "$work/other"
sql h 'DROP TRIGGER full'
run -d "$work/h" report --json
ok 'takes nothing of what partners brought' [ "$(member "$out" partners 0 trainings)" -ge 2 ]
ok 'a name is changed' exits 0 -d "$work/h" import --replace "$work/other"
"$fkge" -q -d "$work/h" train >/dev/null
ok 'no partner has had a part' says 1 'no partner has had a part' -d "$work/h" report
start h
start b
meet h b
ok 'the partner of before has nothing new, but is new to this graph' wait_for 'a session' at_least h rounds 3
end h
end b
ok 'before is kept again' prints 'with partners less before' -d "$work/h" report
ok 'of these sessions alone' [ "$(run -d "$work/h" report --json; member "$out" partners 0 trainings)" = 1 ]

# ---- who ends by itself does not wait for the arm ----
# the arm of g is behind by more epochs than can be trained, a million a unit
agent g 3 'local_rounds: 0'
sed -i 's/max_rounds: 2/max_rounds: 1/' "$work/g/agent.yaml"
"$fkge" -q -d "$work/g" train >/dev/null
start g
start b
meet g b
ok 'a round' wait_for 'a round of g' at_least g rounds 1
end g
end b
sed -i 's/epochs_per_round: 5/epochs_per_round: 1000000, control: true/' "$work/g/agent.yaml"
agent full 4
python3 - "$work/g/store.db" <<'PY'
import storedb, sys
with storedb.connect(sys.argv[1]) as db:
    history, = db.execute("SELECT value FROM meta WHERE key = 'history'").fetchone()
    assert history.count(b"\xa1e\x05") == 1  # epochs since (agent/core/history.c), as msgpack
    history = history.replace(b"\xa1e\x05", b"\xa1e\xcf" + (1 << 40).to_bytes(8, "big"))
    db.execute("UPDATE meta SET value = ? WHERE key = 'history'", (history,))
    db.execute("CREATE TRIGGER full BEFORE INSERT ON peer WHEN NEW.name = 'full' BEGIN"
               " SELECT RAISE(ABORT, 'the disk is full'); END")
PY
start g
ok 'the arm is far behind' wait_for 'the arm alone' is_behind g
ok 'its disk fails' says 9 'the disk is full' -d "$work/g" peer add "$("$fkge" -d "$work/full" id --line)"
ok 'it ends before the arm has caught up' wait_for 'g has ended' ended $pid_g

# ---- what is forgotten is in none of the arms ----
run -d "$work/a" export "$work/ex" --triples
head -3 "$work/ex/train.tsv" >"$work/forget.tsv"
ok 'triples are taken back' exits 0 -d "$work/a" unlearn "$work/forget.tsv" --drop-tables
ok 'and the tables of before with them' [ "$(kept a before)$(kept a alone)$(kept a alone_latest)" = '[][][]' ]

# ---- private training makes no arm without noise ----
sed -i 's/^train: {/train: {dp: {epsilon: 8}, filtered: false, shared_chunk: 0, /' "$work/b/agent.yaml"
ok 'not under train.dp' says 2 'train.dp' -d "$work/b" report --control
sed -i 's/local_rounds: 0/local_rounds: 0, control: true/' "$work/b/agent.yaml"
ok 'nor while serving' says 2 'federation.control' -d "$work/b" serve

# ---- rounds ----
for k in c d; do
	agent $k 3 'mode: rounds'
	echo 'rounds: {epochs: 2, first_epochs: 20, max: 20, eval_every: 1, join_s: 60, train_s: 60, stage_s: 60}' >>"$work/$k/agent.yaml"
done
start c
start d
meet c d
over() { [ "$(member "$work/$1.json" round done)" -ge 2 ]; }
ok 'rounds' wait_for rounds over c
learnt() { [ "$(arms c epochs)" -ge 4 ]; } # counted a moment after the round is done
ok 'before is kept in rounds, too' wait_for 'epochs of both' learnt
end c
end d
ok 'the arm of rounds' prints 'with partners less alone' -d "$work/c" report --control
run -d "$work/c" report --json
ok 'its figures fit each other' python3 -c "$sound" "$out"
ok 'in rounds there are no sessions' [ "$(member "$out" sessions) $(member "$out" partners)" = '[] []' ]
ok 'each round says what it came to' [ "$(member "$out" rounds 0 partners 0)" = d ]
finish
