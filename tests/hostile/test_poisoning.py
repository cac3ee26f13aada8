#!/usr/bin/env python3
"""poisoning.py keeps apart what was run with other settings or data.  Prints TAP."""
import os
import shutil
import subprocess
import sys
import tempfile

POISONING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "poisoning.py")
# In the place of `poisoned`: an agent's score is the number of its triples; each run is one line in the log.
STUB = """#!/usr/bin/env python3
import json, os, re, sys
text = open(sys.argv[1]).read()
data = re.search(r"data: ([^,]*),", text)[1]
open(os.environ["STUB_LOG"], "a").write(" ".join(sys.argv[3:]) + "\\n")
agents = [{"agent": m, "test": {"mrr": len(open(os.path.join(data, m, "train.tsv")).readlines())}}
          for m in sorted(os.listdir(data))]
json.dump({"agents": agents, "targets": []}, sys.stdout)
"""
count = failed = 0
folder = tempfile.mkdtemp()
stub, log, data, out = (os.path.join(folder, x) for x in ("stub", "log", "data", "out"))


def make():
    with open(stub, "w", encoding="utf-8") as f:
        f.write(STUB)
    os.chmod(stub, 0o755)
    for i in range(3):
        os.makedirs(os.path.join(data, str(i)))
        with open(os.path.join(data, str(i), "train.tsv"), "w", encoding="utf-8") as f:
            f.write("a\tr\tb\n" * (i + 1))


def run(*options, of=data, to=out):
    with open(log, "w", encoding="utf-8"):
        pass
    done = subprocess.run([sys.executable, POISONING, stub, of, to, "--only", "fede", *options], check=False,
                          capture_output=True, text=True, env={**os.environ, "STUB_LOG": log})
    with open(log, encoding="utf-8") as f:
        return done, f.read().splitlines()


def ok(what, good, done):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good:
        print("\n".join(f"# {line}" for line in (done.stdout + done.stderr).splitlines()))


def refused(what, says, *options, **where):
    done, ran = run(*options, **where)
    ok(what, done.returncode != 0 and says in done.stderr and not ran and "| fede |" not in done.stdout, done)


make()
done, ran = run("--attacks", "none")
ok("a run and its control", len(ran) == 2 and "| fede | 1 | none | 2.5000 | 2.5000 |" in done.stdout, done)
done, ran = run("--attacks", "none")
ok("are not made again", done.returncode == 0 and not ran, done)
done, ran = run("--attacks", "none,noise", "--seeds", "1,2")
ok("more attacks and seeds are added", done.returncode == 0 and len(ran) == 4, done)
refused("another length", "rounds 20 before, 5 now", "--attacks", "none", "--rounds", "5")
refused("another width", "dim 64 before, 32 now", "--attacks", "none", "--dim", "32")
shutil.move(data, data + "-moved")
done, ran = run("--attacks", "none", "--seeds", "3", of=data + "-moved")
ok("data that has moved", done.returncode == 0 and len(ran) == 2 and "| 2.5000 | 2.5000 |" in done.stdout, done)
with open(os.path.join(data + "-moved", "1", "train.tsv"), "a", encoding="utf-8") as f:
    f.write("a\tr\tc\n")
refused("other data", "other data", "--attacks", "none", of=data + "-moved")
done, ran = run("--attacks", "none", of=data + "-moved", to=out + "2")
ok("in a folder of its own", done.returncode == 0 and "| fede | 1 | none | 3.0000 | 3.0000 |" in done.stdout, done)
os.remove(os.path.join(out + "2", "run-with.json"))
refused("a folder of which nothing says so", "nothing says with what", "--attacks", "none", of=data + "-moved",
        to=out + "2")
shutil.rmtree(folder)
print(f"1..{count}")
sys.exit(failed > 0)
