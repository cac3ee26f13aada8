#!/bin/sh
# test_library.sh PROGRAM: examples/library/train.c does what its README says.
echo 1..6
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0
failed=0
ok() { # NAME COMMAND...
	name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$dir/out"
		failed=1
	fi
}
exits() { # STATUS ARGS...
	want=$1
	shift
	"$program" "$@" >"$dir/out" 2>&1
	[ $? -eq "$want" ]
}
says() { grep -q -- "$1" "$dir/out"; }

# six groups of forty: who is in the group says whom a member likes
awk 'BEGIN { for (i = 0; i < 240; i++) printf "e%d\tin\tg%d\ne%d\tlikes\th%d\n", i, i % 6, i, i % 6 }' >"$dir/g.tsv"
ok 'it runs' exits 0 "$dir/g.tsv" rotate 16 100 "$dir/vectors"
mrr() { awk '/^test: 96 queries, MRR/ { sub(",", "", $5); found = $5 > 0.3 } END { exit !found }' "$dir/out"; }
ok 'test is ranked, far from chance (.02)' mrr
ok 'three answers' [ "$(grep -c '^  ' "$dir/out")" -eq 3 ]
names() { [ "$(wc -l <"$dir/vectors/entities.txt")" -eq 252 ] && [ "$(wc -c <"$dir/vectors/entities.npy")" -eq $((128 + 252 * 32 * 4)) ]; }
ok 'arrays are written' names
printf 'a\tr\n' >"$dir/bad.tsv"
exits 4 "$dir/bad.tsv"
ok 'a broken file: status 4' [ $? -eq 0 ]
ok 'and where' says 'bad.tsv:1: '
exit $failed
