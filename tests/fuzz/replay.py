#!/usr/bin/env python3
"""Run what fuzzers have found before (seeds.py) through one target that was built without libFuzzer.

usage: replay.py PATH/fuzz_TARGET"""
import os
import subprocess
import sys
import tempfile


def main():
    program = sys.argv[1]
    target = os.path.basename(program)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(os.path.dirname(__file__), "seeds.py"), folder, target], check=True)
        place = os.path.join(folder, target)
        inputs = sorted(os.listdir(place)) if os.path.isdir(place) else []
        paths = [os.path.join(place, name) for name in inputs]
        status = subprocess.run([program, *paths], check=False).returncode if paths else 1
        bad = [] if status in (0, 3) else [n for n, p in zip(inputs, paths)
                                           if subprocess.run([program, p], check=False).returncode not in (0, 3)]
    print("1..1")
    for name in bad:
        print(f"# {target}: {name}")
    if status == 3:
        print(f"# {target}: of some kind of input none is taken (replay.c): seeds.py lacks one")
    print(f"{'not ok' if status else 'ok'} 1 - {target}: {len(inputs)} inputs")
    return 1 if status else 0


sys.exit(main())
