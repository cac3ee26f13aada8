#!/bin/sh
# agent.yaml by single keys, a running agent that takes them, and what it says of itself.
# Usage: settings.sh FKGE
. "$(dirname "$0")/lib.sh"
a=$work/a
agent a 1
cat >"$a/agent.yaml" <<'YAML'
# the owner's words
name: a   # mine
listen: 127.0.0.1:0

train: {epochs: 1, threads: 1, batch: 64, negatives: 4}
model: {dim: 4}
federation:
  sleep_s: 1     # short
  lease_s: 60
YAML
cp "$a/agent.yaml" "$work/before.yaml"
changed_lines() { diff "$work/before.yaml" "$a/agent.yaml" | grep -c '^>'; }

# ---- get, set, check, diff ----
ok 'a value of the file' prints '4' -d "$a" config get model.dim
ok 'a default' prints 'transe' -d "$a" config get model.kind
ok 'of the top level' prints '"a"' -d "$a" config get name
ok 'of a section within a section' prints '1e-05' -d "$a" config get train.dp.delta
ok 'all' prints 'log.level: info' -d "$a" config get
ok 'an unknown key is refused, with those that are known' says 2 "unknown key 'dimm' in model; known are: preset, kind, dim" -d "$a" config get model.dimm
ok 'nor is one of the top level known' says 2 "unknown key 'nam' in the top level" -d "$a" config get nam
ok 'a section has no value' says 2 'log is a section: say which of its keys, of level, format' -d "$a" config set log debug
ok 'nor one within another' says 2 'train.dp is a section: say which of its keys, of epsilon' -d "$a" config set train.dp 3
ok 'an unknown section is told' says 2 "unknown section 'trai'; known in the top level are: name, listen" -d "$a" config set trai.lr 3
ok 'a section: its keys' prints 'train.dp.delta: 1e-05' -d "$a" config get train
ok 'and no others' [ "$(grep -vc '^train\.' "$out")" = 0 ]
ok 'one is set' prints 'federation.sleep_s: 2, was 1' -d "$a" config set federation.sleep_s 2
ok 'its comment stays' grep -qx '  sleep_s: 2     # short' "$a/agent.yaml"
ok 'all else, too' [ "$(changed_lines)" = 1 ]
ok 'its mode stays that of a secret' [ "$(stat -c %a "$a/agent.yaml")" = 600 ]
# live SECTION.KEY VALUE TEXT: what programs are told, and people
live() {
	run --json -d "$a" config set "$1" "$2" && [ "$(member "$out" live)" = "$3" ] && cp "$work/before.yaml" "$a/agent.yaml" &&
		says 0 "a running agent takes it by: fkge reload$4" -d "$a" config set "$1" "$2"
}
cp "$a/agent.yaml" "$work/good.yaml"
ok 'one that counts at once' live federation.sleep_s 3 True ''
cp "$work/before.yaml" "$a/agent.yaml"
ok 'one that waits' live train.lr 0.5 False ' --restart'
cp "$work/good.yaml" "$a/agent.yaml"
ok 'a text is quoted' exits 0 -d "$a" config set name 'x: "y" # z'
ok 'and reads back' prints '"x: \"y\" # z"' -d "$a" config get name
ok 'a section that is not there is added' exits 0 -d "$a" config set privacy.epsilon_total 6
ok 'with its key' prints 6 -d "$a" config get privacy.epsilon_total
cp "$a/agent.yaml" "$work/good.yaml"
ok 'a wrong value is refused' says 2 'model.dim: '"'-3'"' is not allowed here' -d "$a" config set model.dim -- -3
ok 'and one that does not go with another, by line' says 2 'agent.yaml:8: federation.session_s' -d "$a" config set federation.session_s 5
ok 'which changes nothing' cmp -s "$work/good.yaml" "$a/agent.yaml"

# ---- unset ----
ok 'a method with a constant' exits 0 -d "$a" config set rounds.method fedprox
ok 'the constant' exits 0 -d "$a" config set rounds.mu 0.5
ok 'stands in the way of another method, and what to do is said' says 2 'fkge config unset rounds.mu' -d "$a" \
	config set rounds.method fede
ok 'which helps' prints 'rounds.mu: 0.1, was 0.5' -d "$a" config unset rounds.mu
ok 'now it is another' exits 0 -d "$a" config set rounds.method fede
ok 'a name that no method has is unknown' says 2 "unknown key 'mux' in rounds" -d "$a" config set rounds.mux 1
printf 'name: a\nrounds: {method: fede, mu: 0.5}\n' >"$work/broken.yaml"
cp "$a/agent.yaml" "$work/kept.yaml" && cp "$work/broken.yaml" "$a/agent.yaml"
ok 'a file that is wrong by a key' says 2 'agent.yaml:2: rounds.mu is a constant of other methods' -d "$a" config check
ok 'loses it' says 0 'is good now' -d "$a" config unset rounds.mu
ok 'its mode is that of a secret' [ "$(stat -c %a "$a/agent.yaml")" = 600 ]
ok 'and nothing else' [ "$(cat "$a/agent.yaml")" = "$(printf 'name: a\nrounds: {method: fede}\n')" ]
cp "$work/kept.yaml" "$a/agent.yaml"
ok 'one that is not there' says 0 'agent.yaml does not have it: its default is 0.001' -d "$a" config unset train.lr
ok 'one at its default' says 0 'it has that value already' -d "$a" config set train.epochs 1
run -d "$a" config set train.lr 0.001
ok 'whose line goes' says 0 'it is not in agent.yaml any more; its default is the same value, 0.001' -d "$a" config unset train.lr
ok 'which is gone' [ "$(grep -c 'lr:' "$a/agent.yaml")" = 0 ]
ok 'one that nobody knows' says 2 "unknown key 'lrr' in train" -d "$a" config unset train.lrr
ok 'a section is not a key' says 2 'train is a section' -d "$a" config unset train
cp "$work/good.yaml" "$a/agent.yaml"
ok 'tables that do not fit are said' says 0 'fkge stop, if the agent runs, then fkge train --fresh' -d "$a" config set model.dim 64
ok 'also by gamma, which no running agent takes' says 0 'fkge train --fresh' -d "$a" config set model.gamma 5
ok 'back at the old value they may fit' says 0 'trained with another value' -d "$a" config unset model.gamma
printf 'name: a\nlisten: 127.0.0.1:0\n' >"$a/agent.yaml"
ok 'nor may those that a preset chooses' says 0 'fkge stop, if the agent runs, then fkge train --fresh' -d "$a" config set model.preset fast
ok 'each of these is said' grep -q '^model.kind: complex_reciprocal, was transe$' "$out"
ok 'also back' says 0 'fkge train --fresh' -d "$a" config set model.preset none
cp "$work/good.yaml" "$a/agent.yaml"
# Past the limit of a file's size a write fails, as on a full disk.  The signal is the program's to ignore, and is
# left to it in align.sh; here TSan writes a file of its own before main().
unwritten() {
	said=$(trap '' XFSZ; ulimit -f 0; "$fkge" -d "$a" config set train.epochs 51 "$@" 2>&1)
	[ $? -eq 1 ] && cmp -s "$work/good.yaml" "$a/agent.yaml"
}
ok 'what cannot be written fails' unwritten
ok 'and is not told as done' [ "${said#*was 1}" = "$said" ]
ok 'nor to programs' unwritten --json
ok 'there' [ "${said#*\"was\"}" = "$said" ]
ok 'it is good' prints 'agent.yaml is good; ' -d "$a" config check
echo 'nonsense: 1' >"$work/bad.yaml"
ok 'another is not, by line' says 2 "bad.yaml:1: unknown key 'nonsense'" -d "$a" config check "$work/bad.yaml"
ok 'what is not as by default' prints 'model.dim                        4, not 128' -d "$a" config diff
ok 'where it stands' grep -q 'sleep_s.*  # line 8$' "$out"
ok 'what is not as in another file' prints 'privacy.epsilon_total            6, not 8' -d "$a" config diff "$work/before.yaml"
ok 'and that alone' [ "$(wc -l <"$out")" = 3 ]

# ---- several at once; a file that lies elsewhere ----
at_once() { # each key of these is set by a command of its own, all of them at the same time
	setters=
	for key in patience max_rounds epochs_per_round gather_s partners links names_max names_every_s; do
		"$fkge" -q -d "$a" config set "federation.$key" 3 >/dev/null &
		setters="$setters $!"
	done
	for setter in $setters; do wait "$setter" || return; done
	[ "$(grep -c '^  [a-z_]*: 3$' "$a/agent.yaml")" = 8 ]
}
ok 'commands that set at once lose nothing' at_once
cp "$work/before.yaml" "$work/elsewhere.yaml"
ln -sf "$work/elsewhere.yaml" "$a/agent.yaml"
ok 'where agent.yaml is a link' exits 0 -d "$a" config set federation.sleep_s 3
ok 'its target is changed' grep -qx '  sleep_s: 3     # short' "$work/elsewhere.yaml"
ok 'and it stays a link' [ -L "$a/agent.yaml" ]
rm "$a/agent.yaml"

# ---- a running agent takes them ----
cp "$work/before.yaml" "$a/agent.yaml"
run -d "$a" config set log.level info
"$fkge" -q -d "$a" train >"$out" 2>&1
start a
"$fkge" -d "$a" events --follow --json >"$work/events" 2>"$work/follow.log" &
follower=$!
pids="$pids $follower"
ok 'nothing to take' prints 'nothing has changed' -d "$a" reload
run -d "$a" config set log.level debug
run -d "$a" config set federation.names_max 77
run -d "$a" config set train.lr 0.5
ok 'what counts at once is said' prints 'log.level: debug now, was info' -d "$a" reload
has_line() { grep -qF -- "$1" "$out"; }
ok 'each key of that' has_line 'federation.names_max: 77 now, was 0'
ok 'what waits, too' has_line 'train.lr: 0.5 from the next start on (fkge reload --restart), was 0.001'
ok 'the log says it' logged a 'federation.names_max is 77 now, was 0'
ok 'again, and only what waits is left' prints 'train.lr: 0.5 from' -d "$a" reload
ok 'and no more' [ "$(wc -l <"$out")" = 1 ]
kept() { [ "$(grep -c 'started: ' "$work/a.log")" = 1 ]; }
ok 'it has not started anew' kept
run -d "$a" config set federation.lease_s 1
run -d "$a" config set federation.session_s 2
"$fkge" -d "$a" reload >"$out"
ok 'two that go together' has_line 'federation.session_s: 2 now'
cp "$a/agent.yaml" "$work/good.yaml"
echo 'nonsense: 1' >>"$a/agent.yaml"
ok 'a wrong file is refused whole, by line' says 2 "unknown key 'nonsense'" -d "$a" reload
cp "$work/good.yaml" "$a/agent.yaml"
sed -i 's/dim: 4/dim: 5/' "$a/agent.yaml"
ok "another tables' model is refused" says 2 'model.kind, dim and rel_dim are those of the tables: agent.yaml says transe of 5 and 5 numbers, not transe of 4 and 4' -d "$a" reload
printf 'name: a\nlisten: 127.0.0.1:0\nmodel: {preset: fast}\n' >"$a/agent.yaml"
ok "also a preset's" says 2 'model.preset chooses complex_reciprocal of 64 and 64 numbers, not transe of 4 and 4' -d "$a" reload
cp "$work/good.yaml" "$a/agent.yaml"
ok 'with --restart it starts anew' prints 'train.lr: 0.5 now' -d "$a" reload --restart
anew() { [ "$(grep -c 'started: ' "$work/a.log")" = 2 ] && run -d "$a" status; }
ok 'in the same process' wait_for 'the second start' anew
ok 'which has them all' wait_for 'an answer' prints 'nothing has changed' -d "$a" reload
run -d "$a" config set log.level warn
kill -HUP "$pid_a"
ok 'SIGHUP is heard' wait_for 'the level' prints 'log.level is warn now' -d "$a" events # a reload first would do it, too
hushed() { run -d "$a" config set log.level error && prints 'log.level: error now, was warn' -d "$a" reload; }
ok 'and takes what counts at once' hushed
ok 'without a new start' anew

# ---- events ----
ok 'what has happened' prints 'started: listening on' -d "$a" events
ok 'settings, too, whatever the level of the log' has_line 'settings  log.level is error now, was warn'
ok 'the newest alone' prints 'log.level is error now' -d "$a" events -n 1
ok 'one line' [ "$(wc -l <"$out")" = 1 ]
ok "the owner's decisions" exits 1 -d "$a" peer accept nobody
run -q -d "$a" invite --address 127.0.0.1:1 -o "$work/line"
told_owner() { run -d "$a" events && grep -q 'owner     the owner said: invite$' "$out" && ! grep -q nobody "$out"; }
ok 'those that counted, without the line' told_owner
# ---- what a new start would end of ----
port=$(sed -n 's/.*started: listening on [^,]*, port \([0-9]*\),.*/\1/p' "$work/a.log" | tail -1)
python3 -c '
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(600)' >"$work/busy" &
pids="$pids $!"
wait_for 'a busy port' test -s "$work/busy"
busy=$(cat "$work/busy")
no_host=no-such-host-$(printf '%064d' 0) # too long for a name, so that no resolver is asked
# refuses KEY VALUE TEXT: the agent does not start anew for it, and goes on
refuses() {
	cp "$a/agent.yaml" "$work/good.yaml"
	run -d "$a" config set "$1" "$2"
	ok "$1 $2" says "$4" "$3" -d "$a" reload --restart
	cp "$work/good.yaml" "$a/agent.yaml"
	ok 'it goes on' prints 'nothing has changed' -d "$a" reload
}
refuses listen 192.0.2.1:7448 'listen: 192.0.2.1:7448 cannot be used: ' 1
refuses listen $no_host:7448 "listen: $no_host:7448 cannot be used: no such host" 1
refuses listen "127.0.0.1:$busy" 'cannot be used: Address already in use; choose another' 1
refuses http.listen "127.0.0.1:$busy" 'another agent or program answers there' 1
refuses http.listen "$work/nowhere/http.sock" 'No such file' 1
refuses federation.psk_file other.key 'other.key is not there' 4
run -d "$a" config set eval.protocol tail
ok 'another protocol wants the best tables judged anew, which is said' grep -q 'then fkge train --rounds 1' "$err"
run -d "$a" config set eval.protocol standard
# what lies in the folder: heard_up TEXT: SIGHUP is refused for it, too
heard_up() {
	before=$(grep -c 'SIGHUP: the agent goes on' "$work/a.log")
	kill -HUP "$pid_a"
	wait_for 'the log' refused_up && grep -F 'SIGHUP: the agent goes on' "$work/a.log" | tail -n 1 | grep -qF -- "$1"
}
refused_up() { [ "$(grep -c 'SIGHUP: the agent goes on' "$work/a.log")" -gt "$before" ]; }
# spoiled FILE STATUS TEXT COMMAND...: what that makes of it, in place of the file, lets nothing start
spoiled() {
	file=$a/$1 want=$2 text=$3
	shift 3
	mv "$file" "$work/moved"
	"$@"
	says "$want" "$text" -d "$a" reload --restart && heard_up "$text"
	told=$?
	rm -rf "$file"
	mv "$work/moved" "$file"
	[ $told -eq 0 ] && prints 'nothing has changed' -d "$a" reload
}
others() { cp "$work/moved" "$file" && chmod 644 "$file"; }
"$fkge" -q -d "$work/other" init >/dev/null
ok 'keys that others may read' spoiled identity.key 6 'can be read by others' others
ok 'no keys' spoiled identity.key 1 'identity.key: No such file or directory' true
ok "another agent's keys" spoiled identity.key 6 'belongs to another identity' cp "$work/other/identity.key" "$a/identity.key"
ok 'no store' spoiled store.db 1 'store.db is missing' true
ok "no place for the store's lock" spoiled store.db.lock 1 'store.db.lock: Is a directory' mkdir "$a/store.db.lock"
mv "$a/control.sock" "$work/moved" && mkdir "$a/control.sock"
ok 'no place for its socket' heard_up 'control.sock: Is a directory'
rmdir "$a/control.sock" && mv "$work/moved" "$a/control.sock"
ok 'as it was, nothing is in the way' prints 'nothing has changed' -d "$a" reload
refuses eval.protocol tail 'the best score is of protocol standard, agent.yaml says tail' 2
refuses eval.valid_limit 3 'the best score is of protocol standard, agent.yaml says standard/3' 2
refuses train.partitions 2 'train.partitions: only fkge train trains past memory' 2
cp "$a/agent.yaml" "$work/good.yaml"
sed -i 's/^train: {/train: {dp: {epsilon: 1}, filtered: false, shared_chunk: 0, patience: 0, /' "$a/agent.yaml"
ok 'private training' says 2 'the best state was trained without train.dp' -d "$a" reload --restart
cp "$work/good.yaml" "$a/agent.yaml"
run -d "$a" config set rounds.topology hosted
run -d "$a" config set rounds.host nosuch
run -d "$a" config set federation.mode rounds
ok 'rounds at a host that is not known' says 1 "rounds.host: no peer 'nosuch' is known" -d "$a" reload --restart
ok 'nor for SIGHUP' heard_up 'goes on with the settings that it has: rounds.host'
cp "$work/good.yaml" "$a/agent.yaml"
ok 'and it goes on' prints 'nothing has changed' -d "$a" reload
ok 'it has not started anew' anew
run -d "$a" config set listen "0.0.0.0:$port"
ok 'the port that it holds itself may stay' exits 0 -d "$a" reload --restart
there() { prints "started: listening on 0.0.0.0:$port, port $port" -d "$a" events; }
ok 'and it starts anew there' wait_for 'the third start' there

# ---- ports that the agent holds itself ----
# takes LISTEN HTTP: it starts anew with both
takes() {
	run -d "$a" config set http.listen off # or both may be at one port in between
	run -d "$a" config set listen "$1"
	run -d "$a" config set http.listen "$2"
	run -d "$a" reload --restart
	[ "$status" -eq 0 ] && wait_for "$1 and $2" listens "$1" "$2"
}
listens() { # LISTEN HTTP, but for a port that is any
	run -d "$a" status --json && http=$(member "$out" http) && [ "$(member "$out" port)" = "${1##*:}" ] || return
	case $2 in
	*/*) [ "${http%/*}/${http##*/}" = "unix:$a/${2##*/}" ] || [ "$http" = "unix:$2" ] ;;
	*:0) [ -n "$http" ] ;;
	*) [ "$http" = "http://$2" ] ;;
	esac
}
ok 'HTTP at any port' takes "127.0.0.1:$port" 127.0.0.1:0
http_port=${http##*:}
ok 'the two ports exchanged' takes "127.0.0.1:$http_port" "127.0.0.1:$port"
ok 'and back' takes "127.0.0.1:$port" "127.0.0.1:$http_port"
# another program at the same number of another address
python3 -c '
import socket, sys, time
held = [socket.create_server(("127.0.0.2", int(port))) for port in sys.argv[1:]]
print("there", flush=True)
time.sleep(600)' "$port" "$http_port" >"$work/foreign" &
pid_foreign=$!
pids="$pids $pid_foreign"
wait_for 'another program there' test -s "$work/foreign"
refuses listen "127.0.0.2:$port" 'cannot be used: Address already in use' 1
refuses listen "127.0.0.2:$http_port" 'cannot be used: Address already in use' 1
refuses http.listen "127.0.0.2:$http_port" 'another agent or program answers there' 1
refuses http.listen "127.0.0.2:$port" 'another agent or program answers there' 1
cp "$a/agent.yaml" "$work/good.yaml"
run -d "$a" config set listen "0.0.0.0:$port"
ok 'one that stands in the way of every address' exits 0 -d "$a" reload --restart
back() { prints "starts with the settings of before: cannot listen on 0.0.0.0 port $port" -d "$a" events; }
ok 'is met in the new start, and the agent says so' wait_for 'the event' back
ok 'it goes on where it was' wait_for 'an answer' listens "127.0.0.1:$port" "127.0.0.1:$http_port"
ok 'the setting still waits' prints "0.0.0.0:$port\" from the next start on" -d "$a" reload
cp "$work/good.yaml" "$a/agent.yaml"
ok 'the settings of before are those of the file' prints 'nothing has changed' -d "$a" reload
kill "$pid_foreign"
wait "$pid_foreign" 2>/dev/null
ok 'alone there it takes every address' takes "0.0.0.0:$port" "127.0.0.1:$http_port"
ok 'and one of them again' takes "127.0.0.1:$port" "127.0.0.1:$http_port"
both='listen and http.listen are both at port'
ok 'one port for both' says 2 "$both" -d "$a" config set http.listen "127.0.0.1:$port"
ok 'every address, too' says 2 "$both" -d "$a" config set listen "0.0.0.0:$http_port"
refuses listen "localhost:$http_port" "$both" 2
ok 'HTTP at a path' takes "127.0.0.1:$port" "$a/http.sock"
ok 'the same path, written in another way' takes "127.0.0.1:$port" "$a/./http.sock"
ok 'another port while HTTP is there' takes "127.0.0.1:$http_port" "$a/./http.sock"

# ---- workers for sessions: libuv makes them once in a process ----
few='! federation.sessions: 16 have no workers of their own in this process, which has made those of 8: stop the agent'
run -d "$a" config set federation.sessions 16
ok 'more sessions want another process' prints "$few" -d "$a" reload
ok 'with --restart, too' prints "$few" -d "$a" reload --restart
taken() { prints 'nothing has changed' -d "$a" reload; }
ok 'all else of it is new' wait_for 'the new start' taken
run -d "$a" config set federation.sessions 4
ok 'fewer do not' prints 'the agent starts anew' -d "$a" reload --restart
silent() { ! grep -q '^!' "$out"; }
ok 'which is not warned of' silent
wait_for 'the new start' taken

# ---- what keeps the next start from coming is told at once ----
cp "$a/agent.yaml" "$work/good.yaml"
# warned TEXT KEY VALUE: a reload that takes nothing of it yet
warned() {
	run -d "$a" config set "$2" "$3"
	prints "! with these settings the agent cannot start again: $1" -d "$a" reload &&
		"$fkge" --json -d "$a" reload >"$out" && [ "$(member "$out" warnings 0 | cut -c 1-19)" = 'with these settings' ] &&
		prints "cannot start again: $1" -d "$a" events
	told=$?
	cp "$work/good.yaml" "$a/agent.yaml"
	return $told
}
ok 'an address' warned 'listen: 192.0.2.1:7448 cannot be used' listen 192.0.2.1:7448
ok 'a score of another protocol' warned 'the best score is of protocol standard' eval.protocol tail
ok 'a secret that is not there' warned "$a/other.key is not there" federation.psk_file other.key
run -d "$a" config set train.lr 0.3
ok 'not what will do' prints 'train.lr: 0.3 from the next start on' -d "$a" reload
ok 'of that no warning' silent
cp "$work/good.yaml" "$a/agent.yaml"

# ---- relations of a width of their own ----
agent r 2
sed -i 's/^model: .*/model: {kind: transr, dim: 8, rel_dim: 4}/' "$work/r/agent.yaml"
"$fkge" -q -d "$work/r" train >"$out" 2>&1
start r
ok 'tables of another width do not fit' says 0 'fkge stop, if the agent runs, then fkge train --fresh' -d "$work/r" config set model.rel_dim 6
not_of_tables='agent.yaml says transr of 8 and 6 numbers, not transr of 8 and 4'
ok 'that of relations is one of the tables' says 2 "$not_of_tables" -d "$work/r" reload
ok 'with --restart, too' says 2 "$not_of_tables" -d "$work/r" reload --restart
ok 'the agent goes on' exits 0 -d "$work/r" stop

# ---- an edit between the command and the new start ----
again() { [ "$(grep -c 'started: ' "$work/a.log")" -gt "$starts" ] && run -d "$a" status; }
starts=$(grep -c 'started: ' "$work/a.log")
run -d "$a" config set log.level info
run -d "$a" config set train.lr 0.25
cp "$a/agent.yaml" "$work/good.yaml"
"$fkge" -d "$a" reload --restart >"$out"
echo 'nonsense: 1' >>"$a/agent.yaml"
ok 'a file that is wrong by then' wait_for 'the new start' again
ok 'is refused when it is taken' says 2 "unknown key 'nonsense'" -d "$a" reload
cp "$work/good.yaml" "$a/agent.yaml"
ok 'what was good when it was said counts' prints 'nothing has changed' -d "$a" reload
starts=$(grep -c 'started: ' "$work/a.log")
"$fkge" -d "$a" reload --restart >"$out"
sed -i 's/lr: 0.25/lr: 0.125/' "$a/agent.yaml"
ok 'another value' wait_for 'the new start' again
ok 'waits for the next' prints 'train.lr: 0.125 from the next start on (fkge reload --restart), was 0.25' -d "$a" reload

run -d "$a" stop
ok 'who follows hears the end' wait_for 'its end' ended "$follower"
whole() { # numbers without a gap over all runs, from the start to the stop
	python3 - "$work/events" <<'PY'
import json, sys
at = [json.loads(line) for line in open(sys.argv[1])]
events, last = at[:-1], at[-1]
assert [e["seq"] for e in events] == list(range(1, len(events) + 1)), at
assert set(events[0]) == {"seq", "time_ms", "kind", "text"} and last["exit"] == 0
kinds = [e["kind"] for e in events]
assert kinds.count("start") == 16 and "settings" in kinds and kinds[-1] == "stop", kinds
PY
}
ok 'and has heard all of the runs' whole
ok 'nobody is there any more' exits 5 -d "$a" events
ok 'nor to reload' exits 5 -d "$a" reload
# doctor_says LISTEN TEXT
doctor_says() { run -d "$a" config set listen "$1" && run -d "$a" doctor; flat_has "$2"; }
ok 'doctor names who may hold the port' doctor_says "127.0.0.1:$busy" 'Address already in use; change listen in agent.yaml, unless systemd'"'"'s fkge@NAME.socket holds it'
ok 'and a name that is none' doctor_says $no_host:7448 'no such host; change listen'
untold='others are told no address: set advertise'
ok 'and that nobody is told where every address is' doctor_says "0.0.0.0:$port" "$untold"
told() { run -d "$a" config set "$1" "$2" && run -d "$a" doctor && ! flat_has "$untold"; }
ok 'but where one is advertised' told advertise agent.example:7447
run -d "$a" config unset advertise
ok 'or it is one' told listen "127.0.0.1:$port"
run -d "$a" config set http.listen off
run -d "$a" config set listen "localhost:$port"
run -d "$a" config set http.listen "127.0.0.1:$port"
run -d "$a" doctor
ok 'one port by two names is seen' flat_has "listen and http.listen are both at port $port"
printf 'name: a\nmodel: {preset: fast}\n' >"$a/agent.yaml"
ok 'it does not start by a preset of other tables, which is named' \
	says 2 'transe of dim 4 and rel_dim 4, model.preset chooses complex_reciprocal, 64' -d "$a" serve --until-quiet 1
finish
