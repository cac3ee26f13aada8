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
        good = paths and subprocess.run([program, *paths], check=False).returncode == 0
        bad = [] if good else [n for n, p in zip(inputs, paths) if subprocess.run([program, p], check=False).returncode]
    print("1..1")
    for name in bad:
        print(f"# {target}: {name}")
    print(f"{'ok' if good else 'not ok'} 1 - {target}: {len(inputs)} inputs")
    return 0 if good else 1


sys.exit(main())
