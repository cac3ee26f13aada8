#!/usr/bin/env python3
"""What `mpirun -n R fkge train` loses over a network: ranks in network namespaces, their links limited by tc.

usage: ranks_network.py FKGE AGENT [--ranks R] [--gbit G] [--cores C] [--turns T] [--epochs E]

AGENT is an agent's folder with a graph and `train: {threads: 1}`; copies of it train.  Needs root, iproute2 with tbf in
the kernel, OpenMPI, and C cores (2) without other work.  Four arms in turns:

  one    C processes at a time, each one thread and a core of its own, all the same training without ranks: seconds of
         one process that shares memory and caches with as many others as ranks do
  shm    R ranks by mpirun on this machine, over its memory
  free   R ranks, each in a namespace with one link to a bridge, nothing but TCP between them, no limit
  wire   the same, each link limited to G Gbit/s in both directions

Rank k has core k mod C.  Efficiency is seconds of an epoch of `one` / (C x those of R ranks), the median of the turns;
each run's first epoch is left out.  Where R > C each rank has C / R of a core, so all takes R / C times as long as it
would: to stand for links of 10 Gbit/s give --gbit 10 x C / R.  That errs towards a better figure where latencies count,
which are not stretched, and towards a worse one where ranks share a core's caches, and where one asks for messages
while the other works.  Congestion control is reno, since namespaces take over the host's, which may be bbr."""
import argparse
import ctypes
import json
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile

NET = "10.99.0."
LIMIT_S = 900
# What arrives at one end of a link; the other end sends for a second.
SINK = """import socket, time
s = socket.create_server(("", 7000)); print(flush=True); c, _ = s.accept(); n = 0; start = time.monotonic()
while got := len(c.recv(1 << 20)): n += got
print(n * 8e-9 / (time.monotonic() - start))"""
SOURCE = """import socket, sys, time
c = socket.create_connection((sys.argv[1], 7000)); end = time.monotonic() + 1
while time.monotonic() < end: c.sendall(bytes(1 << 20))"""


def run(*words):
    subprocess.run(words, check=True)


def ns(k):
    return f"fkge-ranks-{os.getpid()}-{k}"


def make_links(ranks, gbit):
    """Namespaces 1 to R with one link each, and 0 with the bridge, where the other ends are."""
    for k in range(ranks + 1):
        run("ip", "netns", "add", ns(k))
        run("ip", "-n", ns(k), "link", "set", "lo", "up")
        run("ip", "netns", "exec", ns(k), "sh", "-c", "echo reno >/proc/sys/net/ipv4/tcp_congestion_control")
    run("ip", "-n", ns(0), "link", "add", "bridge", "type", "bridge")
    run("ip", "-n", ns(0), "link", "set", "bridge", "up")
    for k in range(1, ranks + 1):
        run("ip", "-n", ns(k), "link", "add", "eth0", "type", "veth", "peer", "name", f"to{k}", "netns", ns(0))
        run("ip", "-n", ns(k), "addr", "add", f"{NET}{k}/24", "dev", "eth0")
        run("ip", "-n", ns(0), "link", "set", f"to{k}", "master", "bridge", "up")
        run("ip", "-n", ns(k), "link", "set", "eth0", "up")
        for at, link in ((k, "eth0"), (0, f"to{k}")):
            if gbit > 0:  # a burst of 128 KiB is two packets of the largest size: messages do not slip through whole
                run("tc", "-n", ns(at), "qdisc", "add", "dev", link, "root", "tbf", "rate", f"{gbit}gbit",
                    "burst", "128kb", "limit", "16mb")


def drop_links(ranks):
    for k in range(ranks + 1):
        subprocess.run(["ip", "netns", "del", ns(k)], stderr=subprocess.DEVNULL, check=False)


def link_gbit():
    """Gbit/s that get from rank 0's namespace to rank 1's."""
    sink = subprocess.Popen(["ip", "netns", "exec", ns(2), sys.executable, "-c", SINK], stdout=subprocess.PIPE)
    sink.stdout.readline()
    run("ip", "netns", "exec", ns(1), sys.executable, "-c", SOURCE, f"{NET}2")
    return float(sink.communicate()[0])


def train(o, work, k):
    return [o.fkge, "-q", "-d", f"{work}/agent{k}", "train", "--fresh", "--epochs", str(o.epochs), "--json"]


def alone(o, work):
    procs = [subprocess.Popen(["taskset", "-c", str(k), *train(o, work, k)], stdout=subprocess.PIPE)
             for k in range(o.cores)]
    before = os.times()
    said = [json.loads(p.communicate()[0]) for p in procs]
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return said, spent / o.cores


def by_ranks(o, work, arm):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--leave-session-attached",
             "-n", str(o.ranks)]
    if arm != "shm":
        with open(f"{work}/rsh", "w", encoding="utf-8") as f:  # HOST COMMAND: in the namespace with that address
            f.write('#!/bin/sh\nk=${1##*.}; shift; export TMPDIR=$(mktemp -d)\n'  # else daemons meet in one folder
                    f'exec ip netns exec {ns("$k")} sh -c "$*"\n')
        os.chmod(f"{work}/rsh", 0o755)
        words = ["ip", "netns", "exec", ns(1), *words]
        words += ["--host", ",".join(f"{NET}{k + 1}:1" for k in range(o.ranks))]
        for key, value in (("plm", "rsh"), ("plm_rsh_agent", f"{work}/rsh"), ("plm_rsh_no_tree_spawn", "1"),
                           ("btl", "tcp,self"), ("pml", "ob1"), ("btl_tcp_if_include", f"{NET}0/24"),
                           ("oob_tcp_if_include", f"{NET}0/24")):
            words += ["--mca", key, value]
    words += ["sh", "-c", f'taskset -c $((OMPI_COMM_WORLD_RANK % {o.cores})) "$@"; rc=$?; '
              f'times >{work}/times.$OMPI_COMM_WORLD_RANK; exit $rc', "rank", *train(o, work, 0)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env=dict(os.environ, TMPDIR=work))
    if done.returncode != 0:
        sys.exit(f"ranks_network: {arm}: {done.stderr[-2000:]}")
    return [json.loads(done.stdout)], sum(spent_s(f"{work}/times.{k}") for k in range(o.ranks))


def spent_s(path):
    """Of the children of a shell, whose `times` wrote `0m1.5s 0m0.2s` last."""
    with open(path, encoding="utf-8") as f:
        return sum(float(m) * 60 + float(s) for m, s in (t[:-1].split("m") for t in f.readlines()[-1].split()))


def measure(o, work, arm):
    apart, gbit = arm in ("free", "wire"), None
    try:
        if apart:
            make_links(o.ranks, o.gbit if arm == "wire" else 0)
            gbit = link_gbit()
        said, spent = alone(o, work) if arm == "one" else by_ranks(o, work, arm)
    finally:
        drop_links(o.ranks)
    seconds = [e["seconds"] for one in said for e in one["curve"]["epochs"][1:]]
    each = said[0].get("ranks", {}).get("each", [])
    sent = max([(r["moved_bytes"] + r["relation_bytes"]) / o.epochs / 1e6 for r in each], default=0)
    return {"seconds": seconds, "spent": spent, "sent_mb": sent, "gbit": gbit, "load": os.getloadavg()[0]}


def report(o, arms):
    median = statistics.median
    one = [median(r["seconds"]) for r in arms["one"]]
    print("arm   s an epoch (least, most)  efficiency (of each turn)  processor s a run  MB a rank and epoch  Gbit/s")
    for arm, runs in arms.items():
        every = [s for r in runs for s in r["seconds"]]
        shares = [a / median(r["seconds"]) / (1 if arm == "one" else o.cores) for a, r in zip(one, runs)]
        print(f"{arm:5} {median(every):.3f} ({min(every):.3f}, {max(every):.3f})  {median(shares):.2f} "
              f"({', '.join(f'{s:.2f}' for s in shares)})  {median(r['spent'] for r in runs):.2f}  "
              f"{runs[0]['sent_mb']:.1f}  {median(r['gbit'] or 0 for r in runs):.1f}")


def cut_slices():
    """Whoever shares a core takes turns of .1 ms, in which ranks wake from a wait at once; children inherit it."""
    attr = struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 100000, 0, 0)  # struct sched_attr, SCHED_OTHER
    if ctypes.CDLL(None, use_errno=True).syscall(314, 0, attr, 0) != 0:  # sched_setattr, x86-64
        print("ranks_network: slices are the kernel's own", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fkge", type=os.path.realpath)
    p.add_argument("agent")
    for name, kind, value in (("ranks", int, 2), ("gbit", float, 10), ("cores", int, 2), ("turns", int, 3),
                              ("epochs", int, 4)):
        p.add_argument(f"--{name}", type=kind, default=value)
    o = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # `finally` drops the namespaces
    cut_slices()
    arms = {"one": [], "shm": [], "free": [], "wire": []}
    with tempfile.TemporaryDirectory() as work:
        for k in range(o.cores):
            shutil.copytree(o.agent, f"{work}/agent{k}")
        for _ in range(o.turns):
            for arm, runs in arms.items():
                runs.append(measure(o, work, arm))
                print(arm, json.dumps(runs[-1]), file=sys.stderr, flush=True)
    report(o, arms)


if __name__ == "__main__":
    main()
