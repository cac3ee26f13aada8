#!/bin/sh
# Keys of agent.yaml that a process reads, not its core: each changes what the process does
# (tests/config/test_keys.c has all others and looks here for these).  And what one command refuses,
# all refuse, in the same words.
. "$(dirname "$0")/lib.sh"

a=$work/a
base='model: {dim: 4}
train: {epochs: 1, batch: 64, negatives: 4, threads: 1}'
# write YAML...: agent.yaml, each argument a line
write() {
	printf 'name: acme\n%s\n' "$base" >"$a/agent.yaml"
	printf '%s\n' "$@" >>"$a/agent.yaml"
}
# serves STATUS TEXT: a short run says this
serves() { says "$1" "$2" -d "$a" serve --until-quiet 0.1; }
serves_loudly() { run -v -d "$a" serve --until-quiet 0.1 && grep -q 'info  acme: started' "$err"; }
silent() { ! grep -qF -- "$1" "$err"; }

graph "$work/g.tsv" 1
ok 'init' exits 0 -d "$a" init --name acme --listen 127.0.0.1:0
write 'listen: 127.0.0.1:0'
ok 'import' exits 0 -d "$a" import "$work/g.tsv"
ok 'train' exits 0 -d "$a" train

# ---- keys of the process ----
ok 'it listens' serves 0 'listening on 127.0.0.1:0'
write 'listen: "off"'
key listen serves 0 'calling others only'
write 'listen: "off"' 'federation: {accept: invited}'
key federation.accept serves 0 'federation.key'
write 'listen: "off"' 'federation: {accept: invited, psk_file: other.key}'
key federation.psk_file serves 4 'other.key is not there, and federation.psk_file in'
ok 'nor is an invitation made without it' says 4 'other.key is not there' -d "$a" invite --address h:1
doctor_finds() { run -d "$a" doctor; [ "$status" = 1 ] && grep "^bad   secret" "$out" | grep -qF "$1"; }
ok 'doctor says so' doctor_finds 'other.key is not there'
echo rubbish >"$a/other.key"
chmod 600 "$a/other.key"
ok 'a damaged one is refused' serves 4 'other.key: expected 64 hex digits'
ok 'by doctor, too' doctor_finds 'other.key: expected 64 hex digits'
printf '%064d\n' 7 >"$a/other.key"
chmod 644 "$a/other.key"
ok 'so is one that others may read' serves 6 'chmod 600'
ok 'by doctor, too' doctor_finds 'may be read by others; type: chmod 600'
chmod 600 "$a/other.key"
ok 'that secret is there' serves 0 started
ok 'and found' silent other.key
ok 'doctor has read it' prints 'ok    secret     other.key' -d "$a" doctor
write 'listen: "off"' 'federation: {mode: rounds}' 'rounds: {topology: hosted, host: own}'
ok 'hosted by itself' serves 0 hosted
write 'listen: "off"' 'federation: {mode: rounds}' 'rounds: {topology: hosted, host: nobody}'
key rounds.host serves 1 "rounds.host: no peer 'nobody' is known"
for who in h1 h2; do
	"$fkge" -q -d "$work/$who" init --name hub --listen off >/dev/null 2>&1
	"$fkge" -q -d "$a" peer add "$("$fkge" -d "$work/$who" id --line)" >/dev/null 2>&1
done
write 'listen: "off"' 'federation: {mode: rounds}' 'rounds: {topology: hosted, host: hub}'
ok 'a name that two partners have stops no agent' serves 0 "rounds.host: 'hub' fits 2 peers: write the id"
two_hubs() { run -d "$a" doctor; [ "$status" = 1 ] && grep -q "^bad   rounds     rounds.host: 'hub' fits 2 peers" "$out"; }
ok 'by doctor, too' two_hubs
"$fkge" -q -d "$a" peer revoke "$(id_of h2)" >/dev/null 2>&1
ok 'one that is none any more does not count' serves 0 started
ok 'it means the other one' silent "'hub' fits"
for who in h1 h2; do
	"$fkge" -q -d "$a" peer revoke "$(id_of $who)" >/dev/null 2>&1
	"$fkge" -q -d "$a" peer forget "$(id_of $who)" >/dev/null 2>&1
done
write 'listen: "off"' 'http: {listen: "127.0.0.1:0"}'
key http.listen serves 0 'HTTP: http://127.0.0.1:'
write 'listen: "off"' 'http: {listen: ./http.sock}'
key http.listen serves 0 'HTTP: unix:'

write 'listen: "off"' 'log: {level: error}'
ok 'it logs errors alone' exits 0 -d "$a" serve --until-quiet 0.1
key log.level test ! -s "$err"
ok 'but with -v' serves_loudly
write 'listen: "off"' 'log: {format: json}'
each_is_json() { run -d "$a" serve --until-quiet 0.1 && python3 -c '
import json, sys
for line in open(sys.argv[1]):
    assert list(json.loads(line)) == ["time", "level", "agent", "text"]' "$err" && grep -q '"text": "started' "$err"; }
key log.format each_is_json
journal() { run -d "$a" serve --until-quiet 0.1 --log-format journal; grep -q '^<6>acme: started' "$err"; }
ok '--log-format goes before it' journal
stream() { # as under systemd: standard error is what JOURNAL_STREAM says
	python3 -c '
import os, sys
st = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
os.execv(sys.argv[1], sys.argv[1:])' "$fkge" -d "$a" serve --until-quiet 0.1 2>"$err" && grep -q '^<6>{"time".*"text": "started' "$err"
}
ok 'lines for the journal have priorities' stream

# ---- of tables that are there ----
write 'listen: "off"'
ok 'model.gamma is as in training: nothing is said' exits 0 -d "$a" serve --until-quiet 0.1
ok 'indeed' silent gamma
sed -i 's/dim: 4/dim: 4, gamma: 12/' "$a/agent.yaml"
why='model.gamma is 12 by agent.yaml, and that of the best state, 10, is used: put it back (fkge config set'
ok 'another model.gamma than the tables have is told' serves 0 "warn  acme: $why model.gamma 10)"
ok 'doctor says so' prints "look  start      $why" -d "$a" doctor
ok 'set back' exits 0 -d "$a" config set model.gamma 10
ok 'it is the same again' exits 0 -d "$a" serve --until-quiet 0.1
ok 'and nothing is said' silent gamma
sed -i 's/dim: 4/dim: 5/' "$a/agent.yaml"
ok 'another width is refused' serves 2 'the best state is transe of dim 4'

# ---- all commands refuse the same ----
write 'listen: "off"' 'federation:' '  session_s: 1'
why="agent.yaml:6: federation.session_s (1) is below federation.lease_s (60)"
for command in serve train eval doctor id 'ledger show' 'peer list'; do
	# shellcheck disable=SC2086
	run -d "$a" $command
	ok "$command refuses it, with file, line and key" grep -qF -- "$why" "$err" "$out"
done
write 'listen: "off"' 'federation:' '  session_s: 1' '  lease_s: 1'
ok 'both together are well' exits 0 -d "$a" id

# ---- old names ----
write 'federation:' '  rows_share: 0.5'
ok 'an old name is read, and told' says 0 \
	'agent.yaml:5: federation.rows_share is called federation.aligned_share now' -d "$a" id
write 'federation:' '  rows_share: 0.5' '  aligned_share: 0.5'
ok 'not beside the new one' says 2 'agent.yaml:6: aligned_share is given twice, as rows_share, too' -d "$a" id
finish
