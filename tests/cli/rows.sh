#!/bin/sh
# What `export --help` says of rows is enough to score triples without us: NumPy's scores of each
# model, by the formulas of its paper, are those of `predict`.
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3
if ! $python -c 'import numpy' 2>/dev/null; then
	echo '# SKIP no NumPy: apt-get install python3-numpy'
	ok 'nothing to compare' true
	finish
fi
cat >"$work/score.py" <<'PY'
import json, sys
import numpy as np

kind, folder, answers = sys.argv[1:]
D, GAMMA = 4, 1 if kind.endswith('_l2') else 10
table = {t: np.load(f'{folder}/{t}.npy').astype(float) for t in ('entities', 'relations')}
names = {t: open(f'{folder}/{t}.txt').read().splitlines() for t in table}
E = table['entities']
word = kind.split('_')[0]


def projected(r):
    """Entities in the relation's space, and its translation."""
    if word == 'transh':
        w = r[D:] / np.linalg.norm(r[D:])
        return E - np.outer(E @ w, w), r[:D]
    if word == 'transr':
        return E @ r[D:].reshape(D, D).T, r[:D]
    if word == 'transd':
        return E[:, :D] + np.outer((E[:, :D] * E[:, D:]).sum(1), r[D:]), r[:D]
    return E, r


def scores(known, r, side):
    if word == 'distmult':
        return E @ (E[known] * (r if len(r) == D else r[:D] if side == 'tail' else r[D:]))
    if word.startswith('trans'):
        P, r = projected(r)
        x = (P[known] + r if side == 'tail' else P[known] - r) - P
        return GAMMA - (np.sqrt((x * x).sum(1)) if kind.endswith('_l2') else np.abs(x).sum(1))
    C = E[:, :D] + 1j * E[:, D:]
    if word == 'complex':
        own = len(r) == 4 * D  # a row for each side
        r = r[2 * D:] if own and side == 'head' else r[:2 * D]
        r = r[:D] + 1j * r[D:]
        q = C[known] * (r if side == 'tail' or own else r.conj())
        return (q * C.conj()).real.sum(1)
    turn = np.exp(1j * r * np.pi * D / (GAMMA + 2))
    return GAMMA - np.abs(C[known] * (turn if side == 'tail' else turn.conj()) - C).sum(1)

n = 0
for line in open(answers):
    j = json.loads(line)
    if 'question' not in j:
        continue
    h, r, t = j['question']
    side, known = ('tail', h) if t == '?' else ('head', t)
    want = scores(names['entities'].index(known), table['relations'][names['relations'].index(r)], side)
    assert len(j['answers']) == len(E)
    for a in j['answers']:
        theirs = want[names['entities'].index(a['name'])]
        assert abs(theirs - a['score']) < 1e-4 * (1 + abs(theirs)), (j['question'], a, theirs)
        n += 1
assert n > 0
PY

printf 'e1\tnext\t?\n?\tnext\te1\ne7\ttwice\t?\n?\ttwice\te8\n' >"$work/questions.tsv"
for kind in transe transe_l2 transh transh_l2 transr transr_l2 transd transd_l2 distmult complex rotate \
	distmult_reciprocal complex_reciprocal; do
	a=$work/$kind
	run -q -d "$a" init --name a --listen off
	printf 'model: {kind: %s, dim: 4}\ntrain: {epochs: 2, threads: 1, eval_every: 2}\n' "$kind" >"$a/agent.yaml"
	[ -s "$work/g.tsv" ] || graph "$work/g.tsv" 1
	run -q -d "$a" import "$work/g.tsv"
	run -q -d "$a" train
	run -q -d "$a" export "$a/rows"
	run -q -d "$a" predict --batch "$work/questions.tsv" --json --known -k 1000
	mv "$out" "$a/answers"
	: >"$out"
	ok "$kind" $python "$work/score.py" "$kind" "$a/rows" "$a/answers"
done
finish
