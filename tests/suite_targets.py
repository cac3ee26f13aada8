#!/usr/bin/env python3
"""What tests need, for ninja: suite_targets.py FOLDER SUITE, or as meson test has it, --no-suite SUITE..."""
import argparse
import json
import os
import subprocess
import sys


def introspect(folder, what):
    return json.loads(subprocess.check_output(["meson", "introspect", folder, what]))


asked = argparse.ArgumentParser()
asked.add_argument("folder")
asked.add_argument("suite", nargs="?")
asked.add_argument("--no-suite", action="append", default=[])
o = asked.parse_args()


def is_asked(test):
    suites = {s.split(":")[-1] for s in test["suite"]}
    return (o.suite is None or o.suite in suites) and not suites & set(o.no_suite)


files = {t["id"]: t["filename"] for t in introspect(o.folder, "--targets")}
needed = {i for t in introspect(o.folder, "--tests") if is_asked(t) for i in t["depends"]}
if not needed:
    sys.exit(f"suite_targets.py: {o.folder} has no such tests")
print(*sorted(os.path.relpath(f, o.folder) for i in needed for f in files[i]))
