#!/usr/bin/env python3
"""The shape of the tree: folders, includes, circles, long functions, exports, assertions, structs.

usage: shape.py [OPTION]

  --json           prints all findings as one JSON object
  --before FILE    prints the figures beside those of an earlier --json
  --max [FILE]     fails where a figure is worse than its limit (tests/shape-limits.txt)
  --tighten [FILE] writes today's figures into that file where they are better than its limits
  --nm BUILD       compares exports and uses, as read from the text, with the objects below BUILD
  --tree DIR       reads another tree

The sources are read as text, so no build is needed; --nm shows that the text is read as the
compiler reads it. docs/results/shape.md says what each figure means.
"""
import argparse
import bisect
import collections
import json
import os
import re
import subprocess
import sys

LONG = 60  # lines; a longer function is counted
SHORT = 8  # letters; a name of one word that is no longer is counted
LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shape-limits.txt")
# Folders that use the program and are no part of it.
BESIDE = ("tests", "bench", "examples", "docs")
# libc calls or reads these.
LIBC = ("main", "argp_program_version")
# Folders that no other program links, or sets of small modules: a module's name is a prefix there too. A module is
# a file, or the files whose names begin with its name: rounds_ in rounds.c and rounds_align.c, peer_ in peers.c.
MODULES = ("base", "fed/methods", "agent", "agent/core", "audit", "lab", "cli")
# Other prefixes that ARCHITECTURE.md names.
OTHER_PREFIXES = {"store": ("db",), "config": ("yaml_file",), "cli": ("cmd",), "lib": ("fkge",)}
# What a shared library exports is used by whoever links it: the names in its version script.
MAPS = ("lib/fkge.map",)

# The figures, in the order in which they are printed: name, whether less is better, meaning.
FIGURES = (
    ("folders", None, "folders with C files (tests, bench, examples aside)"),
    ("files", None, ".c and .h files"),
    ("lines", None, "lines in them"),
    ("functions", None, "functions"),
    ("lines_a_function", True, "mean lines of a function"),
    ("include_edges", True, "pairs of folders of which one includes the other"),
    ("folder_circles", True, "circles of folders that include each other"),
    ("private_includes", True, "includes of another folder's private header (internal.h, *_internal.h)"),
    ("file_circles", True, "circles of .c files that use each other's symbols"),
    ("largest_circle", True, "files in the largest"),
    ("files_in_circles", True, "files in any"),
    ("header_circles", True, "circles of headers that include each other"),
    ("long_functions", True, "functions over %d lines" % LONG),
    ("longest_function", True, "lines of the longest"),
    ("exports", None, "exported functions and variables"),
    ("unused_exports", True, "exports that nobody uses outside their file"),
    ("test_exports", True, "exports that only tests, bench and examples use"),
    ("unprefixed_exports", True, "exports without their folder's prefix"),
    ("one_word_exports", True, "exports named by one word of at most %d letters" % SHORT),
    ("one_word_functions", True, "functions of any linkage named so"),
    ("same_names", True, "functions whose name another function has too"),
    ("most_same_names", True, "functions of the most frequent name"),
    ("assertions", False, "assertions"),
    ("assertions_a_function", False, "assertions a function"),
    ("longest_header", True, "lines of the longest header"),
    ("largest_struct", True, "fields of the largest struct"),
    ("structs_over_30", True, "structs of more than 30 fields"),
)

TOKENS = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?(.*)", re.DOTALL)
PASTED = re.compile(r"(?<!enum )(?<!struct )\b(\w+)\s*##\s*\w+(?:\s*##\s*(\w+))?")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
IDENTIFIER = re.compile(r"(\.|->|\bstruct\s|\bunion\s|\benum\s|\bgoto\s)?\s*\b([A-Za-z_]\w*)\b")
FUNCTION = re.compile(r"(?:^|[\s*])([A-Za-z_]\w*)\s*\((?:[^()]|\([^()]*\))*\)\s*$", re.DOTALL)
AGGREGATE = re.compile(r"\b(struct|union|enum)\s*(\w*)\s*$")
BRACES = re.compile(r"[{};]")
PRIVATE = re.compile(r"(?:^|/|_)internal\.h$")


class Unreadable(Exception):
    pass


def blank(match):
    """Spaces for a comment, a string or a directive; its lines stay."""
    text = match.group(0)
    lines = text.count("\n")
    return '""' if text[0] == '"' and not lines else " " + "\n" * lines


def words(code):
    """Identifiers that may name a symbol: no fields, no tags."""
    return {n for before, n in IDENTIFIER.findall(code) if not before}


class Source:
    """One file: what it includes, defines, exports, uses and asserts."""

    def __init__(self, tree, path, whole):
        self.path = path
        self.folder = os.path.dirname(path)
        with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        self.lines = text.count("\n")
        self.includes = INCLUDE.findall(text)
        code = TOKENS.sub(blank, text)
        self.macros = collections.defaultdict(str)  # name -> its bodies
        for m in DIRECTIVE.finditer(code):
            define = DEFINE.match(m.group(0).strip())
            if define:
                self.macros[define.group(1)] += " " + define.group(2)
        bodies = " ".join(self.macros.values())
        code = DIRECTIVE.sub(blank, code)
        if not whole:  # of what only uses the program, every word is enough
            self.uses = set(re.findall(r"[A-Za-z_]\w*", code + bodies))
            return
        self.assertions = len(re.findall(r"\bassert\s*\(", code + bodies))
        self.functions = []  # (name, static, first line, lines)
        self.variables = []  # names, exported
        self.structs = []  # (name, fields)
        # The pieces of code that may use a symbol. A header's macros use theirs where they stand.
        self.used = [bodies] if path.endswith(".c") else []
        self.newlines = [i for i, c in enumerate(code) if c == "\n"]
        self.read(code)
        self.uses = set().union(*map(words, self.used))
        self.pasted = set(PASTED.findall(bodies))  # of fed_##name: fed_ and what follows the name

    def line(self, offset):
        return bisect.bisect_left(self.newlines, offset) + 1

    def read(self, code):
        """Walks the top level: one statement or definition after the other."""
        depth, start, opened, groups = 0, 0, 0, []
        for m in BRACES.finditer(code):
            c, at = m.group(0), m.start()
            if c == "{":
                if depth == 0:
                    opened = at
                depth += 1
            elif c == "}":
                depth -= 1
                if depth < 0:
                    raise Unreadable("%s:%d: a } too many" % (self.path, self.line(at)))
                if depth == 0:
                    if self.function(code, start, opened, at):
                        start = at + 1
                    else:
                        groups.append((opened, at))
            elif depth == 0:
                self.statement(code, start, at, groups)
                start, groups = at + 1, []
        if depth:
            raise Unreadable("%s: a } is missing" % self.path)

    def function(self, code, start, opened, closed):
        """Notes the function whose body is the braces from opened to closed, if they are one."""
        head = ATTRIBUTE.sub(" ", code[start:opened])
        if "=" in re.sub(r"\([^()]*\)", "", head):
            return False
        name = FUNCTION.search(head.strip())
        if not name:
            return False
        first = self.line(start + len(code[start:opened]) - len(code[start:opened].lstrip()))
        static = re.search(r"\bstatic\b", head) is not None
        self.functions.append((name.group(1), static, first, self.line(closed) - first + 1))
        self.used.append(code[opened:closed])
        return True

    def statement(self, code, start, end, groups):
        """A declaration: of a type, a variable, a prototype."""
        head = code[start:groups[0][0] if groups else end]
        if re.match(r"\s*(_S|s)tatic_assert\b", head):
            return
        kind = AGGREGATE.search(ATTRIBUTE.sub(" ", head)) if groups else None
        if kind and "=" in code[groups[0][1]:end]:  # a table whose type is written out before it
            start = groups[0][1] + 1
            head = code[start:groups[1][0]] if len(groups) > 1 else code[start:end]
            if re.search(r"\b(static|typedef)\b", code[:groups[0][0]].rpartition(";")[2]):
                head = "static " + head
                self.used.append(code[start:end])
                return
        elif kind and "=" not in head:
            if kind.group(1) != "enum":
                name = kind.group(2) or (re.findall(r"\w+", code[groups[0][1]:end]) or ["?"])[-1]
                self.structs.append((name, fields(code[groups[0][0] + 1:groups[0][1]])))
            else:
                self.used.append(code[groups[0][0]:groups[0][1]])
            return
        text = ATTRIBUTE.sub(" ", code[start:end])
        if "=" in head:
            text, value = text.split("=", 1)
            self.used.append(value)
        elif re.search(r"\w\s*\(", text) or re.match(r"\s*(struct|union|enum)\s+\w+\s*$", text):
            return  # a prototype, or a type that is only named
        if re.search(r"\b(static|extern|typedef)\b", text) or not text.strip():
            return
        name = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", text.strip())
        if name and self.path.endswith(".c"):
            self.variables.append(name.group(1))


def fields(body):
    """Declarators of a struct's body, those of structs inside it as well."""
    n, inner = 0, re.compile(r"\{([^{}]*)\}")
    while True:
        m = inner.search(body)
        if not m:
            break
        if not re.search(r"\benum\s*\w*\s*$", body[:m.start()]):
            n += fields(m.group(1))
        body = body[:m.start()] + " " + body[m.end():]
    for declaration in body.split(";"):
        # int (*call)(int x, int y) is one declarator
        declaration = re.sub(r"\(\*?\s*(\w+)[^()]*\)\s*\(.*\)", r"\1", declaration,
                             flags=re.DOTALL)
        declaration = re.sub(r"\([^()]*\)", "", declaration)
        parts = re.findall(r"\w+", declaration)
        if not parts or (len(parts) == 1 and parts[0] in ("struct", "union")):
            continue  # nothing, or an anonymous struct whose fields are counted
        n += declaration.count(",") + 1
    return n


def circles(graph):
    """Strongly connected parts of more than one node (Tarjan), largest first."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for nxt in rest:
                if nxt not in index:
                    index[nxt] = low[nxt] = len(index)
                    stack.append(nxt)
                    on.add(nxt)
                    work.append((nxt, iter(sorted(graph.get(nxt, ())))))
                    break
                if nxt in on:
                    low[node] = min(low[node], index[nxt])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        part.append(stack.pop())
                        on.discard(part[-1])
                        if part[-1] == node:
                            break
                    if len(part) > 1:
                        found.append(sorted(part))
    return sorted(found, key=lambda p: (-len(p), p))


def files_of(tree):
    """Paths of all C files below tree, but for builds and what is hidden."""
    for at, folders, names in os.walk(tree):
        folders[:] = sorted(f for f in folders
                            if not f.startswith((".", "build")) and f != "run-data")
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(at, name), tree)


def read_tree(tree):
    program, beside = {}, {}
    for path in files_of(tree):
        whole = path.split(os.sep)[0] not in BESIDE
        (program if whole else beside)[path] = Source(tree, path, whole)
    if not program:
        raise Unreadable("%s: no C files outside of %s" % (tree, ", ".join(BESIDE)))
    return program, beside


def exports_of(source):
    return [n for n, static, _, _ in source.functions if not static] + source.variables \
        if source.path.endswith(".c") else []


def modules_of(path):
    """Names of the module of a file: rounds_align and rounds for rounds_align.c; peers and peer for peers.c."""
    parts = os.path.basename(path)[:-2].split("_")
    names = ["_".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return names + [n[:-1] for n in names if n.endswith("s")]


def prefixed(name, path):
    folder = os.path.dirname(path)
    parts = folder.split("/")
    starts = parts + ["_".join(parts), "".join(parts)] + list(OTHER_PREFIXES.get(folder, ()))
    if folder in MODULES:
        starts += modules_of(path)
    return any(name.startswith(s + "_") or name == s for s in starts) or name in LIBC


def uses_between(program):
    """Who exports each symbol, and of each .c file the .c files whose symbols it uses."""
    owner = {}
    for path, s in program.items():
        for name in exports_of(s):
            owner[name] = path
    macros = {}  # of headers: name -> what its body uses
    for path, s in program.items():
        if path.endswith(".h"):
            for name, body in s.macros.items():
                macros.setdefault(name, set()).update(words(body))
    graph = {}
    for path, s in program.items():
        s.uses = expand(s.uses, macros, s.macros)
        for start, end in s.pasted:
            s.uses.update({start + n + end for n in s.uses} & owner.keys())
            # The names may stand in a list of the build, each the name of a file.
            s.uses.update(n for n, p in owner.items()
                          if n == start + os.path.basename(p)[:-2] + end)
        if path.endswith(".c"):
            own = {f[0] for f in s.functions}
            graph[path] = {owner[n] for n in s.uses
                           if n in owner and owner[n] != path and n not in own}
    return owner, graph


def expand(uses, macros, own):
    """The uses, and those of the headers' macros among them, and of the macros in these."""
    found, new = set(uses), uses & macros.keys() - own.keys()
    while new:
        more = set().union(*(macros[n] for n in new)) - found
        found |= more
        new = more & macros.keys()
    return found


def objects_of(build):
    """Of each object that is no test's: its source with _ for /, what it defines, what it needs."""
    objects = []
    for at, folders, names in os.walk(build):
        folders[:] = [f for f in folders if not (at == build and f in BESIDE)]
        objects += [os.path.join(at, n) for n in sorted(names) if n.endswith(".c.o")]
    if not objects:
        raise Unreadable("%s: no objects; build first" % build)
    out = subprocess.run(["nm", "-A", "-P", "-g"] + objects, check=True, stdout=subprocess.PIPE,
                         universal_newlines=True).stdout
    symbols = collections.defaultdict(lambda: (set(), set()))
    for line in out.splitlines():
        path, name, kind = line.split()[:3]
        folder, name_of_object = os.path.split(os.path.relpath(path[:-1], build))
        symbols[os.path.dirname(folder) + "/" + name_of_object[:-2]][kind == "U"].add(name)
    return symbols


def compare(program, build):
    """Exports and uses as read from the text beside those of the objects; how many, what differs."""
    owner, graph = uses_between(program)
    sources = {}
    for path in program:
        parts = path.split("/")
        for i in range(1, len(parts)):
            sources["/".join(parts[:i]) + "/" + "_".join(parts[i:])] = path
    objects = {sources[o]: s for o, s in objects_of(build).items() if o in sources}
    linked = {n: path for path, (defined, _) in objects.items() for n in defined}
    text = {("defines", owner[n], n) for n in owner if owner[n] in objects}
    text |= {("uses", a, b) for a in graph for b in graph[a] if a in objects and b in objects}
    link = {("defines", path, n) for n, path in linked.items()}
    link |= {("uses", path, linked[n]) for path, (_, needed) in objects.items() for n in needed
             if n in linked and linked[n] != path}
    return len(text & link), ["%s: %s %s %s" % (("text alone" if d in text else "objects alone",) + d)
                              for d in sorted(text ^ link)]


def mapped(path):
    """The names that a version script exports; none where there is no such file."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as f:
        return set(re.findall(r"^\s*(\w+);$", f.read(), re.M))


def measure(tree):
    program, beside = read_tree(tree)
    found = {}
    folders = collections.defaultdict(lambda: dict(files=0, lines=0, functions=0, assertions=0,
                                                   exports=0, long_functions=0))
    for path, s in program.items():
        f = folders[s.folder]
        f["files"] += 1
        f["lines"] += s.lines
        f["functions"] += len(s.functions)
        f["assertions"] += s.assertions
        f["exports"] += len(exports_of(s))
        f["long_functions"] += sum(lines > LONG for _, _, _, lines in s.functions)
    found["folders"] = dict(folders)
    others = collections.Counter()
    for path, s in beside.items():
        others[path.split("/")[0] + " files"] += 1
        others[path.split("/")[0] + " lines"] += s.lines
    found["beside"] = dict(others)

    edges, private = collections.Counter(), []
    headers = {}
    for path, s in program.items():
        for to in s.includes:
            if to in program and program[to].folder != s.folder:
                edges[s.folder, program[to].folder] += 1
                if PRIVATE.search(to):
                    private.append("%s includes %s" % (path, to))
        if path.endswith(".h"):
            headers[path] = {i for i in s.includes if i in program}
    found["include_edges"] = [[a, b, n] for (a, b), n in sorted(edges.items())]
    found["private_includes"] = private
    above = {f: {b for a, b in edges if a == f} for f in folders}
    found["folder_circles"] = circles(above)
    found["header_circles"] = circles(headers)

    owner, graph = uses_between(program)
    found["file_circles"] = circles(graph)
    found["long_functions"] = sorted(
        ([lines, name, "%s:%d" % (path, first)] for path, s in program.items()
         for name, _, first, lines in s.functions if lines > LONG), key=lambda f: (-f[0], f[2]))
    longest = max(lines for s in program.values() for _, _, _, lines in s.functions)

    users = collections.defaultdict(set)
    for path, s in program.items():
        for n in s.uses & owner.keys() - {f[0] for f in s.functions if f[1]}:
            users[n].add(path)
    in_tests = set().union(*(s.uses for s in beside.values()), set())
    public = set(LIBC).union(*(mapped(os.path.join(tree, m)) for m in MAPS))
    unused = [n for n in sorted(owner) if not users[n] - {owner[n]} and n not in public]
    found["unused_exports"] = [[n, owner[n]] for n in unused if n not in in_tests]
    found["test_exports"] = [[n, owner[n]] for n in unused if n in in_tests]
    found["unprefixed_exports"] = [[n, p] for n, p in sorted(owner.items()) if not prefixed(n, p)]

    short = re.compile(r"[a-z]{1,%d}$" % SHORT)
    named = collections.defaultdict(list)
    for path, s in program.items():
        for name, _, first, _ in s.functions:
            named[name].append("%s:%d" % (path, first))
    found["one_word_exports"] = [[n, p] for n, p in sorted(owner.items())
                                 if short.match(n) and n not in LIBC]
    found["same_names"] = sorted(([len(at), n, at] for n, at in named.items() if len(at) > 1),
                                 key=lambda e: (-e[0], e[1]))
    found["headers"] = sorted(([s.lines, p] for p, s in program.items() if p.endswith(".h")),
                              reverse=True)[:10]
    structs = sorted(([n, name, p] for p, s in program.items() for name, n in s.structs),
                     key=lambda e: (-e[0], e[1]))
    found["structs"] = structs[:10]

    functions = sum(len(s.functions) for s in program.values())
    assertions = sum(s.assertions for s in program.values())
    in_functions = sum(lines for s in program.values() for _, _, _, lines in s.functions)
    found["figures"] = {
        "folders": len(folders), "files": len(program),
        "lines": sum(s.lines for s in program.values()), "functions": functions,
        "lines_a_function": round(in_functions / functions, 1),
        "include_edges": len(edges), "folder_circles": len(found["folder_circles"]),
        "private_includes": len(private), "file_circles": len(found["file_circles"]),
        "largest_circle": max(map(len, found["file_circles"]), default=0),
        "files_in_circles": sum(map(len, found["file_circles"])),
        "header_circles": len(found["header_circles"]),
        "long_functions": len(found["long_functions"]), "longest_function": longest,
        "exports": len(owner), "unused_exports": len(found["unused_exports"]),
        "test_exports": len(found["test_exports"]),
        "unprefixed_exports": len(found["unprefixed_exports"]),
        "one_word_exports": len(found["one_word_exports"]),
        "one_word_functions": sum(len(at) for n, at in named.items()
                                  if short.match(n) and n not in LIBC),
        "same_names": sum(n for n, _, _ in found["same_names"]),
        "most_same_names": max((n for n, _, _ in found["same_names"]), default=0),
        "assertions": assertions, "assertions_a_function": round(assertions / functions, 3),
        "longest_header": found["headers"][0][0] if found["headers"] else 0,
        "largest_struct": structs[0][0] if structs else 0,
        "structs_over_30": sum(n > 30 for n, _, _ in structs),
    }
    return found, program


def table(rows, header):
    """A table that reads well as text and as Markdown."""
    rows = [[str(c) for c in r] for r in [header] + rows]
    width = [max(len(r[i]) for r in rows) for i in range(len(header))]
    number = [all(re.match(r"[-\d.]*$", r[i]) for r in rows[1:]) for i in range(len(header))]
    lines = ["| " + " | ".join(c.rjust(w) if n else c.ljust(w)
                               for c, w, n in zip(r, width, number)) + " |" for r in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 1) + (":" if n else "-")
                                   for w, n in zip(width, number)) + "|")
    return "\n".join(lines)


def show(found, before):
    out = []
    old = before["figures"] if before else {}
    out.append(table([[name] + ([old.get(name, "")] if before else []) +
                      [found["figures"][name], meaning] for name, _, meaning in FIGURES],
                     ["figure"] + (["before"] if before else []) + ["now", "meaning"]))
    rows = []
    for name, f in sorted(found["folders"].items()):
        uses = " ".join("%s:%d" % (b, n) for a, b, n in found["include_edges"] if a == name)
        rows.append([name, f["files"], f["lines"], f["functions"], f["long_functions"],
                     f["exports"], "%.2f" % (f["assertions"] / max(f["functions"], 1)), uses])
    out.append(table(rows, ["folder", "files", "lines", "functions", "over %d" % LONG, "exports",
                            "assertions a function", "includes (times)"]))
    out.append("beside the program: " +
               ", ".join("%s %d" % e for e in sorted(found["beside"].items())))
    for key, title in (("folder_circles", "folders"), ("header_circles", "headers"),
                       ("file_circles", "files")):
        if found[key]:
            out.append("Circles of %s:\n\n" % title +
                       "\n".join("* %d: %s" % (len(c), " ".join(c)) for c in found[key]))
    for key, title in (("long_functions", "Functions over %d lines" % LONG),
                       ("private_includes", "Private headers of other folders"),
                       ("unused_exports", "Used by nobody outside their file"),
                       ("test_exports", "Used by tests, bench and examples alone"),
                       ("one_word_exports", "Exports of one short word"),
                       ("headers", "Longest headers"), ("structs", "Structs of most fields")):
        if found[key]:
            out.append("%s:\n\n" % title + "\n".join(
                "* " + (e if isinstance(e, str) else " ".join(map(str, e))) for e in found[key]))
    by_folder = collections.Counter(os.path.dirname(p) for _, p in found["unprefixed_exports"])
    out.append("Exports without their folder's prefix: " +
               ", ".join("%s %d" % e for e in by_folder.most_common()))
    out.append("Names that most functions share: " +
               ", ".join("%s %d" % (name, n) for n, name, _ in found["same_names"][:20]))
    return "\n\n".join(out)


def read_limits(path):
    limits = {}
    known = {name for name, less, _ in FIGURES if less is not None}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            parts = line.split("#")[0].split()
            if not parts:
                continue
            if len(parts) != 2 or parts[0] not in known or not re.match(r"[\d.]+$", parts[1]):
                raise Unreadable("%s:%d: must be FIGURE LIMIT, with a figure that `./run shape` "
                                 "prints and that can be worse" % (path, number))
            limits[parts[0]] = float(parts[1])
    return limits


def worse(figures, limits):
    """Of each figure that passes its limit, one line."""
    less = {name: less for name, less, _ in FIGURES}
    meaning = {name: text for name, _, text in FIGURES}
    return ["%s is %g, %s %g: %s" % (name, figures[name], "the limit is" if less[name] else
                                     "it must be at least", limit, meaning[name])
            for name, limit in limits.items()
            if (figures[name] > limit if less[name] else figures[name] < limit)]


def tighten(path, figures):
    """Rewrites the limits that are worse than today's figures; says which."""
    less = {name: less for name, less, _ in FIGURES}
    changed, limits = [], read_limits(path)
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    for i, line in enumerate(lines):
        name = (line.split("#")[0].split() or [""])[0]
        if name in limits and figures[name] != limits[name] and \
                (figures[name] < limits[name]) == less[name]:
            lines[i] = re.sub(r"^(\S+\s+)\S+", lambda m: m.group(1) + "%g" % figures[name], line)
            changed.append("%s %g -> %g" % (name, limits[name], figures[name]))
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)
    return changed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--tree", default=os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--before")
    parser.add_argument("--max", nargs="?", const=LIMITS)
    parser.add_argument("--tighten", nargs="?", const=LIMITS)
    parser.add_argument("--nm")
    asked = parser.parse_args()
    found, program = measure(asked.tree)
    before = None
    if asked.before:
        with open(asked.before, encoding="utf-8") as f:
            before = json.load(f)
    failed = False
    if asked.nm:
        same, differ = compare(program, asked.nm)
        print("shape: text and objects agree on %d exports and uses, differ on %d" %
              (same, len(differ)))
        print("".join("  %s\n" % d for d in differ), end="")
        failed = len(differ) * 100 > same  # what macros make up may differ
    if asked.max:
        for text in worse(found["figures"], read_limits(asked.max)):
            print("shape: " + text, file=sys.stderr)
            failed = True
        if failed:
            print("shape: `./run shape` names what is counted; %s holds the limits" % asked.max,
                  file=sys.stderr)
    elif asked.tighten:
        print("\n".join(tighten(asked.tighten, found["figures"])) or "no limit can be tightened")
    elif asked.json:
        print(json.dumps(found, indent=1))
    elif not asked.nm:
        print(show(found, before))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Unreadable, OSError, json.JSONDecodeError) as e:
        sys.exit("shape: %s" % e)
