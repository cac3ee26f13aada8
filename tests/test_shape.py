#!/usr/bin/env python3
"""Tests tests/shape.py on a small tree in which each figure is planted.  Prints TAP."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shape  # noqa: E402

TREE = {
    "base/note.h": """
#define note(...) note_at(__VA_ARGS__) /* used where the macro stands */
#define nobody(...) note_unused(__VA_ARGS__)
void note_at(const char *text);
void note_unused(void); /* a prototype is no use */
""",
    "base/note.c": """
#include "base/note.h"
void note_at(const char *text) { (void)text; }
void note_unused(void) { }
""",
    "kge/x.c": """
#include "base/note.h"
int kge_x(int n) { note("kge_alone()"); assert(n > 0); return kge_y(n); }
int kge_alone(void) { return 1; } /* kge_alone() */
static int go(void) { return kge_alone(); }
""",
    "kge/y.c": """
_Static_assert(NINE == 9, "no assertion, no variable");
static int helper(void) { return 0; } /* another than that of z.c */
static int uv_two(void) { return 0; }
int kge_y(int n) { return n < 2 ? n : kge_x(n - 1) + helper() + uv_two(); }
static int go(struct kge_tested *p) { p->kge_alone = 1; return go; }
""",
    "kge/z.c": """
/* kge_alone() { assert(0); */
const int kge_tested[] = { 1, 2 };
struct kge_later;
int kge_cold(int n) COLD;
static const struct { int a; int *p; } table[] = { { 1, &kge_pointed } };
const struct { int a; } kge_table[] = { { kge_y(1) } };
extern const int kge_tested[];
int kge_pointed;
int helper(void) { return kge_tested[0]; }
int look(void) { return table[0].a + helper() + strlen("kge_alone assert("); }
""",
    "kge/w.c": "static const struct { int *p; } table[] = { { &kge_pointed }, { kge_table } };\n",
    "net/uv/internal.h": """
#include "net/uv/n.h"
struct wide {
	int a[3], *b;
	unsigned c : 3;
	int (*call)(int x, int y);
	struct { int d; enum { ONE, TWO } e; };
	union { int f; struct other *g; } h;
""" + "".join("\tint more%d;\n" % i for i in range(22)) + "};\n",
    "net/uv/n.h": '#include "net/uv/internal.h"\n#include "fed/f.h"\n' + "\n" * 50,
    "net/uv/n.c": """
int netuv_one;
int netuv_n;
int uv_two;
int net_three(void) { return uv_two + helper() + look(); }
""",
    "fed/f.h": "",
    "fed/f.c": '#include "net/uv/internal.h"\n#include "fed/f.h"\n'
               # one stands here, n is the name of a file and stands in the build
               + "#define NAMES X(one)\n#define X(name) &netuv_##name,\nstatic int *all[] = { NAMES };\n"
               + "int fed_long(void)\n{\n" + "\tnet_three();\n" * 58 + "}\n"
               + "int fed_short(void)\n{\n" + "\tfed_long();\n" * 57 + "}\n"
               + "int fed_user(void) { return fed_short() + fed_user; }\n"
               + "int main(void) { return fed_user(); }\n",
    "tests/t.c": "int t(void) { return kge_tested[0] + kge_x(1); }\n",
    "build/old.c": "int gone(void) { }\n",
}

EXPECTED = {
    "folders": 4, "files": 11, "functions": 16, "exports": 18,
    "include_edges": 3, "folder_circles": 1, "private_includes": 1, "header_circles": 1,
    "file_circles": 1, "largest_circle": 2, "files_in_circles": 2,
    "long_functions": 1, "longest_function": 61,
    "unused_exports": 6,
    "test_exports": 1, "unprefixed_exports": 2, "one_word_exports": 2, "one_word_functions": 5,
    "same_names": 4, "most_same_names": 2, "assertions": 1, "assertions_a_function": 0.062,
    "longest_header": 52, "largest_struct": 31, "structs_over_30": 1,
}

results = []


def check(name, good, *seen):
    results.append(good)
    print("%s %d - %s" % ("ok" if good else "not ok", len(results), name))
    for s in seen if not good else ():
        print("# " + str(s))


def refused(text, *words):
    """Whether a limits file of this text is refused with all of the words."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write(text)
        f.flush()
        try:
            shape.read_limits(f.name)
        except shape.Unreadable as e:
            return all(w in str(e) for w in words)
    return False


def main():
    with tempfile.TemporaryDirectory() as tree:
        for path, text in TREE.items():
            os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as f:
                f.write(text)
        found, _ = shape.measure(tree)
        figures = found["figures"]
        for name, value in EXPECTED.items():
            check(name, figures[name] == value, figures[name], found.get(name, ""))
        check("names that are unused", [n for n, _ in found["unused_exports"]] ==
              ["fed_long", "fed_short", "fed_user", "kge_alone", "note_unused", "uv_two"])

        limits = {n: figures[n] for n, less, _ in shape.FIGURES if less is not None}
        check("today's figures keep limits of today", not shape.worse(figures, limits))
        for name, less, _ in shape.FIGURES:
            if less is not None:
                said = shape.worse(figures, {name: figures[name] + (-0.001 if less else 0.001)})
                check("a worse %s is found" % name, len(said) == 1 and name in said[0], said)

        path = os.path.join(tree, "limits")
        with open(path, "w", encoding="utf-8") as f:
            f.write("# kept\nlargest_struct 40 # why\nassertions 0\nlong_functions 0\n")
        shape.tighten(path, figures)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        check("limits are tightened, never loosened", text ==
              "# kept\nlargest_struct 31 # why\nassertions 1\nlong_functions 0\n", text)
        with open(os.path.join(tree, "kge/x.c"), "a", encoding="utf-8") as f:
            f.write("int half(void) {\n")
        try:
            shape.measure(tree)
            check("an open brace is refused", False)
        except shape.Unreadable as e:
            check("an open brace is refused", "kge/x.c" in str(e), e)
    check("limits of unknown figures are refused", refused("\nbeauty 3\n", ":2:"))
    check("limits of figures without a better side are refused", refused("lines 3\n", ":1:"))
    check("limits that are no numbers are refused", refused("long_functions few\n", ":1:"))
    check("circles of circles", shape.circles(
        {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"f", "a"}}) ==
          [["a", "b", "c"], ["d", "e"]])
    print("1..%d" % len(results))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
