#!/bin/sh
# What `meson install` installs: manual pages without a fault, completions that complete, a unit that
# systemd takes.  What this machine lacks a tool for is skipped, and said.
# Usage: install.sh FKGE BUILD_FOLDER
. "$(dirname "$0")/lib.sh"
fkge=$(realpath "$fkge")
build=$(realpath "$2")
have() { command -v "$1" >/dev/null 2>&1; }
# ok_if TOOL "name" COMMAND...
ok_if() {
	tool=$1
	shift
	if have "$tool"; then ok "$@"; else count=$((count + 1)) && echo "ok $count - $1 # SKIP no $tool here"; fi
}

installs() { DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet >"$out" 2>"$err" &&
	mv "$work/root$(sed -n 's/^prefix=//p' "$work/prefix")" "$work/usr"; }
python3 - "$build" >"$work/prefix" <<'PY'
import json, subprocess, sys
for o in json.loads(subprocess.check_output(["meson", "introspect", "--buildoptions", sys.argv[1]])):
    if o["name"] == "prefix":
        print("prefix=" + o["value"])
PY
ok 'it is installed' installs
usr=$work/usr

# ---- manual pages ----
for c in $("$fkge" --help | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p'); do
	[ -s "$usr/share/man/man1/fkge-$c.1" ] || echo "$c" >>"$work/without"
done
ok 'every command has a page' test ! -e "$work/without"
lint() { mandoc -Tlint -W warning "$usr"/share/man/man1/*.1 "$usr"/share/man/man3/*.3 "$usr"/share/man/man5/*.5 >"$out"; }
ok_if mandoc 'no page has a fault' lint
page_says() { mandoc -Tutf8 "$usr/share/man/$1" | sed 's/.\x08//g' | grep -qF -- "$2"; }
ok_if mandoc 'a page has the options of its command' page_says man1/fkge-train.1 '--epochs=N'
ok_if mandoc 'the page of a group has its commands' page_says man1/fkge-peer.1 'fkge peer accept [OPTION...] PEER'
ok_if mandoc 'the page of settings has each' page_says man5/fkge-agent.yaml.5 'names_every_s: 600'

ok_if mandoc 'the page of the library has its functions' page_says man3/fkge.3 'int fkge_evaluate(const fkge_model *m'

# ---- completions ----
completes() { # WANTED WORD...: what bash offers for the last word
	want=$1
	shift
	bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fkge; echo "${COMPREPLY[*]}"' \
		"$usr/share/bash-completion/completions/fkge" "$@" >"$out" 2>"$err"
	[ "$(cat "$out")" = "$want" ]
}
cd "$work" && mkdir -p here/folder && : >here/file && cd here || exit 1
ok 'bash: a command' completes 'train' fkge tr
ok 'bash: after the folder of the agent' completes 'accept' fkge -d acme peer acc
ok 'bash: the commands of a group' completes 'list save restore' fkge checkpoint ''
ok 'bash: an option' completes '--epochs' fkge train --ep
ok 'bash: an option of all commands' completes '--json' fkge ledger show --js
ok 'bash: a file' completes 'file folder' fkge import f
ok 'bash: a folder alone, where one is wanted' completes 'folder' fkge -d f
ok 'bash: nothing for a number' completes '' fkge serve --until-quiet f
fish_completes() { fish --no-config -c "source $usr/share/fish/vendor_completions.d/fkge.fish; complete -C '$2'" >"$out" 2>"$err" &&
	[ "$(cut -f 1 "$out" | sort | tr '\n' ' ')" = "$1 " ]; }
ok_if fish 'fish: a command' fish_completes 'train' 'fkge tr'
ok_if fish 'fish: the commands of a group' fish_completes 'accept add' 'fkge -d acme peer a'
ok_if fish 'fish: an option' fish_completes '--epochs' 'fkge train --ep'
zsh_takes() { zsh -fc "fpath=($usr/share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D
	[[ \$_comps[fkge] == _fkge ]] && zsh -n $usr/share/zsh/site-functions/_fkge" >"$out" 2>"$err"; }
ok_if zsh 'zsh takes its file' zsh_takes
zsh_completes() { # WANTED WORDS: through a terminal, since zsh completes nowhere else
	cat >"$work/type.zsh" <<-ZSH
		zmodload zsh/zpty
		zpty z zsh -fi
		zpty -w z "PS1=; fpath=($usr/share/zsh/site-functions \\\$fpath); autoload -U compinit; compinit -u -D; print BE''GIN"
		zpty -r -m z shown '*BEGIN*'
		zpty -w -n z "$2"\$'\t'
		zpty -r -m z shown '*$1*'
	ZSH
	timeout 20 zsh -f "$work/type.zsh" >"$out" 2>"$err"
}
ok_if zsh 'zsh: a command' zsh_completes 'fkge train' 'fkge tr'
ok_if zsh 'zsh: a command of a group' zsh_completes 'ledger show' 'fkge -d acme ledger sh'

# ---- the parts of which it is made ----
sbom=$(cd "$(dirname "$0")/../.." && pwd)/packaging/sbom.py
lists() { python3 "$sbom" "$fkge" >"$work/fkge.cdx.json" 2>"$err" && python3 "$sbom" --check "$work/fkge.cdx.json" "$fkge" 2>"$err"; }
ok_if readelf 'the bill of materials is one, with every library' lists
lacks() { # without one library, and of another program
	python3 - "$work" <<'PY'
import json, sys
b = json.load(open(sys.argv[1] + "/fkge.cdx.json"))
b["components"] = [c for c in b["components"] if not c["name"].startswith("libsodium")]
json.dump(b, open(sys.argv[1] + "/less.json", "w"))
PY
	! python3 "$sbom" --check "$work/less.json" "$fkge" 2>"$err" && grep -q 'libsodium.*which the program names, is no part' "$err" &&
		! python3 "$sbom" --check "$work/fkge.cdx.json" "$sbom" 2>"$err" && grep -q 'of another program' "$err"
}
ok_if readelf 'one that lacks a library is none' lacks

# ---- the unit ----
unit=$usr/lib/systemd/system/fkge@.service
ok 'the unit names the program where it is' grep -q "^ExecStart=$(sed -n 's/^prefix=//p' "$work/prefix")/bin/fkge -d" "$unit"
# ends STATUS AGAIN|NOT ARGS...: fkge ends so, and what the unit says of it
ends() {
	want=$1 then=$2
	shift 2
	run "$@"
	if sed -n 's/^RestartPreventExitStatus=//p' "$unit" | tr ' ' '\n' | grep -qx "$status"; then
		next=NOT
	else
		next=AGAIN
	fi
	[ "$status $next" = "$want $then" ] || ! echo "# status $status, $next"
}
for a in held wrong damaged; do "$fkge" -q -d "$work/$a" init --name $a --listen off; done
python3 - "$work/held/lock" "$work/holds" <<'PY' &
import fcntl, os, signal, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
open(sys.argv[2], "w").close()
signal.pause()
PY
pids="$pids $!"
echo 'nonsense: 1' >>"$work/wrong/agent.yaml"
echo 'no store at all, and long enough to be read as one' >"$work/damaged/store.db"
ok 'a command that has the folder' wait_for 'its lock' test -e "$work/holds"
ok 'is no reason to stay down' ends 1 AGAIN -d "$work/held" serve
ok 'as often as it takes' grep -qx 'StartLimitIntervalSec=0' "$unit"
ok 'wrong settings are' ends 2 NOT -d "$work/wrong" serve
ok 'so is a damaged store' ends 9 NOT -d "$work/damaged" serve
# systemd looks for the program and the pages: here they are elsewhere
verifies() {
	mkdir -p "$work/units" && cp "$usr"/lib/systemd/system/fkge@.socket "$work/units/" &&
		sed "s#^Exec\(Start\|Reload\)=[^ ]*#Exec\1=$fkge#; /^Documentation=/d" "$unit" >"$work/units/fkge@.service" &&
		systemd-analyze verify "$work/units/fkge@acme.service" "$work/units/fkge@acme.socket" >"$out" 2>&1
}
ok_if systemd-analyze 'systemd finds no fault in the units' verifies
exposure() { systemd-analyze security --offline=true --threshold=20 "$work/units/fkge@.service" >"$out" 2>"$err"; }
ok_if systemd-analyze 'the exposure of the unit is 2.0 at most' exposure
# ---- the Debian package's scripts, beside a systemctl that only says what it was told ----
debian=$(realpath "$(dirname "$0")/../../packaging/debian")
mkdir -p "$work/bin" "$work/run"
printf '%s\n' '#!/bin/sh' "echo \"\$*\" >>'$work/told'" 'exit 1' >"$work/bin/systemctl"
chmod +x "$work/bin/systemctl"
# script NAME WORD: as dpkg calls it, with $work/etc for systemd's folder, where $work/run says that systemd runs; what it
# has told is in $work/told
script() {
	rm -f "$work/told" && touch "$work/told"
	sed "s|/run/systemd/system|$work/run|; s|/etc/systemd/system|$work/etc|g" "$debian/fkge.$1" >"$work/script" || return
	status=0
	PATH=$work/bin:$PATH sh "$work/script" "$2" >"$out" 2>"$err" || status=$?
	[ "$status" -eq 0 ]
}
tells() { script "$1" "$2" && [ "$(cat "$work/told")" = "$3" ]; } # NAME WORD TEXT
ok 'removed: agents are stopped, sockets too, whether or not systemctl can' tells prerm remove 'stop fkge@*.socket fkge@*.service'
ok 'in an upgrade they are not' tells prerm upgrade ''
ok 'installed: units are read again' tells postinst configure '--system daemon-reload'
ok 'removed, too' tells postrm remove '--system daemon-reload'
ok 'once, not when it is purged' tells postrm purge ''
mkdir -p "$work/etc/multi-user.target.wants"
wants=$work/etc/multi-user.target.wants
ln -s "$work/gone" "$wants/fkge@acme.service"
ln -s "$work/gone" "$wants/other.service"
leaves() { script postrm "$1" && [ "$(echo $(cd "$wants" && ls))" = "$2" ]; } # WORD NAMES
ok 'removed, it is known which agents start with the system' leaves remove 'fkge@acme.service other.service'
ok 'purged, it is not' leaves purge other.service
rmdir "$work/run"
for name in prerm postrm; do ok "$name where no systemd runs" tells $name remove ''; done
ok 'nor postinst' tells postinst configure ''

finish
