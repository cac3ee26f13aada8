#!/usr/bin/env python3
"""What fuzzers have found reachable, kept in the tree: one file a target, which seeds.py gives back to them.

usage: keep.py FOLDER tests/fuzz/corpus

FOLDER/TARGET/ holds a target's inputs, merged by libFuzzer (`-merge=1`), so that each reaches something that no other
does. Larger ones than 4096 bytes are left out. The same inputs make the same bytes. `./run fuzz keep` calls it."""
import io
import lzma
import os
import sys
import tarfile

MOST = 4096  # bytes of an input


def pack(folder):
    inputs = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            inputs[name] = f.read(MOST + 1)
    kept = {n: b for n, b in inputs.items() if len(b) <= MOST}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, b in sorted(kept.items(), key=lambda x: (len(x[1]), x[0])):
            info = tarfile.TarInfo(name)
            info.size = len(b)
            tar.addfile(info, io.BytesIO(b))
    return len(kept), len(inputs) - len(kept), lzma.compress(out.getvalue(), preset=9)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, kept = sys.argv[1:]
    os.makedirs(kept, exist_ok=True)
    for target in sorted(os.listdir(source)):
        n, left_out, packed = pack(os.path.join(source, target))
        if n == 0:
            continue
        with open(os.path.join(kept, target + ".tar.xz"), "wb") as f:
            f.write(packed)
        print(f"{target}: {n} inputs, {len(packed)} bytes; {left_out} are too large")


main()
