#!/usr/bin/env python3
"""Tables in other programs' formats, by NumPy alone: test_formats.py LIBRARY.  Prints TAP.

Each program's published formula scores triples from the files that are exported, and gives the scores of the library;
files that are written as the program writes them come in, and score the same; spoiled ones are refused."""
import csv
import gzip
import json
import os
import struct
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
os.environ["FKGE_LIBRARY"] = os.path.realpath(sys.argv[1])
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP no NumPy: apt-get install python3-numpy")
    sys.exit(0)
import fkge  # noqa: E402
import tap  # noqa: E402

GRAPH = [(f"e{i}", r, f"e{(i * k + k) % 40}") for i in range(40) for r, k in (("next", 1), ("twice", 2), ("far", 7))]
TRAIN = {"train.epochs": 2, "train.threads": 1, "train.lr": 0.05, "train.batch": 16, "train.negatives": 4,
         "model.dim": 6, "model.gamma": 4}
KINDS = ["transe", "transe_l2", "transh", "transh_l2", "transr", "transr_l2", "transd", "transd_l2", "distmult",
         "complex", "rotate", "distmult_reciprocal", "complex_reciprocal"]
ALIKE = ["transe", "transe_l2", "distmult", "complex", "distmult_reciprocal", "complex_reciprocal"]
WORK = tempfile.TemporaryDirectory(prefix="fkge-test.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def read_safetensors(path):
    """(tensors, metadata), as the format's description says."""
    raw = open(path, "rb").read()
    n, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + n])
    metadata = header.pop("__metadata__", {})
    assert (8 + n) % 8 == 0 and all(isinstance(v, str) for v in metadata.values())
    out = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        assert t["dtype"] == "F32"
        out[name] = np.frombuffer(raw[8 + n + begin:8 + n + end], dtype="<f4").reshape(t["shape"])
    return out, metadata


def write_safetensors(path, tensors, metadata=None, edit=None):
    """edit(header) may spoil it."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, t in tensors.items():
        raw = np.ascontiguousarray(t, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps((edit or (lambda h: h))(header)).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def halves(x):
    half = x.shape[-1] // 2
    return x[..., :half] + 1j * x[..., half:]


def pairs(x):
    return x[..., 0::2] + 1j * x[..., 1::2]


# ---- published formulas: E, R tables of complex or real rows; h, r, t arrays of numbers ----

def trilinear(h, r, t):
    return np.real(np.sum(h * r * np.conj(t), axis=-1))


def norm(x, kind):
    return np.linalg.norm(x, ord=2 if kind.endswith("_l2") else 1, axis=-1)


def by_our_layout(kind, E, R, h, r, t, gamma, dim, side):
    """The formulas of the papers over `fkge export --help`'s layout."""
    kind_, second = kind.replace("_reciprocal", ""), kind.endswith("_reciprocal")
    if second:  # the other row, and asked from the other end
        half = R.shape[1] // 2
        R, (h, t) = (R[:, half:], (t, h)) if side == "head" else (R[:, :half], (h, t))
    x, y, rel = E[h], E[t], R[r]
    if kind_ == "distmult":
        return trilinear(x, rel, y)
    if kind_ == "complex":
        return trilinear(halves(x), halves(rel), halves(y))
    if kind_ == "rotate":
        turned = halves(x) * np.exp(1j * rel / ((gamma + 2) / dim / np.pi))
        return gamma - np.sum(np.abs(turned - halves(y)), axis=-1)
    move = rel[:, :dim]
    if kind_.startswith("transh"):
        w = rel[:, dim:] / np.linalg.norm(rel[:, dim:], axis=-1, keepdims=True)
        x, y = (v - np.sum(v * w, axis=-1, keepdims=True) * w for v in (x, y))
    elif kind_.startswith("transr"):
        m = rel[:, dim:].reshape(-1, dim, dim)
        x, y = (np.einsum("nij,nj->ni", m, v) for v in (x, y))
    elif kind_.startswith("transd"):
        x, y = (v[:, :dim] + np.sum(v[:, dim:] * v[:, :dim], axis=-1, keepdims=True) * rel[:, dim:] for v in (x, y))
    return gamma - norm(x + move - y, kind_)


def by_foreign(kind, E, R, h, r, t, side, inverse):
    """PyKEEN's, LibKGE's: a head is asked as the tail of the inverse relation.  No gamma."""
    if kind.endswith("_reciprocal") and side == "head":
        h, r, t = t, inverse(r), h
    elif kind.endswith("_reciprocal"):
        r = inverse(r, False)
    if kind.startswith("transe"):
        return -norm(E[h] + R[r] - E[t], kind)
    return trilinear(E[h], R[r], E[t])


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        path = os.path.join(WORK.name, "g.tsv")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines("\t".join(t) + "\n" for t in GRAPH)
        cls.graph = fkge.load_graph(path)
        cls.triples = cls.graph.triples("train")[:50]
        cls.models = {k: fkge.train(cls.graph, {**TRAIN, "model.kind": k}) for k in KINDS}

    @classmethod
    def tearDownClass(cls):
        WORK.cleanup()

    def folder(self, name):
        path = os.path.join(WORK.name, self.id().rsplit(".", 1)[1] + "-" + name)
        os.makedirs(path, exist_ok=True)
        return path

    def close(self, got, want):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)

    def test_papers_formulas(self):
        """Every kind: safetensors, its own metadata, the paper's formula; and back by itself, with its digest."""
        for kind, model in self.models.items():
            with self.subTest(kind=kind):
                at = self.folder(kind)
                model.export(at, "safetensors")
                tables, said = read_safetensors(os.path.join(at, "model.safetensors"))
                self.assertEqual((said["model"], int(said["dim"]), float(said["gamma"])), (kind, 6, 4.0))
                self.assertEqual(said["digest"], model.about["digest"])
                self.assertAlmostEqual(float(said["valid_score"]), model.about["valid_score"])
                self.assertEqual(open(os.path.join(at, "entities.txt"), encoding="utf-8").read().split("\n")[:-1],
                                 list(self.graph.entities))
                self.assertEqual(json.load(open(os.path.join(at, "config.json"), encoding="utf-8")), said)
                self.assertTrue(open(os.path.join(at, "README.md"), encoding="utf-8").read().startswith("---\nlib"))
                for side in "tail", "head":
                    self.close(by_our_layout(kind, tables["entities"], tables["relations"], *self.triples.T,
                                             float(said["gamma"]), int(said["dim"]), side),
                               model.score(self.triples, side))
                back = fkge.load_rows(at)
                self.assertEqual(back.about["digest"], model.about["digest"])

    def test_pykeen(self):
        """Its tensors by its formulas; back, from rows in another order; refused where its formula is another."""
        for kind, model in self.models.items():
            with self.subTest(kind=kind):
                at = self.folder(kind)
                if kind not in ALIKE:
                    with self.assertRaisesRegex(fkge.UsageError, "another formula"):
                        model.export(at, "pykeen")
                    continue
                model.export(at, "pykeen")
                tables, _ = read_safetensors(os.path.join(at, "model.safetensors"))
                E, R = (tables[f"{n}_representations.0._embeddings.weight"] for n in ("entity", "relation"))
                with gzip.open(os.path.join(at, "relation_to_id.tsv.gz"), "rt", encoding="utf-8") as f:
                    self.assertEqual(f.read(), "id\tlabel\n" + "".join(
                        f"{i}\t{n}\n" for i, n in enumerate(self.graph.relations)))
                as_rows = pairs if kind.startswith("complex") else (lambda x: x)
                gamma = 4 if kind.startswith("transe") else 0
                for side in "tail", "head":
                    got = by_foreign(kind, as_rows(E), as_rows(R), *self.triples.astype(int).T, side,
                                     lambda r, head=True: 2 * r + int(head))
                    self.close(got + gamma, model.score(self.triples, side))
                self.assertEqual(self.back(at, kind), model.about["digest"])

    def test_without_a_graph(self):
        """Names from the files alone, with marks that pandas quotes; of two formats that which is named says the shape."""
        marked = ['say "hi"', '"all"', '"', 'a""b', "plain"]
        path = os.path.join(self.folder("marked"), "g.tsv")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{h}\tr\t{t}\n" for h, t in zip(marked, marked[1:] + marked[:1]))
        model = fkge.train(fkge.load_graph(path, valid=0.2, test=0),
                           {**TRAIN, "model.kind": "transe", "train.batch": 4})
        at = self.folder("marked.rows")
        model.export(at, "pykeen")
        with gzip.open(os.path.join(at, "entity_to_id.tsv.gz"), "rt", encoding="utf-8", newline="") as f:
            self.assertEqual([r[1] for r in csv.reader(f, delimiter="\t")][1:], list(model.graph.entities))
        for graph in None, model.graph:
            back = fkge.load_rows(at, graph=graph)
            self.assertEqual(list(back.graph.entities), list(model.graph.entities))
            self.assertEqual(back.about["digest"], model.about["digest"])
        at = self.folder("two")
        model.export(at, "npy")
        model.export(at, "safetensors")
        with self.assertRaisesRegex(fkge.Error, "say which is meant"):
            fkge.load_rows(at)
        self.assertEqual(fkge.load_rows(at, {"format": "safetensors"}).about["digest"], model.about["digest"])

    def test_names_of_rows(self):
        """Rows in another order than the file's lines; numbers that are none."""
        at = self.folder("ids")
        write_safetensors(os.path.join(at, "model.safetensors"), {"entities": np.eye(2, 6), "relations": np.ones((1, 6))},
                          {"model": "distmult", "dim": "6"})
        for name, text in ("relation_ids.del", "0\tr\n"), ("entity_ids.del", "1\tb\n0\ta\n"):
            open(os.path.join(at, name), "w", encoding="utf-8").write(text)
        model = fkge.load_rows(at)
        self.assertEqual(list(model.graph.entities), ["a", "b"])
        self.assertEqual(model.entities[1].tolist(), [0, 1, 0, 0, 0, 0])
        for text, says in ("0\ta\n2\tb\n", "row 2 is beyond"), ("0\ta\n0\tb\n", "row 0 is there twice"), (
                "0\ta\n1\ta\n", "'a' is there twice"), ("0\ta\nx\tb\n", "no row"):
            open(os.path.join(at, "entity_ids.del"), "w", encoding="utf-8").write(text)
            with self.assertRaisesRegex(fkge.Error, says):
                fkge.load_rows(at)

    def back(self, at, kind):
        return fkge.load_rows(at, {"model.kind": kind, "model.dim": 6, "model.gamma": 4}, self.graph).about["digest"]

    def test_other_programs(self):
        """As LibKGE and ssl-relation-prediction write: halves; inverse relations behind all others.

        The latter has these tensors in its ComplEx alone, so another model's are refused."""
        for kind in ALIKE:
            for prefix, names in ("_entity_embedder._embeddings.weight", "_relation_embedder._embeddings.weight"), (
                    "embeddings.0.weight", "embeddings.1.weight"):
                with self.subTest(kind=kind, tensor=prefix):
                    model, at = self.models[kind], self.folder(f"{kind}{prefix}")
                    n, order = len(self.graph.relations), np.arange(40)[::-1]
                    R = np.array(model.relations)
                    if kind.endswith("_reciprocal"):
                        half = R.shape[1] // 2
                        R = np.concatenate([R[:, :half], R[:, half:]])
                    as_rows = halves if kind.startswith("complex") else (lambda x: x)
                    gamma = 4 if kind.startswith("transe") else 0
                    for side in "tail", "head":
                        got = by_foreign(kind, as_rows(model.entities), as_rows(R), *self.triples.astype(int).T, side,
                                         lambda r, head=True: r + n * int(head))
                        self.close(got + gamma, model.score(self.triples, side))
                    write_safetensors(os.path.join(at, "model.safetensors"),
                                      {prefix: model.entities[order], names: R})
                    libkge = prefix.startswith("_")
                    for file, table, rows in ("ent", self.graph.entities, order), ("rel", self.graph.relations, range(n)):
                        name = {"ent": "entity_ids.del", "rel": "relation_ids.del"}[file] if libkge else file + "_id"
                        with open(os.path.join(at, name), "w", encoding="utf-8") as f:
                            for k, number in enumerate(rows):
                                pair = (str(k), table[int(number)])
                                f.write("\t".join(pair if libkge else pair[::-1]) + "\n")
                    if libkge or kind.startswith("complex"):
                        self.assertEqual(self.back(at, kind), model.about["digest"])
                        continue
                    with self.assertRaisesRegex(fkge.Error, f"ssl-relation-prediction scores {kind} by another formula"):
                        self.back(at, kind)

    def test_rotate_code(self):
        """What the code of RotatE's authors writes: its .npy and .dict; angles by (gamma + 2) / dim."""
        for kind in "rotate", "transe", "complex", "distmult":
            with self.subTest(kind=kind):
                model, at = self.models[kind], self.folder(kind)
                order = np.random.default_rng(1).permutation(40)
                np.save(os.path.join(at, "entity_embedding.npy"), model.entities[order])
                np.save(os.path.join(at, "relation_embedding.npy"), np.array(model.relations))
                for name, names in ("entities", [self.graph.entities[int(k)] for k in order]), (
                        "relations", self.graph.relations):
                    with open(os.path.join(at, name + ".dict"), "w", encoding="utf-8") as f:
                        f.writelines(f"{i}\t{n}\n" for i, n in enumerate(names))
                self.assertEqual(self.back(at, kind), model.about["digest"])

    def test_pickles(self):
        at = self.folder("pickles")
        open(os.path.join(at, "checkpoint.pt"), "wb").write(b"PK")
        with self.assertRaisesRegex(fkge.Error, "may run anything.*save_file"):
            fkge.load_rows(at)

    def spoiled(self, edit=None, raw=None, says="", metadata=None):
        at = self.folder("x")
        model = self.models["distmult"]
        model.export(at, "safetensors")
        path = os.path.join(at, "model.safetensors")
        if raw:
            whole = open(path, "rb").read()
            open(path, "wb").write(raw(whole))
        else:
            write_safetensors(path, {"entities": model.entities, "relations": model.relations}, metadata, edit)
        with self.assertRaisesRegex(fkge.Error, says):
            fkge.load_rows(at, {"model.kind": "distmult", "model.dim": 6, "model.gamma": 4}, self.graph)

    def test_bad_files(self):
        def place(name, **what):
            return lambda h: {**h, name: {**h[name], **what}}

        self.spoiled(raw=lambda b: b"", says="0 bytes")
        self.spoiled(raw=lambda b: b[:5], says="5 bytes")
        self.spoiled(raw=lambda b: b[:-1], says="its place")
        self.spoiled(raw=lambda b: b + b"x", says="nobody's")
        self.spoiled(raw=lambda b: b"\xff" * 8 + b[8:], says="header is to have 18446744073709551615 bytes")
        self.spoiled(raw=lambda b: struct.pack("<Q", 1 << 40) + b[8:], says="header is to have")
        self.spoiled(raw=lambda b: struct.pack("<Q", 40) + b[8:], says="no JSON object")
        self.spoiled(raw=lambda b: struct.pack("<Q", 2) + b"[]", says="no JSON object")
        self.spoiled(place("relations", data_offsets=[0, 72]), says="overlap")
        self.spoiled(place("relations", data_offsets=[960, 1 << 62]), says="its place")
        self.spoiled(place("relations", data_offsets=[-1, 72]), says="its place")
        self.spoiled(place("relations", data_offsets=[1032, 960]), says="its place")
        self.spoiled(place("entities", shape=[1 << 40, 1 << 40]), says="its place")
        self.spoiled(place("entities", shape=[40, -6]), says="its place")
        self.spoiled(place("entities", shape=[6, 40]), says="6 rows of 40 numbers where 40 of 6")
        self.spoiled(place("entities", shape=[240]), says="no table")
        self.spoiled(place("entities", dtype="I32"), says="no table of F32")
        self.spoiled(place("entities", dtype="X9"), says="its place")
        self.spoiled(lambda h: {"a": h["entities"], "b": h["relations"]}, says="no tensors of tables")
        self.spoiled(metadata={"model": "complex"}, says="model complex, not distmult")
        self.spoiled(metadata={"dim": "7"}, says="dimension 7")
        self.spoiled(metadata={"rel_dim": "7"}, says="relations are of dimension 7")
        self.spoiled(metadata={"gamma": "nan"}, says="gamma nan")
        nan = struct.pack("<f", float("nan"))
        self.spoiled(raw=lambda b: b[:-4] + nan, says="row 2 has a number that is not finite")

    def test_bad_names(self):
        for text, says in (("0\te0\n0\te1\n", "row 0 is there twice"), ("0\te0\n40\te1\n", "no row from 0 to 39"),
                           ("0\te0\n-1\te1\n", "no row"), ("0\tx\n", "not one of"), ("0\te0\n", "no row for")):
            at = self.folder("x")
            write_safetensors(os.path.join(at, "model.safetensors"),
                              {"entities": np.zeros((40, 6)), "relations": np.zeros((3, 6))})
            for name in "entities.dict", "relations.dict":
                open(os.path.join(at, name), "w", encoding="utf-8").write(text)
            with self.assertRaisesRegex(fkge.Error, says):
                fkge.load_rows(at, {"model.kind": "distmult", "model.dim": 6}, self.graph)


if __name__ == "__main__":
    tap.main()
