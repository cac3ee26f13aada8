#!/usr/bin/env python3
"""Twelve agents that talk for hours: is what they take flat?  Or are ended again and again: does all go on?

usage: endurance.py FKGE FOLDER [MINUTES [EVERY_S [KILLS]]]

Makes the agents in FOLDER, which must not be there: six in pairs, five of which take 10 to 18 s to train, and six in
rounds, each six with graphs of one invented world (`fkge synth`), all linked.  While they run, every EVERY_S seconds
(10) each tells its figures over HTTP (/metrics), and one of those in pairs asks a question that others must answer.  FOLDER/samples.tsv gets what they told, FOLDER/N.log
what each agent says.  At the end, all are stopped and their ledgers verified; prints a JSON object: for each figure the
mean of the second quarter of the time and of the last, and the growth an hour between them.  Status 1: an agent ended,
a ledger has a fault, or the loop had a turn of more than 50 ms.

With KILLS so many times an agent, drawn with seed 1, is ended, in turn by SIGKILL and by SIGTERM, and started again, or
stopped for 5 s.  Then each must have another round, and the exports of each two must agree; what the agents take is not
summed up.  On a bad network (2 % of the packets lost, 20 Mbit/s for all), as root:

    unshare -n sh -c 'ip link set lo up; tc qdisc add dev lo root tbf rate 20mbit burst 64kb limit 1mb
      nft "add table inet l; add chain inet l i { type filter hook input priority 0; }"
      nft add rule inet l i meta l4proto tcp numgen random mod 100 "<" 2 drop
      bench/endurance.py build/cli/fkge FOLDER 40 5 200'
"""
import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import time

PAIRS = 6
AGENTS = 12
FIGURES = ("resident_bytes", "descriptors", "threads", "store_bytes", "log_bytes")
COUNTS = ("sessions_total", "rounds", "rounds_done_total", "loop_turns", "loop_over_50_ms", "loop_over_100_ms")
YAML = """name: agent-{n}
listen: 127.0.0.1:{port}
model: {{dim: 32}}
train: {{threads: 1, batch: 128, negatives: 16, lr: 0.01, epochs: 10, patience: 0}}
federation: {{mode: {mode}, patience: 0, epochs_per_round: 1, gather_s: 15, sleep_s: 30, weight_from: 5, share: both}}
rounds: {{epochs: 1, every_s: 10, compare_rounds: 5, stop_when_worse: 0}}
query: {{answer: soft, steps_per_day: 100000, rows_per_day: 10000000}}
http: {{listen: "127.0.0.1:0"}}
"""


class Agent:
    def __init__(self, fkge, folder, n):
        self.fkge, self.n, self.dir, self.mode = fkge, n, f"{folder}/{n}", "pairs" if n < PAIRS else "rounds"
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.run("init", "--listen", f"127.0.0.1:{port}")
        with open(f"{self.dir}/agent.yaml", "w", encoding="utf-8") as f:
            f.write(YAML.format(n=n, port=port, mode=self.mode))
        self.run("import", f"{folder}/{self.mode}/{n % PAIRS}")
        if self.mode == "pairs":
            self.run("train")
        if n < PAIRS - 1:  # else those in pairs would be at it all the time
            with open(f"{self.dir}/slowly", "w", encoding="utf-8") as f:
                f.write(f"sleep {10 + 2 * n}\nexec {fkge} -q -d $1 train\n")
            self.run("config", "set", "train.command", f"sh {self.dir}/slowly {{folder}}")
        self.id = self.run("id", as_json=True)["id"]
        self.process = self.where = self.token = None

    def run(self, *words, as_json=False):
        done = subprocess.run([self.fkge, "-q", "-d", self.dir, *words, *(["--json"] if as_json else [])],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"agent {self.n}: fkge {' '.join(words)}: status {done.returncode}: {done.stderr}")
        return json.loads(done.stdout) if as_json else done.stdout

    def befriend(self, other):
        line = f"{self.dir}/line"
        self.run("invite", "--for", other.id, "-o", line)
        other.run("join", line)
        os.unlink(line)

    def start(self):
        self.where = None
        with open(f"{self.dir}.log", "ab") as log:
            self.process = subprocess.Popen([self.fkge, "-d", self.dir, "serve"], stdout=log, stderr=log)
        while not self.where:  # until it listens
            time.sleep(0.2)
            status = subprocess.run([self.fkge, "-d", self.dir, "status", "--json"], capture_output=True, text=True,
                                    check=False)
            if self.process.poll() is not None:
                sys.exit(f"agent {self.n} ended: {self.dir}.log")
            self.where = status.returncode == 0 and json.loads(status.stdout).get("http", "")[len("http://"):]
        self.token = self.run("http", "key", "--metrics").strip()

    def sample(self):
        c = http.client.HTTPConnection(self.where, timeout=60)
        c.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.token}"})
        told = {}
        for line in c.getresponse().read().decode().split("\n"):
            if line.startswith("fkge_"):
                name, value = line[len("fkge_"):].rsplit(" ", 1)
                told[name] = float(value) if re.fullmatch(r"[-+0-9.eE]+", value) else value
        c.close()

        def upto(le):
            return told[f'loop_busy_seconds_bucket{{le="{le}"}}']
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
            threads = int(re.search(r"Threads:\s+(\d+)", f.read())[1])
        return {"resident_bytes": told["resident_bytes"], "descriptors": told["descriptors"], "threads": threads,
                "store_bytes": told["store_bytes"], "log_bytes": os.stat(f"{self.dir}.log").st_size,
                "sessions_total": told.get("sessions_total", 0),
                "rounds": sum(v for k, v in told.items() if k.startswith("rounds_total")),
                "rounds_done_total": told.get("rounds_done_total", 0), "loop_turns": upto("+Inf"),
                "loop_over_50_ms": upto("+Inf") - upto("0.05"), "loop_over_100_ms": upto("+Inf") - upto("0.1")}


def ask(agent, relation, name):
    """A question that the agent's partners answer, too; whether one of them did, and nobody else failed to."""
    done = subprocess.run([agent.fkge, "-q", "-d", agent.dir, "query", "--federated", "--json",
                           f"SELECT ?x {{ <{name}> <{relation}>/<{relation}> ?x }}"], capture_output=True, text=True, check=False)
    told = json.loads(done.stdout) if done.returncode == 0 else {}
    return bool(told.get("asked")) and not told.get("missing") and not told.get("not_asked")


def verify(agent):
    agent.process.terminate()
    status = agent.process.wait(120)
    done = subprocess.run([agent.fkge, "-d", agent.dir, "ledger", "verify"], capture_output=True, text=True, check=False)
    return status == 0 and done.returncode == 0


def end_one(agents, kill, draw):
    """Ends an agent and starts it again, or stops it for a while."""
    a, how = draw.choice(agents), (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)[kill % 3]
    a.process.send_signal(how)
    if how == signal.SIGSTOP:
        time.sleep(5)
        a.process.send_signal(signal.SIGCONT)
        return
    status = a.process.wait(120)
    if status != (-signal.SIGKILL if how == signal.SIGKILL else 0):
        sys.exit(f"agent {a.n}: status {status} after {how.name}: {a.dir}.log")
    a.start()


def progress(a):
    s = a.sample()
    return s["rounds"] if a.mode == "pairs" else s["rounds_done_total"]


def all_go_on(agents):
    """Which agents have another round within ten minutes."""
    before = {a.n: progress(a) for a in agents}
    until = time.monotonic() + 600
    while time.monotonic() < until and any(progress(a) <= before[a.n] for a in agents):
        time.sleep(2)
    return [a.n for a in agents if progress(a) > before[a.n]]


def disagree(agents):
    """Pairs of agents whose exports do not hold beside each other, and what is said of them."""
    for a in agents:
        a.run("ledger", "export", f"{a.dir}.json")
    bad = []
    for a in agents:
        for b in agents[a.n + 1:]:
            done = subprocess.run([a.fkge, "ledger", "verify", f"{a.dir}.json", f"{b.dir}.json"], capture_output=True,
                                  text=True, check=False)
            if a.mode == b.mode and done.returncode:
                bad.append([a.n, b.n, done.stdout[-500:]])
    return bad


def summary(samples, agents, minutes, asked, sound):
    out = {"agents": AGENTS, "minutes": round(minutes, 1), "questions": asked, "sound": sound}
    for figure in FIGURES:
        rows = [[s[figure] for s in samples[a.n]] for a in agents]
        quarter = len(rows[0]) // 4
        early = [statistics.mean(r[quarter:2 * quarter]) for r in rows]
        late = [statistics.mean(r[-quarter:]) for r in rows]
        hours = minutes / 60 * (len(rows[0]) - 2 * quarter) / len(rows[0])
        out[figure] = {"second_quarter": round(statistics.mean(early)), "last_quarter": round(statistics.mean(late)),
                       "most": max(max(r) for r in rows),
                       "growth_an_hour_mean": round(statistics.mean(b - a for a, b in zip(early, late)) / hours, 1),
                       "growth_an_hour_most": round(max(b - a for a, b in zip(early, late)) / hours, 1)}
    for count in COUNTS:
        out[count] = sum(samples[a.n][-1][count] for a in agents)
    out["processor_seconds"] = round(sum(os.times()[2:4]), 1)
    return out


def main():
    fkge, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    minutes, every_s, kills = (float(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((3, 120), (4, 10), (5, 0)))
    os.makedirs(folder)
    for seed, mode in ((1, "pairs"), (2, "rounds")):
        subprocess.run([fkge, "-q", "synth", "--agents", str(PAIRS), "-e", "400", "--overlap", "0.5", "--seed", str(seed),
                        "-o", f"{folder}/{mode}"], check=True)
    agents = [Agent(fkge, folder, n) for n in range(AGENTS)]
    for a in agents:
        for b in agents[a.n + 1:]:
            if a.mode == b.mode:
                a.befriend(b)
    with open(f"{folder}/pairs/0/train.tsv", encoding="utf-8") as f:
        names = [line.rstrip("\n").split("\t") for line in f]
    try:
        for a in agents:
            a.start()
        begin, samples, asked = time.monotonic(), {a.n: [] for a in agents}, [0, 0]
        killed, draw = 0, random.Random(1)
        with open(f"{folder}/samples.tsv", "w", encoding="utf-8") as f:
            print("minutes", "agent", *FIGURES, *COUNTS, sep="\t", file=f, flush=True)
            while (now := time.monotonic() - begin) < 60 * minutes:
                for a in agents:
                    if a.process.poll() is not None:
                        sys.exit(f"agent {a.n} ended after {now / 60:.0f} minutes: {a.dir}.log")
                    s = a.sample()
                    samples[a.n].append(s)
                    print(f"{now / 60:.2f}", a.n, *(s[k] for k in FIGURES + COUNTS), sep="\t", file=f, flush=True)
                head, relation, _ = names[len(samples[0]) % len(names)]
                asked[ask(agents[0], relation, head)] += 1
                while killed < kills * min(1, (time.monotonic() - begin) / (54 * minutes)):
                    end_one(agents, killed, draw)
                    killed += 1
                time.sleep(max(0, begin + every_s * len(samples[0]) - time.monotonic()))
        went_on = all_go_on(agents) if kills else []
        sound = [verify(a) for a in agents]
    finally:
        for a in agents:
            if a.process and a.process.poll() is None:
                a.process.kill()
    if kills:
        bad = disagree(agents)
        print(json.dumps({"minutes": round((time.monotonic() - begin) / 60, 1), "killed": killed, "went_on": went_on,
                          "sound": sum(sound), "questions": {"answered": asked[1], "not": asked[0]}, "disagree": bad}))
        return len(went_on) < AGENTS or not all(sound) or bool(bad)
    told = summary(samples, agents, (time.monotonic() - begin) / 60, {"answered": asked[1], "not": asked[0]}, sum(sound))
    print(json.dumps(told, indent=2))
    return not all(sound) or told["loop_over_50_ms"] > 0


if __name__ == "__main__":
    sys.exit(main())
