#!/bin/sh
# The agent under a service manager: it says when it is ready, alive, starting anew and ending, and
# listens on the socket that it is handed.  Usage: service.sh FKGE
. "$(dirname "$0")/lib.sh"
if ! ldd "$fkge" | grep -q libsystemd; then
	echo 'ok 1 - under a service manager # SKIP built without libsystemd'
	echo '1..1'
	exit 0
fi
told() { grep -qx -- "$1" "$work/told"; }
told_times() { [ "$(grep -cx -- "$1" "$work/told")" -ge "$2" ]; }

# The manager's ear: every line that it is sent goes to $work/told.
python3 - "$work" <<'PY' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1] + "/notify")
with open(sys.argv[1] + "/told", "w", buffering=1) as f:
    while True:
        f.write(s.recv(4096).decode() + "\n")
PY
pids="$pids $!"
agent a 1
ok 'the manager listens' wait_for 'its file' test -e "$work/told"

# As systemd would: the socket is descriptor 3, the watchdog waits for a second.
python3 - "$fkge" "$work" 2>>"$work/a.log" <<'PY' &
import os, socket, sys
fkge, work = sys.argv[1:]
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
open(work + "/port", "w").write(str(s.getsockname()[1]))
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(NOTIFY_SOCKET=work + "/notify", WATCHDOG_USEC="1000000", WATCHDOG_PID=str(os.getpid()),
                  LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(fkge, [fkge, "-d", work + "/a", "serve", "--status-file", work + "/a.json"])
PY
pid_a=$!
pids="$pids $pid_a"
ok 'the agent says that it is ready' wait_for 'READY=1' told READY=1
ok 'who it is' told STATUS=a
ok 'and again and again that it is alive' wait_for 'WATCHDOG=1' told_times WATCHDOG=1 3
on_socket() { [ "$(value a port)" = "$(cat "$work/port")" ]; }
ok 'it listens on the socket that it was handed' wait_for 'its port' on_socket
ok 'and says where that is' is_value a listen "127.0.0.1:$(cat "$work/port")"
not_further() { ! grep -q 'is open at' "$work/a.log"; }
ok 'which is as far as the settings say' not_further
kill -HUP $pid_a
ok 'SIGHUP: it says that it starts anew' wait_for 'RELOADING=1' told RELOADING=1
ok 'and that it is ready again' wait_for 'READY=1 twice' told_times READY=1 2
ok 'on the same socket' wait_for 'its port' on_socket
ok 'it has not said that it ends' test "$(grep -c STOPPING "$work/told")" = 0
run -d "$work/a" stop
ok 'its end is told' wait_for 'STOPPING=1' told STOPPING=1

# one that is open to more than the settings say
ok 'a ends' wait_for 'the end of a' ended "$pid_a"
sed -i 's/^listen: .*/listen: off/' "$work/a/agent.yaml"
rm -f "$work/a.json"
python3 - "$fkge" "$work" 2>>"$work/a.log" <<'PY' &
import os, socket, sys
fkge, work = sys.argv[1:]
s = socket.socket()
s.bind(("0.0.0.0", 0))
s.listen()
open(work + "/port", "w").write(str(s.getsockname()[1]))
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(fkge, [fkge, "-d", work + "/a", "serve", "--status-file", work + "/a.json"])
PY
pid_a=$!
pids="$pids $pid_a"
ok 'it starts on another socket' wait_for 'its port' on_socket
at=0.0.0.0:$(cat "$work/port")
ok 'and says where that is' is_value a listen "$at"
ok 'in the log, too' grep -q "listening on $at, port" "$work/a.log"
ok 'which warns' grep -q "warn .*socket is open at $at, to more than listen in agent.yaml (off) allows" "$work/a.log"
doctor_warns() { run -d "$work/a" doctor; grep -qF "look  listen     the agent is open at $at" "$out"; }
ok 'and so does doctor' doctor_warns
run -d "$work/a" stop

# what is handed over must be one listening socket
python3 - "$fkge" "$work" <<'PY' >"$out" 2>"$err"
import os, socket, sys
fkge, work = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(fkge, [fkge, "-d", work + "/a", "serve"])
PY
status=$?
refused() { [ $status -eq 2 ] && grep -q 'takes one listening TCP socket' "$err"; }
ok 'another thing than a listening socket is refused' refused
finish
