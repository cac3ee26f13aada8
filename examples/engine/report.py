"""Turns the working folder of examples/engine/run into tables (Markdown on standard output).

usage: report.py OUT_FOLDER RESULTS_FOLDER [FILE]

RESULTS_FOLDER has the published figures (../shared/results).  With FILE the tables take the
place of what is there between the two lines that begin with <!-- tables.
"""
import contextlib
import csv
import glob
import io
import json
import os
import re
import statistics
import sys

from settings import RUNS

out, results = sys.argv[1:3]
FIGURES = [("mrr", "MRR"), ("hits1", "Hits@1"), ("hits3", "Hits@3"), ("hits10", "Hits@10")]
BENCHMARKS = [("fb15k-237", "FB15k-237"), ("wn18rr", "WN18RR")]
MODELS = ["TransE", "DistMult", "ComplEx", "RotatE"]
GOALS = {("fb15k-237", "TransE"): .31, ("fb15k-237", "DistMult"): .34,
         ("fb15k-237", "ComplEx"): .345, ("fb15k-237", "RotatE"): .335}
# Further runs of a benchmark's model, and of a client's: what their names end with, in words.
FURTHER = ["wide", "long", "calm", "linear", "even", "broad", "broad-2", "broad-3", "narrow", "narrow-2",
           "narrow-3", "narrow-4"]
ARMS = {"": "", "-slow": ", rate 1e-4", "-gamma20": ", gamma 20", "-weights": ", subsampling weights",
        "-softmax": ", 1-vs-all softmax"}
LOD = [("whisky", "Whisky"), ("worldlift", "World lift"), ("tharawat", "Tharawat"),
       ("hellenic", "Hellenic")]


def records(folder):
    found = []
    for path in sorted(glob.glob(os.path.join(out, folder, "*.json"))):
        with open(path, encoding="utf-8") as f:
            found.append(json.load(f))
    return found


def published(name):
    with open(os.path.join(results, name), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def figure_of(rows, scale=1.0, **wanted):
    got = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    return float(got[0]["value"]) * scale if got else None


runs = records("runs")
central, fedlu, fkge = (published(n) for n in ("fb15k-237-central.csv", "fedlu.csv", "fkge.csv"))


def of(name):
    return [r for r in runs if r["name"] == name]


def cell(values):
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{spread}"


def span(values, digits=0):
    low, high = min(values), max(values)
    one = f"{low:.{digits}f}"
    return one if f"{high:.{digits}f}" == one else f"{one}-{high:.{digits}f}"


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |")


def head(*cells):
    row(*cells)
    print("|---" * len(cells) + "|")


def seeds(rs):
    return ", ".join(str(r["seed"]) for r in sorted(rs, key=lambda r: r["seed"]))


def cost(rs):
    """Wall and CPU minutes of training, load average (of both ends of training)."""
    loads = [s[k] for r in rs for s in r["train"]["stages"] for k in ("load_before", "load_after")]
    return (span([r["train"]["wall_s"] / 60 for r in rs], 1),
            span([r["train"]["cpu_s"] / 60 for r in rs], 1), span(loads, 1))


def settings_text(run):
    words = [f"{k} {v}" for k, v in (run["model"] | run["train"]).items()]
    stages = ["then " + " ".join(f"{k} {v}" for k, v in s.items()) for s in run["then"]]
    return "; ".join([", ".join(words), *stages])


def settings_list(names):
    print("\nSettings (chosen on valid; other keys as `fkge init` writes them):\n")
    for name in names:
        if of(name):
            print(f"* `{name}`: {settings_text(RUNS[name])}")


def ours_row(name, model, goal):
    rs, who = of(name), "**this program**"
    for word in FURTHER:
        if name.endswith(f"-{word}"):
            who += f", {word}"
    if not rs:
        row(model, who, "not run", "", "", "", goal, *[""] * 4)
        return
    row(model, who, *(cell([r["test"]["metrics"][f] for r in rs]) for f, _ in FIGURES), goal,
        seeds(rs), *cost(rs))
    row("", f"the same, valid ({RUNS[name]['valid_limit'] or 'all'})",
        cell([r["train"]["valid_mrr"] for r in rs]), *[""] * 8)


def benchmark(key, title):
    print(f"\n### {title}, protocol `standard`\n")
    head("model", "", "MRR", "Hits@1", "Hits@3", "Hits@10", "goal", "seeds",
         "training, min", "CPU min", "load")
    names = []
    for model in MODELS:
        name = f"{key}-{model.lower()}"
        for source in [("LibKGE", "LibKGE"), ("RotatE (ICLR 2019)", "RotatE paper or code")]:
            cells = [figure_of(central, paper=source[0], dataset=title, kge_model=model, metric=m)
                     for _, m in FIGURES]
            if cells[0] is not None:
                row(model, source[1], *(f"{c:.3f}" if c is not None else "-" for c in cells),
                    *[""] * 5)
        goal = GOALS.get((key, model), "")
        for run in [n for n in (name, *(f"{name}-{w}" for w in FURTHER)) if n in RUNS]:
            ours_row(run, model, goal)
            names.append(run)
    some = [r for n in names for r in of(n)]
    if some:
        floor = some[0]["test"]["floor"]
        row("*frequency floor*", "", *(f"{floor[f]:.4f}" for f, _ in FIGURES), *[""] * 5)
    settings_list(names)


def lod():
    print("\n### Small linked data, protocol `openke`\n")
    head("graph", "", "Hits@1", "Hits@3", "Hits@10", "MRR", "seeds", "training, s", "load")
    names = []
    for graph, title in LOD:
        cells = [figure_of(fkge, .01, table="4", dataset=title, method="Independent-TransE",
                           metric=m) for m in ("Hits@1", "Hits@3", "Hits@10")]
        row(graph, "FKGE, Table 4", *(f"{c:.4f}" if c else "-" for c in cells), *[""] * 4)
        for name, arm in ((f"lod-{graph}", "paper's settings"),
                          (f"lod-{graph}-chosen", "chosen on valid")):
            rs = of(name)
            names.append(name)
            if rs:
                row(graph, f"this program, {arm}",
                    *(cell([r["test"]["metrics"][f] for r in rs])
                      for f in ("hits1", "hits3", "hits10", "mrr")), seeds(rs),
                    span([r["train"]["wall_s"] for r in rs]), cost(rs)[2])
        if of(f"lod-{graph}"):
            floor = of(f"lod-{graph}")[0]["test"]["floor"]
            row(graph, "*frequency floor*",
                *(f"{floor[f]:.4f}" for f in ("hits1", "hits3", "hits10", "mrr")), *[""] * 3)
    settings_list(names)


def weighted(rs, figure, part="metrics"):
    n = sum(r["test"]["metrics"]["queries"] for r in rs)
    return sum(r["test"]["metrics"]["queries"] * r["test"][part][figure] for r in rs) / n


def clients_of(split, model):
    """Records of the clients of one seed, for the seeds that have all three."""
    by_seed = {}
    for client in range(3):
        for r in of(f"{split}-{model}-{client}"):
            by_seed.setdefault(r["seed"], []).append(r)
    return {s: rs for s, rs in by_seed.items() if len(rs) == 3}


def clients():
    print("\n### FB15k-237 dealt to three clients, each alone, protocol `fedlu`\n")
    head("split", "model", "", "MRR", "Hits@1", "Hits@3", "Hits@10", "difference in MRR",
         "MRR of clients 0, 1, 2", "seeds", "training, min", "CPU min", "load")
    names = []
    for split in ("r3", "c3"):
        for model, arm in (("TransE", ""), ("TransE", "-slow"), ("TransE", "-gamma20"),
                           ("TransE", "-weights"), ("ComplEx", ""), ("ComplEx", "-slow"),
                           ("ComplEx", "-softmax"), ("RotatE", ""), ("RotatE", "-weights")):
            title = f"FB15k-237-{split.upper()}"
            theirs = [figure_of(fedlu, .01, dataset=title, kge_model=model, method="Independent",
                                metric=m) for _, m in FIGURES]
            if not arm:
                row(split, model, "FedLU, Independent", *(f"{c:.4f}" for c in theirs), *[""] * 6)
            found = clients_of(split, model.lower() + arm)
            names += [f"{split}-{model.lower()}{arm}-{c}" for c in range(3)]
            who = "**this program**" + ARMS[arm]
            if not found:
                row(split, model, who, "not run", *[""] * 9)
                continue
            every = [r for rs in found.values() for r in rs]
            ours = [[weighted(rs, f) for rs in found.values()] for f, _ in FIGURES]
            each = [cell([rs[c]["test"]["metrics"]["mrr"] for rs in found.values()])
                    for c in range(3)]
            row(split, model, who, *(cell(v) for v in ours),
                f"{statistics.mean(ours[0]) - theirs[0]:+.4f}", ", ".join(each),
                ", ".join(str(s) for s in found), *cost(every))
        rs = next(iter(clients_of(split, "transe").values()), None)
        if rs:
            row(split, "*frequency floor*", "", *(f"{weighted(rs, f, 'floor'):.4f}"
                                                  for f, _ in FIGURES), *[""] * 6)
    settings_list(names)


def tries():
    print("\n### Tries: valid only, seed 1\n")
    head("run", "changed", "valid MRR", "epochs", "training, s")
    for r in records("tries"):
        row(r["name"], re.sub(r"\|", "/", ", ".join(r["changed"])),
            f"{r['valid']['metrics']['mrr']:.4f}", r["train"]["epochs"],
            f"{r['train']['wall_s']:.0f}")


def report():
    print(f"\nMachine: {', '.join(sorted({r['machine'] for r in runs}))}; "
          f"threads {', '.join(sorted({str(r['threads']) for r in runs}))}. Cells are mean ± "
          "standard deviation over the seeds; minutes are one run's, least to most.")
    for key, title in BENCHMARKS:
        benchmark(key, title)
    lod()
    clients()
    tries()


def replace_tables(path):
    made = io.StringIO()
    with contextlib.redirect_stdout(made):
        report()
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    begin, end = [i for i, line in enumerate(lines) if line.startswith("<!-- tables")]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*lines[:begin + 1], made.getvalue(), *lines[end:]]))


if len(sys.argv) > 3:
    replace_tables(sys.argv[3])
else:
    report()
