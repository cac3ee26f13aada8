#!/bin/sh
# The program as it is built: position independent, symbols bound at start, checked copies,
# guarded stacks; it leaves no core file, and files that it writes follow no link.
# Usage: hardening.sh FKGE SANITIZER ("none": the program as people build it)
. "$(dirname "$0")/lib.sh"
sanitizer=$2

status=0
ok 'symbols are bound at start' sh -c 'readelf -d "$0" | grep -q "BIND_NOW\|Flags:.*NOW"' "$fkge"
ok 'the table of symbols is read-only then' sh -c 'readelf -lW "$0" | grep -q GNU_RELRO' "$fkge"
ok 'no stack is executable' sh -c 'readelf -lW "$0" | grep "GNU_STACK" | grep -q " RW "' "$fkge"
ok 'stacks are guarded' sh -c 'readelf -sW "$0" | grep -q __stack_chk_fail' "$fkge"
if [ "$sanitizer" = none ]; then
	ok 'position independent' sh -c 'readelf -h "$0" | grep -q "Type: *DYN"' "$fkge"
	ok 'copies are checked' sh -c 'readelf -sW "$0" | grep -q "__[a-z]*_chk@\|__[a-z]*_chk "' "$fkge"
	fortified() { readelf -sW "$fkge" | grep -q '__v\{0,1\}snprintf_chk'; }
	ok 'so are prints' fortified
	if [ "$(uname -m)" = x86_64 ]; then
		ok 'returns are checked where the processor can' sh -c 'readelf -nW "$0" | grep -q SHSTK' "$fkge"
		marked() { objdump -d --no-show-raw-insn "$fkge" | grep -A1 '<main>:$' | grep -q endbr64; }
		ok 'so are indirect branches' marked
	fi
fi

agent a 1
ok 'an agent runs' start a
no_core() { awk '/^Max core file size/ { exit !($5 == 0 && $6 == 0) }' "/proc/$pid_a/limits"; }
ok 'it leaves no core file' no_core
# What a process that may not be dumped shows in /proc is root's, whoever runs it.
if [ "$sanitizer" = none ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	mkdir "$work/n" && chown 65534:65534 "$work/n"
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	cp "$fkge" "$work/fkge" && chmod 755 "$work/fkge"
	as_nobody "$work/fkge" -q -d "$work/n/b" init --name b --listen 127.0.0.1:0 >/dev/null
	cp "$work/a/agent.yaml" "$work/n/b/agent.yaml" && cp "$work/a.tsv" "$work/n/b.tsv"
	as_nobody "$work/fkge" -q -d "$work/n/b" import "$work/n/b.tsv" >/dev/null
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$work/fkge" -d "$work/n/b" serve --status-file "$work/n/b.json" 2>"$work/n.log" &
	pid_b=$!
	pids="$pids $pid_b"
	ok "a nobody's agent runs" wait_for 'its status' test -s "$work/n/b.json"
	rooted() { [ "$(stat -c %u "/proc/$pid_b/environ")" = 0 ]; }
	ok 'nobody may read its memory' rooted
	as_nobody "$work/fkge" -d "$work/n/b" stop
	for c in status id 'config get' serve 'peer list'; do
		status=0
		as_nobody "$work/fkge" -d "$work/a" $c >"$out" 2>"$err" || status=$?
		told() { [ $status = 4 ] && grep -q "Permission denied; the folder is of root: .*sudo -u 'root'" "$err"; }
		ok "$c: another user hears whose agent it is" told
	done
fi

# ---- files ----
echo precious >"$work/victim"
run -d "$work/a" stop
agent c 2
# A link at the name under which a file is written before it takes the place of the old one: that has the
# number of the process in it, which this shell becomes.
ln -s "$work/victim" "$work/linked.json"
sh -c 'ln -s "$1/victim" "$1/linked.json.$$.tmp" && exec "$2" -d "$1/c" serve --status-file "$1/linked.json"' \
	sh "$work" "$fkge" 2>"$work/c.log" &
pid_c=$!
pids="$pids $pid_c"
written() { [ ! -L "$work/linked.json" ] && grep -q '"running": true' "$work/linked.json"; }
ok 'a status file is written' wait_for 'its status' written
ok 'what a link pointed to is as it was' grep -qx precious "$work/victim"
mkdir "$work/ex"
for file in train valid test; do ln -s "$work/victim" "$work/ex/$file.tsv.part"; done
ok 'an export is written' exits 0 -d "$work/a" export "$work/ex" --triples
ok 'through no link either' grep -qx precious "$work/victim"
of_it() { [ "$(member "$work/linked.json" pid)" = "$pid_c" ]; }
ok 'the status names its process' of_it
recent() {
	python3 - "$work/linked.json" <<'PY'
import datetime, json, sys
at = datetime.datetime.fromisoformat(json.load(open(sys.argv[1]))["written_at"].replace("Z", "+00:00"))
sys.exit(abs((datetime.datetime.now(datetime.timezone.utc) - at).total_seconds()) > 600)
PY
}
ok 'and when it was written' recent
before=$(member "$work/linked.json" written_at)
anew_written() { [ "$(member "$work/linked.json" written_at)" != "$before" ]; }
ok 'it is written anew while nothing happens' wait_for 'a newer status' anew_written
dated() { grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z ' "$work/c.log"; }
ok 'lines of the log have date and zone' dated
run -d "$work/c" stop

private() { [ -f "$1" ] && [ "$(stat -c %a "$1")" = 600 ]; }
"$fkge" -q -d "$work/c" train --epochs 100000 2>/dev/null &
trainer=$!
pids="$pids $trainer"
sleeping() { kill -INT $trainer; [ -f "$work/c/training.state" ]; }
ok 'a training that is interrupted keeps its state' wait_for 'training.state' sleeping
ok 'for the owner alone' private "$work/c/training.state"
# ---- what was printed has arrived, or the status says that it has not ----
full() { # ARGS...: 1 where standard output takes nothing
	status=0
	"$fkge" -d "$work/full" "$@" >/dev/full 2>"$err" || status=$?
	[ "$status" -eq 1 ] && grep -q '^fkge: standard output: ' "$err"
}
agent full 1
"$fkge" -q -d "$work/full" train --epochs 1 >/dev/null 2>&1
printf 'e1\tnext\t?\n' >"$work/asked.tsv"
for c in id version 'config set train.epochs 3' 'predict e1 next ?' "predict --batch $work/asked.tsv" 'train --help'; do
	ok "a full disk: $c" full $c
done
closed() { # what is opened takes the place of no standard stream, so nothing is logged into it
	"$fkge" -d "$work/full" serve --until-quiet 0.5 >&- 2>&- &&
		[ "$(cat "$work/full"/*lock | wc -l)" -eq 2 ]
}
ok 'both closed: the log goes into no file' closed
finish
