#!/bin/sh
# Joining on networks as companies have them, each host a network namespace: behind NAT (outbound
# only), over IPv6, a partner that has moved (its name leads elsewhere now), one that has lost its key,
# another secret of the federation, a member that another one introduces, one that is thrown out.
# Usage: joining.sh FKGE
. "$(dirname "$0")/lib.sh"
skip() {
	echo "ok 1 - joining on networks # SKIP $1"
	echo '1..1'
	exit 0
}
fkge=$(realpath "$fkge")
[ "$(id -u)" = 0 ] || skip 'needs root for network namespaces'
command -v ip >/dev/null 2>&1 || skip 'needs iproute2'
hosts="acme router globex initech"
ns() { echo "fkge-$1-$$"; }
ip netns add "$(ns acme)" 2>/dev/null || skip 'cannot make network namespaces here'
ip netns add "$(ns router)"
ip netns add "$(ns globex)"
ip netns add "$(ns initech)"
end_all() {
	for h in $hosts; do
		ip netns del "$(ns "$h")" 2>/dev/null
		rm -rf "/etc/netns/$(ns "$h")"
	done
	cleanup
}
trap end_all EXIT
at() { # HOST COMMAND...
	host=$1
	shift
	ip netns exec "$(ns "$host")" "$@"
}

# acme 10.77.0.1 --- 10.77.0.2 router 10.78.0.2 --- 10.78.0.1 globex, and the same in IPv6
wire() { # HOST NET: its link to the router
	ip -n "$(ns "$1")" link add up0 type veth peer name "to-$1" netns "$(ns router)"
	put_on "$1" up0 "$2" 1
	put_on router "to-$1" "$2" 2
}
put_on() { # HOST LINK NET NUMBER
	ip -n "$(ns "$1")" addr add "10.$3.0.$4/24" dev "$2"
	ip -n "$(ns "$1")" addr add "fd$3::$4/64" dev "$2" nodad
	ip -n "$(ns "$1")" link set "$2" up
}
wire acme 77
wire globex 78
wire initech 79
for h in $hosts; do ip -n "$(ns "$h")" link set lo up; done
for pair in 'acme 77' 'globex 78' 'initech 79'; do
	# shellcheck disable=SC2086
	set -- $pair
	ip -n "$(ns "$1")" route add default via "10.$2.0.2"
	ip -n "$(ns "$1")" route add default via "fd$2::2"
done
at router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding' 2>/dev/null
reaches() { at globex python3 -c 'import socket, sys; socket.create_connection(("10.77.0.1", 1), 5)' 2>&1 | grep -q 'refused'; }
ok 'globex reaches acme through the router' reaches

begin() { # HOST [options]: serve there, until the status file says so
	who=$1
	shift
	rm -f "$work/$who.json"
	at "$who" "$fkge" -d "$work/$who" serve --status-file "$work/$who.json" "$@" 2>>"$work/$who.log" &
	eval "pid_$who=$!"
	pids="$pids $!"
	wait_for "$who has started" test -s "$work/$who.json"
}
finish_off() { at "$1" "$fkge" -q -d "$work/$1" stop; }
linked() { peer_is "$1" "$2" linked True; }
unlinked() { ! peer_is "$1" "$2" linked True; }
both_linked() { linked acme "$globex" && linked globex "$acme"; }
listens() { sed -i "s/^listen: .*/listen: '$2'/" "$work/$1/agent.yaml"; }
made() { # NAME SEED: an agent that needs no training to link
	agent "$1" "$2" 'local_rounds: 0, introduce: true' && sed -i 's/epochs: 20/epochs: 1/' "$work/$1/agent.yaml"
}
joined() { # ADDRESS [HOST [OPTION]]: acme invites that one to it, globex unless another is said
	"$fkge" -q -d "$work/acme" invite --address "$1" --for "$("$fkge" -q -d "$work/${2:-globex}" id)" \
		-o "$work/line" >/dev/null &&
		"$fkge" -q -d "$work/${2:-globex}" join ${3:-} "$work/line" >/dev/null && rm "$work/line"
}
revokes() { at acme "$fkge" -q -d "$work/acme" peer revoke "$1" >"$out"; }
made acme 1
made globex 2
acme=$("$fkge" -q -d "$work/acme" id) globex=$("$fkge" -q -d "$work/globex" id)

# ---- behind NAT: globex has no address that acme could call ----
listens acme 10.77.0.1:7447
listens globex off
if command -v nft >/dev/null 2>&1 && at router nft add table ip nat 2>/dev/null; then
	at router nft 'add chain ip nat post { type nat hook postrouting priority 100; }'
	at router nft 'add rule ip nat post oifname "to-acme" masquerade'
	ip -n "$(ns acme)" route del default # no way back but to the router
	behind='behind NAT'
else
	behind='outbound only'
fi
ok "$behind: acme invites" joined 10.77.0.1:7447
begin acme
begin globex
ok "$behind: both are linked" wait_for 'the link' both_linked
from_router() { at acme python3 - <<'PY'
import re
text = open("/proc/net/tcp").read()  # 10.77.0.2, the router's
assert re.search(r" 01004D0A:1D17 02004D0A:", text), text
PY
}
[ "$behind" = outbound\ only ] || ok "$behind: acme sees the router alone" from_router
had_session() { at_least globex sessions 1; }
ok "$behind: they have a session" wait_for 'a session' had_session
[ "$behind" = outbound\ only ] || ip -n "$(ns acme)" route add default via 10.77.0.2

# ---- moved: acme's name leads to another address, and nobody is told ----
finish_off globex
finish_off acme
mkdir -p "/etc/netns/$(ns globex)"
echo '10.77.0.1 acme.example' >"/etc/netns/$(ns globex)/hosts"
listens acme 0.0.0.0:7447
ok 'a name: acme invites' joined acme.example:7447
begin acme
begin globex
ok 'a name: both are linked' wait_for 'the link' both_linked
finish_off acme
ok 'moved: globex sees it go' wait_for 'no link' unlinked globex "$acme"
ip -n "$(ns acme)" addr del 10.77.0.1/24 dev up0
ip -n "$(ns acme)" addr add 10.77.0.9/24 dev up0
ip -n "$(ns acme)" route add default via 10.77.0.2 2>/dev/null
# in place: the mount of the namespace keeps the file
echo '10.77.0.9 acme.example' >"/etc/netns/$(ns globex)/hosts"
begin acme
ok 'moved: globex finds it by its name' wait_for 'the link' both_linked

# ---- IPv6, where there is any ----
finish_off globex
finish_off acme
acme_at='[fd77::1]:7447' initech_at='[fd79::1]:7447'
ip -n "$(ns acme)" -6 addr show dev up0 | grep -q fd77::1 || acme_at=10.77.0.9:7447 initech_at=10.79.0.1:7447
listens acme "$acme_at"
ok 'IPv6: acme invites' joined "$acme_at"
begin acme
begin globex
ok 'IPv6: both are linked' wait_for 'the link' both_linked

# ---- a lost key: globex has no backup and begins as somebody else ----
finish_off globex
"$fkge" -d "$work/globex" id --json >"$out" && member "$out" sign_key >"$work/old-sign"
rm -rf "$work/globex"
made globex 2
listens globex off
lost=$globex globex=$("$fkge" -q -d "$work/globex" id)
ok 'a lost key: acme ends the partnership with it' revokes "$lost"
ok 'a lost key: the new one is invited' joined "$acme_at"
begin globex
ok 'a lost key: the new one is linked' wait_for 'the link' both_linked
kept_ledger() { at acme "$fkge" -d "$work/acme" --json ledger show | grep -q "$(hex_of_old)"; }
hex_of_old() { cat "$work/old-sign"; }
ok 'a lost key: what went to the old one stays on the ledger' kept_ledger

# ---- another secret of the federation: whoever has not been given it stays outside ----
finish_off globex
finish_off acme
ok 'another secret: acme draws one' exits 0 -d "$work/acme" secret
begin acme
begin globex
ok 'another secret: globex is told what it lacks' wait_for 'the reason' logged globex 'secret'
ok 'another secret: and has no link' unlinked acme "$globex"
finish_off globex
ok 'another secret: it comes with a new line' joined "$acme_at" globex --replace-secret
begin globex
ok 'another secret: both are linked' wait_for 'the link' both_linked

# ---- a member that another one introduces: initech knows acme, and so hears of globex ----
made initech 3
listens initech "$initech_at"
initech=$("$fkge" -q -d "$work/initech" id)
ok 'introduced: acme invites initech' joined "$acme_at" initech
begin initech
ok 'introduced: initech is linked to acme' wait_for 'the link' linked initech "$acme"
knows() { at "$1" "$fkge" -d "$work/$1" peer introduced >"$out" 2>"$err" && grep -q "^$2 " "$out"; }
ok 'introduced: globex hears of it, though it was there before' wait_for 'initech' knows globex "$initech"
introduced_at() { tr -s ' ' <"$out" | grep -qF "initech $1"; }
ok 'introduced: with its name and address' introduced_at "$initech_at"
ok 'introduced: initech hears of globex' wait_for 'globex' knows initech "$globex"
ok 'introduced: nobody is linked before' unlinked globex "$initech"
adds() { at "$1" "$fkge" -q -d "$work/$1" peer add "$2" >"$out" 2>"$err"; }
ok 'introduced: not by a part of its id' says 2 'whole id' -d "$work/initech" peer add "$(echo "$globex" | cut -c1-20)"
ok 'introduced: initech adds globex' adds initech "$globex"
ok 'introduced: globex adds initech' adds globex "$initech"
ok 'introduced: they are linked' wait_for 'the link' linked globex "$initech"
ok 'introduced: and no more among the introduced' eval '! knows globex "$initech"'
finish_off initech

# ---- thrown out ----
ok 'thrown out: acme revokes' revokes "$globex"
ok 'thrown out: the link ends' wait_for 'no link' unlinked globex "$acme"
ok 'thrown out: globex is told why' wait_for 'the reason' logged globex 'not a partner any more'
refused_again() { logged globex 'not accepted' || logged globex 'does not accept'; }
ok 'thrown out: and is refused when it calls' wait_for 'the refusal' refused_again
ok 'thrown out: acme asks nobody again' wait_for 'the standing' peer_is acme "$globex" standing revoked
finish_off globex
finish_off acme
finish
