#!/bin/sh
# What the threads of HTTP share with each other and with an agent that trains: many clients at once, and what ends
# while they wait.  Under TSan, too.
. "$(dirname "$0")/../cli/lib.sh"
here=$(dirname "$0")

# ---- many at once, of tables that change ----
agent a 1 'patience: 0, local_rounds: 100000, gather_s: 0.01'
sed -i 's/epochs: 20, eval_every: 10/epochs: 1, eval_every: 1/; s/lr: 0.02/lr: 0.001/; s/max_rounds: 2/max_rounds: 0/' "$work/a/agent.yaml"
echo 'http: {listen: 127.0.0.1:0}' >>"$work/a/agent.yaml"
ok 'a starts' start a
where=$(value a http) key=$("$fkge" -d "$work/a" http key)
ready() { [ "$(python3 "$here/request.py" "$where" GET /readyz)" = 200 ]; }
ok 'a has tables' wait_for 'tables' ready
ok 'many at once, while tables change' python3 - "$where" "$key" <<'PY'
import http.client, json, sys, threading, time
where, key = sys.argv[1:]
predict = '{"head": "e1", "relation": "next", "top": 3}'
query = '{"query": "SELECT ?x { <e1> <next>/<jump>/<next> ?x }", "explain": true}'
asked = [("GET", "/metrics", None), ("GET", "/api/v1/status", None), ("GET", "/api/v1/ledger", None),
         ("GET", "/api/v1/history", None), ("GET", "/api/v1/events", None), ("POST", "/api/v1/predict", predict),
         ("POST", "/api/v1/similar", '{"name": "next", "relations": true}'), ("POST", "/api/v1/query", query),
         ("POST", "/api/v1/peers/reject", '{"peer": "nobody"}')]
wrong = []
def connect():
    return http.client.HTTPConnection(where[len("http://"):], timeout=60)
def ask(c, method, path, body):
    c.request(method, path, body, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, r.read()
def rounds():
    return json.loads(ask(connect(), "GET", "/api/v1/status", None)[1])["local_rounds"]
def client(at):
    c = connect()
    for k in range(3 * len(asked)):
        method, path, body = asked[(at + k) % len(asked)]
        status, text = ask(c, method, path, body)
        for _ in range(20):  # a loaded machine: others were longer than 5 s
            if status != 503 or b"other questions are being answered" not in text:
                break
            status, text = ask(c, method, path, body)
        if status != (404 if path.endswith("reject") else 200):
            wrong.append((status, path, text))
def stream():
    c = connect()
    c.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {key}"})
    r = c.getresponse()
    for _ in range(12):
        if not r.readline():
            wrong.append("the stream ended")
    c.close()
before = rounds()
threads = [threading.Thread(target=client, args=(k,)) for k in range(len(asked))]
threads += [threading.Thread(target=stream) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
end = time.monotonic() + 60
while rounds() == before and time.monotonic() < end:
    time.sleep(.1)
print("#", wrong[:3], rounds() - before, "times trained meanwhile")
sys.exit(bool(wrong) or rounds() == before)
PY

# ---- what ends under them ----
python3 - "$where" "$key" "$work/asking" <<'PY' &
import http.client, sys, threading
where, key, asking = sys.argv[1:]
def ask(path):
    c = http.client.HTTPConnection(where[len("http://"):], timeout=60)
    try:
        for k in range(1000000):
            c.request("GET", path, headers={"Authorization": f"Bearer {key}"})
            r = c.getresponse()
            while r.readline():
                if path.endswith("stream"):
                    open(asking, "w")
    except (OSError, http.client.HTTPException):
        pass
threads = [threading.Thread(target=ask, args=(p,)) for p in ["/metrics", "/api/v1/history"] + 4 * ["/api/v1/stream"]]
for t in threads:
    t.start()
for t in threads:
    t.join()
PY
askers=$! pids="$pids $!"
ok 'they ask' wait_for 'streams' test -e "$work/asking"
elsewhere='[::1]'
has_v6 || elsewhere=127.0.0.2
sed -i "s/^http:.*/http: {listen: '$elsewhere:0'}/" "$work/a/agent.yaml"
kill -HUP "$pid_a"
again() { case $(value a http) in "http://$elsewhere:"[1-9]*) ;; *) false ;; esac; }
ok 'after SIGHUP it listens elsewhere' wait_for 'the new place' again
ok 'and those who asked are cut' wait_for 'their end' ended "$askers"
where=$(value a http)
ok 'it answers there' ready
ok 'stop' exits 0 -d "$work/a" stop
ok 'a ends, and well' end_of a

# ---- a query that would take minutes ----
agent c 1
sed -i 's/epochs: 20/epochs: 1/' "$work/c/agent.yaml"
echo "http: {listen: 'localhost:0'}" >>"$work/c/agent.yaml"
python3 - "$work" <<'PY'
import json, sys
with open(sys.argv[1] + "/c.tsv", "w") as f:
    for i in range(3000):
        f.write(f"e{i}\tnext\te{(i + 1) % 3000}\ne{i}\tjump\te{(i + 7) % 3000}\n")
path = "/".join(["<next>"] * 29)
text = "SELECT ?x { " + " . ".join(f"<e{i}> {path} ?x" for i in range(4)) + " }"
json.dump({"query": text, "top": 1000, "explain": True}, open(sys.argv[1] + "/query", "w"))
PY
"$fkge" -q -d "$work/c" import --replace "$work/c.tsv" >/dev/null 2>&1
ok 'c starts' start c
where=$(value c http) key=$("$fkge" -d "$work/c" http key)
ok 'c has tables' wait_for 'tables' ready
threads() { ls "/proc/$pid_c/task" | wc -l; }
ticks() { cut -d ' ' -f 14 "/proc/$pid_c/stat"; }
is_busy() { [ "$(ticks)" -gt $((before + 20)) ] && busy=$(threads); }
is_calm() { [ "$(threads)" -lt "$busy" ]; } # a connection has a thread
ask_long() {
	before=$(ticks)
	python3 "$here/request.py" "$where" POST /api/v1/query "Authorization: Bearer $key" \
		'Content-Type: application/json' "body=@$work/query" >/dev/null &
	asker=$!
	wait_for 'the query is under way' is_busy
}
ok 'a long query' ask_long
kill "$asker"
ok 'ends as who asked is gone' wait_for 'the end of the query' is_calm
ok 'one by who sends no more is answered on, and ends as he is gone' python3 - "$where" "$key" "$work/query" <<'PY'
import socket, sys
where, key, query = sys.argv[1:]
body = open(query, "rb").read()
host, port = where[len("http://"):].rsplit(":", 1)
s = socket.create_connection((host, int(port)), timeout=30)
s.sendall(b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json"
          b"\r\nContent-Length: %d\r\n\r\n%s" % (key.encode(), len(body), body))
s.shutdown(socket.SHUT_WR)
interim = b"HTTP/1.1 100 Continue\r\n\r\n"
sys.exit(s.recv(len(interim)) != interim)
PY
patience=20
ok 'so it does' wait_for 'the end of the query' is_calm
patience=60
ok 'once more' ask_long
ok 'c stops' exits 0 -d "$work/c" stop
ok 'c ends under it, and well' end_of c

# ---- many rounds, with what their members have signed: each list of them takes a second or more ----
agent d 1 'mode: rounds'
echo "http: {listen: 'localhost:0'}" >>"$work/d/agent.yaml"
"$fkge" -q -d "$work/x" init --name x --listen 127.0.0.1:0 >/dev/null
"$fkge" -q -d "$work/d" peer add "$("$fkge" -q -d "$work/x" id --line)" >/dev/null 2>&1
python3 - "$work/d/store.db" <<'PY'
import os, storedb, sys
db = storedb.connect(sys.argv[1])
(key,) = db.execute("SELECT key FROM peer").fetchone()
signed = os.urandom(63) + b"\0"
def add(table, **row):
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})", list(row.values()))
for n in range(400):
    id = os.urandom(16)
    add("round", id=id, number=n + 1, method="fede", hosted=0, secret_bits=0, proposer=key, started_ms=1000 * n,
        finished_ms=1000 * n + (750 if n == 399 else 500), train_ms=0, outcome=0, reason="", items=0, answered=0,
        homed=0, params_up=0, params_down=0, clipped=0, spoiled=0, score=0, scored=0, members=22)
    for seat in range(22):
        add("round_member", round=id, seat=seat, key=key, fate=1, rows_out=0, rows_in=0, floats_out=0, floats_in=0,
            bytes_out=0, bytes_in=0, signature=signed)
db.commit()
PY
ok 'd starts' start d
where=$(value d http) key=$("$fkge" -d "$work/d" http key)
ok 'd has tables' wait_for 'tables' ready
# list_rounds FILE: 56 who ask at once, many more than any machine lists in the 5 s that each waits; FILE.1 is there once they have, FILE says what came
list_rounds() {
	python3 - "$where" "$key" "$1" <<'PY' &
import collections, os, socket, sys
where, key, path = sys.argv[1:]
host, port = where[len("http://"):].rsplit(":", 1)
asked = [socket.create_connection((host, int(port)), timeout=100) for _ in range(56)]
for s in asked:
    s.sendall(f"GET /api/v1/rounds?limit=400 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
open(path + ".1", "w")
came = collections.Counter((s.recv(12) or b"cut")[-3:].decode() for s in asked)
open(path + ".2", "w").write(" ".join(f"{n} {code}" for code, n in came.items()))
os.rename(path + ".2", path)
PY
	asker=$! pids="$pids $!"
	wait_for 'the questions' test -e "$1.1"
}
pid_c=$pid_d # threads, ticks
before=$(threads)
under_way() { [ "$(threads)" -gt $((before + 20)) ]; }
back() { [ "$(threads)" -le $((before + 1)) ]; }
list_rounds "$work/lists"
metrics_soon() { timeout 20 python3 "$here/request.py" "$where" GET /metrics "Authorization: Bearer $key" -o "$out" >/dev/null; }
ok 'metrics do not wait for lists of rounds' metrics_soon
ok 'and have the last one' grep -q '^fkge_round_seconds 0.75$' "$out"
ok 'nobody waits for long' wait_for 'answers' test -e "$work/lists"
echo "# $(cat "$work/lists")"
ok 'some have a list' grep -q ' 200' "$work/lists"
ok 'others are told that it is not now' grep -q ' 503' "$work/lists"
ok 'it is quiet again' wait_for 'the end of all' back
list_rounds "$work/left"
ok 'lists are under way' wait_for 'threads' under_way
kill -9 "$asker"
patience=10
ok 'they end as who asked is gone' wait_for 'the end of all' back
patience=60
list_rounds "$work/cut"
ok 'once more' wait_for 'threads' under_way
stops_soon() { timeout 20 "$fkge" -d "$work/d" stop >"$out" 2>"$err"; }
ok 'd stops under them' stops_soon
ok 'and ends well' end_of d
finish
