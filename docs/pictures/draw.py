#!/usr/bin/env python3
"""Draws the pictures of the documents as SVG: boxes and arrows from the lists below.

  draw.py           write the .svg files beside this script
  draw.py --check   status 1, with the name, where one of them is not what this script draws"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LINE, CHAR, PAD = 17, 6.8, 10
INK, PALE, SOFT = "#222222", "#f4f6f8", "#8899aa"
FILLS = {"plain": "#ffffff", "pure": "#e8f1fb", "io": "#fdeeda", "open": "#fbe3e3", "safe": "#e6f4e6"}


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.boxes = width, height, []
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            f'<path d="M0,0 L9,4 L0,8 z" fill="{SOFT}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="{PALE}"/>']

    def text(self, x, y, words, bold=False, anchor="start"):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" fill="{INK}" text-anchor="{anchor}"{weight}>{escape(words)}</text>')

    def box(self, x, y, width, title, lines=(), fill="plain"):
        """A box whose first line is bold; returns its height."""
        height = 2 * PAD + LINE * (1 + len(lines)) - 4
        longest = max(len(w) for w in [title, *lines])
        assert longest * CHAR <= width - 2 * PAD + 1, f"'{title}': its longest line has {longest} letters"
        assert x + width <= self.width and y + height <= self.height, f"'{title}' is cut off"
        for a, b, c, d in self.boxes:
            assert x >= a + c or a >= x + width or y >= b + d or b >= y + height, f"'{title}' is over another box"
        self.boxes.append((x, y, width, height))
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{FILLS[fill]}" '
                          f'stroke="{SOFT}"/>')
        for i, line in enumerate([title, *lines]):
            self.text(x + PAD, y + PAD + 11 + i * LINE, line, bold=i == 0)
        return height

    def arrow(self, x1, y1, x2, y2, words=""):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{SOFT}" stroke-width="1.5" '
                          'marker-end="url(#head)"/>')
        if words:
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - 6, words, anchor="middle")

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


# Layers, the top first: each may use those below.
LAYERS = [
    ("what an owner types", [("cli/", "the command fkge", "io"), ("lab/", "experiments, tuning, demo", "io")]),
    ("an agent", [("agent/", "the process: libuv, workers", "io"), ("agent: the core", "what to do next, no I/O", "pure")]),
    ("what decides", [("audit/", "does it what it says", "pure"), ("config/", "agent.yaml", "pure"),
                      ("fed/", "rounds of many", "pure"), ("ppat/", "translators of pairs", "pure")]),
    ("what travels and stays", [("net/", "Noise, messages, PSI", "pure"), ("net/uv/", "links over libuv", "io"),
                                ("store/ledger/", "what was spent", "pure"), ("store/", "SQLite", "io")]),
    ("arithmetic", [("kge/", "models, training", "pure"), ("nn/", "small networks", "pure"),
                    ("dp/", "noise and its price", "pure"), ("graph/", "names and triples", "pure")]),
    ("below all", [("base/", "errors, memory, text, files, threads, random numbers", "io")]),
]


def architecture():
    p = Picture(800, 490, "The layers of fkge")
    p.text(20, 28, "A folder may use rows below; ARCHITECTURE.md says which. Blue: pure, without I/O. Orange: does I/O.")
    for i, (name, folders) in enumerate(LAYERS):
        y, width = 48 + i * 72, (620 - 10 * (len(folders) - 1)) // len(folders)
        p.text(20, y + 30, name, bold=True)
        for j, (folder, what, fill) in enumerate(folders):
            lines = [what] if len(what) * CHAR <= width - 2 * PAD else two(what)
            p.box(170 + j * (width + 10), y, width, folder, lines, fill)
    return p.svg()


def two(words):
    """In two lines of about equal length."""
    half = min((abs(len(words) - 2 * i), i) for i, c in enumerate(words) if c == " ")[1]
    return [words[:half], words[half + 1:]]


# Who sees what, in the default settings and with what may be set.
SEES = [
    ("Partner as host", 40, 60, "open", ["our rows of shared names, under a rotation",
                                         "  (private training, noisy_rows: with noise)",
                                         "which names both have, how many we have", "when we improve"]),
    ("Partner as client", 430, 60, "safe", ["which names both have, how many we have",
                                            "procrustes: nothing of our rows",
                                            "ppat, map: noisy votes or a map, charged", "when we improve"]),
    ("Home of a row (rounds)", 40, 320, "open", ["our row of the name, each round; uncharged",
                                                 "  secret_bits: the sum of the others' rows",
                                                 "roles: both, no noise"]),
    ("Auditor", 430, 320, "safe", ["counts, mechanisms, keys, times, signatures", "no names, rows or votes",
                                   "only what an owner exports"]),
    ("Stranger, on the network", 40, 430, "safe", ["that fkge is here, its version",
                                                   "listening in: lengths and times of messages"]),
    ("Other members", 430, 430, "safe", ["rounds: the mean over a name's holders",
                                         "with introduce: names, keys, addresses"]),
]


def who_sees_what():
    p = Picture(800, 530, "Who sees what of an agent")
    p.text(20, 28, "Who sees what of an agent. Red: rows as they are by default. Green: nothing of a bare row.")
    p.box(215, 195, 370, "The agent, at its owner's", ["triples, own names, tables, keys: stay here",
                                                       "scores and votes: stay here"], "plain")
    for name, x, y, fill, lines in SEES:
        p.box(x, y, 340, name, lines, fill)
    p.arrow(300, 195, 240, 168)
    p.arrow(500, 195, 560, 168)
    p.arrow(300, 265, 240, 318)
    p.arrow(500, 265, 560, 318)
    return p.svg()


PICTURES = {"architecture.svg": architecture, "who-sees-what.svg": who_sees_what}


def main():
    stale = []
    for name, draw in PICTURES.items():
        path = os.path.join(HERE, name)
        if "--check" not in sys.argv[1:]:
            open(path, "w", encoding="utf-8").write(draw())
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != draw():
            stale.append(f"docs/pictures/{name} is stale: python3 docs/pictures/draw.py")
    print("\n".join(stale))
    return len(stale) > 0


sys.exit(main())
