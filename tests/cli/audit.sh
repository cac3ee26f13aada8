#!/bin/sh
# fkge audit: the verdict, its exit status, with an agent and without, for people and programs.
. "$(dirname "$0")/lib.sh"

fkge=$(realpath "$fkge")
cd "$work" || exit 1
few='--rows 60 --draws 100000 --sessions 1000 --labels 32768'

ok 'help has an example' prints 'fkge -d acme audit' audit --help
ok 'without an agent the defaults are audited' prints 'verdict: passed' audit $few
ok 'and it says so' grep -q 'what is audited are the defaults' "$err"
ok 'the bound stands beside the account' grep -q 'labels: epsilon is at least .* by measurement, .* by account' "$out"
ok 'every planted fault is shown' [ "$(grep -c '^  caught ' "$out")" = 19 ]

agent a 3
cat >>"$work/a/agent.yaml" <<'YAML'
ppat: {teachers: 4, noise: laplace, lambda: 0.05, steps: 3, batch: 8, hidden: 16}
privacy: {epsilon_per_peer: 2.73}
YAML
"$fkge" -q -d "$work/a" train --epochs 10 >/dev/null
ok 'an agent: its own rows' exits 0 -d "$work/a" --json audit $few
ok 'are the ones' [ "$(member "$out" rows)" = own ]
ok 'passed' [ "$(member "$out" verdict)" = passed ]
ok 'the status is in the object' [ "$(member "$out" exit)" = 0 ]
one_label() {
	python3 - "$out" <<'PY'
import json, sys
lines = json.load(open(sys.argv[1]))["lines"]
one = [l for l in lines if l["what"] == "agent.yaml: one label"]
session = [l for l in lines if l["what"] == "agent.yaml: 24 labels"]
assert len(one) == len(session) == 1
assert abs(one[0]["upper"] - 0.05348) < 1e-5 and one[0]["lower"] < one[0]["upper"]
assert session[0]["lower"] < session[0]["upper"]
assert all(l["good"] and l["found"] == l["control"] for l in lines)
assert {l["audit"] for l in lines} == {"A", "B", "C", "D", "E"}
PY
}
ok 'its own mechanism' one_label

# An audit that cannot see is no pass: ten draws tell nothing from nothing.
ok 'too few draws are not enough' says 1 'the audit did not resolve' -d "$work/a" audit --rows 60 --draws 10 --sessions 2 --labels 8192
ok 'and say what was missed' grep -q 'MISSED  fault planted: agent.yaml: noise / 4' "$out"
ok 'in JSON too' exits 1 -d "$work/a" --json audit --rows 60 --draws 10 --sessions 2 --labels 8192
ok 'as a verdict' [ "$(member "$out" verdict)" = "not resolved" ]

# ---- wrong usage ----
ok 'draws are counted' exits 2 audit --draws x
ok 'alpha is a share' exits 2 audit --alpha 2
ok 'no arguments' exits 2 audit now
echo 'nonsense: 1' >>"$work/a/agent.yaml"
ok 'a bad agent.yaml is said' says 2 'agent.yaml' -d "$work/a" audit $few
finish
