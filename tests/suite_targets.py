#!/usr/bin/env python3
"""What the tests of one suite need, for ninja: suite_targets.py FOLDER SUITE"""
import json
import os
import subprocess
import sys


def introspect(folder, what):
    return json.loads(subprocess.check_output(["meson", "introspect", folder, what]))


folder, suite = sys.argv[1:]
files = {t["id"]: t["filename"] for t in introspect(folder, "--targets")}
needed = {i for t in introspect(folder, "--tests") if f"fkge:{suite}" in t["suite"] for i in t["depends"]}
if not needed:
    sys.exit(f"suite_targets.py: {folder} has no tests of suite {suite}")
print(*sorted(os.path.relpath(f, folder) for i in needed for f in files[i]))
