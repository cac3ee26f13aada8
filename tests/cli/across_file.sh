#!/bin/sh
# A file of questions over live agents: the figures are those of the owner who could answer it alone.
. "$(dirname "$0")/lib.sh"

# The owner has a graph, the asker its names and nothing else that a question goes over.
"$fkge" -q synth -e 100 -t 500 --seed 3 -o "$work/world" >/dev/null
cat "$work"/world/*.tsv | cut -f1,3 | tr '\t' '\n' | sort -u >"$work/names"
awk 'NR > 1 { print last "\tlisted\t" $0 } { last = $0 }' "$work/names" >"$work/list.tsv"
queries() { "$fkge" -q queries sample "$work/world" -n "$1" --types "$2" --easy -o "$work/$3" >/dev/null; }
ok 'questions of all types' queries 2 all questions
ok 'of a type that is none' says 2 "pni, all, benchmark" queries sample "$work/world" --types other -o "$work/none"

member_of() { # NAME GRAPH FEDERATION QUERY
	address=127.0.0.1:$(free_port)
	"$fkge" -q -d "$work/$1" init --name "$1" --listen $address >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: $address
model: {kind: complex, dim: 8, gamma: 0.1}
train: {epochs: 4, eval_every: 4, threads: 1, lr: 0.1, batch: 64, negatives: 8, loss: softmax, patience: 0}
federation: {names_every_s: 0, epochs_per_round: 1, max_rounds: 1, sleep_s: 0, local_rounds: 0, roles: $3}
query: {$4}
YAML
	"$fkge" -q -d "$work/$1" import "$work/$2" >/dev/null && "$fkge" -q -d "$work/$1" train >/dev/null
}
# The owner takes no rows in, so its tables stay what they are.
ok 'the owner' member_of owner world client 'answer: soft, steps_per_day: 3000, rows_per_day: 1000000'
ok 'who asks' member_of asker list.tsv host 'answer: nothing'
befriend asker owner
ok 'the agents start' eval 'start asker && start owner'
ok 'names are compared' wait_for names peer_is asker "$(id_of owner)" shared_entities "$(wc -l <"$work/names")"

ok 'the owner alone' exits 0 -d "$work/owner" query --batch "$work/questions" --evaluate --beam 0 --known none --json
cp "$out" "$work/alone"
ask_file() { run -d "$work/asker" query --federated --batch "$work/questions" --beam 0 --want 1024 --want-known 1024 --patience 50 --json "$@"; }
across_file() { ask_file --evaluate && [ "$status" -eq 0 ]; }
ok 'across agents' across_file
cp "$out" "$work/across"
# Truths are the same bits, so ranks are.
cat >"$work/compare.py" <<'PY'
import json, sys
a, b = (json.load(open(f"{sys.argv[1]}/{f}")) for f in ("alone", "across"))
for x, y in zip(a["types"], b["types"], strict=True):
    for k in ("type", "queries", "hard", "mrr", "hits1", "hits3", "hits10"):
        assert x[k] == y[k], (x["type"], k, x[k], y[k])
    assert y["bytes"] > 100 and y["ms"] > 0 and y["steps"] >= 1 and y["lacking"] == 0, y
assert len(a["types"]) == 14 and a["mean"] == b["mean"] and 0 < a["mean"]["mrr"] < 1
assert b["missing"] == [] and b["strange"] == 0 and b["protocol"]["filter"][-1] == "file"
[p] = b["partners"]
assert p["name"] == "owner" and p["steps"] > 28 and p["rows"] > 100, p
assert 0 < p["bytes"] <= b["across"]["bytes"] * b["queries"] + 1, (p, b["across"])
PY
ok 'the same figures, and what they cost' python3 "$work/compare.py" "$work"
ok 'answers, too' ask_file
answers_of() { python3 - "$out" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
sys.exit(not (len(lines) == 29 and all(l["answers"] and not l["lacking"] for l in lines[:-1]) and lines[-1]["partners"]))
PY
}
ok 'to each of them' answers_of
# Longer than what a pipe holds, and than what is read of it at once.
head -n 3 "$work/questions" >"$work/first"
python3 - "$work/first" >"$work/long" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    print(json.dumps({**json.loads(line), "note": "x" * 50000}))
PY
piped() { # FILE...: as ask_file, but from a pipe
	status=0
	cat "$@" | "$fkge" -d "$work/asker" query --federated --batch - --patience 50 --json >"$out" 2>"$err" || status=$?
	[ "$status" -eq 0 ] && [ "$(grep -c '"answers"' "$out")" -eq 3 ]
}
ok 'from a pipe, too, all of them' piped "$work/long"
ok 'packed, too' eval 'gzip -k "$work/long" && piped "$work/long.gz"'
# What the owner cuts off counts where an AND follows, and is else no answer.
few_of() { python3 - "$out" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])][:-1]
n = {t: {len(l["answers"]) for l in lines if l["type"] == t} for t in ("1p", "2p", "2i")}
sys.exit(not (n["1p"] == n["2p"] == {2} and min(n["2i"]) > 2))
PY
}
# One file behind the other asks too often, and is answered when it asks again.
ok 'few of them' ask_file --want 2
ok 'are joined with the rest' few_of
printf '{"type":"1p","anchors":["nobody"],"relations":[["r0"]],"hard":["e0"]}\n' >>"$work/questions"
ok 'what names a stranger is left out' across_file
ok 'and counted' [ "$(member "$out" strange) $(member "$out" queries)" = '1 28' ]

# ---- an owner that stops answering ----
kill -9 "$pid_owner"
wait "$pid_owner" 2>/dev/null
gone() { peer_is asker "$(id_of owner)" linked False; }
ok 'the owner is gone' wait_for 'the end of the link' gone
across_file
ok 'nothing is found, and every question says who is missing' [ "$(member "$out" across lacking) $(member "$out" missing 0 name)" = '28 owner' ]
ok 'no search by triples alone' says 2 'leave out --exact' -d "$work/asker" query --federated --exact 'SELECT ?x { <e0> <r0> ?x }'
finish
