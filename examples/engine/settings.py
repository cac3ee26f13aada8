"""What examples/engine/run trains: one entry a run, with the settings chosen on valid.

A run is data folder, protocol and the `model` and `train` keys of agent.yaml.  Keys that are
not here have the defaults of `fkge init`.
"""

SELF_ADVERSARIAL = {
    "optimizer": "adam", "loss": "self_adversarial", "temperature": 1, "negatives": 256,
    "shared_chunk": 16, "batch": 512, "corrupt": "alternate", "sampling": "uniform", "filtered": "true",
}
# 1-vs-all: every query once an epoch, against all entities, with all of its answers.
SOFTMAX = {"optimizer": "adagrad", "loss": "softmax", "negatives": 0, "batch": 512,
           "corrupt": "both", "sampling": "uniform", "lr": 0.1}
# OpenKE's settings, as FKGE's base has them: hyperparameters.md, column FKGE.
OPENKE = {
    "optimizer": "sgd", "loss": "margin", "margin": 1, "negatives": 1, "shared_chunk": 0,
    "corrupt": "alternate", "sampling": "uniform", "filtered": "true", "normalize": "true", "epochs": 1000,
    "eval_every": 50, "patience": 0,
}
# FedLU's Independent rows: hyperparameters.md, column FedLU, as far as this program has them.
FEDLU = SELF_ADVERSARIAL | {"lr": 1e-3, "epochs": 20, "eval_every": 10}
FEDLU_THEN = [{"lr": 3e-4, "epochs": 8, "eval_every": 8}, {"lr": 1e-4, "epochs": 8, "eval_every": 8}]

RUNS = {}


def add(name, data, protocol, model, train, then=(), valid_limit=0):
    """then: further stages, each a dict of what changes in train."""
    RUNS[name] = {"data": data, "protocol": protocol, "model": model, "train": train,
                  "then": list(then), "valid_limit": valid_limit}


def add_ensemble(name, of, models):
    """So many seeds of a run that is there, side by side as one model: of seed s, those from
    models (s - 1) + 1 on."""
    RUNS[name] = {k: RUNS[of][k] for k in ("data", "protocol", "train", "valid_limit")} | {
        "model": RUNS[of]["model"] | {"dim": models * RUNS[of]["model"]["dim"]},
        "then": [], "ensemble": {"of": of, "models": models}}


# ---- FKGE's Table 4: independent TransE on small linked data ----
# OpenKE cuts an epoch into 100 batches: `batch` is a hundredth of train.
for graph, batch in (("whisky", 12), ("worldlift", 11), ("tharawat", 193), ("hellenic", 300)):
    add(f"lod-{graph}", f"lod/{graph}", "openke", {"kind": "transe", "dim": 100, "gamma": 1},
        OPENKE | {"batch": batch, "lr": 0.5})
    add(f"lod-{graph}-chosen", f"lod/{graph}", "openke",
        {"kind": "transe_l2", "dim": 100, "gamma": 1},
        OPENKE | {"batch": batch, "lr": 0.1, "normalize": "false"})

# ---- FedLU's Independent rows: the clients of a split, each alone ----
for split in ("r3", "c3"):
    for kind, loss, gamma in (("transe", "logistic", 9), ("rotate", "self_adversarial", 9),
                              ("complex", "logistic", 20)):
        for client in range(3):
            add(f"{split}-{kind}-{client}", f"fb15k-237-{split}/{client}", "fedlu",
                {"kind": kind, "dim": 256, "gamma": gamma}, FEDLU | {"loss": loss}, FEDLU_THEN)

# The same TransE as FedLU trains it: rate 1e-4 throughout, stopped after three looks at valid without
# gain.  Negatives are drawn anew; FedLU keeps the first ones, which `--set draws=once` does too.
for split in ("r3", "c3"):
    for client in range(3):
        add(f"{split}-transe-slow-{client}", f"fb15k-237-{split}/{client}", "fedlu",
            {"kind": "transe", "dim": 256, "gamma": 9},
            FEDLU | {"loss": "logistic", "lr": 1e-4, "epochs": 400, "patience": 3})

# The same TransE with a gamma that FedLU's script gives to FedLU and not to its other rows, and with FedLU's
# subsampling weights.
for split in ("r3", "c3"):
    for client in range(3):
        add(f"{split}-transe-gamma20-{client}", f"fb15k-237-{split}/{client}", "fedlu",
            {"kind": "transe", "dim": 256, "gamma": 20}, FEDLU | {"loss": "logistic"}, FEDLU_THEN)
        for kind, loss in (("transe", "logistic"), ("rotate", "self_adversarial")):
            add(f"{split}-{kind}-weights-{client}", f"fb15k-237-{split}/{client}", "fedlu",
                {"kind": kind, "dim": 256, "gamma": 9},
                FEDLU | {"loss": loss, "subsampling": "true"}, FEDLU_THEN)

# ComplEx as FedLU trains it: its rate, its subsampling weights, the least gamma of its three (with 20 and 50
# tables begin too wide).
for split in ("r3", "c3"):
    for client in range(3):
        add(f"{split}-complex-slow-{client}", f"fb15k-237-{split}/{client}", "fedlu",
            {"kind": "complex", "dim": 256, "gamma": 10},
            FEDLU | {"loss": "logistic", "subsampling": "true", "shared_chunk": 64, "lr": 1e-4,
                     "epochs": 240, "eval_every": 20, "patience": 3})

# ComplEx for the same clients with 1-vs-all softmax: the logistic loss over drawn negatives, which
# FedLU has, overfits here from the tenth epoch on.
for split in ("r3", "c3"):
    for client in range(3):
        add(f"{split}-complex-softmax-{client}", f"fb15k-237-{split}/{client}", "fedlu",
            {"kind": "complex", "dim": 256, "gamma": 0.01},
            SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 16, "eval_every": 4},
            [{"lr": 0.02, "epochs": 6, "eval_every": 3}])

# ---- the two public benchmarks ----
add("fb15k-237-transe", "fb15k-237", "standard", {"kind": "transe", "dim": 256, "gamma": 9},
    SELF_ADVERSARIAL | {"lr": 1e-3, "epochs": 15, "eval_every": 15},
    [{"lr": 3e-4, "epochs": 6, "eval_every": 6}, {"lr": 1e-4, "epochs": 6, "eval_every": 6}],
    valid_limit=3000)
add("fb15k-237-complex", "fb15k-237", "standard", {"kind": "complex", "dim": 128, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 30, "eval_every": 5, "patience": 2},
    valid_limit=3000)
add("fb15k-237-distmult", "fb15k-237", "standard", {"kind": "distmult", "dim": 256, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 16, "eval_every": 4, "patience": 2},
    [{"lr": 0.02, "epochs": 12, "eval_every": 3}], valid_limit=3000)
add("fb15k-237-rotate", "fb15k-237", "standard", {"kind": "rotate", "dim": 256, "gamma": 9},
    SELF_ADVERSARIAL | {"subsampling": "true", "lr": 1e-3, "epochs": 25, "eval_every": 25},
    [{"lr": 3e-4, "epochs": 12, "eval_every": 6}, {"lr": 1e-4, "epochs": 8, "eval_every": 8}],
    valid_limit=3000)
# wider, or longer, than the ones above
add("fb15k-237-complex-wide", "fb15k-237", "standard", {"kind": "complex", "dim": 256, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 30, "eval_every": 5, "patience": 2},
    valid_limit=3000)
add("fb15k-237-distmult-wide", "fb15k-237", "standard", {"kind": "distmult", "dim": 512, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 30, "eval_every": 5, "patience": 2},
    valid_limit=3000)
add("fb15k-237-rotate-wide", "fb15k-237", "standard", {"kind": "rotate", "dim": 400, "gamma": 9},
    SELF_ADVERSARIAL | {"shared_chunk": 64, "lr": 1e-3, "epochs": 45, "eval_every": 15},
    [{"lr": 3e-4, "epochs": 10, "eval_every": 10}, {"lr": 1e-4, "epochs": 10, "eval_every": 10}],
    valid_limit=3000)

add("fb15k-237-rotate-long", "fb15k-237", "standard", {"kind": "rotate", "dim": 400, "gamma": 9},
    SELF_ADVERSARIAL | {"subsampling": "true", "lr": 1e-3, "epochs": 70, "eval_every": 35},
    [{"lr": 3e-4, "epochs": 25, "eval_every": 25}, {"lr": 1e-4, "epochs": 15, "eval_every": 15}],
    valid_limit=3000)

# wide, ended at a lower rate, and all of valid looked at: with 3000 of its triples a look is off
# by .004, and two bad ones in a row ended a run at its fifth epoch
for kind, dim in (("complex", 256), ("distmult", 512)):
    add(f"fb15k-237-{kind}-calm", "fb15k-237", "standard", {"kind": kind, "dim": dim, "gamma": 0.01},
        SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "epochs": 16, "eval_every": 8},
        [{"lr": 0.02, "epochs": 6, "eval_every": 3}])

# relation prediction as a second task (Chen and others 2021: 1000 numbers, batch 1000, up to 500 epochs), in
# less than half the width, so that a run is an hour and a half of one thread
add("fb15k-237-complex-relations", "fb15k-237", "standard",
    {"kind": "complex_reciprocal", "dim": 400, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "relation_weight": 4, "schedule": "linear",
               "schedule_epochs": 30, "epochs": 30, "eval_every": 5})

# twice the width, a lower weight, popular queries in parts of eight answers
add("fb15k-237-complex-parts", "fb15k-237", "standard",
    {"kind": "complex_reciprocal", "dim": 800, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "relation_weight": 2, "query_answers": 8, "batch": 1024,
               "precision": "bfloat16", "schedule": "linear", "schedule_epochs": 24, "epochs": 24, "eval_every": 8})

# the published width, parts of four answers, more epochs
add("fb15k-237-complex-broad", "fb15k-237", "standard",
    {"kind": "complex_reciprocal", "dim": 1000, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "relation_weight": 2, "query_answers": 4, "batch": 1024,
               "precision": "bfloat16", "schedule": "linear", "schedule_epochs": 36, "epochs": 36, "eval_every": 12})

# two and three of them as one
add_ensemble("fb15k-237-complex-broad-2", "fb15k-237-complex-broad", 2)
add_ensemble("fb15k-237-complex-broad-3", "fb15k-237-complex-broad", 3)

# more than three times as many epochs of the same
add("fb15k-237-complex-long", "fb15k-237", "standard",
    {"kind": "complex_reciprocal", "dim": 1000, "gamma": 0.01},
    SOFTMAX | {"reg": "l3", "reg_weight": 0.05, "relation_weight": 2, "query_answers": 4, "batch": 1024,
               "precision": "bfloat16", "schedule": "linear", "schedule_epochs": 120, "epochs": 120, "eval_every": 30})
# two of them as one
add_ensemble("fb15k-237-complex-long-2", "fb15k-237-complex-long", 2)

# wider still, and the rate falls evenly from 5e-4 to a hundredth of it
add("fb15k-237-rotate-linear", "fb15k-237", "standard", {"kind": "rotate", "dim": 500, "gamma": 9},
    SELF_ADVERSARIAL | {"shared_chunk": 32, "subsampling": "true", "lr": 5e-4, "schedule": "linear",
                        "schedule_epochs": 100, "epochs": 100, "eval_every": 20},
    valid_limit=3000)

# more epochs of the same, negatives shared by fewer
add("fb15k-237-rotate-even", "fb15k-237", "standard", {"kind": "rotate", "dim": 500, "gamma": 9},
    SELF_ADVERSARIAL | {"subsampling": "true", "lr": 5e-4, "schedule": "linear",
                        "schedule_epochs": 140, "epochs": 140, "eval_every": 70})

# the published width, so that a rate of the same size moves a row as far, half of it
add("fb15k-237-rotate-broad", "fb15k-237", "standard", {"kind": "rotate", "dim": 1000, "gamma": 9},
    SELF_ADVERSARIAL | {"shared_chunk": 64, "subsampling": "true", "lr": 3e-4, "schedule": "linear",
                        "schedule_epochs": 80, "epochs": 80, "eval_every": 40})

add("wn18rr-transe", "wn18rr", "standard", {"kind": "transe", "dim": 256, "gamma": 6},
    SELF_ADVERSARIAL | {"temperature": 0.5, "lr": 2e-3, "epochs": 30, "eval_every": 15},
    [{"lr": 5e-4, "epochs": 10, "eval_every": 10}, {"lr": 1e-4, "epochs": 10, "eval_every": 10}])
add("wn18rr-rotate", "wn18rr", "standard", {"kind": "rotate", "dim": 256, "gamma": 6},
    SELF_ADVERSARIAL | {"temperature": 0.5, "lr": 2e-3, "epochs": 30, "eval_every": 15},
    [{"lr": 5e-4, "epochs": 10, "eval_every": 10}, {"lr": 1e-4, "epochs": 10, "eval_every": 10}])
# DURA's code for WN18RR (Zhang and others 2020: 2000 numbers, batches of 100 triples, 50 epochs), a fifth as wide
add("wn18rr-complex-dura", "wn18rr", "standard", {"kind": "complex_reciprocal", "dim": 400, "gamma": 0.01},
    SOFTMAX | {"lr": 0.5, "reg": "dura", "reg_weight": 0.1, "rare_weight": 0.1, "batch": 256, "precision": "bfloat16",
               "schedule": "linear", "schedule_epochs": 30, "epochs": 30, "eval_every": 15})
# narrower and shorter, and several of it as one
add("wn18rr-complex-narrow", "wn18rr", "standard", {"kind": "complex_reciprocal", "dim": 256, "gamma": 0.01},
    SOFTMAX | {"lr": 0.5, "reg": "dura", "reg_weight": 0.1, "rare_weight": 0.3, "batch": 256, "precision": "bfloat16",
               "schedule": "linear", "schedule_epochs": 10, "epochs": 10, "eval_every": 10})
for models in (2, 3, 4):
    add_ensemble(f"wn18rr-complex-narrow-{models}", "wn18rr-complex-narrow", models)
for kind, dim in (("complex", 128), ("distmult", 256)):
    add(f"wn18rr-{kind}", "wn18rr", "standard", {"kind": kind, "dim": dim, "gamma": 0.01},
        SOFTMAX | {"lr": 0.5, "reg": "l3", "reg_weight": 0.1, "epochs": 15, "eval_every": 5,
                   "patience": 2})
