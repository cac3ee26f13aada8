#!/bin/sh
# test_numpy.sh PROGRAM: Python reads what we write in each format, with nothing of ours, and we
# read what it writes, its rows in another order.
formats='npy tsv word2vec openke'
echo 1..4
python=/usr/bin/python3
n=0
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! $python -c 'import numpy' 2>/dev/null; then
	for f in $formats; do
		n=$((n + 1))
		echo "ok $n - $f # SKIP no NumPy: apt-get install python3-numpy"
	done
	exit 0
fi

cat >"$dir/check.py" <<'END'
import sys
import numpy as np

what, dir = sys.argv[1:]
NAMES = {'entities': ['a', 'b b', '\u03b3', 'd\'"\\', '%20 %25%2'], 'relations': ['r', 's']}
ORDER = {'entities': [3, 1, 4, 0, 2], 'relations': [1, 0]}
ONE = {'entities': 'entity', 'relations': 'relation'}


def lines(name):
    text = open(dir + '/' + name, encoding='utf-8', newline='').read()
    assert text.endswith('\n')
    return text[:-1].split('\n')


def write(name, rows):
    with open(dir + '/' + name, 'w', encoding='utf-8') as f:
        f.writelines(row + '\n' for row in rows)


def floats(words):
    return np.array(words, dtype=np.float32)


# each reader gives names and rows; each writer is given them in another order
def read_npy(table):
    rows = np.load(dir + '/' + table + '.npy')
    assert rows.dtype == np.dtype('<f4')
    return lines(table + '.txt'), rows


def write_npy(table, names, rows):
    np.lib.format.write_array(open(dir + '/' + table + '.npy', 'wb'), rows, version=(2, 0))
    write(table + '.txt', names)


def read_tsv(table):
    cells = [line.split('\t') for line in lines(table + '.tsv')]
    return [c[0] for c in cells], np.stack([floats(c[1:]) for c in cells])


def write_tsv(table, names, rows):
    write(table + '.tsv', ['\t'.join([n] + [repr(float(x)) for x in r]) for n, r in zip(names, rows)])


# as the common readers of word2vec's text do it: a header, then split at every space
def read_word2vec(table):
    head, *rest = lines(table + '.vec')
    n, d = map(int, head.split())
    cells = [line.rstrip().split(' ') for line in rest]
    assert len(cells) == n and all(len(c) == d + 1 for c in cells)
    names = [c[0].replace('%20', ' ').replace('%25', '%') for c in cells]
    return names, np.stack([floats(c[1:]) for c in cells])


def write_word2vec(table, names, rows):
    escape = {'b b': 'b%20b', '%20 %25%2': '%2520%20%2525%2'}
    write(table + '.vec', ['%d %d' % rows.shape] +
          [' '.join([escape.get(n, n)] + [str(x) for x in r]) + ' ' for n, r in zip(names, rows)])


def read_openke(table):
    n, *rest = lines(ONE[table] + '2id.txt')
    names = [None] * int(n)
    for line in rest:
        name, number = line.split('\t')
        names[int(number)] = name
    return names, np.loadtxt(dir + '/' + ONE[table] + '2vec.vec', dtype=np.float32, ndmin=2)


def write_openke(table, names, rows):
    ids = ['%s\t%d' % pair for pair in zip(names, range(len(names)))]
    write(ONE[table] + '2id.txt', [str(len(names))] + ids[::-1])
    write(ONE[table] + '2vec.vec', [''.join('%.9g\t' % x for x in r) for r in rows])


for table, shape in ('entities', (5, 10)), ('relations', (2, 5)):
    names, rows = globals()['read_' + what](table)
    k, i = np.indices(shape).astype(np.float32)
    want = k + i / np.float32(7)
    assert names == NAMES[table], names
    assert rows.shape == shape and (rows == want).all(), rows - want
    order = ORDER[table]
    globals()['write_' + what](table, [names[k] for k in order], rows[order])
END

for f in $formats; do
	n=$((n + 1))
	if "$1" export $f "$dir" && $python "$dir/check.py" $f "$dir" && "$1" import $f "$dir"; then
		echo "ok $n - $f"
	else
		echo "not ok $n - $f"
		failed=1
	fi
done
exit $failed
