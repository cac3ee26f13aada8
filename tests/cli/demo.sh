#!/bin/sh
# A small demo, with one agent killed in the middle of each federation.
fkge=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failed=0
ok() { # TEXT command...
	count=$((count + 1))
	text=$1
	shift
	if "$@"; then echo "ok $count - $text"; else
		failed=1
		echo "not ok $count - $text"
	fi
}
report() { # a condition on the report, in Python, as r
	python3 - "$work/demo/report.json" "$1" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
agents = {a["name"]: a for a in r["agents"]}
sys.exit(not eval(sys.argv[2], {"r": r, "agents": agents}))
PY
}
says() { grep -qF -- "$1" "$work/demo/report.md"; }

echo 1..18
"$fkge" demo --out "$work/demo" --size 25 --epochs 30 --rounds 3 --round-epochs 5 --kill \
	--limit 120 >"$work/out" 2>"$work/err"
ok 'the demo runs, with kill -9 in the middle' test $? = 0
[ -s "$work/demo/report.json" ] || sed 's/^/# /' "$work/err"
ok 'three companies' report 'len(agents) == 3'
ok 'every arm has its scores' report 'all(0 < a[arm]["mrr"] <= 1 and a[arm]["hits1"] <= a[arm]["hits10"] for a in agents.values() for arm in ("before", "procrustes", "ppat", "control-procrustes", "control-ppat"))'
ok 'and the floor' report 'all("mrr" in a["floor"] for a in agents.values())'
ok 'control arm and federation made as many rounds' report 'all(a[t]["rounds"] == a["control-" + t]["rounds"] for a in agents.values() for t in ("procrustes", "ppat"))'
ok 'valid never fell' report 'all(a[t]["valid"] >= a["before"]["valid"] for a in agents.values() for t in ("procrustes", "ppat", "control-ppat"))'
ok 'twelve rows of pairs' report 'len(r["pairs"]) == 12'
ok 'they had sessions' report 'sum(p["sessions"] for p in r["pairs"] if p["translator"] == "procrustes") > 0'
ok 'Procrustes drew no label' report 'all(p.get("labels", 0) == 0 for p in r["pairs"] if p["translator"] == "procrustes")'
ok 'PPAT drew some, within the cap' report 'any(p.get("labels", 0) > 0 for p in r["pairs"]) and all(p["labels"] <= p["labels_cap"] for p in r["pairs"] if p.get("labels"))'
ok 'every session cost bytes' report 'all(p["bytes"] > 0 for p in r["pairs"] if p["sessions"])'
ok 'the ledgers agree' report 'len(r["arms"]) == 2 and all(a["ledgers"] for a in r["arms"])'
ok 'the killed one came back bit for bit' report 'all(a["killed"]["same"] and len(a["killed"]["after"]) == 64 for a in r["arms"])'
ok 'neither of two answers the question alone' report 'all(a["says"] and "no relation" in a["says"] and not a["answers"] for a in r["question"]["alone"])'
ok 'together they do, each with an edge that it knows' report 'r["question"]["answers"] and all([e["agent"] for e in a["edges"]] == ["genebank", "maker"] and all(e["known"] for e in a["edges"]) for a in r["question"]["answers"])'
ok 'which the report explains' says 'maker knows)'
ok 'the Markdown says so' says 'bit for bit'
ok 'a folder that is there is refused' test "$("$fkge" demo --out "$work/demo" 2>&1 | grep -c 'there already')" = 1
exit $failed
