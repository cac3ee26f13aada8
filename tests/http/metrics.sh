#!/bin/sh
# A running agent's HTTP on loopback: who is answered and who is not, limits, and metrics that say what the status
# says.
. "$(dirname "$0")/../cli/lib.sh"
here=$(dirname "$0")

# ask METHOD PATH [request.py's words]: $answer is the status, the body in $out
ask() { answer=$(python3 "$here/request.py" "$where" "$@" -o "$out"); }
answers() { # STATUS METHOD PATH ...
	want=$1
	shift
	ask "$@"
	[ "$answer" = "$want" ] || { echo "# $answer"; false; }
}
with() { "$fkge" -d "$work/a" http key "$@"; }
has() { grep -qF -- "$1" "$out"; }
head_has() { grep -qi -- "$1" "$out.head"; }

# ---- only this machine ----
agent a 1
agent b 1
sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/" "$work/a/agent.yaml"
befriend a b >/dev/null 2>&1
"$fkge" -q -d "$work/x" init --name x --listen 127.0.0.1:0 >/dev/null
old_x=$(id_of x)
"$fkge" -q -d "$work/a" peer add "$("$fkge" -q -d "$work/x" id --line)" >/dev/null 2>&1
"$fkge" -q -d "$work/x" key rotate -o "$work/keys" >/dev/null
ok 'a partner has another key' exits 0 -d "$work/a" peer rotate "$work/keys"
for place in 0.0.0.0:0 '[::]:0' 192.0.2.1:80 example.org:80; do
	sed -i '/^http:/d' "$work/a/agent.yaml"
	echo "http: {listen: '$place'}" >>"$work/a/agent.yaml"
	ok "it does not listen on $place" says 2 'http.listen: other machines may reach' -d "$work/a" serve
done
sed -i "s/^http:.*/http: {listen: 7448}/" "$work/a/agent.yaml"
ok 'nor on what is no address' says 2 'agent.yaml:6: http.listen' -d "$work/a" serve
port=$(free_port)
sed -i "s/^http:.*/http: {listen: 'localhost:$port'}/" "$work/a/agent.yaml"
ok 'a starts' start a
ok 'it says where it listens' is_value a http "http://127.0.0.1:$port"
where=http://127.0.0.1:$port
echo "http: {listen: '127.0.0.1:$port'}" >>"$work/b/agent.yaml"
ok 'a second agent on that port says so' says 1 'another agent or program answers there' -d "$work/b" serve
doctor_finds() { run -d "$work/b" doctor; [ "$status" = 1 ] && grep '^bad   http ' "$out" | grep -qF "$1"; }
grep_doctor() { run -d "$work/b" doctor; grep -qF "$1" "$out"; }
ok 'doctor, too' doctor_finds 'another agent or program answers there'
sed -i "s/^http:.*/http: {listen: .\/http.sock}/" "$work/b/agent.yaml"
echo text >"$work/b/http.sock"
ok 'doctor finds a file where its socket shall be' doctor_finds 'is there, and is no socket'
rm "$work/b/http.sock"
http_is_free() { run -d "$work/b" doctor; grep -q '^ok    http .*http.sock is free' "$out" && [ ! -e "$work/b/http.sock" ]; }
ok 'and else that it is free, and leaves none' http_is_free
chmod 750 "$work/b"
ok 'and a folder that others may look into' grep_doctor 'look  modes      others may look into'
chmod 700 "$work/b"
ok 'b starts on a socket' start b
ok 'and says so' is_value b http "unix:$work/b/./http.sock"
ok 'which is its owner`s alone' [ "$(stat -c %a "$work/b/http.sock")" = 600 ]
ok 'it answers' [ "$(python3 "$here/request.py" "unix:$work/b/http.sock" GET /healthz)" = 200 ]

# ---- what stands where its socket shall be ----
ok 'b stops' exits 0 -d "$work/b" stop
ok 'and ends' wait_for 'the end of b' ended "$pid_b"
squat() { # KIND: a socket that somebody has, and does not answer by
	python3 - "$work/b/http.sock" "$1" <<'PY' &
import os, socket, sys, time
path, kind = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if kind == "datagrams" else socket.SOCK_STREAM)
s.bind(path + "_")
held = []
if kind == "full":
    s.listen(0)
    for _ in range(3):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].setblocking(False)
        held[-1].connect_ex(path + "_")
os.rename(path + "_", path)  # from here on it is as it shall be
time.sleep(600)
PY
	squatter=$! pids="$pids $!"
	wait_for 'the socket' test -S "$work/b/http.sock"
}
refused_soon() {
	status=0
	timeout 20 "$fkge" -d "$work/b" serve >"$out" 2>"$err" || status=$?
	[ "$status" -eq 1 ] && grep -qF 'another program answers there' "$err" && [ -S "$work/b/http.sock" ]
}
for kind in full datagrams; do
	squat $kind
	ok "b does not wait for who is too busy, and removes nobody's socket: $kind" refused_soon
	kill -9 "$squatter"
	wait_for 'its end' ended "$squatter"
	[ $kind = full ] && rm "$work/b/http.sock"
done
ok 'b starts where one is left whose program has ended' start b
ok 'and answers' [ "$(python3 "$here/request.py" "unix:$work/b/http.sock" GET /healthz)" = 200 ]

# ---- without a key ----
ok 'healthz' answers 200 GET /healthz
ok 'HEAD, too' answers 200 HEAD /healthz
ready() { answers 200 GET /readyz; }
ok 'readyz, once there are tables' wait_for 'tables' ready
ok 'metrics without a key' answers 401 GET /metrics
ok 'there is none yet' has 'fkge http key makes one'
key=$(with) token=$(with --metrics)
ok 'keys are 64 digits' [ ${#key}-${#token} = 64-64 ]
ok 'as the line of a request' [ "$(with --header)" = "Authorization: Bearer $key" ]
if command -v curl >/dev/null; then
	curled() { with "$@" --header | curl --noproxy '*' -sf -H @- "$where/metrics" >"$out" && has 'fkge_build_info'; }
	ok 'which curl reads from a pipe' curled --metrics
fi
ok 'in files of the owner alone' [ "$(stat -c %a "$work/a/http.key" "$work/a/metrics.key" | tr '\n' ' ')" = '600 600 ' ]
ok 'asked again, it is the same' [ "$(with)" = "$key" ]
ok 'now it needs one' answers 401 GET /metrics
ok 'and says how' has 'Authorization: Bearer'
ok 'metrics with the token' answers 200 GET /metrics "Authorization: Bearer $token"
ok 'and with the key' answers 200 GET /metrics "Authorization: Bearer $key"
ok 'not with another' answers 401 GET /metrics "Authorization: Bearer ${token%?}x"
ok 'nor with part of it' answers 401 GET /metrics "Authorization: Bearer ${token%?}"
ok 'the token opens metrics alone' answers 401 GET /api/v1/status "Authorization: Bearer $token"
ok 'the key opens the rest' answers 200 GET /api/v1/status "Authorization: Bearer $key"
old=$key key=$(with --new)
ok 'a new key holds at once' answers 200 GET /api/v1/status "Authorization: Bearer $key"
ok 'and the old one no more' answers 401 GET /api/v1/status "Authorization: Bearer $old"
chmod 644 "$work/a/http.key"
ok 'a key that others may read opens nothing' answers 500 GET /api/v1/status "Authorization: Bearer $key"
ok 'the log says why' logged a 'may be read by others'
for mode in 640 604; do
	chmod $mode "$work/a/http.key"
	ok "nor one of mode $mode" answers 500 GET /api/v1/status "Authorization: Bearer $key"
done
chmod 600 "$work/a/http.key"

# ---- who asks ----
for host in '' evil.example 127.0.0.1.evil.example 127.1 127.999.1.1 localhost.evil.example:80 '127.0.0.1:80:80' 0x7f.0.0.1; do
	want=403
	[ -n "$host" ] || want=400
	ok "Host: $host" answers $want GET /healthz "Host: $host"
done
for host in localhost LOCALHOST:1 127.0.0.1 '[::1]:9' 127.255.0.1:65535; do
	ok "Host: $host" answers 200 GET /healthz "Host: $host"
done
ok 'another origin' answers 403 GET /healthz 'Origin: http://evil.example'
ok 'a null origin' answers 403 GET /healthz 'Origin: null'
ok 'another site' answers 403 GET /healthz 'Sec-Fetch-Site: cross-site'
ok 'the own one' answers 200 GET /healthz 'Origin: http://localhost:9' 'Sec-Fetch-Site: same-origin'
nobody_else() { ! head_has '^access-control'; }
ok 'nobody else is let in' nobody_else
ok 'nothing is kept' head_has '^cache-control: no-store'
ok 'no preflight' answers 405 OPTIONS /metrics
ok 'what is taken' head_has '^allow: GET'
ok 'no such path' answers 404 GET /nothing
ok 'nothing is deleted' answers 405 DELETE /api/v1/status "Authorization: Bearer $key"

# ---- limits ----
long=$(head -c 40000 /dev/zero | tr '\0' x)
ok 'a huge head' answers 431 GET /healthz "X-Long: $long"
ok 'which libmicrohttpd says' has '<html>'
ok 'a length that is none' answers 400 POST /api/v1/predict 'Content-Length: x' body=x
ok 'likewise' has '<html>'
ok 'a huge path' answers 414 GET "/$long"
ok 'it still answers' answers 200 GET /healthz
ok 'a client that is slow is cut' answers cut GET /healthz --slow
ok 'many that say nothing' python3 - "$port" "$work/out" <<'PY'
import socket, sys, time
port = int(sys.argv[1])
held = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
end = time.monotonic() + 60
while time.monotonic() < end:  # those over the limit are closed at once, the others as they are late
    for s in held[:]:
        s.setblocking(False)
        try:
            if s.recv(1) == b"":
                held.remove(s)
        except BlockingIOError:
            pass
        except ConnectionError:
            held.remove(s)
    if not held:
        break
    time.sleep(.1)
sys.exit(len(held) > 0)
PY
ok 'it still answers' answers 200 GET /healthz
ok 'and who has a key is not kept out by them' python3 - "$where" "$key" <<'PY'
import http.client, socket, sys
where, key = sys.argv[1:]
place = where[len("http://"):]
host, port = place.rsplit(":", 1)
def ask(path):
    c = http.client.HTTPConnection(place, timeout=20)
    c.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    r = c.getresponse()
    assert r.status == 200
    return c, r
stream = ask("/api/v1/stream")
assert stream[1].readline() == b"event: status\n"
held = []
for k in range(3):
    held += [socket.create_connection((host, int(port))) for _ in range(64)]
    ask("/api/v1/status")
for _ in range(4):  # the one that had shown its key before goes on
    assert stream[1].readline()
PY
ok 'the log says so' logged a 'that had shown no key were shut'
few() { [ "$(grep -c 'that had shown no key were shut' "$work/a.log")" -le 2 ]; }
ok 'in few lines' few

# ---- metrics ----
# a stranger, which waits for the owner
agent s 3
"$fkge" -q -d "$work/a" invite -o "$work/line" >/dev/null 2>&1
"$fkge" -q -d "$work/s" join "$work/line" >/dev/null 2>&1
start s
ok 'a stranger waits' wait_for 'the stranger' peer_is a "$(id_of s)" standing pending
peer_of_a() { member "$work/a.json" peers "id=$1" "$2"; }
ok 'when and whence it came is known' [ "$(peer_of_a "$(id_of s)" source) $(($(peer_of_a "$(id_of s)" seen_ms) > 0))" = '127.0.0.1 1' ]
ok 'a partner has its link for that' [ "$(peer_of_a "$(id_of b)" seen_ms) $(($(peer_of_a "$(id_of b)" link_ms) > 0))" = '0 1' ]
run -d "$work/s" stop
ok 'a session or two' wait_for 'rounds of a' at_least a rounds 1
ok 'b has hosted' wait_for 'rounds of b' at_least b rounds 1
# between two looks at the status nothing has changed but what pings weigh: then the metrics are of that status
look() { "$fkge" -d "$work/a" status --json | grep -v '"bytes_'; }
same_status() {
	look >"$work/before" && ask GET /metrics "Authorization: Bearer $token" &&
		[ "$answer" = 200 ] && look >"$work/after" && cmp "$work/before" "$work/after" &&
		python3 "$here/openmetrics.py" "$out" "$work/after" >"$work/compared" 2>&1
}
ok 'a is quiet, and the metrics are those of its status' wait_for 'equal figures' same_status
sed 's/^/# /' "$work/compared"
ok 'a stranger is in no label' eval '! has "$(id_of s)"'
ok 'who waits is counted' has 'fkge_peers{standing="pending"} 1'
ok 'their type' head_has 'application/openmetrics-text; version=1.0.0'
nothing_else() { python3 - "$work/after" "$out" <<'PY'
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
a.pop("exit")
for p in b["peers"]:
    del p["bytes_in"], p["bytes_out"]
sys.exit(a != b)
PY
}
ask GET /api/v1/status "Authorization: Bearer $key"
ok 'the API`s status is the same' nothing_else

# ---- the API: what the command line says ----
bearer="Authorization: Bearer $key"
post() { # STATUS PATH BODY ...
	want=$1 path=$2 body=$3
	shift 3
	answers "$want" POST "/api/v1/$path" "$bearer" 'Content-Type: application/json' "body=$body" "$@"
}
# as ARGS...: what came is what this command prints with --json, but for exit
as() {
	"$fkge" -d "$work/a" "$@" --json >"$work/said" && python3 - "$work/said" "$out" <<'PY'
import json, sys
said, got = (json.load(open(p)) for p in sys.argv[1:])
said.pop("exit")
if "sessions" in got:  # report evaluates, too
    said = {k: v for k, v in said.items() if k in got}
    assert [got.pop(k) for k in ("before", "epochs")]
if said != got:
    print("#", said, "\n#", got)
sys.exit(said != got or not got)
PY
}
ok 'predict' post 200 predict '{"head": "e1", "relation": "next", "top": 3}'
ok 'as the command line' as predict e1 next '?' -k 3
ok 'heads, typed, with what is known' post 200 predict '{"relation":"jump","tail":"e9","typed":true,"known":true}'
ok 'as the command line' as predict '?' jump e9 --typed --known
ok 'similar' post 200 similar '{"name": "e1", "by": "distance"}'
ok 'as the command line' as similar e1 --by distance
ok 'a relation' post 200 similar '{"name": "next", "relations": true}'
ok 'as the command line' as similar next --relations
ok 'a query' post 200 query '{"query": "SELECT ?x { <e1> <next>/<jump> ?x }", "explain": true, "top": 10}'
ok 'as the command line' as query 'SELECT ?x { <e1> <next>/<jump> ?x }' --explain --threads 1
ok 'once more, by the tables that are there' post 200 query '{"query": "SELECT ?x { ?x <next> <e1> } LIMIT 3"}'
ok 'as the command line' as query 'SELECT ?x { ?x <next> <e1> } LIMIT 3' --threads 1
ok 'to who sends no more, too' post 200 query '{"query": "SELECT ?x { ?x <next> <e1> } LIMIT 3"}' --half
ok 'the same' as query 'SELECT ?x { ?x <next> <e1> } LIMIT 3' --threads 1
ok 'a query with more than its LIMIT asked' post 200 query '{"query": "SELECT ?x { ?x <next> <e1> } LIMIT 3", "top": 5}'
ok 'has the less' as query 'SELECT ?x { ?x <next> <e1> } LIMIT 3' --top 5 --threads 1
ok 'and with less' post 200 query '{"query": "SELECT ?x { ?x <next> <e1> } LIMIT 3", "top": 2}'
ok 'has that' as query 'SELECT ?x { ?x <next> <e1> } LIMIT 3' --top 2 --threads 1
later() { answers 200 GET /api/v1/history "Authorization: Bearer $(with)" --half --old; }
for k in 1 2 3 4 5; do later || break; done
ok 'nor does one of HTTP/1.0 that is still there go unanswered' [ "$answer" = 200 ]
ok 'a query that is not understood' post 400 query '{"query": "SELECT ?x { ?x <next> }"}'
ok 'where' has 'line 1, column'
ok 'a query for a name that is not there' post 404 query '{"query": "SELECT ?x { ?x <next> <e1x> }"}'
for body in '{}' '{"query":""}' '{"query":1}' '{"query":"SELECT ?x { ?x <next> <e1> }","beam":3}'; do
	ok "a body $body" post 400 query "$body"
done
ok 'a name that is not there' post 404 predict '{"head": "e1x", "relation": "next"}'
ok 'what was meant' has "did you mean 'e1'"
for body in '' '{' '[]' '{}' '{"head":"e1"}' '{"head":"e1","relation":"next","tail":"e2"}' '{"head":1,"relation":"next"}' \
	'{"head":"e1","relation":"next","top":0}' '{"head":"e1","relation":"next","top":1001}' \
	'{"head":"e1","relation":"next","x":1}' '{"head":"e1","head":"e1","relation":"next"}' \
	'{"head":"","relation":"next"}' '{"head":"e1\u0000","relation":"next"}'; do
	ok "a body $body" post 400 predict "$body"
done
# its complaint has 60 bytes of the key, which end within the last letter
ok 'a key that is cut within a letter' post 400 predict "{\"$(printf '%059d' 0)é\": 1}"
ok 'no JSON by its type' answers 415 POST /api/v1/predict "$bearer" 'body={}'
ok 'nor as a form' answers 415 POST /api/v1/predict "$bearer" 'Content-Type: text/plain' 'body={}'
ok 'without the key' answers 401 POST /api/v1/predict 'Content-Type: application/json' 'body={}'
ok 'with the token' answers 401 POST /api/v1/similar "Authorization: Bearer $token" 'Content-Type: application/json'
ok 'not by GET' answers 405 GET /api/v1/predict "$bearer"
head -c 70000 /dev/zero | tr '\0' x >"$work/long"
ok 'a huge body' post 413 predict "@$work/long"
ok 'without its length' post 413 predict "@$work/long" 'Transfer-Encoding: chunked'
ok 'ledger' answers 200 GET /api/v1/ledger "$bearer"
ok 'as the command line' as ledger show
ok 'history' answers 200 GET /api/v1/history "$bearer"
ok 'as the command line' as report
ok 'with each list that there may be' [ "$(member "$out" rounds)" = '[]' ]
ok 'rounds' answers 200 GET '/api/v1/rounds?limit=5' "$bearer"
ok 'as the command line' as rounds list -n 5
for limit in 0 -1 4097 x 1e3; do
	ok "limit $limit" answers 400 GET "/api/v1/rounds?limit=$limit" "$bearer"
done

# ---- parameters ----
ok 'a parameter that is not known' post 400 'predict?topp=3' '{"head": "e1", "relation": "next"}'
ok 'why' has "no parameter 'topp' is known here: this path takes none"
for path in '/healthz?x' '/?a=1' '/metrics?after=1' '/api/v1/status?limit=1' \
	'/api/v1/events?limit=1' '/api/v1/rounds?Limit=5' '/api/v1/rounds?limit=5&=1' '/api/v1/rounds?limit=5&limi%FF=1'; do
	ok "nor $path" answers 400 GET "$path" "$bearer"
done
ok 'nor the stream' answers 400 HEAD '/api/v1/stream?after=1' "$bearer"
ok 'it is said what is known' answers 400 GET '/api/v1/events?afte=1' "$bearer"
ok 'all of it' has "this path takes after, run"
for path in 'rounds?limit=5&limit=5' 'events?after=1&run=0&after=1'; do
	ok "one that comes twice: $path" answers 400 GET "/api/v1/$path" "$bearer"
	ok 'why' has 'is there more than once'
done
for path in 'rounds?limit' 'rounds?limit=' 'events?run' 'rounds?limit=1%00' 'rounds?limit%00=1'; do
	ok "one without a value, or with a byte of 0: $path" answers 400 GET "/api/v1/$path" "$bearer"
done
ok 'without a key nothing is said of them' answers 401 GET '/api/v1/rounds?limi=5'

cp "$work/a/agent.yaml" "$work/a.yaml"
echo 'bogus: [' >>"$work/a/agent.yaml"
for path in ledger history rounds; do
	ok "$path while agent.yaml is being written: not now" answers 503 GET /api/v1/$path "$bearer"
	ok 'why' has 'agent.yaml:'
done
ok 'by the tables that are there' post 200 predict '{"head": "e1", "relation": "next", "top": 3}'
cp "$work/a.yaml" "$work/a/agent.yaml"
ok 'then they are' answers 200 GET /api/v1/ledger "$bearer"
ok 'peers' answers 200 GET /api/v1/peers "$bearer"
ok 'are those of the status' sh -c "python3 -c '
import json, sys
got, s = (json.load(open(p)) for p in sys.argv[1:])
sys.exit([p[\"id\"] for p in got[\"peers\"]] != [p[\"id\"] for p in s[\"peers\"]])' $out $work/after"
ok 'the ledger without a key' answers 401 GET /api/v1/ledger

ok 'events' answers 200 GET '/api/v1/events?after=0' "$bearer"
ok 'have a number' has '"last":'
events_of() { # AFTER RUN FIRST MISSED, of which RUN may be theirs: those that come begin with FIRST
	run_of=$(member "$work/events" run) last_of=$(member "$work/events" last)
	ask GET "/api/v1/events?after=$1&run=$2" "$bearer"
	[ "$answer" = 200 ] && [ "$(member "$out" run)-$(member "$out" missed)" = "$run_of-$4" ] &&
		[ "$(member "$out" events 0 seq)-$(member "$out" events -1 seq)" = "$3-$(member "$out" last)" ]
}
cp "$out" "$work/events"
ok 'after one of this run' events_of 2 "$(member "$work/events" run)" 3 0
ok 'after one of another run all are told' events_of 2 1 1 0
ok 'of no run' events_of 2 0 3 0
ok 'a run that is no number' answers 400 GET '/api/v1/events?after=2&run=x' "$bearer"
ok 'after what is no number' answers 400 GET '/api/v1/events?after=x' "$bearer"
mv "$work/a/control.sock" "$work/a/control.away"
ok 'not now' answers 503 GET '/api/v1/events?after=0' "$bearer"
python3 - "$work/a/control.sock" <<'PY' &
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(8)
held = s.accept()
open(sys.argv[1] + ".asked", "w")
time.sleep(600)
PY
busy=$! pids="$pids $!"
wait_for 'a loop that does not come to it' test -S "$work/a/control.sock"
python3 "$here/request.py" "$where" GET /api/v1/events "$bearer" >/dev/null &
asker=$!
ok 'it is asked' wait_for 'the question' test -e "$work/a/control.sock.asked"
ledger_soon() { timeout 20 python3 "$here/request.py" "$where" GET /api/v1/ledger "$bearer" >"$out" && [ "$(cat "$out")" = 200 ]; }
ok 'who reads the store does not wait for its answer' ledger_soon
kill -9 "$busy" "$asker"

# What was spent by a mechanism that this version does not know is null: a plain 0 would read as nothing.
rm "$work/a/control.sock"
python3 - "$work/a.json" "$work/a/control.sock" <<'PY' &
import json, socket, sys
told = json.load(open(sys.argv[1]))
for j in told["privacy"], *(p for p in told["peers"] if "epsilon" in p):
    j["epsilon"] = None
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[2])
s.listen(8)
while True:
    c = s.accept()[0]
    c.makefile().readline()
    c.sendall(json.dumps(told).encode() + b"\n")
PY
teller=$! pids="$pids $!"
wait_for 'one that has spent what nobody can tell' test -S "$work/a/control.sock"
ok 'an epsilon that is not known is called so' prints '0 with noise; epsilon unknown' -d "$work/a" status
ok 'of each peer, too' [ "$(tr -s ' \n' ' ' <"$out" | grep -o 'epsilon unknown' | wc -l)" -gt 1 ]
ok 'and of nothing is it a number' [ -z "$(grep -o 'epsilon [-0-9]' "$out")" ]
kill -9 "$teller"
mv "$work/a/control.away" "$work/a/control.sock"

# ---- decisions ----
ok 'no decision without the key' answers 401 POST /api/v1/peers/reject 'Content-Type: application/json' "body={}"
ok 'nor with the token' answers 401 POST /api/v1/peers/accept "Authorization: Bearer $token" \
	'Content-Type: application/json' 'body={"peer":"b"}'
ok 'nor by GET' answers 405 GET /api/v1/peers/accept "$bearer"
ok 'nor about nobody' post 400 peers/accept '{}'
ok 'who is not known' post 404 peers/reject '{"peer": "nobody"}'
ok 'a whole id' post 200 peers/accept "{\"peer\": \"$("$fkge" -d "$work/b" id)\"}"
ok 'is a partner' has '"standing":"partner"'
ok 'decided so already' post 200 peers/accept "{\"peer\": \"$(id_of b)\"}"
ok 'a partner is not rejected' post 409 peers/reject "{\"peer\": \"$(id_of b)\"}"
ok 'why' has 'this peer is a partner: to end that, fkge peer revoke'
ok 'not itself' post 409 peers/accept "{\"peer\": \"$(id_of a)\"}"
"$fkge" -q -d "$work/y" init --name y --listen 127.0.0.1:0 >/dev/null
for verb in accept reject; do
	ok "$verb: a whole id that nobody is known by" post 404 peers/$verb "{\"peer\": \"$(id_of y)\"}"
	ok 'why' has 'this key is not known here'
done
stays_unknown() { run -d "$work/a" peer list; [ "$status" = 0 ] && ! grep -q "$(id_of y | cut -c 1-9)" "$out"; }
ok 'it stays so' stays_unknown
ok 'a key that x says to have had, and no link has shown, is nobody' post 404 peers/accept "{\"peer\": \"$old_x\"}"
ok 'why' has 'this key is not known here'
python3 - "$work/a/control.sock" <<'PY' &
import socket, sys, time
held = [socket.socket(socket.AF_UNIX) for _ in range(32)]
for s in held:
    s.connect(sys.argv[1])
open(sys.argv[1] + ".held", "w")
time.sleep(600)
PY
holder=$! pids="$pids $!"
wait_for 'all places taken' test -e "$work/a/control.sock.held"
ok 'not now' post 503 peers/accept "{\"peer\": \"$(id_of b)\"}"
ok 'why' has 'the agent hung up'
kill -9 "$holder"
decided() { post 200 peers/accept "{\"peer\": \"$(id_of b)\"}"; }
ok 'then it is' wait_for 'a place' decided

# ---- the page and its stream ----
for path in / /page.css /page.js; do
	ok "the page's $path" answers 200 GET $path
	ok 'with a strict policy' head_has "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'"
done
ok 'a link from elsewhere leads to the page' answers 200 GET / 'Sec-Fetch-Site: cross-site'
ok 'and to nothing else' answers 403 GET /page.js 'Sec-Fetch-Site: cross-site'
if command -v node >/dev/null; then
	ok 'the page reads anew what has changed' node "$here/page.js" "$here/../../http/page/page.js"
fi
ok 'no stream without the key' answers 401 GET /api/v1/stream
ok 'streams: the status as it is, sixteen of them, and their places come back' python3 - "$where" "$key" <<'PY'
import http.client, json, sys, time
where, key = sys.argv[1:]
def stream():
    c = http.client.HTTPConnection(where[len("http://"):], timeout=60)
    c.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {key}"})
    return c, c.getresponse()
def first(r):
    assert r.getheader("Content-Type") == "text/event-stream"
    assert r.readline() == b"event: status\n"
    return json.loads(r.readline()[len("data: "):])
open_ones = [stream() for _ in range(16)]
assert all(r.status == 200 and first(r)["name"] == "a" for _, r in open_ones)
assert stream()[1].status == 503
for c, r in open_ones:
    r.close()
    c.close()
end = time.monotonic() + 60
while stream()[1].status != 200:
    assert time.monotonic() < end
    time.sleep(.2)
PY
# where those of before have not all been noticed to be gone, a place is waited for
cat >"$work/stream.py" <<'PY'
import http.client, time
def stream(where, key):
    end = time.monotonic() + 60
    while True:
        c = http.client.HTTPConnection(where[len("http://"):], timeout=20)
        c.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {key}"})
        r = c.getresponse()
        if r.status == 200:
            return c, r
        assert r.status == 503 and time.monotonic() < end
        c.close()
        time.sleep(.2)
PY
ok 'a new key ends the streams of the old one, and of no other' env PYTHONPATH="$work" python3 - "$where" "$key" "$fkge" "$work/a" <<'PY'
import subprocess, sys
from stream import stream as opened
where, key, fkge, folder = sys.argv[1:]
def stream(key):
    c, r = opened(where, key)
    assert r.readline() == b"event: status\n"
    return c, r
old = stream(key)
new = subprocess.run([fkge, "-d", folder, "http", "key", "--new"], capture_output=True, text=True, check=True).stdout
fresh = stream(new.strip())
lines = 0
while old[1].readline():
    lines += 1
    assert lines < 30, "the old key still reads"
for _ in range(3):  # "still here" comes after the end of the other
    assert fresh[1].readline()
PY
key=$(with)
ok 'an event is told, too' env PYTHONPATH="$work" python3 - "$where" "$key" "$fkge" "$work/a" <<'PY'
import json, subprocess, sys
from stream import stream
where, key, fkge, folder = sys.argv[1:]
c, r = stream(where, key)
def newest():
    while True:
        line = r.readline()
        assert line
        if line.startswith(b"data: "):
            return json.loads(line[len("data: "):])["newest_event"]
before = newest()
for level in "debug", "info":
    subprocess.run([fkge, "-q", "-d", folder, "config", "set", "log.level", level], check=True)
    subprocess.run([fkge, "-q", "-d", folder, "reload"], check=True, stdout=subprocess.DEVNULL)
last = json.loads(subprocess.run([fkge, "-d", folder, "events", "--json"], capture_output=True, text=True).stdout
                  .splitlines()[-1])["last"]
assert last >= before + 2
while newest() < last:
    pass
PY

# ---- prefixes and labels of the import ----
agent d 1
awk -F '\t' '{ printf "<urn:t:%s> <urn:t:%s> <urn:t:%s> .\n", $1, $2, $3 }' "$work/d.tsv" >"$work/d.nt"
awk -F '\t' '{ printf "<urn:t:%s> <http://www.w3.org/2000/01/rdf-schema#label> \"The %s\"@en .\n", $1, $1 }' \
	"$work/d.tsv" >>"$work/d.nt"
"$fkge" -q -d "$work/d" import --replace "$work/d.nt" -p t=urn:t: --labels en >/dev/null
echo 'http: {listen: ./http.sock}' >>"$work/d/agent.yaml"
ok 'd starts' start d
where=unix:$work/d/http.sock bearer="Authorization: Bearer $("$fkge" -d "$work/d" http key)"
ok 'd has tables' wait_for 'tables' ready
as_d() { "$fkge" -d "$work/d" "$@" --json >"$work/said" && python3 - "$work/said" "$out" <<'PY'
import json, sys
said, got = (json.load(open(p)) for p in sys.argv[1:])
said.pop("exit")
for found in got.get("answers", []) + got.get("similar", []):
    name = found.get("answer", found.get("name"))
    assert name.startswith("urn:t:") and found["label"] == "The " + name[6:], found
sys.exit(said != got)
PY
}
cp "$work/d/agent.yaml" "$work/d.yaml"
echo 'bogus: [' >>"$work/d/agent.yaml"
ok 'no tables while agent.yaml is being written: not now' post 503 predict '{"head": "t:e1", "relation": "t:next"}'
ok 'why' has 'mend that, and ask again'
cp "$work/d.yaml" "$work/d/agent.yaml"
ok 'predict by prefixes' post 200 predict '{"head": "t:e1", "relation": "t:next", "top": 3}'
ok 'and labels, as the command line' as_d predict t:e1 t:next '?' -k 3
ok 'similar' post 200 similar '{"name": "t:e1"}'
ok 'as the command line' as_d similar t:e1
ok 'a query' post 200 query '{"query": "SELECT ?x { t:e1 t:next/t:jump ?x }"}'
ok 'as the command line' as_d query 'SELECT ?x { t:e1 t:next/t:jump ?x }' --threads 1
ok 'd stops' exits 0 -d "$work/d" stop
ok 'd ends' wait_for 'the end of d' ended "$pid_d"

# ---- rounds of many ----
for who in m n; do
	agent $who 1 'mode: rounds'
	sed -i "s/^listen: .*/listen: 127.0.0.1:$(free_port)/; s/epochs: 20/epochs: 1/" "$work/$who/agent.yaml"
	printf '%s\n' 'rounds: {epochs: 1, max: 2, every_s: 0.1}' 'http: {listen: ./http.sock}' >>"$work/$who/agent.yaml"
done
befriend m n >/dev/null
start m
start n
both_done() { [ "$(member "$work/m.json" round done)" -ge 2 ]; }
ok 'm has been in two' wait_for 'rounds of m' both_done
where=unix:$work/m/http.sock
ok 'its metrics' answers 200 GET /metrics "Authorization: Bearer $("$fkge" -d "$work/m" http key)"
ok 'say so' has 'fkge_rounds_done_total 2'
ok 'and that it has missed none' has 'fkge_rounds_missed_total 0'
for who in m n; do ok "$who stops" exits 0 -d "$work/$who" stop; done

# ---- again, and the end ----
ok 'b is a partner no longer' exits 0 -d "$work/a" peer revoke "$(id_of b)"
elsewhere='[::1]'
has_v6 || elsewhere=127.0.0.2
sed -i "s/^http:.*/http: {listen: '$elsewhere:0'}/" "$work/a/agent.yaml"
kill -HUP "$pid_a"
again() { case $(value a http) in "http://$elsewhere:"[1-9]*) ;; *) false ;; esac; }
ok 'after SIGHUP it listens elsewhere' wait_for 'the new place' again
where=$(value a http)
ok 'and answers there' answers 200 GET /healthz
ok 'metrics of the new start' answers 200 GET /metrics "Authorization: Bearer $token"
ok 'have who was a partner' has "fkge_peer_sessions_total{peer=\"$(id_of b)\""
ok 'and what it cost' has "fkge_peer_epsilon_spent{peer=\"$(id_of b)\""
ok 'stop' exits 0 -d "$work/a" stop
ok 'a ends' wait_for 'the end of a' ended "$pid_a"
ok 'b stops' exits 0 -d "$work/b" stop
ok 'b ends' wait_for 'the end of b' ended "$pid_b"
ok 'its socket is gone' [ ! -e "$work/b/http.sock" ]
finish
