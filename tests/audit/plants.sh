#!/bin/sh
# The whole command, with a fault linked in below everything (plants.c): `fkge audit` must fail,
# and name the line.  Without one it must pass.
. "$(dirname "$0")/../cli/lib.sh"

fkge=$(realpath "$fkge")
cd "$work" || exit 1
few='--json --rows 60 --sessions 1000 --labels 65536'
# 1 % takes more labels.
many='--json --rows 60 --sessions 1000'

# wrong WORDS: a line of what ships, with these words, was found wrong.
wrong() {
	python3 - "$out" "$1" <<'PY'
import json, sys
said = json.load(open(sys.argv[1]))
assert said["verdict"] == "failed", said["verdict"]
lines = [l for l in said["lines"] if sys.argv[2] in l["what"]]
assert any(l["found"] and not l["control"] for l in lines), lines
PY
}

planted() {
	PLANT=$1
	PLANT_SHARE=${2:-}
	export PLANT PLANT_SHARE
}

planted none
ok 'nothing planted' exits 0 audit $few
ok 'passed' [ "$(member "$out" verdict)" = passed ]

planted bare-labels 0.3
ok '30 % of the labels have none' exits 1 audit $few
ok 'is found' wrong 'labels off sessions'

planted half-noise
ok 'a map with half of its noise' exits 1 audit $few
ok 'is found' wrong 'released map, noise off sessions'
ok 'rows as well' wrong 'noisy rows, noise off sessions'

planted bare-rows
ok 'private training without noise on the first 256 rows' exits 1 audit $few
ok 'is found' wrong 'private training, noise off tables'

planted fixed-source
ok 'all secure randomness from a fixed generator' exits 1 audit $few
ok 'is found' wrong 'randomness of'
if [ -n "${FKGE_TEST_ALL:-}" ]; then # ./run test all
	planted bare-labels 1
	ok 'no label has noise' exits 1 audit $few
	ok 'is found' wrong 'labels off sessions'

	planted bare-labels 0.01
	ok '1 % of the labels have none' exits 1 audit $many
	ok 'is found' wrong '4 teachers, Laplace 0.05: labels off sessions'
fi
finish
