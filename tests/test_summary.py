#!/usr/bin/env python3
"""What summary.py counts: TAP lines, tests that end badly, tests that never ran.  Prints TAP."""
import json
import os
import subprocess
import sys
import tempfile

SUMMARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "summary.py")
count = failed = 0


def summary(names, tests):
    with tempfile.TemporaryDirectory() as folder:
        logs = os.path.join(folder, "build", "meson-logs")
        os.makedirs(logs)
        with open(os.path.join(logs, "tests.list"), "w", encoding="utf-8") as f:
            f.writelines(f"{name}\n" for name in names)
        with open(os.path.join(logs, "testlog.json"), "w", encoding="utf-8") as f:
            for name, result, out in tests:
                f.write(json.dumps({"name": name, "result": result, "stdout": out}) + "\n")
        done = subprocess.run([sys.executable, SUMMARY, "build/meson-logs/testlog.json"], cwd=folder,
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def ok(what, names, tests, status, *says):
    global count, failed
    got, out = summary(names, tests)
    good = got == status and all(text in out for text in says)
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good:
        print("\n".join(f"# {line}" for line in [f"status {got}", *out.splitlines()]))


A, B = ("q / a", "OK", "1..2\nok 1 - x\nok 2 - y # skip no z\n"), ("q / b", "OK", "1..1\nok 1 - x\n")
ok("all ran", ["q / a", "q / b"], [A, B], 0, "2 passed, 0 failed, 1 skipped")
ok("one never ran", ["q / a", "q / b"], [A], 1, "--- build: q / b: did not run", "1 passed, 1 failed, 1 skipped")
ok("a line that is not ok", ["q / a"], [("q / a", "FAIL", "not ok 1 - x\n")], 1, "0 passed, 1 failed")
ok("a crash", ["q / a", "q / b"], [("q / a", "ERROR", "ok 1 - x\n"), B], 1, "2 passed, 1 failed")
ok("a test of nothing", ["q / a", "q / b"], [("q / a", "OK", ""), B], 1, "1 passed, 1 failed")
print(f"1..{count}")
sys.exit(failed > 0)
