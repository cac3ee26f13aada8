#!/bin/sh
# The dashboard of a real agent in headless Chromium: two agents that learn from each other, and a stranger that waits.
# usage: dashboard.sh FKGE [PICTURES]; it is `./run dashboard`, and no part of CI.
. "$(dirname "$0")/../cli/lib.sh"

agent acme 1 'control: true'
agent borg 2
agent stranger 3
port=$(free_port)
sed -i "s/^listen: .*/listen: 127.0.0.1:$port/; s/epochs: 20/epochs: 10/; s/max_rounds: 2/max_rounds: 8/" "$work/acme/agent.yaml"
echo 'http: {listen: 127.0.0.1:0}' >>"$work/acme/agent.yaml"
befriend acme borg >/dev/null 2>&1
"$fkge" -q -d "$work/acme" invite -o "$work/line" >/dev/null 2>&1
"$fkge" -q -d "$work/stranger" join "$work/line" >/dev/null 2>&1
start acme || exit 1
start borg || exit 1
start stranger || exit 1
wait_for 'a round' at_least acme rounds 1
wait_for 'a stranger' peer_is acme "$(id_of stranger)" standing pending
python3 "$(dirname "$0")/dashboard.py" "$fkge" "$work/acme" "$(value acme http)" \
	"$("$fkge" -d "$work/acme" http key)" "$(id_of stranger)" "${2:-}"
