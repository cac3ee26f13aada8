#!/bin/sh
# installed.sh BUILD SOURCE: what `meson install` gives is all that a program needs: examples/library is compiled
# by pkg-config outside of the tree, runs, and Python finds the module.
set -u
build=$1 source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
n=0
ok() {
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$dir/out" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$dir/out"
		failed=1
	fi
}
installs() { DESTDIR=$dir/root meson install -C "$build" --no-rebuild --quiet --tags runtime,devel,python-runtime; }
ok 'it is installed' installs
pc=$(find "$dir/root" -name fkge.pc)
library=$(dirname "$(dirname "$pc")")
compiles() {
	cp "$source/examples/library/train.c" "$dir/program.c" && cd "$dir" &&
		PKG_CONFIG_SYSROOT_DIR=$dir/root PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs fkge >flags &&
		cc -std=c11 -Wall -Wextra -Werror program.c -o program $(cat flags) -lm
}
ok 'a program is compiled by pkg-config' compiles
cplusplus() { # a header for C++, too
	echo '#include <fkge.h>
int main() { return fkge_version()[0] == 0; }' >"$dir/program.cc"
	c++ -Wall -Wextra -Wpedantic -Werror "$dir/program.cc" -o "$dir/plusplus" $(cat "$dir/flags") &&
		LD_LIBRARY_PATH=$library "$dir/plusplus"
}
if command -v c++ >/dev/null; then ok 'one in C++' cplusplus; else n=$((n + 1)) && echo "ok $n - one in C++ # SKIP no c++ here"; fi
awk 'BEGIN { for (i = 0; i < 60; i++) printf "e%d\tin\tg%d\ne%d\tlikes\th%d\n", i, i % 6, i, i % 6 }' >"$dir/g.tsv"
runs() { LD_LIBRARY_PATH=$library "$dir/program" "$dir/g.tsv" transe 8 10; }
ok 'it runs' runs
needs() { # by its soname
	readelf -d "$dir/program" | grep -q 'NEEDED.*libfkge\.so\.0' && ! readelf -d "$dir/program" | grep -q 'NEEDED.*openblas'
}
ok 'it needs libfkge.so.0, and no library behind it' needs
module=$(dirname "$(find "$dir/root" -path '*/fkge/__init__.py')")
imports() {
	[ -e "$module/py.typed" ] && cd / && LD_LIBRARY_PATH=$library PYTHONPATH=$(dirname "$module") PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -c "
import fkge
assert fkge.__file__.startswith('$dir'), fkge.__file__
graph = fkge.load_graph('$dir/g.tsv')
print(fkge.train(graph, {'model.dim': 4, 'train.epochs': 1}).evaluate().mrr)"
}
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
	ok 'Python finds module and library' imports
else
	n=$((n + 1)) && echo "ok $n - Python finds module and library # SKIP no NumPy: apt-get install python3-numpy"
fi
echo "1..$n"
exit $failed
