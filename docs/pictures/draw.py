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
# Who cannot tell the colours apart sees the lines: dashed, thick.
STROKES = {"io": f'stroke="{SOFT}" stroke-dasharray="6 3"', "open": 'stroke="#b03030" stroke-width="2.5"'}


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Picture:
    stroke = f'stroke="{SOFT}"'

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

    def label(self, x, y, words, width):
        """Bold words that end before x + width."""
        assert len(words) * CHAR * 1.12 <= width, f"'{words}' is longer than its column"
        self.text(x, y, words, bold=True)

    def box(self, x, y, width, title, lines=(), fill="plain", height=0):
        """A box whose first line is bold, of at least that height; returns its height."""
        height = max(height, 2 * PAD + LINE * (1 + len(lines)) - 4)
        longest = max(len(w) for w in [title, *lines])
        assert longest * CHAR <= width - 2 * PAD + 1, f"'{title}': its longest line has {longest} letters"
        assert x + width <= self.width and y + height <= self.height, f"'{title}' is cut off"
        for a, b, c, d in self.boxes:
            assert x >= a + c or a >= x + width or y >= b + d or b >= y + height, f"'{title}' is over another box"
        self.boxes.append((x, y, width, height))
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{FILLS[fill]}" '
                          f'{STROKES.get(fill, self.stroke)}/>')
        for i, line in enumerate([title, *lines]):
            indent = 7 * (len(line) - len(line.lstrip()))
            self.text(x + PAD + indent, y + PAD + 11 + i * LINE, line.lstrip(), bold=i == 0)
        return height

    def line(self, x1, y1, x2, y2, head=True):
        end = ' marker-end="url(#head)"' if head else ""
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{SOFT}" stroke-width="1.5"{end}/>')

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


# Layers, the top first: each may use those below.
LAYERS = [
    ("commands", [("cli/", "the command fkge", "io"), ("http/", "metrics, JSON, dashboard", "io"),
                  ("lab/", "experiments, tuning, demo", "io"), ("lib/", "libfkge, for programs", "io"),
                  ("python/", "the same, for Python", "io")]),
    ("an agent", [("agent/", "the process: libuv, workers", "io"), ("agent/core/", "what to do next, no I/O", "pure")]),
    ("decisions", [("audit/", "does it what it says", "pure"), ("config/", "agent.yaml", "pure"),
                      ("fed/", "rounds of many", "pure"), ("ppat/", "translators of pairs", "pure")]),
    ("messages, store", [("net/", "Noise, messages, PSI", "pure"), ("net/uv/", "links over libuv", "io"),
                         ("store/ledger/", "what was spent", "pure"), ("store/", "SQLite", "io")]),
    ("larger tables", [("ranks/", "training over several machines, MPI", "io"), ("disk/", "training past memory", "io")]),
    ("arithmetic", [("encode/", "trained encoders", "pure"), ("query/", "several steps", "pure"), ("kge/", "models, training", "pure"),
                    ("nn/", "small networks", "pure"),
                    ("dp/", "noise and its price", "pure"), ("graph/", "names and triples", "pure")]),
    ("for all of them", [("base/", "errors, memory, text, files, threads, random numbers", "io")]),
]


def architecture():
    p = Picture(800, 574, "The layers of fkge")
    p.text(20, 28, "A folder may use those below; ARCHITECTURE.md says which. Blue: pure, without I/O. "
           "Orange, dashed: does I/O.")
    y = 48
    for name, folders in LAYERS:
        width = (620 - 10 * (len(folders) - 1)) // len(folders)
        boxes = [(folder, [what] if len(what) * CHAR <= width - 2 * PAD else two(what), fill)
                 for folder, what, fill in folders]
        height = 2 * PAD + LINE * (1 + max(len(lines) for _, lines, _ in boxes)) - 4
        p.label(20, y + height / 2 + 5, name, 145)
        for j, (folder, lines, fill) in enumerate(boxes):
            p.box(170 + j * (width + 10), y, width, folder, lines, fill, height)
        y += height + 16
    return p.svg()


def two(words):
    """In two lines of about equal length."""
    half = min((abs(len(words) - 2 * i), i) for i, c in enumerate(words) if c == " ")[1]
    return [words[:half], words[half + 1:]]


# Who sees what, in the default settings and with what may be set: rows of two boxes.
SEES = [
    (("Partner as host", "open", ["our rows of shared names, under a rotation",
                                  "  (private training, noisy_rows: with noise)",
                                  "which names both have, how many we have", "when we improve"]),
     ("Partner as client", "safe", ["which names both have, how many we have",
                                    "procrustes: nothing of our rows",
                                    "ppat, map: noisy votes or a map, charged", "when we improve"])),
    (("Home of a row (rounds)", "open", ["our row of the name, each round; uncharged",
                                         "  secret_bits: the sum of the others' rows",
                                         "  roles: both, no noise"]),
     ("Other members", "safe", ["rounds: the mean over a name's holders",
                                "with introduce: names, keys, addresses"])),
    (("Stranger, on the network", "safe", ["that fkge is here, its version",
                                           "listening in: lengths and times of messages"]),
     ("Auditor", "safe", ["counts, mechanisms, keys, times, signatures", "no names, rows or votes",
                          "only what an owner exports"])),
]


def who_sees_what():
    p = Picture(800, 475, "Who sees what of an agent")
    p.text(20, 28, "Who sees what of an agent. Red, thick: rows as they are by default. Green: nothing of a bare row.")
    below = 48 + p.box(215, 48, 370, "The agent, at its owner's", ["triples, own names, tables, keys: stay here",
                                                                   "scores and votes: stay here"])
    y, middle = below + 30, 400
    for boxes in SEES:
        height = 0
        for (name, fill, lines), x in zip(boxes, (20, 440)):
            height = max(height, p.box(x, y, 340, name, lines, fill, height))
        p.line(middle, below, middle, y + height / 2, head=False)
        p.line(middle, y + height / 2, 364, y + height / 2)
        p.line(middle, y + height / 2, 436, y + height / 2)
        below, y = y + height / 2, y + height + 20
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
