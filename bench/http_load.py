#!/usr/bin/env python3
"""How long predictions over HTTP take while the agent trains.

usage: http_load.py FKGE FOLDER TRIPLES [REQUESTS_A_SECOND [SECONDS]]

FOLDER is a running agent's, with http.listen.  Questions are drawn from TRIPLES, its graph as TSV; each is sent at its time,
whether or not those before it are answered, and its latency counts from that time.  Prints a JSON object: latencies
in ms, what the agent did meanwhile, its loop's longest turns.  Every tenth request asks /healthz, which costs nothing:
what it takes is the machine's own, not the predictions'."""
import http.client
import json
import queue
import random
import subprocess
import sys
import threading
import time

CONNECTIONS = 16


def fkge(*words):
    done = subprocess.run([sys.argv[1], "-d", sys.argv[2], *words, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)


def loop_over(metrics, bound_s):
    """(turns longer than the bound, turns) of the loop."""
    rows = [line for line in metrics.split("\n") if line.startswith("fkge_loop_busy_seconds_bucket")]
    upto = {row.split('le="')[1].split('"')[0]: float(row.split()[-1]) for row in rows}
    return upto["+Inf"] - upto[bound_s], upto["+Inf"]


class Client:
    def __init__(self, where, key):
        self.where, self.waits, self.took, self.idle, self.failed = where, queue.Queue(), [], [], 0
        self.head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.threads = [threading.Thread(target=self.work) for _ in range(CONNECTIONS)]

    def get(self, path):
        c = http.client.HTTPConnection(self.where, timeout=60)
        c.request("GET", path, headers=self.head)
        return c.getresponse().read().decode()

    def work(self):
        c = http.client.HTTPConnection(self.where, timeout=60)
        while (one := self.waits.get()) is not None:
            at, body = one
            if body is None:
                c.request("GET", "/healthz", headers=self.head)
                c.getresponse().read()
                self.idle.append((time.monotonic() - at) * 1000)
                continue
            c.request("POST", "/api/v1/predict", body, self.head)
            answer = c.getresponse()
            said = json.loads(answer.read())
            self.took.append((time.monotonic() - at) * 1000)
            self.failed += answer.status != 200 or not said["answers"]

    def run(self, bodies, rate, seconds):
        for t in self.threads:
            t.start()
        begin = time.monotonic()
        for i in range(int(rate * seconds)):
            at = begin + i / rate
            time.sleep(max(0, at - time.monotonic()))
            self.waits.put((at, random.choice(bodies) if i % 10 else None))
        for _ in self.threads:
            self.waits.put(None)
        for t in self.threads:
            t.join()


def main():
    rate, seconds = (float(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((4, 100), (5, 30)))
    status = fkge("status")
    client = Client(status["http"][len("http://"):], fkge("http", "key")["key"])
    with open(sys.argv[3], encoding="utf-8") as f:
        triples = [line.rstrip("\n").split("\t") for line in f]
    random.seed(1)
    bodies = [json.dumps({"head": h, "relation": r, "top": 10}) for h, r, _ in random.sample(triples, min(2000, len(triples)))]
    first = time.monotonic()
    c = http.client.HTTPConnection(client.where, timeout=60)
    c.request("POST", "/api/v1/predict", bodies[0], client.head)
    tables = json.loads(c.getresponse().read())["checkpoint"]
    first = (time.monotonic() - first) * 1000
    before = client.get("/metrics")
    client.run(bodies, rate, seconds)
    after, took, idle = client.get("/metrics"), sorted(client.took), sorted(client.idle)
    over, turns = (b - a for a, b in zip(loop_over(before, "0.05"), loop_over(after, "0.05")))
    now = fkge("status")
    print(json.dumps({
        "requests": len(took), "failed": client.failed, "a_second": rate, "first_ms": round(first, 1),
        "p50_ms": round(took[len(took) // 2], 2), "p99_ms": round(took[int(len(took) * .99)], 2),
        "p999_ms": round(took[int(len(took) * .999)], 2), "most_ms": round(took[-1], 2),
        "healthz_p50_ms": round(idle[len(idle) // 2], 2), "healthz_p99_ms": round(idle[int(len(idle) * .99)], 2),
        "entities": tables["entities"], "dim": tables["dim"], "doing": [status["doing"], now["doing"]],
        "local_rounds": now["local_rounds"] - status["local_rounds"], "improved": now["improved"] - status["improved"],
        "loop_turns": turns, "loop_turns_over_50_ms": over}))
    return client.failed > 0


sys.exit(main())
