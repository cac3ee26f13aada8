#!/bin/sh
# Two owners: joining, sessions, ledgers, kill -9; and all who must stay outside.
. "$(dirname "$0")/lib.sh"

pending() { "$fkge" -q -d "$work/$1" peer pending | grep -q "$2"; }
logged() { grep -qF -- "$2" "$work/$1.log"; }

agent a 1 'local_rounds: 0'
agent b 2 'local_rounds: 0'
printf 'e0\tnext\textra\n' >>"$work/b.tsv" # b has a name more
"$fkge" -q -d "$work/b" import --replace "$work/b.tsv" >/dev/null
a_id=$(id_of a)
b_id=$(id_of b)
"$fkge" -q -d "$work/a" train >/dev/null
"$fkge" -q -d "$work/b" train >/dev/null

# ---- joining, both running ----
ok 'a starts' start a
ok 'b starts' start b
ok 'status of a running agent' prints 'is running' -d "$work/a" status
ok 'a second process is refused' says 1 'in use by process' -d "$work/a" serve
ok 'its store is not written beside it' exits 1 -d "$work/a" train
ok 'but read' exits 0 -d "$work/a" eval
ok 'invite' exits 0 -d "$work/a" invite -o "$work/line"
ok 'the line is private' [ "$(stat -c %a "$work/line")" = 600 ]
ok 'nor is it an argument, which all can read' says 2 'that is an invitation, with a secret' -d "$work/b" \
	peer add "$(cat "$work/line")"
ok 'join' exits 0 -d "$work/b" join "$work/line"
ok 'b waits at the door' wait_for 'b is pending' pending a "$b_id"
ok 'b learns why' wait_for 'b is told' logged b 'not accepted'
ok 'doctor does not call an open port a partner' prints 'is open, but there is no link' -d "$work/b" doctor
ok 'nothing happened so far' is_value a sessions 0
ok "three characters of an id are too few, and said" says 1 "of an id four characters at least" -d "$work/a" \
	peer accept "$(echo "$b_id" | cut -c1-3)"
ok 'so are fifteen, which others can make keys for' says 2 'its first 16 characters' -d "$work/a" \
	peer accept "$(echo "$b_id" | cut -c1-15)"
ok 'no agent is called by the id of another' says 2 "is an agent's id" -d "$work/z" init --name "$b_id"
ok 'accept by the first sixteen' exits 0 -d "$work/a" peer accept "$(echo "$b_id" | cut -c1-16)"
ok 'then nobody waits' says 0 'Nobody waits.' -d "$work/a" peer pending
ok 'linked' wait_for link peer_is a "$b_id" linked True
ok 'doctor knows who it is' wait_for answer prints 'a answers at' -d "$work/b" doctor
ok 'a knows its name' wait_for name peer_is a "$b_id" name b
ok 'a has hosted' wait_for sessions at_least a rounds 2
ok 'b has hosted' wait_for sessions at_least b rounds 2
ok 'what they share' peer_is a "$b_id" shared_entities 100
ok 'a sleeps' wait_for sleep is_value a state sleep

# ---- ledgers ----
counters() { echo "$(value b sessions) $(value b rounds) $(value b improved)"; }
ok 'b sleeps' wait_for sleep is_value b state sleep
"$fkge" -q -d "$work/b" stop
ok 'stop has stopped' wait_for 'the end' ended "$pid_b"
ok 'a clean end' wait "$pid_b"
ok 'the status file says so' is_value b running False
counted=$(counters) # of the last file: one that says sleep can be of before a session that it served
ok 'status of the stopped' exits 5 -d "$work/b" status
compared() { # the names that each put into their first intersection, as both have noted it
	run -d "$work/b" peer show a --json && cp "$out" "$work/a.of.b" && run -d "$work/a" peer show b --json &&
		python3 - "$out" "$work/a.of.b" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
x, y = a["intersections"][-1], b["intersections"][-1]
assert a["peer"]["name"] == "b" and b["peer"]["name"] == "a"
assert x["theirs"] == x["ours"] + 1 and (y["ours"], y["theirs"]) == (x["theirs"], x["ours"]), (x, y)
assert x["shared"] == y["shared"] == x["ours"], (x, y)
PY
}
ok 'who put how many names into their intersection' compared
row=$(member "$out" intersections -1 theirs)
ok 'for people' prints 'names put into intersections:' -d "$work/a" peer show b
ok 'its own first' grep -q "^  .* $row  *$((row - 1))  $((row - 1))$" "$out"
cp -r "$work/a" "$work/half"
python3 -c 'import storedb, sys
with storedb.connect(sys.argv[1]) as db: db.execute("UPDATE intersection SET done = 0, shared = 0")' "$work/half/store.db"
ok 'one that had no end may have told as much' prints " $((row - 1))  broken off" -d "$work/half" peer show b
ok 'for programs, too' exits 0 -d "$work/half" peer show b --json
ok 'it is not known what was shared' [ "$(member "$out" intersections -1 shared)" = None ]
ok 'show' prints 'b: ' -d "$work/a" ledger show
ok 'quote' exits 0 -d "$work/a" ledger quote b --labels 10
ok 'export of a' exits 0 -d "$work/a" ledger export "$work/a.led"
ok 'export of b' exits 0 -d "$work/b" ledger export "$work/b.led"
ok 'both ledgers agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"
sed 's/"rows": 1/"rows": 2/' "$work/b.led" >"$work/forged.led"
ok 'a changed ledger does not hold' exits 9 ledger verify "$work/forged.led"

# ---- kill -9, and back with the same best state ----
start b
ok 'its counters are what they were' [ "$(counters)" = "$counted" ]
ok 'b is back' wait_for link peer_is b "$a_id" linked True
kill -9 "$pid_b"
wait "$pid_b" 2>/dev/null
run -d "$work/b" eval --json
before=$(member "$out" checkpoint digest)
start b
ok 'the best state, bit for bit' [ "$(member "$work/b.json" best digest)" = "$before" ]
ok 'linked again' wait_for link peer_is b "$a_id" linked True
"$fkge" -q -d "$work/a" ledger export "$work/a.led" >/dev/null
"$fkge" -q -d "$work/b" ledger export "$work/b.led" >/dev/null
ok 'both ledgers still agree' prints 'the ledger holds' ledger verify "$work/a.led" "$work/b.led"

# ---- SIGHUP: agent.yaml is read again, or nothing happens ----
cp "$work/b/agent.yaml" "$work/b.yaml"
echo 'nonsense: 1' >>"$work/b/agent.yaml"
kill -HUP "$pid_b"
ok 'a wrong agent.yaml is refused, by line' wait_for 'b says so' logged b 'goes on with the settings that it has'
ok 'b is still linked' peer_is b "$a_id" linked True
sed 's/max_rounds: 2/max_rounds: 3/; s/^name: b/name: bee/' "$work/b.yaml" >"$work/b/agent.yaml"
kill -HUP "$pid_b"
renamed() { [ "$(value b name)" = bee ]; }
ok 'a right one counts at once' wait_for 'the new name' renamed
ok 'in the same process' is_value b pid "$pid_b"
ok 'which ps shows by its name' [ "$(cat "/proc/$pid_b/comm")" = "$(basename "$fkge")" ]
ok 'which links again' wait_for link peer_is b "$a_id" linked True
kill -HUP "$pid_b"
twice() { [ "$(grep -c 'is read again' "$work/b.log")" = 2 ]; }
ok 'and again' wait_for 'the second time' twice
ok 'and links again' wait_for link peer_is b "$a_id" linked True
# asked for many times, also while it starts anew; nobody else gets the folder meanwhile
many() {
	python3 - "$pid_b" "$work/b/lock" "$work/b.log" <<'PY'
import fcntl, os, signal, sys, time
pid, path, log = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock, begun, end = open(path, "r+"), 0, time.time() + 60
before = open(log).read().count("started: ")
while begun < 5 and time.time() < end:
    os.kill(pid, signal.SIGHUP)
    for _ in range(100):
        time.sleep(0.00005)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        sys.exit("# the lock was free")
    begun = open(log).read().count("started: ") - before
sys.exit(begun < 2)
PY
}
ok 'SIGHUP at any time' many
ok 'links again after many' wait_for link peer_is b "$a_id" linked True
kill -HUP "$pid_b"
kill -TERM "$pid_b"
ok 'SIGTERM ends a new start, too' wait "$pid_b"
start b
ok 'b is there again' wait_for link peer_is b "$a_id" linked True
cp "$work/b.yaml" "$work/b/agent.yaml"

# ---- those who stay outside ----
agent c 3
start c
ok 'c has seen the line' exits 0 -d "$work/c" join "$work/line"
ok 'c is refused, with a reason' wait_for 'c is told' logged c 'not accepted'
ok 'reject c, whatever the other one was' says 1 "no peer 'nobody'" -d "$work/a" peer reject nobody "$(id_of c)"
ok 'c is no partner' wait_for standing peer_is a "$(id_of c)" standing rejected
kill -TERM "$pid_c"
ok 'SIGTERM is a clean end' wait "$pid_c"

agent d 4
printf '%064d\n' 7 >"$work/d/federation.key"
chmod 600 "$work/d/federation.key"
"$fkge" -q -d "$work/a" peer add "$("$fkge" -d "$work/d" id --line)" >/dev/null
"$fkge" -q -d "$work/d" join "$work/line" >/dev/null
start d
ok 'another secret is refused, with a reason' wait_for 'd is told' logged d 'secret'
ok 'no link to d' wait_for 'd in the status' peer_is a "$(id_of d)" linked False
why='the peer has another key than we were told, or another federation secret'
ok 'the status file of d says why' wait_for 'd to say why' peer_is d "$a_id" down_why "$why"
ok 'status, too' prints "! no link to 127.0.0.1:$(value a port): $why" -d "$work/d" status
doctor_says() { run -d "$work/d" doctor; grep -qF -- "there is no link: $why" "$out"; }
ok 'doctor, too' doctor_says
ok 'a cannot call d' prints 'its address is not known: it must call us' -d "$work/a" status
ok 'nor can d call a, as far as doctor knows' prints 'unless it has one from an invitation, neither can call the other' \
	-d "$work/a" doctor
kill -TERM "$pid_d"
wait "$pid_d"

# Refusals are logged at most once a second, so it knocks until one is.
other_version() {
	python3 - "$(value a port)" <<'PY' && logged a 'version'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
s.sendall(b"FKGE\x00\x63\x00\x00" + bytes(96))
answer = s.recv(8)
sys.exit(not (answer[:4] == b"FKGE" and answer[6] == 1))
PY
}
ok 'another version is named, and logged' wait_for 'version' other_version
ok 'nobody was added' [ "$(member "$work/a.json" peers | grep -o "'id'" | wc -l)" -eq 3 ]

# ---- a line without an address takes none away ----
known=$(python3 -c '
import json, subprocess, sys
print(next(p["address"] for p in json.loads(subprocess.run([sys.argv[1], "-d", sys.argv[2], "--json", "peer", "list"],
    capture_output=True).stdout)["peers"] if p["address"]))' "$fkge" "$work/b")
ok 'b knows where a listens' [ -n "$known" ]
ok 'b adds a again, by its line without an address' exits 0 -d "$work/b" peer add "$("$fkge" -d "$work/a" id --line)"
ok 'and knows it as before' prints "$known" -d "$work/b" peer list
known="is known here (partner): fkge peer show has more, fkge join FILE takes a new address"
ok 'not by its id' says 1 "$a_id $known" -d "$work/b" peer add "$a_id"
ok 'nor by its name' says 1 "a $known" -d "$work/b" peer add a
ok 'who was rejected is accepted' says 1 'is known here (rejected): fkge peer accept makes' -d "$work/a" peer add "$(id_of c)"
ok 'nor itself' says 2 "that is this agent's own id: peer add takes another agent's" -d "$work/b" peer add "$b_id"

# ---- an invitation for one key needs no accept ----
agent e 5 'local_rounds: 0'
e_id=$(id_of e)
ok 'invite e alone' exits 0 -d "$work/a" invite --for "$e_id" -o "$work/line-e"
ok 'which is no argument, for it has a secret' says 2 'use fkge join FILE' -d "$work/b" peer add "$(cat "$work/line-e")"
ok 'not good for c' exits 6 -d "$work/c" join "$work/line-e"
ok 'good for e' exits 0 -d "$work/e" join "$work/line-e"
start e --until-quiet 3
ok 'e is in' wait_for link logged e 'link to a is up' # it may be gone before a's status is read
ok 'quiet ends it' wait_for 'e ends' ended "$pid_e"
ok 'cleanly' wait "$pid_e"

# ---- revoking ----
ok 'revoke b' exits 0 -d "$work/a" peer revoke b
ok 'the link is gone' wait_for 'the link to go' peer_is a "$b_id" linked False
ok 'b is told' wait_for 'b is told' logged b 'not a partner any more'
ok 'it is no stranger now' says 2 'this peer is revoked' -d "$work/a" peer reject b
ok 'nor forgotten: what it signed is on the ledger' says 2 'the ledger has entries with this peer' -d "$work/a" \
	peer forget b
ok 'stop a' exits 0 -d "$work/a" stop
ok 'revoked is kept' prints revoked -d "$work/a" peer list
ok 'stop b' exits 0 -d "$work/b" stop
ok 'a ended cleanly' wait "$pid_a"
ok 'b ended cleanly' wait "$pid_b"
cp "$work/a/agent.yaml" "$work/a.yaml"
sed -i 's/^listen: .*/listen: off/' "$work/a/agent.yaml"
stopped_says() { run -d "$work/a" doctor; grep -qF 'must call us: no address of it is known' "$out" &&
	! grep -qF 'cannot call each other' "$out"; }
ok 'what partners say is known to a running agent alone' stopped_says
cp "$work/a.yaml" "$work/a/agent.yaml"

# ---- a partner that calls us, and whose own address does not answer from here ----
agent g 6
agent h 7
sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/g/agent.yaml"
befriend g h >/dev/null 2>&1
away=127.0.0.1:$(free_port)
python3 - "$work/g/store.db" "$away" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
assert db.execute("UPDATE peer SET address = ?", sys.argv[2:]).rowcount == 1
db.commit()
PY
start g
start h
h_id=$(id_of h)
ok 'it is linked' wait_for link peer_is g "$h_id" linked True
ok 'doctor says so first' prints "h: linked; its own address $away does not answer from here" -d "$work/g" doctor
ok 'stop h' exits 0 -d "$work/h" stop
ok 'without a link' wait_for 'no link' peer_is g "$h_id" linked False
ok 'it asks' prints "h at $away: Connection refused; is it running" -d "$work/g" doctor
ok 'stop g' exits 0 -d "$work/g" stop
wait "$pid_g" "$pid_h"

# ---- a partner that says itself an address that is none ----
python3 - "$work/g/store.db" <<'PY'
import storedb, sys
db = storedb.connect(sys.argv[1])
assert db.execute("UPDATE peer SET address = ''").rowcount == 1
db.commit()
PY
echo 'advertise: nowhere.invalid:7' >>"$work/h/agent.yaml"
start g
start h
ok 'it says so' wait_for 'its word' peer_is g "$h_id" address nowhere.invalid:7
ok 'stop h again' exits 0 -d "$work/h" stop
ok 'again without a link' wait_for 'no link' peer_is g "$h_id" linked False
ok 'that is no fault here' prints 'h: the address that it says itself, nowhere.invalid:7, is not found from here' \
	-d "$work/g" doctor
ok 'stop g again' exits 0 -d "$work/g" stop
finish
