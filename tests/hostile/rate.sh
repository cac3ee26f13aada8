#!/bin/sh
# Rounds a second of two agents, alone and while a listed partner floods one of them with small keys (partner.c keys),
# in one run.  A measurement, no test:
#   tests/hostile/rate.sh build/cli/fkge build/tests/hostile/partner [SECONDS]
. "$(dirname "$0")/../cli/lib.sh"
partner=$2
seconds=${3:-10}

in_rounds() { # NAME SEED
	agent "$1" "$2" 'mode: rounds' || return
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$1/agent.yaml"
	echo 'rounds: {first_epochs: 1, epochs: 1, eval_every: 1000000, join_s: 10}' >>"$work/$1/agent.yaml"
}
done_now() { member "$work/a.json" round done; }
some_done() { [ "$(done_now)" -gt 0 ]; }
rate() { # WORDS
	before=$(done_now)
	sleep "$seconds"
	python3 -c 'import sys; n, s = map(float, sys.argv[1:3]); print(f"{n / s:.1f} rounds/s {sys.argv[3]}")' \
		$(($(done_now) - before)) "$seconds" "$1"
}

in_rounds a 1 && in_rounds b 2 && befriend a b || exit
"$fkge" -q -d "$work/evil" init --name evil --listen 127.0.0.1:0 >/dev/null && befriend a evil || exit
start a && start b && wait_for 'rounds' some_done || exit
for try in 1 2; do
	rate 'alone'
	"$partner" "$work/evil/identity.key" "$(value a port)" "$(id_of a 2>/dev/null)" keys >"$work/evil.log" 2>&1 &
	evil=$!
	pids="$pids $evil"
	rate 'under the flood'
	kill -9 "$evil"
	wait "$evil" 2>/dev/null
	echo "flooder: $(sort "$work/evil.log" | uniq -c | tr '\n' ' ')"
done
