#!/bin/sh
# A partner says that a key of another agent was its own for a while, between two replacements.
# Usage: between.sh FKGE KEY_BETWEEN
. "$(dirname "$0")/lib.sh"
key_between=$(realpath "$2")

rounds=3
. "$(dirname "$0")/two_owners.sh"
stop() { "$fkge" -q -d "$work/$1" stop && eval "wait \$pid_$1"; }
says_of() { # EXPRESSION over r, the answer
	python3 - "$out" "$1" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PY
}

"$fkge" -q -d "$work/clinic" init --name clinic --listen "127.0.0.1:$(free_port)" >/dev/null
clinic=$(id_of clinic)
owner hospital 'answer: nothing'
owner maker "answer: nothing, rules: \"facts $clinic *\""
befriend hospital maker
ok 'the agents start' eval 'start hospital && start maker'
ok 'names are compared' wait_for names peer_is hospital "$(id_of maker)" shared_entities 50
run -d "$work/hospital" query --federated --json "$question"
ok 'the maker answers the clinic alone' says_of 'not r["asked"]'
stop hospital
stop maker
"$key_between" "$work/hospital" "$clinic" >"$work/keys"
"$fkge" -d "$work/maker" peer rotate --check "$work/keys" | sed 's/^/# shown to the owner: /'
ok 'keys with the key of the clinic between them are refused' says 9 '' -d "$work/maker" peer rotate "$work/keys"
rules=$(sed -n 's/^query: //p' "$work/maker/agent.yaml")
sed -i 's/^query: .*/query: {answer: nothing}/' "$work/maker/agent.yaml"
ok 'whose key it was in between is shown' prints "says that it had $clinic in between" -d "$work/maker" peer rotate --check "$work/keys"
ok 'without a rule for the clinic they are taken' exits 0 -d "$work/maker" peer rotate "$work/keys"
sed -i "s/^query: .*/query: $rules/" "$work/maker/agent.yaml"
ok 'the rule is back' grep -q "facts $clinic" "$work/maker/agent.yaml"
sed -i 's/max_rounds: 3/max_rounds: 6/' "$work/hospital/agent.yaml" "$work/maker/agent.yaml"
ok 'the agents are back' eval 'start hospital && start maker'
ok 'names are compared again' wait_for names peer_is hospital "$(id_of maker)" shared_entities 50
ok 'linked by the new keys' wait_for link peer_is maker "$(id_of hospital)" linked True
run -d "$work/hospital" query --federated --json "$question"
ok 'the hospital is answered nothing' says_of 'not r["asked"]'
stop maker
"$fkge" -d "$work/maker" queries list | sed 's/^/# record: /'
"$fkge" -q -d "$work/clinic" invite --for "$(id_of maker)" -o "$work/line" >/dev/null
ok 'the clinic can be a partner' exits 0 -d "$work/maker" join "$work/line"
ok 'the clinic can be let in' exits 0 -d "$work/maker" invite --for "$clinic" -o "$work/line2"
finish
