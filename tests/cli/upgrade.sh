#!/bin/sh
# Agents that an earlier program has made (tests/cli/upgrade/) are opened: migrated, with a copy beside
# them, everything as it was; they work on; and a program that is older than a store says so and leaves
# it alone.  Usage: upgrade.sh FKGE
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)/upgrade
version() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version").fetchone()[0])' "$1"; }
# same NAME AGENT: ledger and best tables are what the earlier program said
same() {
	"$fkge" -d "$work/$2" ledger show --json >"$work/ledger" 2>"$err" &&
		"$fkge" -d "$work/$2" checkpoint list --json >"$work/states" 2>"$err" || return
	python3 - "$here/$1.json" "$(basename "$2")" "$work" <<'PY'
import json, sys
name, who, work = sys.argv[1:]
ledger, states = (json.load(open(f"{work}/{n}")) for n in ("ledger", "states"))
chain, best = ledger["chains"][0], [c for c in states["checkpoints"] if c["kind"] == "best"][0]
now = {"entries": chain["entries"], "head": chain["head"], "labels": ledger["total_labels"],
       "epsilon": ledger["total_epsilon"], "digest": best["digest"], "valid_score": best["valid_score"]}
assert now == json.load(open(name))[who], now
PY
}
for archive in "$here"/*.tar.xz; do
	was=$(basename "$archive" .tar.xz)
	rm -rf "$work/acme" "$work/globex"
	tar -xJf "$archive" -C "$work"
	old=$(version "$work/acme/store.db")
	# a backup of that time: its files as they are, and the list that the earlier program wrote
	rm -rf "$work/bak" "$work/back"
	python3 - "$work" "$("$fkge" -d "$work/acme" id --json | sed -n 's/.*"sign_key": "\(.*\)".*/\1/p')" <<'PY'
import hashlib, os, shutil, sys
work, key = sys.argv[1:]
os.mkdir(f"{work}/bak")
digest = lambda b: hashlib.blake2b(b, digest_size=32).hexdigest()
text = f"fkge backup 1\ntime 1760000000000\nagent {key}\n"
for name in ("store.db", "agent.yaml", "identity.key"):
    shutil.copy(f"{work}/acme/{name}", f"{work}/bak/{name}")
    b = open(f"{work}/bak/{name}", "rb").read()
    text += f"file {len(b)} {digest(b)} {name}\n"
open(f"{work}/bak/backup.txt", "w").write(text + f"end {digest(text.encode())}\n")
PY
	ok "$was: a backup of then is whole" prints 'is of an earlier' backup --check "$work/bak"
	mkdir -p "$work/back/acme" && chmod 755 "$work/back/acme"
	ok "$was: it is restored" exits 0 -d "$work/back/acme" restore "$work/bak"
	ok "$was: into a folder that is ours alone" test "$(stat -c %a "$work/back/acme")" = 700
	ok "$was: ledger and tables are as they were" same "$was" back/acme
	ok "$was: it knows that it was restored" exits 0 -d "$work/back/acme" doctor
	ok "$was: and whom it waits for" grep -q 'restored: 1 partners' "$out"
	for who in acme globex; do
		ok "$was: $who is opened" exits 0 -d "$work/$who" invite --address h:1
		run -d "$work/$who" config check
		ok "$was: its settings are good" test "$status" -eq 0
	done
	# the first command that writes migrates
	port=$(free_port)
	sed -i "s/^listen: 127.*/listen: 127.0.0.1:$port/; s/max_rounds: 1/max_rounds: 2/" "$work/acme/agent.yaml" "$work/globex/agent.yaml"
	for who in acme globex; do
		ok "$was: $who keeps a state" exits 0 -d "$work/$who" checkpoint save before
		ok "$was: its store is of this version" test "$(version "$work/$who/store.db")" -ge "$old"
		[ "$(version "$work/$who/store.db")" -eq "$old" ] ||
			ok "$was: a copy of the old one is beside it" test "$(version "$work/$who/store.db.v$old.bak")" -eq "$old"
		ok "$was: ledger and tables of $who are as they were" same "$was" $who
	done
	ok "$was: what was exported then still verifies" exits 0 ledger verify "$work/acme.led"
	acme=$("$fkge" -q -d "$work/acme" id)
	befriend acme globex >"$out" 2>&1 # at another port
	ok "$was: both work on" together acme globex
	session() { "$fkge" -d "$work/$1" ledger show --json >"$out" && [ "$(member "$out" chains 0 entries)" -gt 6 ]; }
	ok "$was: they have had one more session" session acme
	"$fkge" -q -d "$work/acme" ledger export "$work/now.led" >/dev/null
	ok "$was: whose ledger goes on from the old one" starts_with "$work/now.led" "$work/acme.led"
done

# ---- back ----
python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("PRAGMA user_version = 1000"); d.commit()' "$work/acme/store.db"
cp "$work/acme/store.db" "$work/store.before"
for command in 'ledger show' 'checkpoint list' train serve; do
	# shellcheck disable=SC2086
	ok "a newer store: $command says so" says 9 'this fkge knows version' -d "$work/acme" $command
done
ok 'and leaves it alone' cmp -s "$work/store.before" "$work/acme/store.db"
finish
