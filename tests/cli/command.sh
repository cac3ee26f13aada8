#!/bin/sh
# Agents whose training is a command's (train.command), by themselves, in pairs and in rounds, and by ranks of
# mpirun where $2 says that fkge is built with MPI; what such an agent does when the command fails, hangs or is gone.
. "$(dirname "$0")/lib.sh"

by() { # by NAME COMMAND: what it trains by
	sed -i "s|^train: {|train: {command: \"$2\", |" "$work/$1/agent.yaml"
}
own=$(readlink -f "$fkge")
here="$own -q -d {folder} train"
rest() { ls -d "$work/$1"/training.command.??????; } 2>/dev/null
no_rest() { ! rest "$1" >/dev/null; }
best() { # NAME: the digest of its best tables
	"$fkge" -q -d "$work/$1" eval --json >"$out" 2>"$err" && member "$out" checkpoint digest
}

alone() { # NAME: one run is all of its training
	agent "$1" 1 'local_rounds: 0'
	sed -i 's/epochs: 20/corrupt: alternate, sampling: uniform, epochs: 10/' "$work/$1/agent.yaml"
}
at() { sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$1/agent.yaml"; }

# ---- alone ----
alone own
alone one
by one "$here"
ok 'an agent trains by a command' together one
key train.command logged one "trains by train.command: $own"
ok 'and that is said' [ -e "$work/one/command.log" ]
ok 'in a folder that is gone' no_rest one
ok 'one trains itself' together own
ok 'to the same bits' [ "$(best one)" = "$(best own)" ]

# ---- in pairs: the partner cannot tell ----
agent a 1 'local_rounds: 0'
agent b 2 'local_rounds: 0'
by a "$here"
at a
befriend a b
ok 'a starts' start a
ok 'b starts' start b
ok 'a, by its command, takes rows in' wait_for rounds at_least a rounds 2
ok 'b too' wait_for rounds at_least b rounds 2
for who in a b; do "$fkge" -q -d "$work/$who" stop; done
ok 'a clean end' wait "$pid_a"
ok 'of both' wait "$pid_b"
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
"$fkge" -q -d "$work/b" ledger export "$work/b.led" >/dev/null
ok 'both ledgers agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"

# ---- in rounds ----
for who in c d; do
	agent $who 1 'mode: rounds'
	echo 'rounds: {min_members: 2, max: 2, epochs: 2, eval_every: 1, every_s: 0.1, first_epochs: 4}' >>"$work/$who/agent.yaml"
done
by c "$here"
at c
befriend c d
two_rounds() { [ "$(member "$work/$1.json" round done)" -ge 2 ]; }
start c # one that waits for the other's first training is quiet
start d
ok 'two in rounds, one by its command' wait_for rounds two_rounds c
ok 'which are done at the other, too' wait_for rounds two_rounds d
for who in c d; do "$fkge" -q -d "$work/$who" stop; done
ok 'it ends cleanly' wait "$pid_c"
ok 'the other, too' wait "$pid_d"

# ---- several ranks ----
if [ "$2" = true ]; then
	"$fkge" -q synth -e 400 -t 4000 -o "$work/graph" >/dev/null
	for who in r s; do
		agent $who 1 'local_rounds: 0'
		sed -i 's/^model: .*/model: {dim: 16, gamma: 6}/
			s/^train: .*/train: {epochs: 40, eval_every: 40, threads: 1, lr: 0.02, batch: 32, negatives: 16, sampling: uniform}/' \
			"$work/$who/agent.yaml"
		"$fkge" -q -d "$work/$who" import --replace "$work/graph" >/dev/null
	done
	by r "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 $own -d {folder} train --epochs {epochs}"
	ok 'two ranks train for an agent' together r
	ok 'as ranks' grep -q 'over 2 ranks' "$work/r/command.log"
	ok 'one trains itself' together s
	ok 'about as well' python3 - "$work/r.json" "$work/s.json" <<'PY'
import json, sys
a, b = (json.load(open(f))["best"]["valid_score"] for f in sys.argv[1:3])
print(f"# by two ranks {a:.4f}, by itself {b:.4f}")
sys.exit(not a > 0.75 * b > 0.05)
PY
	ok 'and nothing is left' no_rest r
	agent q 1 'local_rounds: 0'
	sed -i 's|^train: {|train: {update: racing, shared_chunk: 0, |; s|batch: 64, ||' "$work/q/agent.yaml"
	by q "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 $own -d {folder} train"
	ok 'what ranks cannot do is said in their words' says 1 'update racing' -d "$work/q" serve --until-quiet 1
fi

# ---- it fails: the agent stops, and has what it had ----
"$fkge" -q -d "$work/one" train --epochs 1 >/dev/null
had=$(best one)
sed -i 's|command: "[^"]*"|command: "cat {folder}/nothing"|; s/local_rounds: 0/local_rounds: 1/' "$work/one/agent.yaml"
fails() { says 1 'train.command: cat ended with status 1' -d "$work/one" serve --until-quiet 1; }
ok 'a command that fails stops the agent' fails
ok 'whose owner reads why' grep -q 'nothing: No such file' "$err"
ok 'the best state is what it was' [ "$(best one)" = "$had" ]
ok 'and nothing is left of the run' no_rest one

# ---- it hangs ----
printf 'echo $$ >"$1/../pid"\nexec sleep 100\n' >"$work/hang.sh" # one process: it is the first
agent h 1
by h "sh $work/hang.sh {folder}"
hangs() { [ -s "$work/h/pid" ] && kill -0 "$(cat "$work/h/pid")"; }
over() { ! kill -0 "$(cat "$work/h/pid")" 2>/dev/null; }
ok 'an agent whose command hangs starts' start h
ok 'and waits for it' wait_for command hangs
ok 'answering meanwhile' prints 'is running' -d "$work/h" status
patience=10
"$fkge" -q -d "$work/h" stop
ok 'it stops all the same' wait_for end ended "$pid_h"
ok 'cleanly' wait "$pid_h"
ok 'with its command' over
ok 'whose folder is gone' no_rest h
rm "$work/h/pid"
start h
wait_for command hangs
kill -9 "$pid_h"
ok 'an agent that is killed takes the first process of its command along' wait_for end over
ok 'a folder is left' rest h
left=$(rest h)
rm "$work/h/pid"
start h
wait_for command hangs
another() { [ "$(rest h)" != "$left" ] && [ "$(rest h | wc -l)" -eq 1 ]; }
ok 'the next run has another one, and it alone' another
kill -9 "$pid_h"
ok 'its process ends too' wait_for end over
sed -i 's|command: "[^"]*", ||' "$work/h/agent.yaml"
ok 'it starts again without a command' start h
ok 'and the folder is gone' wait_for end no_rest h
"$fkge" -q -d "$work/h" stop

# ---- what it leaves behind under a user who is not root: fkge itself, which may not be dumped ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	for who in p t; do
		alone $who
		mkdir -p "$work/n" && mv "$work/$who" "$work/n"
	done
	cp "$fkge" "$work/n/fkge"
	cat >"$work/n/leave.sh" <<SH
setsid "$work/n/fkge" -q -d "$work/n/t" serve --status-file "$work/n/t.json" </dev/null >/dev/null 2>&1 &
for i in \$(seq 600); do [ -s "$work/n/t.json" ] || sleep 0.1; done
exec "$work/n/fkge" -q -d "\$1" train
SH
	sed -i "s|^train: {|train: {command: \"sh $work/n/leave.sh {folder}\", |" "$work/n/p/agent.yaml"
	chown -R 65534:65534 "$work/n"
	chmod 755 "$work" "$work/n" "$work/n/fkge"
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	ok "a nobody's agent trains by a command that leaves another one" as_nobody "$work/n/fkge" -q -d "$work/n/p" serve --until-quiet 1
	left=$(member "$work/n/t.json" pid) || left=none
	pids="$pids $left"
	gone() { grep -q '^State:.*Z' "/proc/$left/status" || [ ! -e "/proc/$left" ]; } 2>/dev/null
	ok 'which ends with it' wait_for end gone
fi

# ---- what does not go with it ----
refused() { # refused TEXT SED: agent.yaml of a, changed
	cp "$work/a/agent.yaml" "$work/a.yaml"
	sed -i "$2" "$work/a/agent.yaml"
	says 2 "$1" -d "$work/a" serve --until-quiet 1
	was=$?
	mv "$work/a.yaml" "$work/a/agent.yaml"
	return $was
}
ok 'a command without the folder' refused 'has {folder}' 's|{folder}|folder|'
ok 'private training' refused 'does not go with train.dp' 's|^train: {|train: {filtered: false, shared_chunk: 0, dp: {epsilon: 4}, |'
ok 'neighbours' refused 'does not go with federation.neighbours' 's|^federation: {|federation: {neighbours: true, |'
ok 'the arm beside it' refused 'does not go with federation.control' 's|^federation: {|federation: {control: true, |'
of_method() {
	refused 'does not go with rounds.method fedprox' 's|^federation: {|federation: {mode: rounds, |; $a rounds: {method: fedprox}'
}
ok 'a method that trains otherwise' of_method
finish
