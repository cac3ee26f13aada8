#!/bin/sh
# 100,000 shared entities: both agents host once over the real network; seconds, peak memory and
# bytes are printed.  Usage: big.sh FKGE [ENTITIES]
. "$(dirname "$0")/lib.sh"
entities=${2:-100000}
patience=1200

# big_graph FOLDER SEED: a ring through all names and as many chords; valid and test are small
big_graph() {
	mkdir -p "$1"
	python3 - "$1" "$2" "$entities" <<'PY'
import random, sys
folder, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
def write(name, triples):
    with open(f"{folder}/{name}.tsv", "w") as f:
        f.writelines(f"e{h}\t{r}\te{t}\n" for h, r, t in triples)
write("train", [(i, "next", (i + 1) % n) for i in range(n)]
      + [(i, "twice", 2 * i % n) for i in random.sample(range(n), n // 2)])
write("valid", [(i, "jump", (i + 7) % n) for i in random.sample(range(n), 50)])
write("test", [(i, "jump", (i + 7) % n) for i in random.sample(range(n), 50)])
with open(f"{folder}/train.tsv", "a") as f:
    f.write("e0\tjump\te7\n")
PY
}

big_agent() { # NAME SEED
	"$fkge" -q -d "$work/$1" init --name "$1" --listen 127.0.0.1:0 >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: 127.0.0.1:0
model: {dim: 32, gamma: 6}
train: {epochs: 1, eval_every: 1, threads: 1, lr: 0.02, batch: 1024, negatives: 4, patience: 0}
eval: {valid_limit: 50}
federation: {epochs_per_round: 1, max_rounds: 1, local_rounds: 0, gather_s: 0, lease_s: 30, sleep_s: 5}
YAML
	big_graph "$work/$1.graph" "$2"
	"$fkge" -q -d "$work/$1" import "$work/$1.graph" >/dev/null &&
		"$fkge" -q -d "$work/$1" train >/dev/null
}
peak_kib() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }
# of_peer NAME OTHER_ID KEY
of_peer() {
	python3 - "$work/$1.json" "$2" "$3" <<'PY'
import json, sys
path, who, key = sys.argv[1:]
print([p for p in json.load(open(path))["peers"] if p["id"] == who][0][key])
PY
}
hosted() { at_least a rounds 1 && at_least b rounds 1; }
quiet() { is_value a state sleep && is_value b state sleep && is_value a queued 0 && is_value b queued 0; }
now() { date +%s.%N; }
say_seconds() { echo "# $1: $(python3 -c "print('%.1f s' % ($3 - $2))")"; }

t0=$(now)
ok 'a is made' big_agent a 1
ok 'b is made' big_agent b 2
t1=$(now)
say_seconds 'two graphs imported and trained for an epoch' "$t0" "$t1"
a_id=$(id_of a)
b_id=$(id_of b)
ok 'a starts' start a
ok 'invite' exits 0 -d "$work/a" invite --for "$b_id" -o "$work/line"
ok 'join' exits 0 -d "$work/b" join "$work/line"
t1=$(now)
ok 'b starts' start b
ok 'the alignment is there' wait_for 'alignment' peer_is a "$b_id" shared_entities "$entities"
t2=$(now)
say_seconds 'start to alignment' "$t1" "$t2"
ok 'both have hosted' wait_for 'rounds' hosted
ok 'b counts as many' peer_is b "$a_id" shared_entities "$entities"
ok 'both rest' wait_for 'sleep' quiet
t3=$(now)
say_seconds 'alignment to rest: two translations, aggregation, training' "$t2" "$t3"
ok 'no session has failed' [ "$(of_peer a "$b_id" failed)$(of_peer b "$a_id" failed)" = 00 ]
for who in a b; do
	eval "pid=\$pid_$who"
	echo "# peak memory of $who: $(peak_kib "$pid") KiB"
done
echo "# bytes a sent: $(of_peer a "$b_id" bytes_out), a received: $(of_peer a "$b_id" bytes_in)"
ok 'less than 1 GiB each' [ "$(peak_kib "$pid_a")" -lt 1048576 -a "$(peak_kib "$pid_b")" -lt 1048576 ]
ok 'stop a' exits 0 -d "$work/a" stop
ok 'stop b' exits 0 -d "$work/b" stop
ok 'a ended cleanly' wait "$pid_a"
ok 'b ended cleanly' wait "$pid_b"
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
"$fkge" -q -d "$work/b" ledger export "$work/b.led" >/dev/null
ok 'both ledgers agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
finish
