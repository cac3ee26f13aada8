#!/bin/sh
# abi.sh LIBRARY LIST MAP: the library exports what the committed list says, by version, and no more; what
# the list has may never go nor change its version while the soversion is 0.
# FKGE_ABI_WRITE=1 writes the list anew.
echo 1..4
library=$1 list=$2 map=$3
failed=0
n=0
ok() {
	name=$1
	shift
	n=$((n + 1))
	if "$@"; then echo "ok $n - $name"; else echo "not ok $n - $name" && failed=1; fi
}
exported() { nm -D --defined-only "$library" | awk '{ print $3, $2 }' | LC_ALL=C sort; }
[ -z "${FKGE_ABI_WRITE:-}" ] || exported >"$list"
same() { exported | diff "$list" - | sed 's/^/# /' >&2 && exported | cmp -s "$list" -; }
ok 'it exports what the list has' same
prefixed() { ! exported | grep -v '^fkge_.*@@FKGE_[0-9]* T$' | grep -v '^FKGE_[0-9]* A$' >&2; }
ok 'functions named fkge_ alone, each with a version' prefixed
mapped() { # every line of the map is a function that is there: a name that is none would go unnoticed
	[ "$(sed -n 's/^\t\t\(fkge_[a-z_]*\);$/\1/p' "$map" | LC_ALL=C sort)" = "$(exported | sed -n 's/@@.*//p')" ]
}
ok 'the map has no other names' mapped
so() { objdump -p "$library" | grep -q 'SONAME *libfkge\.so\.0$'; }
ok 'its name is libfkge.so.0' so
exit $failed
