#!/bin/sh
# An encoder of queries that three agents train in rounds over TCP, under masks: FedCQA; kill -9; what is kept
# of it ranks queries.
. "$(dirname "$0")/lib.sh"

place() { python3 -c 'import sys; n = int(sys.argv[1]) % (1 << 22) * 4 + int(sys.argv[2]); print(f"127.{n >> 16}.{n >> 8 & 255}.{n & 255}:7448")' $$ "$1"; }
in_rounds() { # NAME SEED: with an address of its own, which it keeps when it starts again
	agent "$1" "$2" 'mode: rounds, lease_s: 60, judge: false' || return
	sed -i "s/^listen: .*/listen: $(place "$2")/" "$work/$1/agent.yaml"
	cat >>"$work/$1/agent.yaml" <<'YAML'
rounds: {method: fedcqa, dim: 16, steps: 5, batch: 32, queries: 10, lr: 0.01, min_members: 3, min_holders: 3,
  secret_bits: 32, epochs: 1, every_s: 0.1, join_s: 60, train_s: 600, stage_s: 300}
YAML
}
done_by() { [ "$(member "$work/$1.json" round done)" -ge "$2" ]; }
encoder() { # NAME: its best encoder is in $work/NAME.encoder, what was said in $out
	run -d "$work/$1" queries encoder -o "$work/$1.encoder" --json
	[ "$status" -eq 0 ] && [ -s "$work/$1.encoder" ]
}
best_step() { encoder "$1" && member "$out" best_step; }

in_rounds a 1
in_rounds b 2
in_rounds c 3
befriend a b
befriend a c
befriend b c

ok 'before a round there is none' says 1 'kept nothing of a round' -d "$work/a" queries encoder
for who in a b c; do ok "$who starts" start $who; done
ok 'rounds run' wait_for 'rounds' done_by c 2
ok 'the owner is told' wait_for 'an encoder' logged c 'best encoder of queries: MRR 0.'

# ---- kill -9 ----
kill -9 "$pid_c"
wait "$pid_c" 2>/dev/null
kept=$(best_step c)
ok 'its encoder is on disk' [ "$kept" -ge 5 ]
ok 'c starts again' start c
ok 'c goes on' wait_for 'rounds of c' done_by c "$(($(member "$work/c.json" round done) + 2))"
ok 'beside the running agent it is read' encoder c
for who in a b c; do
	"$fkge" -q -d "$work/$who" stop
	eval "wait \$pid_$who"
done
"$fkge" -d "$work/a" rounds show --json >"$out"
ok 'rounds of FedCQA under masks' python3 - "$out" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))["round"]
theta = 2 * 16 + 2  # GQE: 2 d d + 3 d / 2 numbers, in rows of d
sys.exit(not (r["method"] == "fedcqa" and r["secret_bits"] == 32 and r["items"] == 100 + theta and r["spoiled"] == 0))
PY

# ---- what it is good for ----
ok 'the best is written' encoder a
ok 'all trained' [ "$(member "$out" best_step)" -ge 5 ]
"$fkge" -q queries sample "$work/a.tsv" -n 5 --types 1p,2p -o "$work/asked" >/dev/null
ok 'it ranks queries' prints 'encoder gqe of' -d "$work/a" query --batch "$work/asked" --evaluate --encoder "$work/a.encoder"
ok 'not those of another graph' says 4 'another graph' -d "$work/b" query --batch "$work/asked" --evaluate \
	--encoder "$work/a.encoder"
sed -i 's/method: fedcqa, dim: 16, steps: 5, batch: 32, queries: 10, lr: 0.01,/method: fede,/' "$work/a/agent.yaml"
ok 'another method has none' says 4 'not of fede' -d "$work/a" queries encoder
sed -i 's/method: fede,/method: fedcqa, dim: 15,/' "$work/a/agent.yaml"
ok 'an odd width is refused' says 2 'rounds.method fedcqa: dim must be even, not 15' -d "$work/a" serve
finish
