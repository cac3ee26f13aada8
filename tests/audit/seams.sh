#!/bin/sh
# The faults that audits plant come in by arguments that nothing but an audit gives: whoever writes
# agent/, cli/ or fed/ must not.  $1: the source tree.
cd "$1" || exit 1
n=0
clean() {
	n=$((n + 1))
	if found=$(grep -rlE "$1" agent cli config graph fed store net base --include='*.[ch]'); then
		echo "not ok $n - $2: $found"
		exit 1
	fi
	echo "ok $n - $2"
}
there() {
	n=$((n + 1))
	if grep -qE "$1" "$2"; then
		echo "ok $n - $2 has it"
	else
		echo "not ok $n - $2 has no $1: this test looks for the wrong name"
		exit 1
	fi
}
there ppat_plant_noise ppat/session.h
there kge_trainer_plant_noise kge/train.h
there labeller ppat/session.h
there kge_trainer_set_draw kge/train.h
clean '_plant_noise' 'nothing plants noise'
clean 'labeller' 'nothing draws labels of its own'
clean 'kge_trainer_set_draw|nn_draw_seeded' 'nothing gives private training or sessions another source'
clean 'randombytes_set_implementation|randombytes_buf_deterministic' 'nothing replaces the source of libsodium'
echo "1..$n"
