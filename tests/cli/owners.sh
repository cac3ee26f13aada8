#!/bin/sh
# Whose files are: a command typed as root leaves another user's agent as it was.
# Usage: owners.sh FKGE
. "$(dirname "$0")/lib.sh"

agent a 1
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	"$fkge" -q -d "$work/a" train --epochs 1 >/dev/null 2>&1
	chmod 755 "$work"
	cp "$fkge" "$work/fkge" && chmod 755 "$work/fkge"
	mkdir "$work/n" && cp -r "$work/a" "$work/n/a" && chown -R 65534:65534 "$work/n"
	a=$work/n/a
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$work/fkge" -d "$a" "$@"; }
	theirs() { [ -z "$(find "$a" ! -uid 65534)" ]; }
	told="sudo -u 'nobody' fkge ...)"
	echo "fkge: $(as_nobody id)" >"$out"
	for c in 'config set log.level debug' 'config unset log.level' 'http key' 'http key --metrics' 'tune --quick' \
		'queries train' 'queries encoder' train serve 'peer list' 'peer accept x' invite id 'ledger show' \
		"backup $work/kept" "import $work/a.tsv" 'key rotate' secret 'checkpoint save x' \
		"ledger export $work/a.led" 'rounds export x' report; do
		ok "root, $c: hears whose agent it is" says 4 "$told" -d "$a" $c
		ok "... and leaves nothing there" theirs
	done
	ok 'root reads a setting' prints 'info' -d "$a" config get log.level
	for c in eval 'checkpoint list' 'predict e1 next ?' status stop; do
		run -d "$a" $c
		ok "root, $c: leaves nothing" theirs
	done
	doctor_told() { ! "$fkge" -d "$a" doctor >"$out" 2>"$err" && grep -qF -- "$told" "$out"; }
	ok "root is told by doctor" doctor_told
	works() { as_nobody config set log.level debug >"$out" 2>"$err" && as_nobody http key >"$out" && as_nobody peer list >"$out"; }
	ok 'its user goes on' works
	ok 'root shows the key that is there' exits 0 -d "$a" http key

	# ---- files that root has left there before ----
	chown 0 "$a/agent.yaml" "$a/http.key"
	finds() { # FILE
		run -d "$a" doctor
		grep -q "^bad   owner      $a/$1 is of root, the agent of nobody; type, as root: chown 65534 $a/$1$" "$out"
	}
	ok 'doctor finds the settings' finds agent.yaml
	ok '... and the key' finds http.key
	ok 'nothing else' [ "$(grep -c ' owner ' "$out")" -eq 2 ]
	nobody_says() { # TEXT ARGS...
		text=$1
		shift
		! as_nobody "$@" >"$out" 2>"$err" && grep -qF -- "$text" "$err"
	}
	for c in reload stop serve; do
		ok "nobody, $c: hears what to do" nobody_says "agent.yaml is of root, its folder of nobody; type, as root: chown 65534 $a/agent.yaml" $c
	done
	chown 65534 "$a/agent.yaml" "$a/http.key"
	chown 0 "$a/identity.key"
	ok 'keys of root: the folder tells whose they are to be' nobody_says "chown 65534 $a/identity.key" id
	ok 'root does nothing with them either' says 4 "$told" -d "$a" id
	chown 65534 "$a/identity.key"
	ok 'all is well again' as_nobody doctor

	# ---- a folder that is only mounted by another user ----
	mv "$a" "$work/n/b" && mkdir "$a" && mv "$work/n/b"/* "$a" && chmod 777 "$a"
	ok "nobody's agent in a folder of root" works
	ok 'root still leaves it alone' says 4 "$told" -d "$a" config set log.level info
	cp -r "$work/a" "$work/n/r" && chown 65534 "$work/n/r"
	ok "root's agent in a folder of nobody" exits 0 -d "$work/n/r" config set log.level debug
	ok '... has its keys' exits 0 -d "$work/n/r" http key
fi
finish
