#!/bin/sh
# test_npy.sh PROGRAM: NumPy reads what we write, and we read what NumPy writes.
set -e
echo 1..1
python=/usr/bin/python3
if ! $python -c 'import numpy' 2>/dev/null; then
	echo 'ok 1 - npy # SKIP no NumPy: apt-get install python3-numpy'
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" "$dir"
$python - "$dir" <<'END'
import sys, numpy as np
dir = sys.argv[1]
ent, rel = np.load(dir + '/entities.npy'), np.load(dir + '/relations.npy')
assert ent.dtype == np.dtype('<f4') and ent.shape == (5, 10), (ent.dtype, ent.shape)
assert rel.dtype == np.dtype('<f4') and rel.shape == (2, 5), (rel.dtype, rel.shape)
assert (ent == np.arange(5)[:, None] + np.arange(10) / 8).all()
assert (rel.ravel() == np.arange(10)).all()
names = open(dir + '/entities.txt', encoding='utf-8').read().split('\n')
assert names == ['a', 'b b', '\u03b3', 'd\'"\\', 'e', ''], names
assert open(dir + '/relations.txt').read() == 'r\ns\n'
order = [3, 1, 4, 0, 2]
np.save(dir + '/entities.npy', ent[order])
with open(dir + '/entities.txt', 'w', encoding='utf-8') as f:
    f.writelines(names[i] + '\n' for i in order)
np.lib.format.write_array(open(dir + '/relations.npy', 'wb'), rel, version=(2, 0))
END
"$1" import "$dir"
echo 'ok 1 - npy'
