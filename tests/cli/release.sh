#!/bin/sh
# Releases of a map and of noisy rows between two processes: charged, shown, verified, and refused when none is left.
. "$(dirname "$0")/lib.sh"

stop() { # NAME...
	for who; do
		"$fkge" -q -d "$work/$who" stop
		eval "wait \$pid_$who"
	done
}
quiet() { for who in a b; do [ "$(value $who state)" = sleep ] && [ "$(value $who queued)" = 0 ] || return; done; }
shows() { run -d "$work/$1" ledger show && flat_has "$2"; }
exported() { "$fkge" -q -d "$work/$1" ledger export "$work/$2" >/dev/null; }

fkge=$(realpath "$fkge")
# b asks a for a map; a's rows, when b hosts, go with noise: both are a's to pay, one release each
agent a 1 'local_rounds: 0, translator: map'
agent b 2 'local_rounds: 0'
echo 'privacy: {useless_sessions: spend, noisy_rows: true, epsilon_per_peer: 1.6, release_epsilon: 1}' >>"$work/a/agent.yaml"
for who in a b; do
	sed -i 's/max_rounds: 2/max_rounds: 1/; s/epochs: 20/epochs: 10/' "$work/$who/agent.yaml"
	"$fkge" -q -d "$work/$who" train >/dev/null
done
port=$(free_port)
sed -i "s/^listen: .*/listen: 127.0.0.1:$port/" "$work/a/agent.yaml"
befriend a b
start a
start b
ok 'a hosts' wait_for 'rounds of a' at_least a rounds 1
ok 'b hosts' wait_for 'rounds of b' at_least b rounds 1
ok 'both rest' wait_for 'sleep' quiet
stop a b
ok 'two releases' shows a "this agent's rows: 2 of 2 noisy releases, epsilon 1.4"
ok 'of this noise' shows a 'discrete gaussian noise, 4.0'
ok 'whom they protect' shows a 'protected: any one aligned row of this agent against b'
ok 'b has spent nothing' shows b "this agent's rows: no labels, epsilon 0"
ok 'what noise leaves' shows b 'in which they went with noise'
ok 'none unfinished' shows a '0 sessions unfinished'
"$fkge" -d "$work/a" --json ledger show >"$work/show"
ok 'by accountant: those that judge releases, of all of it' python3 -c "
import json
h = json.load(open('$work/show'))['chains'][0]['as_host']
by = h['epsilon_by_accountant']
assert by['exact'] == h['epsilon'] > 1.4 and by['pld'] == h['epsilon_pld'] > 1
assert by['paper'] is None and by['gnmax'] is None"
"$fkge" -d "$work/b" --json ledger show >"$work/show.b"
ok 'in all: what went, and to whom, as both have it' python3 -c "
import json
a, b = (json.load(open('$work/' + f)) for f in ('show', 'show.b'))
for us, them in (a, b), (b, a):
    own, sent, got = us['own'], us['chains'][0]['as_client'], them['chains'][0]['as_host']
    by = 'rows_disclosed_by_client'
    assert own['noisy_rows_sent'] == sent['noisy_' + by] == got['noisy_' + by]
    assert own['unrotated_rows_sent'] == sent['unrotated_' + by] == got['unrotated_' + by]
    assert own['rows_sent'] == sent[by] - sent['noisy_' + by] == got[by] - got['noisy_' + by]
    assert own['maps'] == us['chains'][0]['as_host']['maps'] == them['chains'][0]['as_client']['maps']
assert a['own']['noisy_rows_sent'] > 90 and a['own']['rows_sent'] == 0 and b['own']['noisy_rows_sent'] == 0
assert (a['own']['maps'], a['own']['releases'], a['own']['labels']) == (1, 2, 0)
assert (b['own']['maps'], b['own']['releases'], b['own']['labels']) == (0, 0, 0)
h = a['chains'][0]['as_host']
assert h['epsilon'] < h['epsilon_cap'] == 1.6 and a['total_epsilon'] < a['total_epsilon_cap']"
ok 'all partners' shows a 'toward all partners: 0 labels, 2 noisy releases, epsilon 1.4'
ok 'the log of who sent noisy rows' logged a 'with noise: 1 release'
ok 'the log of who got them' logged b 'which came with noise'
ok 'quote of a map: none is left' prints '0 of them fit' -d "$work/a" ledger quote b
sed -i 's/translator: map/translator: procrustes/' "$work/a/agent.yaml"
ok 'quote of noisy rows: the noise' prints 'leaves with noise of 8.09 times privacy.release_clip' -d "$work/a" ledger quote b
ok 'quote of noisy rows: none is left' grep -q 'with this peer 2 of 2 are spent' "$out"
sed -i 's/translator: procrustes/translator: map/' "$work/a/agent.yaml"
ok 'audit measures them' prints 'ledger, b: 2 releases: epsilon is at least' -d "$work/a" audit --rows 60 --draws 100000 --sessions 1000 --labels 65536 --alpha 1e-9
exported a a.led
exported b b.led
ok 'both exports agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
ok 'and say what a has spent in all' flat_has 'toward all partners: 0 labels, 2 noisy releases, epsilon 1.4'
ok 'and b' flat_has 'toward all partners: 0 labels, epsilon 0.0000'
"$fkge" --json ledger verify "$work/b.led" "$work/a.led" >"$work/json"
ok 'whichever is first' python3 -c "
import json
j, h = (json.load(open('$work/' + f)) for f in ('json', 'show'))
keys = 'total_labels', 'total_releases', 'total_epsilon', 'total_epsilon_pld'
of_b, of_a = ([x[k] for k in keys] for x in j['exports'])
assert of_a == [h[k] for k in keys] and of_a[2] > 1.4
assert of_b == [j[k] for k in keys] == [0, 0, 0, 0]"
"$fkge" -q -d "$work/a" ledger export "$work/pair.led" --peer b >/dev/null
ok 'of one pair: that is said' prints 'partial: of its pair with b' ledger verify "$work/pair.led"
ok 'not of a whole one' eval 'run ledger verify "$work/a.led"; ! flat_has partial:'
ok 'it has one pair' exits 0 --json ledger verify "$work/a.led"
ok 'which is counted' [ "$(member "$out" pairs)" = 1 ]
ok 'of one pair: toward it alone' prints 'alone: 0 labels, 2 noisy releases, epsilon 1.4' ledger verify "$work/pair.led"

# ---- a delta at which epsilon says little ----
rows=$(python3 -c "import json; print(max(e['rows'] for e in json.load(open('$work/a.led'))['entries']))")
cp -r "$work/a" "$work/d"
warned() { run -d "$work/d" doctor; flat_has "privacy.delta $1 is not below 1 / $rows rows"; }
ok 'below 1 / rows nobody is warned' eval '! warned 1e-05'
ok 'nor is it noted' eval 'run ledger verify "$work/a.led"; ! flat_has "is not below 1 /"'
sed -i 's/^privacy: {/privacy: {delta: 0.05, /' "$work/d/agent.yaml"
ok 'doctor warns' warned 0.05
run -d "$work/d" serve --until-quiet 1
ok 'so does the agent' grep -q "privacy.delta 0.05 is not below 1 / $rows rows, which are shared with b" "$err"
run -d "$work/d" ledger quote b
ok 'and quote' grep -q "delta 0.05 is not below 1 / $rows shared rows" "$err"
sed -i 's/translator: map/translator: procrustes/; s/noisy_rows: true/noisy_rows: false/' "$work/d/agent.yaml"
ok 'not of an agent that spends nothing' eval '! warned 0.05'
python3 - "$work" <<'PY'
import copy, sys
from ledgerfile import Key, read, seal, sign, write
w = sys.argv[1]
a, b = Key(w + "/a"), Key(w + "/b")
x = read(w + "/a.led")
e = copy.deepcopy([e for e in x["entries"] if e["kind"] == "contract"][-1])
last = x["entries"][-1]
e.update(delta=0.05, sequence=last["sequence"] + 1, previous=last["hash"])
sign(e, a)
x["entries"].append(e)
seal(x, a)
write(x, w + "/large.led")
PY
ok 'verify notes it' prints "names delta 0.05, which is not below 1 / $rows rows that a session sent" ledger verify "$work/large.led"
ok 'as a note' prints 'the ledger holds' ledger verify "$work/large.led"
ok 'for programs, too' exits 0 --json ledger verify "$work/large.led"
ok 'which is no fault' [ "$(member "$out" findings 0 note) $(member "$out" faults)" = 'True 0' ]
sed 's/"rows": 1/"rows": 2/' "$work/a.led" >"$work/forged.led"
ok 'what was changed' exits 9 --json ledger verify "$work/forged.led"
faults() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not j["faults"] == sum(not f["note"] for f in j["findings"]) > 0)' "$out"; }
ok 'is one for each that says so' faults

# ---- none is left ----
for who in a b; do
	sed -i 's/max_rounds: 1/max_rounds: 2/' "$work/$who/agent.yaml"
	anew $who 7
done
start a
start b
ok 'a releases no map' wait_for 'a as host' logged a 'no release of a map is left toward it'
# its own log has one line for both, since they are of one kind (agent/log_limit.h)
ok 'nor its rows' wait_for 'a as client' logged b 'no release of our rows is left toward this peer'
ok 'b hears it' wait_for 'its word' logged b 'privacy budget exhausted'
stop a b
ok 'nothing more is spent' shows a "this agent's rows: 2 of 2 noisy releases"

finish
