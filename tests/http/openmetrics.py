#!/usr/bin/env python3
"""A strict reader of OpenMetrics text 1.0.  usage: openmetrics.py METRICS [STATUS]

Fails with a line where METRICS breaks the format; with STATUS, what `fkge status --json` printed, also where a
figure is not that of the status."""
import json
import math
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
TYPES = {"counter": ("_total",), "gauge": ("",), "info": ("_info",), "stateset": ("",),
         "histogram": ("_bucket", "_count", "_sum")}


class Bad(Exception):
    pass


def need(good, why):
    if not good:
        raise Bad(why)


def read_labels(text):
    labels, at = {}, 0
    while at < len(text):
        m = re.compile(LABEL + r"(,|$)").match(text, at)
        need(m, f"labels {text!r}")
        need(m[1] not in labels, f"label {m[1]} twice")
        labels[m[1]] = re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e[1], e[1]), m[2])
        need(m[3] or m.end() == len(text), f"labels {text!r}")
        at = m.end()
    return labels


def read(text):
    """{family: (type, [(suffix, labels, value)])}"""
    need(text.endswith("\n# EOF\n"), "does not end with # EOF")
    families, family, seen = {}, None, set()
    for line in text[:-len("# EOF\n")].split("\n")[:-1]:
        if line.startswith("# "):
            m = re.fullmatch(rf"# (TYPE|HELP|UNIT) ({NAME}) (.*)", line)
            need(m, f"line {line!r}")
            if m[1] == "TYPE":
                need(m[2] not in families, f"family {m[2]} twice")
                need(m[3] in TYPES, f"type {m[3]}")
                families[m[2]] = (m[3], [])
            need(m[2] in families and not (m[1] != "TYPE" and families[m[2]][1]), f"{m[1]} of {m[2]} out of place")
            need(m[1] == "TYPE" or m[2] == family, f"{m[1]} of {m[2]} within {family}")
            family = m[2]
            continue
        m = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (\S+)", line)
        need(m, f"line {line!r}")
        need(family and m[1].startswith(family), f"{m[1]} is in no family")
        kind, samples = families[family]
        suffix = m[1][len(family):]
        need(suffix in TYPES[kind], f"{m[1]} in a {kind}")
        labels = read_labels(m[2] or "")
        value = float(m[3])
        key = (m[1], tuple(sorted(labels.items())))
        need(key not in seen, f"{m[1]} {labels} twice")
        seen.add(key)
        need(kind != "counter" or (value >= 0 and math.isfinite(value)), f"counter {m[1]} is {value}")
        samples.append((suffix, labels, value))
    for name, (kind, samples) in families.items():
        if kind == "histogram":
            check_histogram(name, samples)
        if kind == "stateset":
            need(sum(v for _, _, v in samples) == 1 and all(name in s[1] for s in samples), f"stateset {name}")
        need(not name.endswith("_total"), f"family {name}")
    return families


def check_histogram(name, samples):
    buckets = [(float(lb["le"]), v) for s, lb, v in samples if s == "_bucket"]
    need(buckets and buckets[-1][0] == math.inf, f"{name} has no bucket +Inf")
    need(buckets == sorted(buckets) and sorted(v for _, v in buckets) == [v for _, v in buckets], f"{name} falls")
    count = [v for s, _, v in samples if s == "_count"]
    need(count == [buckets[-1][1]], f"{name}: count")


def compare(families, status):
    """How many figures were compared."""
    def figure(name, /, **labels):
        found = [v for _, lb, v in families.get(name, (None, []))[1] if lb == labels]
        need(len(found) <= 1, name)
        return found[0] if found else None

    n = 0

    def same(want, name, /, **labels):
        nonlocal n
        got = figure(name, **labels)
        need((got is None) == (want is None), f"{name} {labels}: {got}, the status has {want}")
        need(want is None or math.isclose(got, want, rel_tol=1e-12), f"{name} {labels}: {got}, the status has {want}")
        n += want is not None

    s, privacy = status, status["privacy"]
    same(1, "fkge_build", version=s["version"])
    same(1, "fkge_state", fkge_state=s["state"])
    same(s["started_ms"] / 1000, "fkge_start_time_seconds")
    same(s["rounds"], "fkge_rounds", kind="partners")
    same(s["local_rounds"], "fkge_rounds", kind="local")
    for key, name in (("improved", "improved"), ("sessions", "sessions"), ("sessions_now", "sessions_now"),
                      ("queued", "queue")):
        same(s[key], "fkge_" + name)
    same(s["job"]["done"], "fkge_job_done")
    same(s["job"]["total"], "fkge_job_steps")
    for key in ("labels_spent", "labels_cap", "private_steps", "private_epsilon"):
        same(privacy[key], "fkge_" + key)
    same(privacy["epsilon"], "fkge_epsilon_spent")
    left = lambda j: None if j.get("epsilon") is None else max(0, j["epsilon_cap"] - j["epsilon"])
    same(left(privacy), "fkge_epsilon_left")
    for kind, key in (("bare", "rows_sent"), ("unrotated", "unrotated_rows_sent"), ("noisy", "noisy_rows_sent")):
        same(privacy[key], "fkge_rows_sent", kind=kind)
    best, arms = s["best"] or {}, s["arms"] or {}
    scored = privacy["private_steps"] == 0
    for arm, x in (("best", best.get("valid_score")), ("counting", best.get("valid_floor")),
                   ("before", arms.get("before")), ("alone", arms.get("alone")),
                   ("with_partners", arms.get("with_partners"))):
        same(x if scored else None, "fkge_valid_mrr", arm=arm)
    for kind in ("partner", "pending", "rejected", "revoked"):
        same(sum(p["standing"] == kind for p in s["peers"]), "fkge_peers", standing=kind)
    for p in s["peers"]:
        who = {"peer": p["id"], "name": p["name"]}
        if not p.get("linked"):
            same(p["link_ms"] / 1000 or None, "fkge_peer_last_seen_seconds", **who)
        same(p.get("linked"), "fkge_peer_up", **who)
        same(p.get("clock_off_s"), "fkge_peer_clock_off_seconds", **who)
        same(p.get("epsilon"), "fkge_peer_epsilon_spent", **who)
        same(left(p), "fkge_peer_epsilon_left", **who)
        for kind in ("entities", "relations"):
            same(p.get("shared_" + kind), "fkge_peer_shared_names", kind=kind, **who)
        same(p.get("sessions"), "fkge_peer_sessions", outcome="done", **who)
        same(p.get("failed"), "fkge_peer_sessions", outcome="failed", **who)
        same(p.get("rows_sent"), "fkge_peer_rows_sent", kind="bare", **who)
        known = p["standing"] == "partner" or p["links"] > 0
        same(p["links"] if known else None, "fkge_peer_links", **who)
        same(p["slowed"] if known else None, "fkge_peer_slowed", **who)
        for direction in ("in", "out"):
            need(known == (figure("fkge_peer_bytes", direction=direction, **who) is not None), f"bytes of {who}")
    r = s.get("round", {})
    for key, name in (("number", "round"), ("done", "rounds_done"), ("missed", "rounds_missed"),
                      ("members", "round_members")):
        same(r.get(key), "fkge_" + name)
    return n


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    try:
        families = read(text)
        if len(sys.argv) > 2:
            with open(sys.argv[2], encoding="utf-8") as f:
                n = compare(families, json.load(f))
            print(f"# {len(families)} families, {n} figures compared")
            need(n >= 25 and len(families) >= 25, "too few were compared")
    except Bad as e:
        print(f"# {e}")
        return 1
    return 0


sys.exit(main())
