#!/bin/sh
# experiment: every method and model leaves the tables that golden.txt says, bit for bit.
#
#   golden.sh FKGE [--write]     --write: golden.txt anew, after a change that is meant to change results
#
# The tables hang on the last bit of float arithmetic.  So the kernels are the scalar ones, BLAS is
# left out where it would decide (fedsvd), and nothing is compared where libm's functions give
# other bits than where golden.txt was written, nor on other processors than x86-64.
. "$(dirname "$0")/../cli/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
export FKGE_ISA=scalar OPENBLAS_CORETYPE=Prescott OPENBLAS_NUM_THREADS=1

libm() { # digest of the functions that training calls, over 4000 numbers each
	python3 - <<'PY'
import ctypes, hashlib, platform, struct
m = ctypes.CDLL("libm.so.6")
h = hashlib.blake2b(platform.machine().encode(), digest_size=8)
for name, kind, code in [(n + s, t, c) for n in ("exp", "log", "log1p", "sin", "cos", "sqrt", "tanh")
			 for s, t, c in (("f", ctypes.c_float, "f"), ("", ctypes.c_double, "d"))]:
    f = getattr(m, name)
    f.restype, f.argtypes = kind, [kind]
    for i in range(1, 4001):
        x = i * i * 1e-6 if name[:3] in ("log", "sqr") else (i - 2000) * 0.0047
        h.update(struct.pack(code, f(x)))
print(h.hexdigest())
PY
}

digests() {
	python3 - "$work/golden/runs" <<'PY'
import glob, json, os, sys
for f in sorted(glob.glob(sys.argv[1] + "/*-seed1.json")):
    tables = [a["tables"][:16] for a in json.load(open(f))["agents"]]
    print(os.path.basename(f)[: -len("-seed1.json")], *tables)
PY
}

cp "$here/golden.yaml" "$work"
run -q synth -e 200 -t 1200 -r 6 --agents 3 --overlap 0.5 --ratios 8:1:1 -o "$work/data"
run -q experiment "$work/golden.yaml" -o "$work/golden"
[ "$status" -eq 0 ] || ok 'the experiment runs' false
{ echo "libm $(libm)"; digests; } >"$work/is.txt"
if [ "${2:-}" = --write ]; then
	cp "$work/is.txt" "$here/golden.txt"
elif [ "$(sed -n 1p "$work/is.txt")" != "$(sed -n 1p "$here/golden.txt")" ]; then
	echo "1..0 # SKIP other arithmetic than where golden.txt was written: no digest can be compared"
	exit 0
fi
ok 'every variant has tables' test "$(wc -l <"$work/is.txt")" -eq \
	"$(($(sed -n '/^variants/,$p' "$work/golden.yaml" | grep -c '^  [a-z]') + 1))"
diff "$here/golden.txt" "$work/is.txt" | grep '^[<>]' | sed 's/^/# /'
while read -r name want; do
	ok "$name" test "$want" = "$(sed -n "s/^$name //p" "$work/is.txt")"
done <"$here/golden.txt"
finish
