# tests/cli/lib.sh - sourced by the shell tests: TAP, temporary folders, waiting for conditions.
#
#   . lib.sh            $1 of the test is the program under test
#   run ARGS...         runs fkge; $status, $out (a file), $err (a file)
#   ok "name" COMMAND   one TAP line; the command's status decides
#   wait_for "what" COMMAND   until it succeeds, 60 s of waiting at most
# A test ends with `finish`.
set -u
fkge=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/fkge-test.XXXXXX")
out=$work/out
err=$work/err
count=0
failed=0
status=none
: >"$out" >"$err"
pids=
unset FKGE_DIR
# What a sanitizer finds goes here, whatever becomes of standard error and of the status; see finish.
asan_options="${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$work/sanitizer"
# What a command leaves is gone with it, and looking for leaks takes longer than most of them: agents are looked at
# (start, together), as unit tests and the library are.
export ASAN_OPTIONS="$asan_options:detect_leaks=0"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}log_path=$work/sanitizer"
export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}log_path=$work/sanitizer"
export PYTHONPATH="$(dirname "$0")/../cli" PYTHONDONTWRITEBYTECODE=1 # storedb.py: stores opened past the program

cleanup() {
	for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

run() {
	status=0
	"$fkge" "$@" >"$out" 2>"$err" </dev/null || status=$?
	[ $status -ne 99 ] || cp "$err" "$work/sanitizer.err-$count" # of meson.build; not all write to log_path
}

ok() {
	name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		echo "# failed: $*; last status $status"
		sed 's/^/# out: /' "$out" | head -20
		sed 's/^/# err: /' "$err" | head -20
		for log in "$work"/*.log; do
			[ -s "$log" ] && tail -n 30 "$log" | sed "s/^/# $(basename "$log"): /"
		done
		failed=$((failed + 1))
	fi
}

# key NAME COMMAND...: what is seen of this key of agent.yaml (tests/config/test_keys.c)
key() {
	seen=$1
	shift
	ok "$seen" "$@"
}

# exits STATUS ARGS...: fkge ends with exactly this status
exits() {
	want=$1
	shift
	run "$@"
	[ "$status" -eq "$want" ]
}

# says STATUS TEXT ARGS...: ... and standard error holds the text
says() {
	want=$1 text=$2
	shift 2
	run "$@"
	[ "$status" -eq "$want" ] && grep -qF -- "$text" "$err"
}

# prints TEXT ARGS...: status 0, and standard output holds the text
prints() {
	text=$1
	shift
	run "$@"
	[ "$status" -eq 0 ] && flat_has "$text"
}
# flat_has TEXT: standard output holds it, wherever lines were broken
flat_has() { grep -qF -- "$1" "$out" || tr -s ' \n' ' ' <"$out" | grep -qF -- "$1"; }
# narrow [COLUMNS]: no line of standard output is longer
narrow() { awk -v most="${1:-80}" 'length($0) > most { print "# " length($0) " columns: " $0; long = 1 } END { exit long }' "$out"; }

# unwrap: in standard output, each finding of `verify` on one line again
unwrap() {
	awk '{ more = open && /^  / }
		NR > 1 { printf more ? " " : "\n" }
		{ if (more) sub(/^ +/, ""); else open = /^(FAULT|note|not checked):/; printf "%s", $0 }
		END { print "" }' "$out" >"$out.whole" && mv "$out.whole" "$out"
}

# member FILE KEY...: one value of a JSON file; of a list by number, or by KEY=TEXT.  What is asked again
# and again must not start a Python each time (json_value.c).
member() {
	told=3
	[ ! -x "${FKGE_JSON_VALUE:-}" ] || { told=0; "$FKGE_JSON_VALUE" "$@" || told=$?; }
	[ "$told" -eq 3 ] || return "$told"
	python3 -c '
import json, sys
def pick(j, k):
    if not isinstance(j, list) or k.lstrip("-").isdigit():
        return j[int(k) if isinstance(j, list) else k]
    name, text = k.split("=", 1)
    return next(o for o in j if o.get(name) == text)
j = json.load(open(sys.argv[1]))
for k in sys.argv[2:]:
    j = pick(j, k)
print(j)' "$@"
}

wait_for() {
	what=$1
	shift
	# tenths of a second that it has slept: a busy machine has longer, and no process asks for the time
	slept=0
	while ! "$@" 2>/dev/null; do
		if [ $slept -ge $((${patience:-60} * 10)) ]; then
			echo "# waited in vain: $what"
			return 1
		elif [ $slept -lt 10 ]; then
			sleep 0.1
			slept=$((slept + 1))
		else
			sleep 0.3
			slept=$((slept + 3))
		fi
	done
}

# catches PID SIGNAL: it is fkge and catches that signal, a number.  Before, that ends it, or the shell that is to
# become it takes the signal for itself and loses it.
catches() {
	[ "$(cat "/proc/$1/comm")" = fkge ] || return 1
	[ $((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") >> ($2 - 1) & 1)) -eq 1 ]
} 2>/dev/null

# graph FILE SEED: a small world of 100 names and three relations that follow rules
graph() {
	python3 - "$1" "$2" <<'PY'
import random, sys
random.seed(int(sys.argv[2]))
rules = {"next": lambda i: i + 1, "jump": lambda i: i + 7, "twice": lambda i: 2 * i}
with open(sys.argv[1], "w") as f:
    for i in range(100):
        for r, rule in rules.items():
            if r == "next" or random.random() < 0.6:
                f.write(f"e{i}\t{r}\te{rule(i) % 100}\n")
PY
}

# agent NAME SEED [yaml lines]: an agent with a small graph, not trained
agent() {
	"$fkge" -q -d "$work/$1" init --name "$1" --listen 127.0.0.1:0 >/dev/null || return
	cat >"$work/$1/agent.yaml" <<YAML
name: $1
listen: 127.0.0.1:0
model: {dim: 16, gamma: 4}
train: {epochs: 20, eval_every: 10, threads: 1, lr: 0.02, batch: 64, negatives: 8, patience: 0}
federation: {names_every_s: 0, epochs_per_round: 5, max_rounds: 2, sleep_s: 1${3:+, $3}}
YAML
	graph "$work/$1.tsv" "$2"
	"$fkge" -q -d "$work/$1" import "$work/$1.tsv" >/dev/null
}

# ---- running agents: $work/NAME.json is the status file, $work/NAME.log what it said ----

start() { # NAME [options]: serve in the background, until its status file says where it listens
	who=$1
	shift
	rm -f "$work/$who.json"
	ASAN_OPTIONS=$asan_options "$fkge" -d "$work/$who" serve --status-file "$work/$who.json" "$@" \
		2>>"$work/$who.log" &
	eval "pid_$who=$!"
	pids="$pids $!"
	wait_for "$who has started" test -s "$work/$who.json"
}
ended() { ! kill -0 "$1" 2>/dev/null; }
value() { member "$work/$1.json" "$2"; } # NAME KEY of the status file
at_least() { [ "$(value "$1" "$2")" -ge "$3" ]; }
is_value() { [ "$(value "$1" "$2")" = "$3" ]; }
id_of() { "$fkge" -d "$work/$1" id; }
# peer_is NAME OTHER_ID KEY VALUE: one member of one peer in the status file
peer_is() { [ "$(member "$work/$1.json" peers "id=$2" "$3")" = "$4" ]; }

# Of this machine's tests each gets others, and no port that the system gives unasked: who starts again finds its own free.
free_port() {
	python3 - "${TMPDIR:-/tmp}/fkge-test-port.$(id -u)" <<'PY'
import fcntl, socket, sys
first, end = 10000, int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
if end < first + 5000:
    end = 60000
with open(sys.argv[1], "a+") as last:
    fcntl.flock(last, fcntl.LOCK_EX)
    last.seek(0)
    port = int(last.read() or 0)
    while True:
        port = port + 1 if first <= port < end - 1 else first
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                break
            except OSError:
                pass
    last.truncate(0)
    print(port, file=last)
print(port)
PY
}
has_v6() { python3 -c 'import socket; socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null; }
befriend() { # A B: A lists B by its key, B lists A with its address and will call it
	"$fkge" -q -d "$work/$1" invite --for "$(id_of "$2")" -o "$work/line" >/dev/null &&
		"$fkge" -q -d "$work/$2" join "$work/line" >/dev/null && rm "$work/line"
}
end_of() { # NAME: its process ends by itself, with status 0
	eval "set -- $1 \$pid_$1"
	wait_for "$1 becomes quiet" ended "$2" && wait "$2"
}
# together NAME...: all start, all become quiet for $quiet seconds and end with status 0.  All again where one was quiet
# before another had started (a slow machine): of those who are partners each has had a link.
together() {
	for together_try in 1 2 3; do
		all_quiet "$@" || return
		have_met "$@" && return
		echo "# not all have met: $*"
	done
	return 1
}
have_met() {
	for met_one; do
		for met_other; do
			met_id=$(member "$work/$met_one.json" peers "name=$met_other" id 2>/dev/null) || continue
			tac "$work/$met_one.log" | sed '/started: listening/q' | grep -qE "link to ($met_other|$met_id) is up" || return
		done
	done
}
all_quiet() {
	for who; do
		rm -f "$work/$who.json"
		ASAN_OPTIONS=$asan_options "$fkge" -d "$work/$who" serve --status-file "$work/$who.json" \
			--until-quiet ${quiet:-2} 2>>"$work/$who.log" &
		eval "pid_$who=$!"
		pids="$pids $!"
	done
	for who; do end_of "$who" || return; done
}
# anew NAME SEED OPTIONS...: trained from other first tables: none that a partner has had, whatever comes of it
anew() {
	name_anew=$1
	sed -i "s/train: {\(seed: [0-9]*, \)*/train: {seed: $2, /" "$work/$1/agent.yaml"
	shift 2
	"$fkge" -q -d "$work/$name_anew" train --fresh "$@" >/dev/null
}
logged() { grep -qF -- "$2" "$work/$1.log"; }
# starts_with NEW OLD: the entries of the old export are in the new one, unchanged
starts_with() { python3 - "$1" "$2" <<'PY'
import json, sys
key = lambda e: json.dumps({k: v for k, v in e.items() if k != "countersignature"}, sort_keys=True)
new, old = ({key(e) for e in json.load(open(p))["entries"]} for p in sys.argv[1:])
sys.exit(not old <= new)
PY
}

# found_by_sanitizers: fails, and shows it, where one has found something in any process of the test
found_by_sanitizers() {
	found=0
	for report in "$work"/sanitizer.* $(grep -lE 'Sanitizer:|runtime error:' "$out" "$err" "$work"/*.log 2>/dev/null); do
		[ -e "$report" ] || continue
		found=1
		head -n 60 "$report" | sed "s/^/# $(basename "$report"): /"
	done
	return $found
}

finish() {
	found_by_sanitizers || ok 'no sanitizer has found anything' false
	echo "1..$count"
	[ $failed -eq 0 ]
	exit
}
