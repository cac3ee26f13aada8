#!/usr/bin/env python3
"""Files as C: embed.py OUT FILE...  Each becomes const char http_page_NAME[] and http_page_NAME_n, its bytes."""
import os
import sys

out, *files = sys.argv[1:]
with open(out, "w", encoding="ascii") as f:
    f.write('/* made by http/page/embed.py */\n#include "http/page.h"\n')
    for path in files:
        name = os.path.basename(path).replace(".", "_")
        with open(path, "rb") as g:
            data = g.read()
        f.write(f"\nconst char http_page_{name}[] = {{\n")
        for i in range(0, len(data), 16):
            f.write("\t" + ", ".join(str(b if b < 128 else b - 256) for b in data[i:i + 16]) + ",\n")
        f.write(f"}};\nconst size_t http_page_{name}_n = sizeof(http_page_{name});\n")
