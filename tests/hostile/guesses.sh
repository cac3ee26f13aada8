#!/bin/sh
# Attack: a listed partner puts 12,000 guessed names into the intersection, and comes again.  One that works
# must be one that its victim allows, sees and is warned of.
. "$(dirname "$0")/../cli/lib.sh"
status=0

# guesses FIRST COUNT: a graph of the 100 names that a has, and so many that are made up
guesses() {
	mkdir -p "$work/guess"
	python3 - "$work/guess" "$@" <<'PY'
import sys
where, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rules = [(i, r, k % 100) for i in range(100) for r, k in (("next", i + 1), ("jump", i + 7), ("twice", 2 * i))]
parts = {"valid": rules[:30:3], "test": rules[31:60:3]}
parts["train"] = [t for t in rules if t not in parts["valid"] + parts["test"]]
for name, triples in parts.items():
    with open(f"{where}/{name}.tsv", "w") as f:
        f.writelines(f"e{h}\t{r}\te{t}\n" for h, r, t in triples)
        if name == "train":
            f.writelines(f"guess{i}\tnext\te{i % 100}\n" for i in range(first, first + count))
PY
	"$fkge" -q -d "$work/b" import --replace "$work/guess" >/dev/null
}
about_b() { peer_is a "$(id_of b)" "$@"; }

agent a 1 'local_rounds: 0, after: back'
agent b 2 'local_rounds: 0, after: back'
sed -i 's/names_every_s: 0, //' "$work/a/agent.yaml" # as it is by default: ten minutes
sed -i 's/epochs: 20/epochs: 1/; s/epochs_per_round: 5/epochs_per_round: 1/' "$work/b/agent.yaml"
# How many rounds the first names are good for must not matter below.
for who in a b; do sed -i "s/max_rounds: [0-9]*/max_rounds: 99/; s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/$who/agent.yaml"; done
befriend a b
guesses 0 12000
"$fkge" -q -d "$work/a" train >/dev/null
"$fkge" -q -d "$work/b" train >/dev/null

start a
start b
ok 'too many names are refused, and the owner hears why' wait_for 'a refuses' logged a 'federation.names_max'
ok 'no name was compared' about_b names_compared 0
ok 'nor is any shared' about_b shared_entities 0
"$fkge" -q -d "$work/a" stop

# ---- an owner who allows that many sees what he gets ----
sed -i 's/federation: {/federation: {names_max: 20000, /' "$work/a/agent.yaml"
start a
ok 'with names_max 20000 they are compared' wait_for 'a compares' about_b shared_entities 100
ok 'the owner sees how many there were' about_b names_theirs 12100
ok 'and how many of his' about_b names_ours 100
ok 'and is warned' logged a 'many more than we have'
ok 'the history has it' prints '12100        100  100' -d "$work/a" peer show b

# ---- other guesses, at once: after a restart, too, and when its victim has something new ----
"$fkge" -q -d "$work/b" stop
"$fkge" -q -d "$work/a" stop
guesses 12000 12000
"$fkge" -q -d "$work/b" train --fresh >/dev/null
anew a 9
start a
start b
ok 'the next ones wait' wait_for 'a defers' logged a 'wants names compared again'
ok 'and get nothing' about_b names_compared 1
"$fkge" -q -d "$work/a" stop
"$fkge" -q -d "$work/b" stop
finish
