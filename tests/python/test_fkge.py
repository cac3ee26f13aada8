#!/usr/bin/env python3
"""The Python module against the program: test_fkge.py FKGE LIBRARY.  Prints TAP."""
import contextlib
import copy
import gc
import io
import json
import math
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
FKGE, LIBRARY = (os.path.realpath(p) for p in sys.argv[1:3])
os.environ["FKGE_LIBRARY"] = LIBRARY
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(TREE, "python"), os.path.join(TREE, "tests", "cli")]
try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP no NumPy: apt-get install python3-numpy")
    sys.exit(0)
import fkge  # noqa: E402
import storedb  # noqa: E402
import tap  # noqa: E402

KINDS = ["transe", "transe_l2", "transh", "transh_l2", "transr", "transr_l2", "transd", "transd_l2", "distmult",
         "complex", "rotate", "distmult_reciprocal", "complex_reciprocal"]
# in memory where that can be, for every command syncs its store
WORK = tempfile.TemporaryDirectory(prefix="fkge-test.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
TRAIN = {"train.epochs": 12, "train.eval_every": 4, "train.threads": 1, "train.lr": 0.02, "train.batch": 64,
         "train.negatives": 8, "model.dim": 8}


def run(*words, folder=None):
    """What fkge says by --json."""
    where = ["-d", folder] if folder else []
    done = subprocess.run([FKGE, "-q", *where, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"fkge {words}: {done.stderr}")
    return json.loads(done.stdout)


def setUpModule():
    run("synth", "-e", "120", "-r", "4", "-t", "700", "-o", os.path.join(WORK.name, "graph"))
    agent = os.path.join(WORK.name, "agent")
    run("init", "--listen", "off", folder=agent)
    run("import", os.path.join(WORK.name, "graph"), folder=agent)
    for key, value in TRAIN.items():
        run("config", "set", key, str(value), folder=agent)


def tearDownModule():
    WORK.cleanup()


class Library(unittest.TestCase):
    agent = os.path.join(WORK.name, "agent")

    def trained(self, kind):
        run("config", "set", "model.kind", kind, folder=self.agent)
        return run("train", "--fresh", folder=self.agent)

    def graph(self):
        return fkge.load_graph(os.path.join(WORK.name, "graph"))

    def test_kinds_are_all(self):
        said = subprocess.run([FKGE, "init", "--reference"], capture_output=True, text=True, check=True).stdout
        words = said.split("`kind:")[1].split("* `")[0]
        self.assertEqual([k for k in KINDS if k not in words], [])
        self.assertEqual(words.count("|") + 1, len(KINDS), words)

    def test_five_lines(self):
        """From an agent's folder to the program's own test MRR, for every kind; the library trains to the same bits."""
        graph = fkge.load_graph(self.agent)
        for kind in KINDS:
            with self.subTest(kind=kind):
                trained = self.trained(kind)
                want = run("eval", folder=self.agent)["metrics"]
                model = fkge.open(self.agent)
                got = model.evaluate(split="test")
                self.assertAlmostEqual(got.mrr, want["mrr"], delta=0.001)
                self.assertEqual((got.queries, model.kind), (want["queries"], kind))
                self.assertEqual(model.about["digest"], trained["digest"])
                own = fkge.train(graph, {**TRAIN, "model.kind": kind})
                self.assertEqual(own.about["digest"], trained["digest"])
                self.assertAlmostEqual(own.about["valid_score"], trained["valid_mrr"], delta=1e-9)

    def test_prefixes_and_labels(self):
        """An agent's names are asked for, and shown, as the command does."""
        agent, path = os.path.join(WORK.name, "words"), os.path.join(WORK.name, "words.nt")
        label = "http://www.w3.org/2000/01/rdf-schema#label"
        with open(path, "w", encoding="utf-8") as f:
            for k in range(40):
                f.write(f"<http://e.org/p{k}> <http://e.org/in> <http://e.org/g{k % 4}> .\n"
                        f"<http://e.org/p{k}> <http://e.org/likes> <http://e.org/h{k % 4}> .\n")
            f.write(f'<http://e.org/g1> <{label}> "Group one"@en .\n')
        run("init", "--listen", "off", folder=agent)
        run("import", path, "--prefix", "ex=http://e.org/", "--labels", "en", folder=agent)
        for key, value in TRAIN.items():
            run("config", "set", key, str(value), folder=agent)
        run("train", folder=agent)
        model = fkge.open(agent)
        first = run("checkpoint", "list", folder=agent)["checkpoints"][0]["id"]
        self.assertEqual(fkge.open(agent, np.uint64(first)).about["digest"], model.about["digest"])
        for number in (-1, 2**64, 2**64 + first):
            with self.assertRaisesRegex(fkge.UsageError, f"checkpoint {number}: "):
                fkge.open(agent, number)
        for number in (1.0, "1"):
            with self.assertRaises(TypeError):
                fkge.open(agent, number)
        names = model.graph.entities
        self.assertEqual(names.number("ex:g1"), names.number("http://e.org/g1"))
        self.assertIn("ex:p3", names)
        self.assertEqual((names.short("http://e.org/g1"), names.label("ex:g1"), names.label("ex:g2")),
                         ("ex:g1", "Group one", None))
        self.assertEqual(model.graph.relations.short(0), "ex:in")
        with self.assertRaises(IndexError):
            names.short(-1)
        with self.assertRaises(TypeError):
            names.label(1.0)
        self.assertEqual(model.predict("ex:p3", "ex:in", None), model.predict("http://e.org/p3", "http://e.org/in", None))
        asked = model.query("SELECT ?x { ex:p3 ex:in ?x }")
        self.assertEqual(asked[0].name, "http://e.org/g3")
        loaded = fkge.load_graph(path, "prefix=ex=http://e.org/ labels=en")
        self.assertEqual(loaded.entities.label("ex:g1"), "Group one")
        fkge.load_graph(agent, " ")
        with self.assertRaisesRegex(fkge.UsageError, "leave out the settings"):
            fkge.load_graph(agent, "valid=0.5")

    def test_private_tables(self):
        """They are written in the order of names, for ids follow the triples, and with no name that may tell of those."""
        agent, path = os.path.join(WORK.name, "private"), os.path.join(WORK.name, "private.nt")
        with open(path, "w", encoding="utf-8") as f:
            for k in range(40, 0, -1):
                f.write(f"_:x{k} <urn:in> <urn:g{k % 4}> .\n_:x{k} <urn:from> <urn:h{k % 4}> .\n")
        run("init", "--listen", "off", folder=agent)
        run("import", path, folder=agent)
        for key, value in {**TRAIN, "train.filtered": False, "train.shared_chunk": 0, "train.dp.epsilon": 8}.items():
            run("config", "set", key, str(value).lower(), folder=agent)
        run("train", folder=agent)
        model, rows = fkge.open(agent), os.path.join(WORK.name, "private.rows")
        model.export(rows, "tsv")
        for table, names, floats in (("entities", model.graph.entities, model.entities),
                                     ("relations", model.graph.relations, model.relations)):
            with open(os.path.join(rows, table + ".tsv"), encoding="utf-8") as f:
                said = [line.split("\t") for line in f.read().splitlines()]
            self.assertNotEqual(list(names), sorted(names))
            self.assertEqual([r[0] for r in said], sorted(names))
            np.testing.assert_allclose([[float(x) for x in r[1:]] for r in said],
                                       floats[[names.number(r[0]) for r in said]], rtol=1e-6)
        heads = []
        model.export(rows + ".ours", "safetensors")
        run("export", rows + ".program", "--format", "safetensors", folder=agent)
        for by in ".ours", ".program":
            with open(os.path.join(rows + by, "model.safetensors"), "rb") as f:
                heads.append(json.loads(f.read(int.from_bytes(f.read(8), "little"))))
        self.assertEqual(heads[0], heads[1])
        self.assertEqual(heads[0]["__metadata__"]["private_steps"], str(model.about["private_steps"]))
        with storedb.connect(os.path.join(agent, "store.db")) as db:  # as an earlier fkge left it
            db.execute("DELETE FROM meta WHERE key = 'blanks'")
        with self.assertRaisesRegex(fkge.UsageError, "named by a hash of a file"):
            fkge.open(agent).export(os.path.join(WORK.name, "private.rows2"))
        self.assertFalse(os.path.exists(os.path.join(WORK.name, "private.rows2")))

    def test_past_memory(self):
        """Tables that were trained past memory are read in place; no number of a checkpoint is theirs."""
        agent = os.path.join(WORK.name, "past")
        shutil.copytree(self.agent, agent)
        run("config", "set", "train.partitions", "8", folder=agent)
        trained = run("train", "--fresh", folder=agent)
        self.assertTrue(os.path.exists(os.path.join(agent, "tables.f32")))
        model = fkge.open(agent)
        self.assertEqual(model.about["digest"], trained["digest"])
        self.assertEqual(model.about["valid_score"], trained["valid_mrr"])
        self.assertAlmostEqual(model.evaluate(split="test").mrr, run("eval", folder=agent)["metrics"]["mrr"], delta=1e-9)
        shape = {"model.kind": model.kind, "model.dim": model.dim, "model.gamma": model.about["gamma"]}
        again = fkge.Model.of_rows(model.graph, shape, model.entities, model.relations)
        self.assertEqual(again.about["digest"], trained["digest"])
        with self.assertRaises(fkge.NotFoundError):
            fkge.open(agent, 9999)

    def test_rows_and_scores(self):
        """Every kind: rows go out as arrays and back, and predictions have the scores of single triples."""
        graph = self.graph()
        for kind in KINDS:
            with self.subTest(kind=kind):
                shape = {"model.kind": kind, "model.dim": 6}
                a = fkge.train(graph, {**TRAIN, **shape, "train.epochs": 1})
                b = fkge.Model.of_rows(graph, shape, a.entities, a.relations)
                self.assertEqual(a.about["digest"], b.about["digest"])
                head, rel, _ = (int(x) for x in graph.triples("test")[0])
                answers = a.predict(graph.entities[head], graph.relations[rel], None, top=5, known=True)
                asked = [(head, rel, x.number) for x in answers]
                np.testing.assert_allclose(a.score(asked), [x.score for x in answers], rtol=1e-4, atol=1e-5)

    def test_views_keep_their_model(self):
        graph = self.graph()
        model = fkge.train(graph, {**TRAIN, "train.epochs": 1})
        rows, triples = model.entities, model.graph.triples("train")
        self.assertEqual(rows.ctypes.data, model.entities.ctypes.data)  # not copied
        self.assertFalse(rows.flags.writeable)
        with self.assertRaises(ValueError):
            rows[0, 0] = 1
        before, part = rows.copy(), rows[3:5, 1:]
        freed, handle = [], model._handle
        free = fkge._lib.fkge_model_free
        fkge._lib.fkge_model_free = lambda h: (freed.append(h) if h == handle else None, free(h))
        try:
            del model, graph
            gc.collect()
            self.assertEqual(freed, [])
            np.testing.assert_array_equal(rows, before)
            del rows, triples
            gc.collect()
            self.assertEqual(freed, [])  # a part of the array keeps it, too
            np.testing.assert_array_equal(part, before[3:5, 1:])
            del part
            self.assertEqual(freed, [handle])  # at once: nothing here refers to itself
        finally:
            fkge._lib.fkge_model_free = free

    def test_copies_share_no_handle(self):
        graph = self.graph()
        model = fkge.train(graph, {**TRAIN, "train.epochs": 1})
        for held in graph, model:
            self.assertIs(copy.copy(held), held)
            self.assertIs(copy.deepcopy([held])[0], held)
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(held)

    def test_numbers_are_not_wrapped(self):
        model = fkge.train(self.graph(), {**TRAIN, "train.epochs": 1})
        for wrong in ([[2**32 + 1, 0, 1]], [[-1, 0, 1]], [[0.5, 0, 1]]):
            with self.assertRaises(ValueError):
                model.score(np.array(wrong))

    def test_names(self):
        path = os.path.join(WORK.name, "names.tsv")
        with open(path, "w", encoding="utf-8") as f:
            f.write("a b\tr\t\u03b3\n\u03b3\tr\ta b\n")
        graph = fkge.load_graph(path, valid=0, test=0)
        self.assertEqual(list(graph.entities), ["a b", "\u03b3"])
        self.assertEqual(graph.entities[-1], "\u03b3")
        self.assertEqual(graph.entities[0:9], ["a b", "\u03b3"])
        self.assertEqual((graph.entities.number("\u03b3"), graph.entities.index("a b")), (1, 0))
        self.assertTrue("r" in graph.relations and "s" not in graph.relations and 3 not in graph.relations)
        self.assertEqual(graph.triples().tolist(), [[0, 0, 1], [1, 0, 0]])
        self.assertEqual(graph.triples("test").shape, (0, 3))
        self.assertEqual(graph.entities[np.int64(1)], "\u03b3")
        for number in (2, -3, 2**64):
            with self.assertRaises(IndexError):
                graph.entities[number]
        for number in (1.0, 1.7, np.float64(1), "1"):
            with self.assertRaises(TypeError):
                graph.entities[number]
        with self.assertRaisesRegex(LookupError, "no entity 'c'"):
            graph.entities.number("c")
        names = list(graph.entities)
        for places in ((0,), (1,), (-1,), (-2,), (-9,), (0, 1), (0, -1), (-2, -1), (0, 9), (1, -9)):
            for name in (*names, "c"):
                self.assertEqual(self.place(graph.entities, name, places), self.place(names, name, places))

    @staticmethod
    def place(names, name, places):
        """What index() says; None: it is not there."""
        try:
            return names.index(name, *places)
        except ValueError:
            return None

    def test_asking(self):
        self.trained("complex")
        model = fkge.open(self.agent)
        said = run("predict", "e1", "r0", "?", "-k", "4", folder=self.agent)["answers"]
        self.assertEqual([a.name for a in model.predict("e1", "r0", None, top=4)], [a["name"] for a in said])
        sizes = set()
        for known in False, True:
            for typed in False, True:
                flags = ["-a"] * known + ["--typed"] * typed
                said = run("predict", "e1", "r0", "?", "-k", "1000", *flags, folder=self.agent)["answers"]
                got = model.predict("e1", "r0", None, top=1000, known=known, typed=typed)
                self.assertEqual([(a.name, a.known) for a in got], [(a["name"], a["known"]) for a in said])
                sizes.add(len(got))
        self.assertEqual(len(sizes), 4)  # each leaves out something else
        said = run("similar", "e1", "-k", "4", "--by", "distance", folder=self.agent)["similar"]
        self.assertEqual([a.name for a in model.similar("e1", 4, by="distance")], [a["name"] for a in said])
        sparql = "SELECT ?x { <e1> <r0> ?y . ?y <r1> ?x }"
        said = run("query", sparql, folder=self.agent)["answers"]
        got = model.query(sparql, threads=1)
        self.assertEqual([(a.name, a.known) for a in got], [(a["name"], a["known"]) for a in said])
        np.testing.assert_allclose([a.score for a in got], [a["truth"] for a in said], rtol=1e-4)
        self.assertEqual(model.predict("e1", None, "e2", known=True)[0]._fields, fkge.Answer._fields)

    def test_settings_in_two_forms(self):
        path = os.path.join(WORK.name, "forms.tsv")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"e{i}\tr\te{(i + k) % 40}\n" for i in range(40) for k in (1, 2, 3))
        words = fkge.load_graph(path, "valid=0.2 test=0", seed=9).triples("valid").tolist()
        self.assertEqual(words, fkge.load_graph(path, {"valid": 0.2, "test": 0, "seed": 9}).triples("valid").tolist())
        self.assertEqual(words, fkge.load_graph(path, {"valid": 0.2}, test=0, seed=9).triples("valid").tolist())
        self.assertNotEqual(words, fkge.load_graph(path, "valid=0.2 test=0").triples("valid").tolist())

    def test_export_and_back(self):
        graph, folder = self.graph(), os.path.join(WORK.name, "rows")
        shape = {"model.kind": "rotate", "model.dim": 4, "model.gamma": 6}
        model = fkge.train(graph, {**TRAIN, **shape, "train.epochs": 1})
        model.export(folder)
        np.testing.assert_array_equal(np.load(os.path.join(folder, "entities.npy")), model.entities)
        bare = fkge.load_rows(folder, shape)
        self.assertEqual(list(bare.graph.entities), list(graph.entities))
        whole = fkge.load_rows(folder, shape, graph)
        self.assertEqual(whole.evaluate(), model.evaluate())
        self.assertEqual(bare.similar("e1"), whole.similar("e1"))

    def test_training_is_told_and_stopped(self):
        graph, seen = self.graph(), []
        model = fkge.train(graph, TRAIN, progress=lambda p: seen.append(p) or p.epoch == 6)
        self.assertEqual([p.epoch for p in seen], [1, 2, 3, 4, 5, 6])
        self.assertEqual([math.isnan(p.valid_mrr) for p in seen], [True, True, True, False, True, True])
        self.assertEqual(model.about["epochs"], 4)  # valid saw no others
        more = fkge.train(graph, {"train.epochs": 8}, start=model)
        self.assertGreaterEqual(more.about["valid_score"], model.about["valid_score"])

        early = fkge.train(graph, TRAIN, progress=lambda p: p.epoch == 2)  # before valid was looked at
        self.assertEqual(early.about["epochs"], 2)
        self.assertAlmostEqual(early.about["valid_score"], early.evaluate("valid", filter="train+valid").mrr)
        self.assertEqual(early.about["digest"], fkge.train(graph, {**TRAIN, "train.epochs": 2}).about["digest"])

        def interrupt(_):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            fkge.train(graph, TRAIN, progress=interrupt)

    def test_an_interrupt_ends_training(self):
        seen, before = [], signal.getsignal(signal.SIGINT)

        def press(p):
            seen.append(p.epoch)
            if p.epoch == 2:  # most likely while the library trains, not while this is run
                threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

        with self.assertRaises(KeyboardInterrupt):
            fkge.train(self.graph(), {**TRAIN, "train.epochs": 20000, "train.patience": 0}, progress=press)
        self.assertLess(len(seen), 20000)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_refusals(self):
        graph = self.graph()
        for settings, says in (({"model.kind": "transx"}, "transx"), ({"model.dim": "1 2"}, "no blanks"),
                               ("model.dim", "key=value"), ({"train.dp.epsilon": 1, "train.filtered": False,
                                                             "train.shared_chunk": 0}, "ledger")):
            with self.assertRaisesRegex(ValueError, says):
                fkge.train(graph, settings)
        with self.assertRaisesRegex(fkge.NotFoundError, "no agent lives here"):
            fkge.open(WORK.name)
        with self.assertRaises(fkge.NotFoundError):
            fkge.load_graph(os.path.join(WORK.name, "nothing"))
        model = fkge.train(graph, {**TRAIN, "train.epochs": 1})
        with self.assertRaisesRegex(fkge.UsageError, "shape"):
            fkge.Model.of_rows(graph, TRAIN, model.entities[1:], model.relations)
        with self.assertRaisesRegex(fkge.UsageError, "not the graph's|not in one|has a number"):
            model.score([[0, 9, 0]])
        with self.assertRaises(fkge.UsageError):
            model.predict("e1", "r0", "e2")
        with self.assertRaisesRegex(fkge.UsageError, "train, valid, test"):
            model.evaluate(split="all")
        with self.assertRaises(fkge.UsageError):
            model.query("SELECT")
        for call in (lambda: model.query("SELECT ?x { <e1> <r0> ?x }\0 more"), lambda: model.export("x\0y"),
                     lambda: model.export("x", "npy\0y"), lambda: fkge.train(graph, "train.epochs=1\0more"),
                     lambda: fkge.load_graph("x\0y")):
            with self.assertRaisesRegex(fkge.UsageError, "NUL"):
                call()
        with self.assertRaisesRegex(fkge.UsageError, "exactly one"):
            model.predict(None, None, "e2")
        for call in (lambda: model.query(5), lambda: model.similar(None)):
            with self.assertRaisesRegex(TypeError, "must be a str"):
                call()

    def test_threads(self):
        model = fkge.train(self.graph(), {**TRAIN, "train.epochs": 2})
        want, wrong = model.predict("e1", "r0", None), []

        def ask():
            for _ in range(20):
                if model.predict("e1", "r0", None) != want:
                    wrong.append("answers")
                try:
                    model.query("nonsense")
                except fkge.UsageError:
                    continue
                wrong.append("no error")

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_guide(self):
        """Every block of Python in the guide, as it stands."""
        self.trained("complex")
        os.makedirs(os.path.join(WORK.name, "graphs"))
        os.symlink(self.agent, os.path.join(WORK.name, "acme"))
        os.symlink(os.path.join(WORK.name, "graph"), os.path.join(WORK.name, "graphs", "0"))
        with open(os.path.join(TREE, "docs", "guide", "library.md"), encoding="utf-8") as f:
            blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
        self.assertEqual(len(blocks), 2)
        said, back, names = io.StringIO(), os.getcwd(), {}
        os.chdir(WORK.name)
        try:
            with contextlib.redirect_stdout(said):
                for block in blocks:
                    exec(block, names)  # pylint: disable=exec-used
        finally:
            os.chdir(back)
        want = run("eval", folder=self.agent)["metrics"]["mrr"]
        self.assertAlmostEqual(float(said.getvalue().split()[0]), want, delta=0.001)
        self.assertEqual(names["own"].about["digest"], names["model"].about["digest"])

    def test_version(self):
        self.assertEqual(fkge.version(), run("version")["version"])


if __name__ == "__main__":
    tap.main()
