"""Counts the TAP lines of every test that `meson test` ran and closes with one line.

usage: summary.py testlog.json ...

A test that ends badly without having said `not ok` (a crash, a sanitizer's
report, a time-out) counts as one failure, so that nothing can fail in silence.
So does one that tests.list beside the log names (`meson test --list`) and the
log does not: a run that breaks off half-way is no run.
"""
import json
import os
import re
import sys

LINE = re.compile(r"^(not )?ok\b(.*)$", re.MULTILINE)


def count(test):
    passed = failed = skipped = 0
    for bad, rest in LINE.findall(test.get("stdout", "")):
        if re.search(r"#\s*skip", rest, re.IGNORECASE):
            skipped += 1
        elif bad:
            failed += 1
        else:
            passed += 1
    result = test["result"]
    if result == "SKIP" and passed + failed + skipped == 0:
        skipped = 1
    elif result not in ("OK", "SKIP") and failed == 0:
        failed = 1
    elif result == "OK" and passed + failed + skipped == 0:
        failed = 1  # a test that tested nothing
    return passed, failed, skipped


def not_run(path, ran):
    """What was to run, as tests.list beside the log names it, and is not in the log."""
    with open(os.path.join(os.path.dirname(path), "tests.list"), encoding="utf-8") as names:
        return [name for name in names.read().splitlines() if name not in ran]


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        ran = set()
        where = path.split("/")[0]
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                test = json.loads(line)
                ran.add(test["name"])
                counts = count(test)
                total = [a + b for a, b in zip(total, counts)]
                if counts[1]:
                    print(f"--- {where}: {test['name']}: {test['result']}")
                    print(test.get("stdout", "")[-4000:])
                    print(test.get("stderr", "")[-4000:])
                for reason in re.findall(r"^(?:not )?ok\b.*?#\s*(?:skip|SKIP)\s*(.*)$",
                                         test.get("stdout", ""), re.MULTILINE):
                    print(f"skipped: {test['name']}: {reason or 'see its output'}")
        for name in not_run(path, ran):
            print(f"--- {where}: {name}: did not run")
            total[1] += 1
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


sys.exit(main())
