#!/usr/bin/env python3
"""Manual pages and completions, made from the tables that `fkge --help` prints.

  manual.py FKGE CHANGELOG FOLDER

Into FOLDER: man1/ (fkge.1 and one page a command; a group such as `fkge peer` has one page with all
of its commands), man5/ (fkge-agent.yaml.5, every setting), fkge.bash, _fkge (zsh), fkge.fish.  The
same program makes the same bytes: the pages' date is the first one in CHANGELOG."""
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

MONTHS = "January February March April May June July August September October November December".split()
HINTS = {"FILE": "file", "GRAPH": "file", "IN": "file", "OUT": "file", "LINE": "file", "DIR": "folder",
         "FOLDER": "folder"}


class Table:
    """The program's tables: .commands is a list of {name, about, path, leaf, commands}."""

    def __init__(self, fkge, changelog):
        self.fkge = fkge
        top = json.loads(self.said("--describe"))
        self.version, self.exits, self.options = top["version"], top["exits"], top["options"]
        self.commands = [self.command(c, ["fkge"]) for c in top["commands"]]
        self.reference = self.said("init", "--reference")
        with open(changelog, encoding="utf-8") as f:
            day, month, year = re.search(r"(\d+) (%s) (\d{4})" % "|".join(MONTHS), f.read()).groups()
        self.date = f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}"

    def said(self, *words):
        return subprocess.run([self.fkge, *words], check=True, stdout=subprocess.PIPE).stdout.decode()

    def command(self, c, path):
        path = path + [c["name"]]
        subs = [self.command(s, path) for s in c.get("commands", [])]
        leaf = None if subs else json.loads(self.said(*path[1:], "--describe"))
        return {"name": c["name"], "about": c["about"], "path": path, "leaf": leaf, "commands": subs}

    def leaves(self):
        return [leaf for c in self.commands for leaf in (c["commands"] or [c])]


def words_of(o):
    """How an option is typed: ["-d", "--dir"]."""
    return (["-" + o["letter"]] if o["letter"] else []) + (["--" + o["name"]] if o["name"] else [])


def hint_of(argument):
    """What completes the argument of an option: "file", "folder", or "" for nothing."""
    return HINTS.get(re.sub(r"[^A-Z].*", "", argument or ""), "")


# ---- manual pages, in man(7) ----

def roff(text):
    """Text as roff wants it; a minus that is typed stays one."""
    text = text.replace("\\", "\\e")
    text = re.sub(r"(^|(?<=[\s(\[|\"'`=]))-|(?<=\\-)-|-(?=-)", r"\-", text)
    return re.sub(r"^(['.])", r"\\&\1", text, flags=re.M)


def literal(text):
    return re.sub(r"^(['.])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def filled(text):
    """Lines of roff of one paragraph, none of them long."""
    return [roff(line) for line in textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)]


def paragraphs(text):
    """Paragraphs; lines that are indented (examples, tables) stay as they are."""
    out = []
    for block in re.split(r"\n\n+", text.strip("\n")):
        out += [".PP"] if out else []
        plain, fixed = [], []
        for line in block.split("\n") + [""]:
            if line.startswith("  "):
                out += filled(" ".join(plain)) if plain else []
                plain = []
                fixed.append(line)
                continue
            if fixed:
                out.append(".EX")
                out += [literal(x) for x in fixed] + [".EE"]
                fixed = []
            if line:
                plain.append(line)
        out += filled(" ".join(plain)) if plain else []
    return out


def option_lines(options):
    out, shown = [], ""
    for i, o in enumerate(options):
        shown = ", ".join(f"\\fB{literal(w)}\\fR" for w in words_of(o))
        if o["argument"]:
            value = f"\\fI{literal(o['argument'])}\\fR"
            sign = "=" if o["name"] else " "
            shown += f"[{sign}{value}]" if o["optional"] else sign + value
        if not shown:  # the head of a group of options
            out += [".PP"] + filled(o["about"] or "")
            continue
        out += [".TP", shown]
        # an option without words of its own shares those of the next one
        out += filled(o["about"]) if o["about"] else (filled("As the next one.") if i + 1 < len(options) else [])
    return out


def synopsis(leaf, path):
    typed = f"\\fB{literal(' '.join(path))}\\fR [\\fIOPTION\\fR...]"
    lines = (leaf["arguments"] or "").split("\n")
    out = []
    for i, line in enumerate(lines):
        out += [".br"] if i else []
        out.append(typed + (" " + re.sub(r"[A-Z]+", lambda m: f"\\fI{m.group()}\\fR", literal(line)) if line else ""))
    return out


def parts(leaf):
    """(text before the options, text after them)"""
    before, _, after = (leaf["text"] or "").partition("\v")
    return before, after


class Pages:
    def __init__(self, table, folder):
        self.table, self.folder = table, folder
        for section in ("man1", "man5"):
            shutil.rmtree(os.path.join(folder, section), ignore_errors=True)
            os.mkdir(os.path.join(folder, section))

    def write(self, name, section, about, lines):
        head = [f'.TH "{name.upper()}" "{section}" "{self.table.date}" "fkge {self.table.version}" "fkge"',
                ".SH NAME", f"{literal(name)} \\- {roff(about)}"]
        with open(os.path.join(self.folder, f"man{section}", f"{name}.{section}"), "w", encoding="utf-8") as f:
            f.write("\n".join(head + lines) + "\n")

    def tail(self, *see):
        return [".SH SEE ALSO", ",\n".join(f".BR {literal(n)} ({s})" for n, s in see).replace(",\n.BR", " ,\n.BR")]

    def command(self, c):
        name = "fkge-" + c["name"]
        if c["leaf"]:
            before, after = parts(c["leaf"])
            lines = [".SH SYNOPSIS"] + synopsis(c["leaf"], c["path"]) + [".SH DESCRIPTION"] + paragraphs(before)
            lines += [".SH OPTIONS"] + option_lines(c["leaf"]["options"] + self.table.options)
            lines += [".SH NOTES"] + paragraphs(after) if after.strip() else []
        else:
            lines = [".SH SYNOPSIS", f"\\fBfkge {c['name']}\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]", ".SH DESCRIPTION"]
            lines += paragraphs("The commands of this group, each with its own options.")
            for s in c["commands"]:
                before, after = parts(s["leaf"])
                lines += [f".SS {literal(' '.join(s['path']))}"] + synopsis(s["leaf"], s["path"]) + [".PP"]
                lines += paragraphs(before) + option_lines(s["leaf"]["options"])
                lines += [".PP"] + paragraphs(after) if after.strip() else []
            lines += [".SH OPTIONS OF ALL COMMANDS"] + option_lines(self.table.options)
        self.write(name, 1, c["about"], lines + self.tail(("fkge", 1), ("fkge-agent.yaml", 5)))

    def whole(self):
        lines = [".SH SYNOPSIS", "\\fBfkge\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIOPTION\\fR...]", ".SH DESCRIPTION"]
        lines += paragraphs(
            "A company runs fkge beside its private knowledge graph. Running copies, called agents, find each "
            "other over encrypted TCP, learn privately which names they share, and improve each other's "
            "embeddings. No triple is sent; rows of shared names are.\n\nEach agent lives in a folder of its own: "
            "keys, settings (agent.yaml), graph, tables and ledger. Each command has a page of its own.")
        lines += [".SH COMMANDS"]
        for c in self.table.commands:
            lines += [".TP", f".BR {literal('fkge-' + c['name'])} (1)"] + filled(c["about"])
        lines += [".SH OPTIONS"] + option_lines(self.table.options)
        lines += [".SH EXIT STATUS"]
        for number, what in re.findall(r"(\d) ([^,.]+)[,.]", self.table.exits.replace("\n", " ")):
            lines += [".TP", f"\\fB{number}\\fR"] + filled(what)
        lines += [".SH ENVIRONMENT", ".TP", ".B FKGE_DIR", "the agent's folder, where \\fB\\-d\\fR is not given"]
        self.write("fkge", 1, "federated knowledge graph embedding without a server",
                   lines + self.tail(("fkge-serve", 1), ("fkge-agent.yaml", 5)))

    def settings(self):
        """docs/reference/agent-yaml.md, whose form config/print.c has."""
        lines = [".SH DESCRIPTION"] + paragraphs(
            "The settings of an agent, in its folder. fkge init writes the file with every key and a comment. A "
            "key stands here with its default; each may be left out.")
        sections = re.split(r"^## (.*)$", self.table.reference, flags=re.M)[1:]
        for title, body in zip(sections[::2], sections[1::2]):
            lines += [f'.SH "{roff(title.replace("`", "")).upper()}"']
            for key, text in re.findall(r"^\* `([^`]*)`: (.*(?:\n  .*)*)", body, re.M):
                lines += [".TP", f"\\fB{literal(key)}\\fR"] + filled(" ".join(text.replace("`", "").split()))
        self.write("fkge-agent.yaml", 5, "settings of an agent of fkge",
                   lines + self.tail(("fkge", 1), ("fkge-init", 1)))


# ---- completions ----

def flags(options):
    return [w for o in options for w in words_of(o)]


def flags_with(options, hint):
    return [w for o in options if o["argument"] and not o["optional"] and hint_of(o["argument"]) == hint
            for w in words_of(o)]


def bash_case(table, leaf):
    all_options = leaf["leaf"]["options"] + table.options
    lines = [f"\t'{' '.join(leaf['path'][1:])}')", f"\t\twords='{' '.join(flags(all_options))}'"]
    for name, hint in (("files", "file"), ("folders", "folder"), ("others", "")):
        found = flags_with(all_options, hint)
        lines += [f"\t\t{name}=' {' '.join(found)} '"] if found else []
    return lines + ["\t\t;;"]


def bash(table):
    groups = [c for c in table.commands if c["commands"]]
    lines = ["# Completion of fkge for bash, made by packaging/manual.py.", "_fkge() {",
             "\tlocal i cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
             "\tlocal command= words= files= folders=' -d --dir ' others= group=yes",
             "\tfor ((i = 1; i < COMP_CWORD; i++)); do", "\t\tcase ${COMP_WORDS[i]} in",
             "\t\t-d | --dir) ((i++)) ;;", "\t\t-*) ;;",
             "\t\t*) if [[ $group ]]; then command=\"${command:+$command }${COMP_WORDS[i]}\"; fi",
             "\t\t\tcase $command in", f"\t\t\t{' | '.join(c['name'] for c in groups)}) ;;", "\t\t\t*) group= ;;",
             "\t\t\tesac ;;", "\t\tesac", "\tdone", "\tCOMPREPLY=()", "\tcase $command in", "\t'')",
             f"\t\twords='{' '.join([c['name'] for c in table.commands] + ['help'] + flags(table.options))}'",
             "\t\t[[ $cur == -* ]] || words=${words%% -*}", "\t\t;;"]
    for c in groups:
        lines += [f"\t{c['name']}) words='{' '.join(s['name'] for s in c['commands'])}' ;;"]
    for leaf in table.leaves():
        lines += bash_case(table, leaf)
    lines += ["\tesac", "\tif [[ $files == *\" $prev \"* ]]; then", "\t\tcompopt -o filenames 2>/dev/null",
              "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
              "\telif [[ $folders == *\" $prev \"* ]]; then", "\t\tcompopt -o filenames 2>/dev/null",
              "\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
              "\telif [[ $others == *\" $prev \"* ]]; then", "\t\treturn", "\telif [[ $group || $cur == -* ]]; then",
              "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")", "\telse",
              "\t\tcompopt -o filenames 2>/dev/null", "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
              "\tfi", "} &&", "\tcomplete -F _fkge fkge", ""]
    return "\n".join(lines)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_spec(o):
    about = re.sub(r"([\[\]:\\])", r"\\\1", " ".join((o["about"] or "").split()))
    names, out = words_of(o), []
    action = {"file": "_files", "folder": "_files -/"}.get(hint_of(o["argument"]), "( )")
    for n in names:
        value = "" if not o["argument"] or o["optional"] else f":{o['argument'].replace(':', ' ')}:{action}"
        sign = "=" if value and n.startswith("--") else "+" if value else ""
        out.append(quoted(f"{n}{sign}[{about}]{value}"))
    return out


def zsh_commands(commands):
    return " ".join(quoted(f"{c['name']}:{c['about'].replace(':', ' -')}") for c in commands)


def zsh(table):
    common = " ".join(s for o in table.options for s in zsh_spec(o))
    lines = ["#compdef fkge", "# Completion of fkge for zsh, made by packaging/manual.py.", "_fkge() {",
             "\tlocal context state state_descr line curcontext=$curcontext", "\ttypeset -A opt_args",
             "\tlocal -a commands", f"\t_arguments -C {common} '1: :->command' '*:: :->rest' && return",
             "\tcase $state in", f"\tcommand) commands=({zsh_commands(table.commands)})",
             "\t\t_describe command commands ;;", "\trest)", "\t\tcase $line[1] in"]
    for c in table.commands:
        if c["leaf"]:
            own = " ".join(s for o in c["leaf"]["options"] for s in zsh_spec(o))
            lines += [f"\t\t{c['name']}) _arguments {own} {common} '*:file:_files' ;;"]
            continue
        lines += [f"\t\t{c['name']})", "\t\t\tif ((CURRENT == 2)); then",
                  f"\t\t\t\tcommands=({zsh_commands(c['commands'])})", "\t\t\t\t_describe command commands",
                  "\t\t\telse", "\t\t\t\tshift words", "\t\t\t\t((CURRENT--))", "\t\t\t\tcase $words[1] in"]
        for s in c["commands"]:
            own = " ".join(x for o in s["leaf"]["options"] for x in zsh_spec(o))
            lines += [f"\t\t\t\t{s['name']}) _arguments {own} {common} '*:file:_files' ;;"]
        lines += ["\t\t\t\tesac", "\t\t\tfi ;;"]
    return "\n".join(lines + ["\t\tesac ;;", "\tesac", "}", "_fkge \"$@\"", ""])


def fish_option(o, when):
    line = f"complete -c fkge -n {quoted(when)}"
    line += f" -s {o['letter']}" if o["letter"] else ""
    line += f" -l {o['name']}" if o["name"] else ""
    hint = hint_of(o["argument"])
    if o["argument"] and not o["optional"]:
        line += {"file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(hint, " -x")
    return line + f" -d {quoted(' '.join((o['about'] or '').split()))}"


def fish(table):
    lines = ["# Completion of fkge for fish, made by packaging/manual.py.",
             "# __fkge_at WORDS...: the words before the cursor that are commands or their arguments begin so;",
             "# __fkge_is WORDS...: they are these.", "function __fkge_words", "\tset -l skip no",
             "\tfor w in (commandline -opc)[2..-1]", "\t\tif test $skip = yes", "\t\t\tset skip no", "\t\t\tcontinue",
             "\t\tend", "\t\tswitch $w", "\t\t\tcase -d --dir", "\t\t\t\tset skip yes", "\t\t\tcase '-*'",
             "\t\t\tcase '*'", "\t\t\t\techo $w", "\t\tend", "\tend", "end", "function __fkge_at",
             "\tset -l seen (__fkge_words)", "\ttest (count $seen) -ge (count $argv)",
             "\tand test \"$argv\" = \"$seen[1..\"(count $argv)\"]\"", "end", "function __fkge_is",
             "\tset -l seen (__fkge_words)", "\ttest \"$argv\" = \"$seen\"", "end"]
    for c in table.commands:
        lines.append(f"complete -c fkge -f -n __fkge_is -a {c['name']} -d {quoted(c['about'])}")
        for s in c["commands"]:
            lines.append(f"complete -c fkge -f -n '__fkge_is {c['name']}' -a {s['name']} -d {quoted(s['about'])}")
    lines += [fish_option(o, "true") for o in table.options]
    for leaf in table.leaves():
        lines += [fish_option(o, "__fkge_at " + " ".join(leaf["path"][1:])) for o in leaf["leaf"]["options"]
                  if words_of(o)]
    return "\n".join(lines) + "\n"


def main():
    fkge, changelog, folder = sys.argv[1:]
    table = Table(fkge, changelog)
    pages = Pages(table, folder)
    pages.whole()
    pages.settings()
    for c in table.commands:
        pages.command(c)
    for name, text in (("fkge.bash", bash(table)), ("_fkge", zsh(table)), ("fkge.fish", fish(table))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


main()
