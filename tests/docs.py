#!/usr/bin/env python3
"""The documents: lengths, links, and what they say of the program.  Prints TAP.

  docs.py FKGE SOURCE_ROOT             check
  docs.py --tighten FKGE SOURCE_ROOT   lower tests/docs-over.txt to what is there

A line has at most 120 columns (but tables and code), a paragraph, an item of a list or a cell of a
table at most 90 words.  tests/docs-over.txt names the files that are still over, with how many lines
and paragraphs; a figure may only fall."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
COLUMNS, WORDS = 120, 90


def parts(text):
    """(long lines, long paragraphs) of a document: each as a list of (line number, first words)."""
    lines, paragraphs, block, start, fence = [], [], [], 0, False

    def end():
        nonlocal block
        if len(" ".join(block).split()) > WORDS:
            paragraphs.append((start, " ".join(block)[:50]))
        block = []

    for n, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fence = not fence
            end()
            continue
        if fence or (line.startswith("    ") and not block):
            continue
        if line.startswith("|"):
            end()
            for cell in line.split("|"):
                if len(cell.split()) > WORDS:
                    paragraphs.append((n, cell.strip()[:50]))
            continue
        if len(line) > COLUMNS:
            lines.append((n, line[:50]))
        if not line.strip():
            end()
            continue
        if re.match(r"\s*([*-]|\d+\.)\s|#", line):
            end()
        if not block:
            start = n
        block.append(line)
        if line.startswith("#"):
            end()
    end()
    return lines, paragraphs


def anchor(title):
    """As the usual viewers of Markdown make one."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower().replace("`", "")).replace(" ", "-")


def anchors(text):
    return {anchor(line.lstrip("#")) for line in text.split("\n") if re.match(r"#+ ", line)}


def dead_links(path, text, read):
    """Links of a document to what is not in the tree; read() gives a file's text, or None."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, mark = target.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        there = read(to)
        if there is None or (mark and mark not in anchors(there)):
            dead.append(f"{path}: {target}")
    return dead


def cases_of(text):
    """(folder/name, case) for each case of a test that a document names: `folder/name`: one_case, another_case."""
    case = r"[a-z0-9]+(?:_[a-z0-9]+)+"
    for test, names in re.findall(rf"`([a-z]+/[a-z0-9_]+)`:\s+({case}(?:,\s+{case})*)", text):
        yield from ((test, name) for name in re.split(r",\s+", names))


def self_test():
    """What is planted here must be found, and nothing else."""
    long, many = "x" * (COLUMNS + 1), "word " * (WORDS + 1)
    two = parts(f"# t\n\n{long}\n\n```\n{long}\n```\n\n    {long}\n\n| {long} |\n")
    assert ([n for n, _ in two[0]], two[1]) == ([3], []), two
    items = f"* {'w ' * 60}\n* {'w ' * 60}"
    two = parts("\n".join(["a b"] * 46) + f"\n\n{items}\n\n| {many}| a |\n" + "a b\n" * 45)
    assert [n for n, _ in two[1]] == [1, 51], two
    files = {"a.md": "# One `two`: three\n", "d/b.md": "[x](../a.md#one-two-three) [y](../a.md#no) [z](c.md)"}
    dead = dead_links("d/b.md", files["d/b.md"], files.get)
    assert dead == ["d/b.md: ../a.md#no", "d/b.md: c.md"], dead
    named = "(`a/b`: x_y,\nz_1; `a/c`: the one) `a/d`: `k_k`, | `a/e`: one, v_w"
    assert list(cases_of(named)) == [("a/b", "x_y"), ("a/b", "z_1")], list(cases_of(named))
    assert keys_of({"a": [{"b": 1}, {"c": {}}]}) == {"a", "b", "c"}


def keys_of(value):
    if isinstance(value, dict):
        return set(value) | {k for v in value.values() for k in keys_of(v)}
    if isinstance(value, list):
        return {k for v in value for k in keys_of(v)}
    return set()


class Tree:
    def __init__(self, fkge, root):
        self.fkge, self.root, self.checks, self.failed = os.path.realpath(fkge), root, 0, 0
        self.files = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith((".", "build", "run-data"))]
            self.files += [os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(".md")]
        self.files.sort()

    def read(self, path):
        full = os.path.join(self.root, path)
        if os.path.isdir(full):
            return ""
        return open(full, encoding="utf-8", errors="replace").read() if os.path.exists(full) else None

    def ok(self, what, faults):
        self.checks += 1
        for f in faults:
            print(f"# {f}")
        self.failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {self.checks} - {what}")

    def run(self, *words, folder=None):
        where = ["-d", folder] if folder else []
        return subprocess.run([self.fkge, *where, *words], capture_output=True, text=True,
                              env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})

    # ---- lengths ----

    def over_path(self):
        return os.path.join(self.root, "tests", "docs-over.txt")

    def allowed(self):
        rows = [line.split() for line in open(self.over_path()) if line.strip() and line[0] != "#"]
        return {name: (int(n), int(m)) for name, n, m in rows}

    def lengths(self):
        allowed, faults = self.allowed(), []
        for f in self.files:
            long, many = parts(self.read(f))
            n, m = allowed.pop(f, (0, 0))
            if len(long) > n:
                faults += [f"{f}:{at}: over {COLUMNS} columns ({n} such lines are allowed): {w}" for at, w in long]
            if len(many) > m:
                faults += [f"{f}:{at}: over {WORDS} words ({m} such paragraphs are allowed): {w}" for at, w in many]
        return faults + [f"tests/docs-over.txt: there is no {f}: take its line out" for f in allowed]

    def tighten(self):
        old, head = self.allowed(), [line for line in open(self.over_path()) if line[0] == "#"]
        rows = []
        for f in self.files:
            now = tuple(len(x) for x in parts(self.read(f)))
            now = tuple(min(a, b) for a, b in zip(now, old.get(f, (0, 0))))
            if any(now):
                rows.append(f"{f} {now[0]} {now[1]}\n")
        open(self.over_path(), "w").writelines(head + rows)

    # ---- links, generated files ----

    def links(self):
        return [d for f in self.files for d in dead_links(f, self.read(f), self.read)]

    def paths(self):
        """Files of the tree that a document names in backticks; NAME and * stand for any."""
        dead = []
        for f in self.files:
            if "/" in f and not f.startswith(("docs/guide", "docs/reference")):
                continue
            for path in re.findall(r"`([\w/-]+/[\w.-]+\.(?:c|h|py|sh|md|build|txt))`", self.read(f)):
                if "NAME" not in path and self.read(path) is None:
                    dead.append(f"{f}: there is no {path}")
        return dead

    def sources_of(self, test):
        """Texts of a test's source, or of all in a folder of tests."""
        folder, name = test.split("/")
        if folder == "tests":
            place = os.path.join(self.root, test)
            return [self.read(f"{test}/{f}") for f in sorted(os.listdir(place)) if f.endswith(".c")]
        paths = [f"tests/{folder}/{f}" for f in (f"test_{name}.c", f"{name}.c", f"{name}.sh", f"test_{name}.sh")]
        return [text for text in map(self.read, paths) if text]

    def cases(self):
        faults, n = [], 0
        for path in self.files:
            for test, case in cases_of(self.read(path)):
                n += 1
                if not any(re.search(rf"\b(test_)?{case}\b", text) for text in self.sources_of(test)):
                    faults.append(f"{path}: {test} has no case {case}")
        return faults + ([] if n > 40 else [f"{n} cases are named"])

    def settings(self):
        if self.run("init", "--reference").stdout == self.read("docs/reference/agent-yaml.md"):
            return []
        return ["docs/reference/agent-yaml.md is stale: fkge init --reference > docs/reference/agent-yaml.md"]

    def live(self):
        """The keys that `fkge reload` takes, as docs/guide/operation.md lists them."""
        code = set(re.findall(r'\{ "(\w+)", "(\w+)" \}', self.read("config/differ.c")))
        table = self.read("docs/guide/operation.md").split("| section | keys |")[1].split("\n\n")[0]
        said = {(section, key) for section, keys in re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.M)
                for key in re.findall(r"`(\w+)`", keys)}
        return [f"docs/guide/operation.md, fkge reload: {s}.{k}" for s, k in sorted(code ^ said)] or \
            ([] if len(code) > 15 else ["no live keys were found"])

    # ---- the reference ----

    def protocol(self):
        """Every type of message with its limits, and in its section every key of net/bodies.def."""
        text, faults = self.read("docs/reference/protocol.md"), []
        sizes = dict(re.findall(r"(NET_\w+) = (1 << \d+)", self.read("net/sizes.h")))
        types = re.findall(r"X\((\w+), (\d+), (\w+), (\d+)\)", self.read("net/msg.h"))
        for name, number, limit, values in types:
            if limit in sizes:
                base, shift = sizes[limit].split(" << ")
                limit = int(base) << int(shift)
            want = f"### {name}\n\nType {number}, at most {limit} bytes, {values} values."
            if want not in text:
                faults.append(f"docs/reference/protocol.md lacks: {want!r}")
        sections = {t: "" for t in re.findall(r"^### (\w+)", text, re.M)}
        for title, body in re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.M | re.S):
            sections[title] = body
        bodies = self.read("net/bodies.def")
        keys, section = [], None
        for line in bodies.split("*/\n", 1)[1].split("\n"):
            begun = re.match(r"(?:BODY|INNER)\(\w+, (\w+)\)", line)
            section = begun.group(1) if begun else section
            field = re.match(r'\t(?:MUST|MAY)\(\w+, \w+, "(\w+)"', line)
            keys += [(section, field.group(1))] if field else []
        faults += [f"docs/reference/protocol.md, {section} lacks the key {k}" for section, k in sorted(set(keys))
                   if f"`{k}`" not in sections.get(section, "")]
        # conversations and rounds have no other way to a message
        for folder in ("agent", "agent/core", "fed", "net", "ppat"):
            full = os.path.join(self.root, folder)
            for f in os.listdir(full) if os.path.isdir(full) else []:
                if f.endswith(".c") and f not in ("core_record.c", "history.c", "member.c", "ident.c", "bodies.c"):
                    faults += [f"{folder}/{f} writes the key {k}, which is not in net/bodies.def" for k in
                               re.findall(r'net_put_\w+\(\s*&?\w+,\s*"(\w+)"', self.read(f"{folder}/{f}")) if k != "k"]
        return faults + (["no types, or no keys, were found"] if len(types) < 10 or len(keys) < 80 else [])

    def pictures(self):
        """As drawn, and the layers are the tree's folders."""
        draw = os.path.join(self.root, "docs", "pictures", "draw.py")
        done = subprocess.run([sys.executable, draw, "--check"], capture_output=True, text=True)
        said = set(re.findall(r">([\w/]+)/</text>", self.read("docs/pictures/architecture.svg")))
        code = {f for f in os.listdir(self.root) if os.path.exists(os.path.join(self.root, f, "meson.build"))}
        code -= {"tests", "bench", "examples", "docs", "packaging"} | {f for f in code if f.startswith("build")}
        faults = [f"docs/pictures/draw.py has no layer {f}/" for f in sorted(code - said)]
        faults += [f"docs/pictures/draw.py: there is no {f}/" for f in sorted(said)
                   if not os.path.isdir(os.path.join(self.root, f))]
        return (done.stdout + done.stderr).split("\n")[:-1] * (done.returncode != 0) + faults

    def hops(self):
        """Each function that ARCHITECTURE.md names after a file is defined in that file."""
        faults, n = [], 0
        for line in self.read("ARCHITECTURE.md").replace("\n   ", " ").split("\n"):
            path = None
            for word in re.findall(r"`([^`]+)`", line):
                if re.fullmatch(r"[\w/]+\.[ch]", word):
                    path = word
                elif path and re.fullmatch(r"\w+\(\)", word) and "/" in path and line[:1].isdigit():
                    n += 1
                    if not re.search(r"^\w[^;=\n]*\b%s\([^;{]*\)\n\{" % word[:-2], self.read(path), re.M):
                        faults.append(f"ARCHITECTURE.md: {path} does not define {word}")
        return faults + ([] if n > 40 else [f"{n} functions were found"])

    def exit_status(self):
        help = " ".join(self.run("--help").stdout.split("Exit status: ")[1].rstrip(".\n").split())
        rows = dict(re.findall(r"^\| (\d) \| ([^|]+) \|", self.read("docs/reference/exit-status.md"), re.M))
        said = dict(x.split(" ", 1) for x in help.split(", "))
        return [f"exit status {n}: --help says '{said.get(n)}', the reference '{rows.get(n)}'"
                for n in sorted(set(rows) | set(said)) if rows.get(n) != said.get(n)]

    def ledger(self):
        def table(text, row):
            return [(int(a), int(b), c) for a, b, c in re.findall(row, text, re.M)]

        code = table(self.read("store/ledger/entry.h"), r"^ \*\s+(\d+)\s+(\d+)  \"?(\w+)")
        said = table(self.read("docs/reference/ledger.md"), r"^\| (\d+) \| (\d+) \| `?(\w+)")
        return [] if code == said and len(code) == 30 else [f"entry.h has {code}", f"ledger.md has {said}"]

    def json_of(self, folder, graph):
        """Runs what one owner does alone: (command, its JSON) for each."""
        words = [["synth", "-e", "60", "-t", "300", "-o", graph], ["init", "--listen", "off"], ["import", graph],
                 ["train", "--epochs", "1"], ["eval", "--floor", "--classify", "--limit", "5"],
                 ["predict", "e1", "r0", "?", "-k", "1"], ["similar", "e1", "-k", "1"], ["export", folder + "-out"],
                 ["checkpoint", "save", "x"], ["checkpoint", "list"], ["id"], ["ledger", "show"], ["doctor"],
                 ["invite", "--address", "127.0.0.1:1"], ["peer", "list"], ["backup", folder + "-copy"], ["version"],
                 ["status"]]
        for w in words:
            done = self.run(*w, "--json", folder=folder)
            yield w[0], json.loads(done.stdout)

    def json(self):
        text, faults, n = self.read("docs/reference/json.md"), [], 0
        sections = dict(re.findall(r"^##+ (?:fkge )?(\w[^\n]*)\n(.*?)(?=^##|\Z)", text, re.M | re.S))
        shared = sections["Objects that many have"] + text.split("\n## ")[0]
        with tempfile.TemporaryDirectory() as work:
            for command, value in self.json_of(work + "/a", work + "/g"):
                n += 1
                if value["exit"] not in (0, 5):
                    faults.append(f"fkge {command}: {value}")
                faults += [f"docs/reference/json.md: fkge {command} lacks {k}" for k in sorted(keys_of(value))
                           if f"`{k}`" not in sections.get(command, "") + shared]
        return faults + ([] if n > 15 else ["nothing was run"])


def main():
    words = sys.argv[1:]
    if words[:1] == ["--tighten"]:
        return Tree(*words[1:]).tighten()
    self_test()
    t = Tree(*words)
    t.ok("no document has longer lines or paragraphs than it may", t.lengths())
    t.ok("no link leads nowhere", t.links())
    t.ok("no path in backticks leads nowhere", t.paths())
    t.ok("every case of a test that is named is in that test", t.cases())
    t.ok("docs/reference/agent-yaml.md is that of this program", t.settings())
    t.ok("docs/guide/operation.md has the keys that a running agent takes", t.live())
    t.ok("docs/reference/protocol.md has every message and key", t.protocol())
    t.ok("every function of ARCHITECTURE.md is in the file before it", t.hops())
    t.ok("docs/reference/exit-status.md is that of --help", t.exit_status())
    t.ok("docs/reference/ledger.md has the entry's bytes", t.ledger())
    t.ok("docs/reference/json.md has the fields of what one owner does alone", t.json())
    t.ok("the pictures are those of docs/pictures/draw.py, the layers those of the tree", t.pictures())
    print(f"1..{t.checks}")
    return t.failed > 0


sys.exit(main())
