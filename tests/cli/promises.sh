#!/bin/sh
# What the documents promise of exit statuses, modes of files and keys of the status, as tables:
# docs/reference/exit-status.md and json.md, docs/THREAT-MODEL.md and cli/README.md.  Usage: promises.sh FKGE SOURCE_ROOT
. "$(dirname "$0")/lib.sh"
root=$2
umask 022

# ---- exit statuses ----
agent a 1
agent b 2
agent p 3
sed -i 's/^train: {/train: {dp: {epsilon: 2}, filtered: false, shared_chunk: 0, /; s/epochs: 20/epochs: 2/' "$work/p/agent.yaml"
start a
start b
befriend a b
# 3 takes the minute that a command waits for an agent: meanwhile the rest
kill -STOP "$pid_b"
{
	"$fkge" --json -d "$work/b" status >"$work/held" 2>/dev/null
	echo $? >"$work/held.status"
} &
holder=$!
{
	"$fkge" -d "$work/b" doctor >"$work/hung" 2>/dev/null
	echo $? >"$work/hung.status"
} &
doctor=$!
{
	"$fkge" -d "$work/b" stop >/dev/null 2>"$work/stopping"
	echo $? >"$work/stopping.status"
} &
stopper=$!
"$fkge" -q -d "$work/a" ledger export "$work/l.json" >/dev/null 2>&1
sed 's/"fkge_ledger": [0-9]*/"fkge_ledger": 99/' "$work/l.json" >"$work/l99.json"
sed 's/"fkge_ledger": [0-9]*/"fkge_ledger": 1/' "$work/l.json" >"$work/l1.json"
"$fkge" -q -d "$work/open" init --name open --listen off >/dev/null 2>&1
chmod 644 "$work/open/identity.key"
"$fkge" -q -d "$work/open2" init --name open2 --listen off --secret >/dev/null 2>&1
chmod 644 "$work/open2/federation.key"
"$fkge" -q -d "$work/torn" init --name torn --listen off >/dev/null 2>&1
echo 'no store at all, and long enough to be read as one' >"$work/torn/store.db"
"$fkge" -q -d "$work/p" train >/dev/null 2>&1 # spends all that train.dp.epsilon allows
said=' 0 '
while read -r want words; do
	eval "set -- $words"
	ok "status $want: $words" exits "$want" "$@"
	ok '  with --json the same, in one object' exits "$want" --json "$@"
	[ "$(member "$out" exit)" = "$want" ] || ok '  exit in the object' false
	[ "$want" = 0 ] || [ -n "$(member "$out" error)" ] || ok '  error in the object' false
	said="$said$want "
done <<TABLE
0 -d $work/a status
1 -d $work/a rounds show 999999
2 -d $work/a eval --split sideways
4 -d $work/p import --replace $work/not-there.tsv
4 ledger verify $work/a.tsv
5 -d $work/p status
5 -d $work/p stop
6 -d $work/open id
6 -d $work/open2 invite --address h:1
7 ledger verify $work/l99.json
8 -d $work/p train
9 ledger verify $work/l1.json
9 -d $work/torn ledger show
1 -d $work/a train
TABLE
wait $holder $doctor $stopper
ok 'doctor of it does not say that it is stopped' grep -q "^bad   process    process $pid_b holds the folder but does not answer" "$work/hung"
ok 'nor that another has its port' grep -q '^ok    listen     not tried' "$work/hung"
ok 'and fails' [ "$(cat "$work/hung.status")" = 1 ]
ok 'stop says that its request waits, and for whom' grep -q "process $pid_b .*waits in its queue" "$work/stopping"
ok 'status 3, too' [ "$(cat "$work/stopping.status")" = 3 ]
kill -CONT "$pid_b"
ok 'which it then does' wait_for 'the end of b' ended "$pid_b"
ok 'status says whose process it is' [ "$(member "$work/held" running) $(member "$work/held" pid)" = "None $pid_b" ]

# ---- a process that holds the folder and takes no requests: an agent that starts or ends, a command ----
python3 - "$work/b/lock" <<'PY' >"$work/locked" &
import fcntl, os, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
f.truncate(0)
print(os.getpid(), file=f, flush=True)
print("locked", flush=True)
time.sleep(600)
PY
locker=$! pids="$pids $!"
ok 'a process holds b' wait_for 'the lock' test -s "$work/locked"
for command in status stop; do
	ok "$command: it is not stopped" says 1 "process $locker holds the folder but does not answer" -d "$work/b" $command
done
ok 'nor for doctor' prints "look  process    process $locker holds the folder" -d "$work/b" doctor
ok 'whose port nobody tries' grep -q '^ok    listen     not tried' "$out"
frozen() { # ARGS...: where the file system is read-only
	unshare -m sh -c 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"' "$work/b" "$fkge" "$@" \
		>"$out" 2>"$err" </dev/null
}
if unshare -m true 2>/dev/null && frozen version; then
	seen() { ! frozen -d "$work/b" status && grep -qF "process $locker holds the folder" "$err"; }
	ok 'it is seen through a read-only file system, too' seen
fi
kill $locker
wait $locker
ok 'then it is' says 5 'no agent is running here' -d "$work/b" status
ok 'status 3: an agent that does not answer' [ "$(cat "$work/held.status")" = 3 ]
ok '  with --json the same, in one object' [ "$(member "$work/held" exit)" = 3 ]
listed=$(sed -n 's/^| \([0-9]\) |.*/\1/p' "$root/docs/reference/exit-status.md")
all_said() { # every status of the reference stands in the table above
	for s in $listed; do
		case "${said}3 " in *" $s "*) ;; *) echo "# no command for $s" && return 1 ;; esac
	done
}
ok "the reference's list is the table" all_said
ok 'and has all of them' [ "$(echo "$listed" | wc -l)" -eq 10 ]

# ---- the keys of the status that docs/reference/json.md names ----
keys() {
	python3 - "$root/docs/reference/json.md" "$work/a.json" <<'PY'
import json, re, sys
text = open(sys.argv[1]).read().split("### fkge status\n")[1].split("\n### ")[0].split("\n\nVotes")[0]
status = json.load(open(sys.argv[2]))
names = lambda t: re.findall(r"`([a-z_]+)`", re.sub(r"\([^()]*\)", "", t))
own, *inner = text.split("\n* ")
missing, n = [k for k in names(own) if k not in status], len(names(own))
for part in inner:
    of, *keys = names(part)
    if part.startswith("of each peer"):
        continue  # after an intersection, in rounds
    if part.startswith("and its link"):
        of, keys = "peers", [of] + keys
    at = status.get(of)
    at = at[0] if isinstance(at, list) else at
    missing += [f"{of}.{k}" for k in keys if at is not None and k not in at]
    n += len(keys)
print("#", n, "keys; missing:", *missing)
sys.exit(bool(missing) or n < 60)
PY
}
ok 'the status has the keys that docs/reference/json.md names' keys
run -d "$work/a" stop
run -d "$work/b" stop

# ---- modes: what an agent keeps is 0600 in folders of 0700 ----
closed() { # FOLDER [NAME OF A FILE THAT MUST BE THERE]...
	at=$1
	shift
	open=$(find "$at" -type d ! -perm 700 -o ! -type d ! -perm 600)
	[ -z "$open" ] || { echo "# open: $open" && return 1; }
	for name; do [ -e "$at/$name" ] || { echo "# no $name" && return 1; }; done
}
"$fkge" -q -d "$work/m" init --name m --listen 127.0.0.1:0 --secret >/dev/null
ok 'modes after init' closed "$work/m" agent.yaml identity.key federation.key store.db
sed -i 's/^  dim: 128/  dim: 8/; s/^  patience: 5 /  patience: 0 /' "$work/m/agent.yaml"
patience=180
"$fkge" -q -d "$work/m" import "$work/a.tsv" >/dev/null
ok 'after import' closed "$work/m"
"$fkge" -q -d "$work/m" train --epochs 2 >/dev/null
ok 'after train' closed "$work/m"
cat >"$work/space.yaml" <<'YAML'
search: {method: random, trials: 2, epochs: 1}
train: {lr: {from: 1e-3, to: 0.1, scale: log}}
YAML
ok 'tune' exits 0 -d "$work/m" tune "$work/space.yaml"
ok 'after tune' closed "$work/m" tune/tune.json
"$fkge" -q -d "$work/m" train --fresh --epochs 1000000 2>/dev/null >&2 &
trainer=$!
pids="$pids $trainer"
ok 'a training is under way' wait_for 'its state' test -s "$work/m/training.state"
kill -9 $trainer
wait $trainer 2>/dev/null
rm -f "$work/m"/*.tmp
ok 'after a training that was killed' closed "$work/m" training.state
ok 'checkpoint save' exits 0 -d "$work/m" checkpoint save one
start m
ok 'while it serves' closed "$work/m" control.sock
ok 'a backup' exits 0 -d "$work/m" backup "$work/bk"
ok 'is as private' closed "$work/bk" store.db identity.key
run -d "$work/m" stop
head -2 "$work/a.tsv" >"$work/un.tsv"
ok 'unlearn' exits 0 -d "$work/m" unlearn "$work/un.tsv" --drop-tables
ok 'its receipt' ls "$work"/m/unlearn-*.json
ok 'after unlearn' closed "$work/m"
ok 'invite' exits 0 -d "$work/m" invite --address h:1 -o "$work/m/line"
ok 'an invitation' closed "$work/m" line
ok 'restore' exits 0 -d "$work/back" restore "$work/bk"
ok 'after restore' closed "$work/back" store.db identity.key federation.key
# doctor looks at all of them
for kept in identity.key store.db agent.yaml federation.key tune; do
	was=$(stat -c %a "$work/m/$kept")
	chmod go+r "$work/m/$kept"
	run -d "$work/m" doctor
	ok "doctor finds $kept open" grep -q "$kept may be read by others" "$out" "$err"
	chmod "$was" "$work/m/$kept"
done
finish
