#!/usr/bin/env python3
"""Compares docs/reference/json.md with what commands have printed.

usage: json_keys.py PAGE FOLDER

FOLDER holds files NUMBER.COMMAND, each a JSON object or one a line.  Fails with a line for each key that a command
prints and the page lacks, and for each key of the page that its command never prints."""
import collections
import json
import os
import re
import sys

# Words in backticks that are no keys: subcommands, and other pages' or objects' names.
NO_KEYS = {"add", "accept", "reject", "revoke", "forget", "list", "show", "save", "restore", "pending", "quote",
           "export", "verify", "sample", "train", "close", "resume", "status", "unique", "get", "set", "unset",
           "check", "diff", "federate", "rotate", "trust"}
# What tests/cli/json.sh does not reach, by command: keys, or all of them.
NOT_REACHED = {
    "experiment": {"kept_valid_mrr"},  # of `agents: processes`: tests/cli/processes.sh
    "rounds": {"took_part"},  # of thousands of rounds, of which sums are kept: tests/store/test_store.c
    # past memory: tests/cli/past.sh; by several ranks: tests/cli/ranks.sh
    "train": {"past_memory", "partitions", "buffer", "swaps", "read_bytes", "written_bytes", "ranks", "each",
              "moved_bytes", "moved_expected", "relation_bytes", "relation_expected", "tables"},
    "peer": {"quarantine", "quarantine_ms"},  # takes eight rounds that hurt: tests/agent/test_judge.c
    "serve": set(),  # prints nothing; its status file is what `status` prints
    "demo": set(),  # takes a minute; tests/cli/demo.sh reads its report
}


# Objects whose keys are data, by command: constants of a method, names of settings.
DATA = {"experiment": {"constants"}, "tune": {"settings"}}


def keys_of(value, data=()):
    if isinstance(value, dict):
        return set(value) | {k for name, v in value.items() if name not in data for k in keys_of(v, data)}
    if isinstance(value, list):
        return {k for v in value for k in keys_of(v, data)}
    return set()


def words(text):
    return set(re.findall(r"`([a-z]\w*)`", text))


def read_page(path):
    """Of each command: its keys; and those of the objects that many have, by object."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    sections = dict(re.findall(r"^##+ (?:fkge )?(\w[^\n]*)\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    shared = dict(re.findall(r"^\* \*\*(\w+)\*\*[^:]*:(.*?)(?=^\* \*\*|\Z)", sections["Objects that many have"],
                             re.M | re.S))
    always = words(text.split("\n## ")[0])
    commands = re.findall(r"^### fkge (\w+)$", text, re.M)
    return {c: words(sections[c]) for c in commands}, {n: words(t) for n, t in shared.items()}, always


def read_printed(folder):
    """Of each command: all keys that it has printed."""
    printed = collections.defaultdict(set)
    for name in sorted(os.listdir(folder)):
        command = name.split(".")[1]
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        try:
            values = [json.loads(text)]
        except json.JSONDecodeError:
            values = [json.loads(line) for line in text.splitlines()]
        for v in values:
            printed[command] |= keys_of(v, DATA.get(command, ()))
    return printed


def compare(page, shared, always, printed):
    faults = []
    both = always.union(*shared.values())
    for command in sorted(set(page) | set(printed)):
        if command not in page:
            faults.append(f"the page has no section fkge {command}")
            continue
        away = NOT_REACHED.get(command, set())
        if command not in printed:
            if command not in NOT_REACHED:
                faults.append(f"fkge {command} was not run")
            continue
        faults += [f"fkge {command} prints {k}, which the page lacks" for k in
                   sorted(printed[command] - page[command] - both)]
        faults += [f"the page has {k}, which fkge {command} never printed" for k in
                   sorted(page[command] - NO_KEYS - set(shared) - away - printed[command])]
        faults += [f"json_keys.py: fkge {command} does print {k}" for k in sorted(away & printed[command])]
    every = set().union(*printed.values())
    for name, keys in shared.items():
        faults += [f"the page has {k} in {name}, which no command printed" for k in
                   sorted(keys - every - NO_KEYS - NOT_REACHED.get(name, set()))]
    return faults


def main():
    faults = compare(*read_page(sys.argv[1]), read_printed(sys.argv[2]))
    for f in faults:
        print("# " + f)
    return len(faults) > 0


sys.exit(main())
