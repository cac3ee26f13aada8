"""Does every #include go down the layers?

usage: layers.py ROOT

Folders are layers in the order of meson.build's subdir() lines: a folder may include what stands
before it. A header *_internal.h belongs to its folder; tests and benches may look inside.
"""
import os
import re
import sys

root = sys.argv[1]
with open(os.path.join(root, "meson.build"), encoding="utf-8") as build:
    order = re.findall(r"^subdir\('([^']+)'\)", build.read(), re.MULTILINE)
outside = ("tests", "bench", "examples")
bad = []
for folder, folders, files in os.walk(root):
    folders[:] = [f for f in folders if not f.startswith((".", "build", "run-data"))]
    here = os.path.relpath(folder, root)
    top = here.split(os.sep)[0]
    for name in files:
        if not name.endswith((".c", ".h")) or here == ".":
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                found = re.match(r'#include "([^"]+)/([^"/]+)"', line)
                if not found:
                    continue
                there, header = found.groups()
                where = f"{here}/{name}:{number}"
                if header.endswith("_internal.h") and there != here and not here.startswith(there + "/") and top not in outside:
                    bad.append(f"{where}: {there}/{header} is internal to {there}/")
                below = there.split("/")[0]
                if top in outside:
                    continue
                if below not in order or order.index(below) > order.index(top):
                    bad.append(f"{where}: {top}/ stands below {there}/ and may not use it")
print("\n".join(bad))
sys.exit(bool(bad))
