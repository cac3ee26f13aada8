# tests/cli/two_owners.sh - sourced behind lib.sh: two owners who can answer $question only together.
#
# A hospital knows which genes cause which illness, a maker which drugs treat it; illnesses and drugs have
# the same names in both.
python3 - "$work" <<'PY'
import sys
work = sys.argv[1]
with open(f"{work}/hospital.tsv", "w") as f:
    for i in range(40):
        f.write(f"gene{i}\tcauses\tillness{i % 20}\nward{i % 4}\tkeeps\tdrug{i % 30}\n")
        f.write(f"gene{i}\tnear\tgene{(i + 1) % 40}\n")
with open(f"{work}/maker.tsv", "w") as f:
    for i in range(30):
        f.write(f"drug{i}\ttreats\tillness{i % 20}\nplant{i % 3}\tmakes\tdrug{i}\n")
        f.write(f"drug{i}\tlike\tdrug{(i + 20) % 30}\n")
PY
# `owner NAME LINES`: one of them, trained; LINES are those of its section query, $rounds how many rounds it has.
owner() {
	address=127.0.0.1:$(free_port)
	"$fkge" -q -d "$work/$1" init --name "$1" --listen $address >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: $address
model: {dim: 16, gamma: 4}
train: {epochs: 20, eval_every: 10, threads: 1, lr: 0.02, batch: 64, negatives: 8, patience: 0}
federation: {names_every_s: 0, epochs_per_round: 1, max_rounds: ${rounds:-1}, sleep_s: 0, local_rounds: 0}
query: {$2}
YAML
	"$fkge" -q -d "$work/$1" import "$work/$1.tsv" >/dev/null && "$fkge" -q -d "$work/$1" train >/dev/null
}
question='SELECT ?d { <gene7> <causes>/^<treats> ?d }'
