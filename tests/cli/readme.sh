#!/bin/bash
# Every block of code in README.md and docs/guide/: run as it stands, or named here with the reason why not;
# then each command and option in it must exist.  Usage: readme.sh FKGE SOURCE_ROOT
# In a network namespace of its own, if that may be had: README's ports are fixed.
if [ -z "${FKGE_README_ALONE:-}" ] && unshare -rn true 2>/dev/null; then
	FKGE_README_ALONE=1 exec unshare -rn sh -c 'ip link set lo up; exec "$@"' sh "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
fkge=$(realpath "$fkge")
root=$(realpath "$2")
export OPENBLAS_NUM_THREADS=1 PATH="$(dirname "$fkge"):$PATH"
trap 'stop_all; cleanup' EXIT
stop_all() {
	for d in "$work"/*/ "$work"/*/*/ "$work"/*/*/*/; do
		[ ! -f "$d/store.db" ] || "$fkge" -q -d "$d" stop 2>/dev/null
	done
}

# A block is lines of four spaces, or fenced; it is known by words of its own.
python3 - "$root" "$work" <<'PY'
import glob, sys
root, work = sys.argv[1:]
blocks = []
for path in [root + "/README.md"] + sorted(glob.glob(root + "/docs/guide/*.md")):
    kind = None
    for line in open(path):
        if line.startswith("```"):
            kind = None if kind == "fence" else "fence"
            if kind:
                blocks.append("")
        elif kind == "fence":
            blocks[-1] += line
        elif line.startswith("    "):
            if kind is None:
                blocks.append("")
            kind = "indent"
            blocks[-1] += line[4:]
        else:
            kind = None
names = {"./run demo": "run", "-o line ": "session", "this agent in all": "output", "--name acme": "acme",
         "--name globex": "globex", "-d try/a": "rounds", "predict aspirin": "alone", "seed2/": "ensemble", "search: {": "space",
         "r3.yaml": "experiments", "backup": "backup", "fkge align": "aligned", "-d ward": "ward", "systemctl": "service", "queries sample": "drawn", "queries train": "encoder", "queries federate": "owners", "asked.yaml": "asking",
         "--labels en": "labelled", "rdfpipe": "converted", "rapper": "rdfxml", "--preset balanced": "preset", "method: fedcqa": "members", "queries encoder": "together",
         '"anchors"': "line", "-d bench": "bench", "-d fb15k": "fb15k", "http: {listen": "listen", "train: {command": "trains", "http key --metrics": "asked", "api/v1/predict": "predicted",
         "fkge.open(": "python", "fkge.train(": "trained", "torch.load": "torch", "#include <fkge.h>": "c", "cc program.c": "cc"}
for i, b in enumerate(blocks):
    found = [n for w, n in names.items() if w in b and not (n == "acme" and "systemctl" in b)]
    name = found[0] if len(found) == 1 else f"unknown{i}"
    assert name not in open(work + "/names", "a+").read().split(), name
    open(f"{work}/names", "a").write(name + "\n")
    open(f"{work}/{name}.block", "w").write(b)
PY
has() { [ -s "$work/$1.block" ]; }
known() { [ -s "$work/names" ] && ! ls "$work"/unknown*.block 2>/dev/null; }
ok 'every block of README.md and the guide is known here' known
for b in labelled converted rdfxml preset run session output acme globex rounds alone ensemble space experiments backup aligned ward drawn encoder members together owners asking line bench fb15k service listen trains asked predicted python trained torch c cc; do ok "there is the block $b" has $b; done

# literally FOLDER BLOCK: in a folder with build/cli/fkge as in a checkout; every command must succeed
literally() {
	mkdir -p "$work/$1/build/cli" && ln -sf "$fkge" "$work/$1/build/cli/fkge"
	(cd "$work/$1" && unset FKGE_DIR && timeout 900 bash -e "$work/$2.block") >"$out" 2>"$err" </dev/null
	status=$?
	[ $status -eq 0 ] || tail -n 15 "$err" | sed 's/^/# /'
	return $status
}
# exist BLOCK: each `fkge COMMAND` of it is one, and takes the options that are there
exist() {
	python3 - "$work/$1.block" "$fkge" <<'PY'
import re, subprocess, sys
n = 0
for line in open(sys.argv[1]):
    words = line.split("#")[0].split()
    if not words or words[0] != "fkge":
        continue
    words = words[1:]
    if words[0] == "-d":
        words = words[2:]
    help = subprocess.run([sys.argv[2], words[0], "--help"], capture_output=True, text=True)
    if help.returncode:
        sys.exit(f"# no command {words[0]}: {line}")
    for w in words[1:]:
        if w.startswith("--") and not re.search(r"(^|[ ,])" + re.escape(w.split("=")[0]) + r"\b", help.stdout):
            sys.exit(f"# {words[0]} has no {w}")
    n += 1
sys.exit(n == 0)
PY
}

# Those of the library are run elsewhere: Python's by tests/python/test_fkge.py, C's by tests/lib/installed.sh; PyTorch is not
# in Debian 12's tests.

# Not run: they build, install packages and run this test; what they start is in ./run.
targets() { for t in $(sed -n 's/^\.\/run \([a-z]*\).*/\1/p' "$work/run.block"); do grep -q "^$t)" "$root/run" || return; done; }
ok './run has what the first block names' targets

# ---- README's session, and that it prints what stands there, but for figures and ids ----
ok 'a session, as written' literally session session
cp "$out" "$work/printed"
# Lines of the block stand in the output in that order.
printed() {
	python3 - "$work/output.block" "$work/printed" <<'PY'
import re, sys
shape = lambda p: [re.sub(r"\d+(\.\d+)?", "N", re.sub(r"\([a-z2-7]{9}\)", "(ID)", l.rstrip())) for l in open(p)]
want, got = (shape(p) for p in sys.argv[1:])
for line in want:
    if line and line not in got:
        sys.exit(f"# not printed: {line}")
    got = got[got.index(line) + 1:] if line else got
PY
}
ok 'the session prints what README shows' printed

# ---- two partners by hand: one shell, as a reader at one machine has ----
{ echo 'set -e'; cat "$work/acme.block" "$work/globex.block"; } >"$work/hand.block"
ok 'a first federation, as written' literally hand hand
peers() { "$fkge" -d "$work/hand/acme" peer pending 2>/dev/null | grep -qF "$("$fkge" -d "$work/hand/globex" id)"; }
patience=240
ok 'globex knocks' wait_for 'globex to be pending' peers
ok 'its owner lets it in' exits 0 -d "$work/hand/acme" peer accept "$("$fkge" -q -d "$work/hand/globex" id)"
worked() { for w in acme globex; do "$fkge" -d "$work/hand/$w" status --json >"$out" 2>/dev/null && [ "$(member "$out" sessions)" -ge 1 ] || return; done; }
ok 'they have had a session' wait_for 'a session of both' worked
stop_all

# ---- rounds: above the control arm, and above counting ----
# How many of the 20 rounds an agent takes part in depends on when each begins, and an agent whose copy beside the
# rounds was the better one keeps that (best_beside_rounds): one of three may, so it is their mean that counts.
ok 'rounds, as written' literally rounds rounds
gain() { # test: with partners above alone with as many epochs, above counting
	for i in 0 1 2; do
		"$fkge" -d "$work/rounds/try/a$i" report --json >"$work/report$i" && "$fkge" -d "$work/rounds/try/a$i" eval --floor --json >"$work/eval$i" || return
	done
	python3 - "$work" <<'PY'
import json, sys
total, won = [0, 0, 0], 0
for i in range(3):
    r, e = (json.load(open(f"{sys.argv[1]}/{n}{i}")) for n in ("report", "eval"))
    with_partners = r["test"].get("with_partners")
    kept = with_partners or r["test"]["best_beside_rounds"]
    alone = r["test"]["alone"]
    assert kept["epochs"] == alone["epochs"] >= 10 * 5, (kept, alone)
    scores = (kept["mean"], alone["mean"], e["floor"]["mrr"])
    print("# a%d, test MRR: kept %.3f, alone %.3f, counting %.3f" % (i, *scores))
    total = [t + s for t, s in zip(total, scores)]
    won += with_partners is not None and kept["mean"] > alone["mean"]
sys.exit(not (total[0] > total[1] and total[0] > total[2] and won >= 2))
PY
}
ok 'they have won by their partners' gain
all_rounds() { for i in 0 1 2; do "$fkge" -d "$work/rounds/try/a$i" rounds list -n 0 --json >"$out" && [ "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["rounds"]))' "$out")" -ge 10 ] || return; done; }
ok 'they had their rounds' all_rounds

# ---- questions over several steps ----
ok 'questions, as written' literally ward ward
ok 'they are answered' grep -q '"name": "headache"\|"name": "fever"' "$out"
ok 'questions are drawn, as written' literally drawn drawn
ok 'an encoder is trained, as written' literally drawn encoder
# mpirun and machines are the owner's; the setting is one that an agent takes
"$fkge" -q -d "$work/trains" init --name trains --listen off >/dev/null
printf 'name: trains\nlisten: "off"\n' | cat - "$work/trains.block" >"$work/trains/agent.yaml"
ok 'the guide'"'"'s command to train by is a setting' exits 0 -d "$work/trains" config check
"$fkge" -q -d "$work/member" init --name member --listen off >/dev/null
{ echo 'name: member'; cat "$work/members.block"; } >"$work/member/agent.yaml"
ok 'settings of rounds with an encoder' exits 0 -d "$work/member" config check
ok 'its commands are there' exist together
ok 'encoders of three owners, as written' literally drawn owners
ok 'an experiment that asks, as written' literally drawn asking
ok 'of one graph and across three' [ "$(wc -l <"$work/drawn/questions.jsonl") $(wc -l <"$work/drawn/cross.jsonl")" = '200 100' ]

# The line that formats.md shows is one that --batch reads.
asked() {
	graph "$work/line.tsv" 1
	printf 'a\tr1\tx\nz\tr2\tx\nb\tr3\ty\n' >>"$work/line.tsv"
	"$fkge" -q -d "$work/line" init --listen off >"$out" && "$fkge" -q -d "$work/line" import "$work/line.tsv" >"$out" &&
		"$fkge" -q -d "$work/line" train --epochs 1 >"$out" 2>"$err" && run -d "$work/line" query --batch "$work/line.block" && [ "$status" -eq 0 ]
}
ok 'a line of questions, as written' asked

# ---- a benchmark, with a small graph in place of its files ----
for b in bench/heldout fb15k/q2b; do
	mkdir "$work/${b%/*}"
	"$fkge" -q synth -e 300 -o "$work/$b" >/dev/null
	"$fkge" -q queries sample "$work/$b" --types 1p,2i,up -n 5 -o "$work/$b/queries-test.jsonl" >/dev/null
	ok "a benchmark, as written: ${b%/*}" literally "${b%/*}" "${b%/*}"
	ok 'with its figures' grep -q '^mean .* mean of 3 types' "$out"
done

# ---- HTTP: its settings and keys; what curl asks, tests/http/metrics.sh asks ----
mkdir "$work/http"
"$fkge" -q -d "$work/http/acme" init --name acme --listen off >/dev/null
sed -i '/^http:/,$d' "$work/http/acme/agent.yaml"
cat "$work/listen.block" >>"$work/http/acme/agent.yaml"
{ echo 'curl() { [ $# -ge 1 ]; }'; cat "$work/asked.block" "$work/predicted.block"; } >"$work/curled.block"
ok 'HTTP, its settings and keys' literally http curled

# ---- alone, with files of the names that the block gives ----
mkdir "$work/alone"
{ printf 'aspirin\ttreats\theadache\naspirin\ttreats\tfever\nibuprofen\ttreats\tfever\n'; graph "$work/g.tsv" 1; cat "$work/g.tsv"; } | gzip >"$work/alone/graph.tsv.gz"
printf 'aspirin\ttreats\t?\n?\tnext\te5\n' >"$work/alone/questions.tsv"
cp "$work/space.block" "$work/alone/space.yaml"
# Resuming wants an interruption, which cli/resume makes; else it says that there is none.
resume='fkge -d acme train --resume'
ok 'the block resumes once' [ "$(grep -c "^$resume" "$work/alone.block")" -eq 1 ]
grep -v "^$resume" "$work/alone.block" >"$work/one.block"
ok 'alone, as written' literally alone one
ok 'rows for other programs' [ -s "$work/alone/vectors/entities.npy" ]
ok 'resume is there' exist alone
mkdir "$work/ensemble"
"$fkge" -q -d "$work/ensemble/acme" init --name acme --listen off >/dev/null
"$fkge" -q -d "$work/ensemble/acme" import "$work/alone/graph.tsv.gz" >/dev/null
ok 'two models as one, as written' literally ensemble ensemble
ok 'labels and prefixes are there' exist labelled
ok 'presets are there' exist preset

# ---- as a service: the same commands, without the user and the manager that this machine may not have ----
mkdir -p "$work/service" && graph "$work/service/graph.tsv" 1
{ echo 'sudo() { [ "$1" != -u ] || shift 2; [ "$1" = systemctl ] || "$@"; }'; sed "s#/var/lib/fkge#$work/service#" "$work/service.block"; } >"$work/served.block"
ok 'the commands before a service starts, as written' literally service served
ok 'make an agent' test -s "$work/service/acme/agent.yaml"

# ---- names of several graphs, with files of the names that the block gives ----
mkdir -p "$work/aligned/EN_FR_15K_V1"
printf 'ένα\tone\nδύο\ttwo\n' | gzip >"$work/aligned/el-en.tsv.gz"
printf 'one\tun\ntwo\tdeux\n' | tee "$work/aligned/EN_FR_15K_V1/ent_links" | gzip >"$work/aligned/en-fr.tsv.gz"
printf 'δύο\tdeux\nτρία\ttrois\n' | gzip >"$work/aligned/el-fr.tsv.gz"
printf 'ένα\tr\tδύο\nδύο\tr\tτρία\nτρία\tr\tένα\n' >"$work/el.tsv"
run -q -d "$work/aligned/el" init --name el --listen off
run -q -d "$work/aligned/el" import "$work/el.tsv"
ok 'shared names, as written' literally aligned aligned
ok 'of three graphs' [ "$(cat "$work/aligned/names"/*.tsv | wc -l)" -eq 8 ]

# ---- experiments ----
# The last wants a file of an experiment, which cli/experiment has; the control arm an agent.
mkdir "$work/experiments"
"$fkge" -q synth -e 300 -o "$work/experiments/fb15k-237" >/dev/null
"$fkge" -q -d "$work/experiments/control" init --name control --listen off >/dev/null
sed -i 's/^  dim: 128/  dim: 8/' "$work/experiments/control/agent.yaml"
"$fkge" -q -d "$work/experiments/control" import "$work/experiments/fb15k-237" >/dev/null
grep -v '^fkge experiment' "$work/experiments.block" >"$work/two.block"
ok 'graphs and a control arm, as written' literally experiments two
ok 'parts of the graph' [ -s "$work/experiments/r3/2/train.tsv" ]
ok 'experiment is there' exist experiments

# Not run: it writes to /safe; cli/backup runs the same commands.
ok 'backup is there' exist backup
finish
