#!/usr/bin/env python3
"""The manual page fkge(3), made of lib/fkge.h.

  library_page.py HEADER VERSION CHANGELOG FILE

The comment at the head of the header is the description, `---- words ----` begins a section, and each
declaration stands under the comment before it.  A function without one is an error: the page, and the
header, would not say what it does."""
import re
import sys
import textwrap

MONTHS = "January February March April May June July August September October November December".split()


def roff(text):
    text = text.replace("\\", "\\e")
    text = re.sub(r"(^|(?<=[\s(`]))-|-(?=-)", r"\-", text)
    return re.sub(r"^(['.])", r"\\&\1", text, flags=re.M)


def literal(text):
    return re.sub(r"^(['.])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def filled(text):
    return [roff(line) for line in textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)]


def comment_of(raw):
    """The lines of a comment without its stars."""
    return re.sub(r"\n \* ?", "\n", raw[2:-2].strip())


def paragraphs(text):
    out = []
    for block in re.split(r"\n\n+", text.strip()):
        out += [".PP"] if out else []
        lines = block.split("\n")
        if lines[0].startswith("\t"):
            out += [".EX"] + [literal(line.expandtabs(4)) for line in lines] + [".EE"]
        else:
            out += filled(" ".join(lines))
    return out


def declarations(body):
    """(section, comment, code): code is a whole declaration, or several under one comment."""
    section, comment, code = None, "", []
    for line in body.split("\n") + [""]:
        begun = re.match(r"/\* ---- (.*) ---- \*/", line)
        if begun:
            section = begun.group(1)
            continue
        if line.strip() or (code and not code[-1].rstrip().endswith((";", "*/", "}"))):
            code.append(line)
            continue
        if code:
            text = "\n".join(code)
            head = re.match(r"/\*.*?\*/\n", text, re.S)
            if head:
                comment, text = comment_of(head.group(0).strip()), text[head.end():]
            yield section, comment, text
        comment, code = "", []


def main():
    header, version, changelog, out = sys.argv[1:]
    text = open(header, encoding="utf-8").read()
    intro, body = re.match(r"(/\*.*?\*/)(.*)", text, re.S).groups()
    body = body[body.index("typedef struct"):body.rindex("#ifdef __cplusplus")]
    with open(changelog, encoding="utf-8") as f:
        day, month, year = re.search(r"(\d+) (%s) (\d{4})" % "|".join(MONTHS), f.read()).groups()
    about, described = comment_of(intro).split("\n\n", 1)
    lines = [f'.TH "FKGE" "3" "{year}-{MONTHS.index(month) + 1:02}-{int(day):02}" "fkge {version}" "libfkge"',
             ".SH NAME", "fkge \\- " + roff(about.split(": ", 1)[1].rstrip(".")),
             ".SH SYNOPSIS", ".B #include <fkge.h>", ".PP", ".B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs fkge)",
             ".SH DESCRIPTION"] + paragraphs(described)
    last = None
    for section, comment, code in declarations(body):
        for name in re.findall(r"\b(fkge_\w+)\(", re.sub(r"/\*.*?\*/", "", code, flags=re.S)):
            if not comment:
                sys.exit(f"{header}: {name}() has no comment")
        if section != last:
            lines.append(f".SH {roff(section or '').upper()}")
            last = section
        lines += [".PP", ".EX"] + [literal(line.expandtabs(8)) for line in code.split("\n")] + [".EE"]
        lines += [".RS 4"] + paragraphs(comment) + [".RE"] if comment else []
    lines += [".SH SEE ALSO", ".BR fkge (1) ,", ".BR fkge\\-agent.yaml (5)"]
    kept = [x for i, x in enumerate(lines) if x != ".PP" or lines[i - 1] != ".PP" and lines[i - 1][:3] != ".SH"]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(kept) + "\n")


main()
