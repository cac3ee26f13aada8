"""Turns the working folder of examples/dbp-5l/run into tables (Markdown on standard output).

usage: report.py OUT_FOLDER
"""
import json
import os
import statistics
import sys

LANGS = ["el", "en", "es", "fr", "ja"]
ARMS = {
    "base": "independent",
    "control": "control arm",
    "procrustes": "FKGE, Procrustes",
    "mean": "FKGE, Procrustes, equal weights",
    "mean-both": "FKGE, Procrustes, equal weights, relations too",
    "chained": "FKGE, Procrustes, chained names",
    "both": "FKGE, Procrustes, relations too",
    "chained-both": "FKGE, Procrustes, chained names, relations too",
    "weighted": "FKGE, Procrustes, weighted average",
    "ppat-paper": "FKGE, PPAT (4 teachers, Laplace)",
    "ppat-many": "FKGE, PPAT (n/50 teachers, Gaussian)",
}
FIGURES = [("mrr", "MRR"), ("hits1", "Hits@1"), ("hits10", "Hits@10")]
out = sys.argv[1]


def load(*path):
    try:
        with open(os.path.join(out, *path), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


seeds = sorted((d for d in os.listdir(out) if d.isdigit()), key=int)
arms = [a for a in ARMS if any(os.path.isdir(os.path.join(out, s, a)) for s in seeds)]


def values(arm, lang, protocol, figure, part="metrics"):
    got = [load(s, arm, lang, f"test-{protocol}.json") for s in seeds]
    return [g[part][figure] for g in got if g]


def cell(v):
    if not v:
        return "-"
    spread = f" ± {statistics.stdev(v):.3f}" if len(v) > 1 else ""
    return f"{statistics.mean(v):.3f}{spread}"


def means(arm, protocol, figure):
    """The mean over the graphs, one value a seed, for the seeds that are whole."""
    rows = []
    for s in seeds:
        got = [load(s, arm, lang, f"test-{protocol}.json") for lang in LANGS]
        if all(got):
            rows.append(statistics.mean(g["metrics"][figure] for g in got))
    return rows


def table(protocol):
    first = load(seeds[0], "base", LANGS[0], f"test-{protocol}.json")["protocol"]
    print(f"\n## Protocol `{protocol}`: sides {first['sides']}, filter {'+'.join(first['filter'])}, "
          f"candidates {first['candidates']}, ties {first['ties']}\n")
    for figure, title in FIGURES:
        print(f"### Test {title}\n")
        print("| arm | " + " | ".join(LANGS) + " | mean |")
        print("|---" * (len(LANGS) + 2) + "|")
        for arm in arms:
            cells = [cell(values(arm, lang, protocol, figure)) for lang in LANGS]
            print(f"| {ARMS[arm]} | " + " | ".join(cells) +
                  f" | **{cell(means(arm, protocol, figure))}** |")
        floor = [values("base", lang, protocol, figure, "floor")[:1] for lang in LANGS]
        print("| *frequency floor* | " + " | ".join(cell(v) for v in floor) +
              f" | {statistics.mean(v[0] for v in floor if v):.3f} |\n")
    print("### Gain over the control arm, MRR\n")
    print("| arm | " + " | ".join(LANGS) + " | mean |")
    print("|---" * (len(LANGS) + 2) + "|")
    for arm in arms:
        if arm in ("base", "control"):
            continue
        row = []
        for lang in LANGS:
            a, c = values(arm, lang, protocol, "mrr"), values("control", lang, protocol, "mrr")
            row.append(statistics.mean(x - y for x, y in zip(a, c)) if a and c else None)
        known = [x for x in row if x is not None]
        print(f"| {ARMS[arm]} | " + " | ".join("-" if x is None else f"{x:+.3f}" for x in row) +
              f" | {statistics.mean(known):+.3f} |" if known else "")


def spending():
    print("\n## What each pair spent and disclosed (host's side, largest over the seeds)\n")
    print("| arm | host ← client | labels | of cap | ε (δ = 1e-5) | ε cap | rows from the client |")
    print("|---|---|---|---|---|---|---|")
    for arm in arms:
        for lang in LANGS:
            best = {}
            for s in seeds:
                for chain in (load(s, arm, lang, "ledger.json") or {}).get("chains", []):
                    h = chain["as_host"]
                    name = chain["partner"]
                    if name not in best or h["labels"] > best[name]["labels"]:
                        best[name] = h
            for name, h in sorted(best.items()):
                print(f"| {ARMS[arm]} | {lang} ← {name} | {h['labels']} | {h['labels_cap']} | "
                      f"{h['epsilon']:.3f} | {h['epsilon_cap']:g} | {h['rows_disclosed_by_client']} |")


def rounds():
    print("\n## Rounds that each agent trained (with partners + alone), seed by seed\n")
    print("| arm | " + " | ".join(LANGS) + " |")
    print("|---" * (len(LANGS) + 1) + "|")
    for arm in arms:
        row = []
        for lang in LANGS:
            got = [load(s, arm, lang, "status.json") for s in seeds]
            row.append(", ".join(f"{g['rounds']}+{g['local_rounds']}" for g in got if g) or "-")
        if any(c != "-" for c in row):
            print(f"| {ARMS[arm]} | " + " | ".join(row) + " |")


def seconds():
    print("\n## Time\n\nSeconds of the whole arm on two shared cores, seed by seed (federated arms "
          "contain the half minute of silence by which they know that nobody improves any more):\n")
    for arm in arms:
        took = []
        for s in seeds:
            try:
                with open(os.path.join(out, s, arm, "done"), encoding="utf-8") as f:
                    took.append(f.read().strip())
            except OSError:
                pass
        if took:
            print(f"* {ARMS[arm]}: {', '.join(took)}")


print(f"Seeds: {', '.join(seeds)}. Cells are mean ± standard deviation over the seeds; `mean` is the "
      "plain mean over the five graphs.")
for p in ("standard", "tail"):
    table(p)
spending()
rounds()
seconds()
