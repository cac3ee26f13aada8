"""Knowledge graph embeddings: libfkge for Python, by ctypes.

    import fkge
    model = fkge.open("acme")                        # an agent's folder, read beside its owner
    print(model.evaluate(split="test").mrr)
    for answer in model.predict("aspirin", "treats", None, top=5):
        print(answer.name, answer.score)
    vectors = model.entities                         # a NumPy array over the library's memory

A graph (Graph) is names and triples, a model (Model) tables of rows over a graph.  Neither changes once it is there,
so threads may share them; calls into the library run without Python's lock.  Arrays are views: read-only, not copied,
and good as long as they are referred to, for each keeps what it looks into.

What fails raises Error with the library's sentence; UsageError is a ValueError too, NotFoundError a LookupError.
Settings are those of agent.yaml's sections model, train and eval: {"model.kind": "complex", "train.lr": 0.01}.
"""
from __future__ import annotations

import ctypes
import json
import operator
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Answer", "Error", "Graph", "Metrics", "Model", "Names", "NotFoundError", "Progress", "UsageError",
           "load_graph", "load_rows", "open", "train", "version"]

Path = Union[str, "os.PathLike[str]"]
Settings = Union[str, Mapping[str, Any], None]

NONE = 0xFFFFFFFF
_KINDS = {"entities": 0, "relations": 1}
_SPLITS = {"train": 0, "valid": 1, "test": 2}
_USAGE, _NOTFOUND, _NOFILE = -10002, -10016, -10020


# ---- what others see ----

class Error(Exception):
    """The library refused, or failed.  status: of enum fkge_status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class UsageError(Error, ValueError):
    """An argument or a setting is not allowed."""


class NotFoundError(Error, LookupError):
    """There is no such agent, file, name, or nothing is trained yet."""


class Answer(NamedTuple):
    """One answer: a name, its score (of a query: its truth), whether the graph holds it already, its number."""
    name: str
    score: float
    known: bool
    number: int


class Metrics(NamedTuple):
    """How a split was ranked.  A side that was not asked has 0 queries."""
    queries: int
    mr: float
    mrr: float
    hits1: float
    hits3: float
    hits5: float
    hits10: float
    head_queries: int
    tail_queries: int
    head_mrr: float
    tail_mrr: float


class Progress(NamedTuple):
    """How a training stands after an epoch.  NaN: valid was not looked at; no best yet."""
    epoch: int
    epochs: int
    loss: float
    valid_mrr: float
    best_mrr: float


# ---- the library ----

class _Metrics(ctypes.Structure):
    _fields_ = [("queries", ctypes.c_size_t)] + [
        (n, ctypes.c_double) for n in ("mr", "mrr", "hits1", "hits3", "hits5", "hits10")] + [
        ("head_queries", ctypes.c_size_t), ("tail_queries", ctypes.c_size_t),
        ("head_mrr", ctypes.c_double), ("tail_mrr", ctypes.c_double)]


class _Answer(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint32), ("score", ctypes.c_float), ("known", ctypes.c_int)]


class _Progress(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_uint32), ("epochs", ctypes.c_uint32), ("loss", ctypes.c_double),
                ("valid_mrr", ctypes.c_double), ("best_mrr", ctypes.c_double)]


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Progress))
_HANDLE, _TEXT, _INT, _U32, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_size_t
_TO = ctypes.POINTER
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (_TEXT, []),
    "error": (_TEXT, []),
    "graph_load": (_INT, [_TO(_HANDLE), _TEXT, _TEXT]),
    "graph_free": (None, [_HANDLE]),
    "graph_count": (_U32, [_HANDLE, _INT]),
    "graph_name": (ctypes.c_void_p, [_HANDLE, _INT, _U32, _TO(_SIZE)]),
    "graph_find": (_U32, [_HANDLE, _INT, _TEXT, _SIZE]),
    "graph_label": (_TEXT, [_HANDLE, _INT, _U32]),
    "graph_short_name": (_SIZE, [_HANDLE, _INT, _U32, _TEXT, _SIZE]),
    "graph_triples": (_INT, [_HANDLE, _INT, _TO(_HANDLE), _TO(_SIZE)]),
    "open": (_INT, [_TO(_HANDLE), _TEXT, ctypes.c_uint64]),
    "import": (_INT, [_TO(_HANDLE), _HANDLE, _TEXT, _TEXT]),
    "model_new": (_INT, [_TO(_HANDLE), _HANDLE, _TEXT, _HANDLE, _SIZE, _HANDLE, _SIZE]),
    "train": (_INT, [_TO(_HANDLE), _HANDLE, _HANDLE, _TEXT, _PROGRESS, _HANDLE]),
    "model_free": (None, [_HANDLE]),
    "model_graph": (_HANDLE, [_HANDLE]),
    "model_about": (_TEXT, [_HANDLE]),
    "rows": (_INT, [_HANDLE, _INT, _TO(_HANDLE), _TO(_SIZE), _TO(_SIZE)]),
    "export": (_INT, [_HANDLE, _TEXT, _TEXT]),
    "evaluate": (_INT, [_HANDLE, _TEXT, _TO(_Metrics)]),
    "score": (_INT, [_HANDLE, _HANDLE, _SIZE, _INT, _HANDLE]),
    "predict": (_INT, [_HANDLE, _U32, _U32, _U32, ctypes.c_uint, _TO(_Answer), _TO(_SIZE)]),
    "similar": (_INT, [_HANDLE, _INT, _U32, _INT, _TO(_Answer), _TO(_SIZE)]),
    "query": (_INT, [_HANDLE, _TEXT, _TEXT, _TO(_Answer), _TO(_SIZE)]),
}


def _load() -> Any:
    """The library, $FKGE_LIBRARY or the system's, with the types of each function."""
    library = ctypes.CDLL(os.environ.get("FKGE_LIBRARY", "libfkge.so.0"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, "fkge_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


def _check(status: int) -> None:
    if status != 0:
        text = _lib.fkge_error().decode("utf-8", "replace")
        kind = {_USAGE: UsageError, _NOTFOUND: NotFoundError, _NOFILE: NotFoundError}.get(status, Error)
        raise kind(status, text)


def _text(value: object, what: str) -> bytes:
    """Of a str, for the library, where a NUL would end it."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise UsageError(_USAGE, f"{what} has a NUL")
    return value.encode("utf-8", "surrogateescape")


def _words(settings: Settings, more: Mapping[str, Any] | None = None) -> bytes | None:
    """key=value words; true and false as agent.yaml has them."""
    if isinstance(settings, str):
        return b" ".join(part for part in (_text(settings, "settings"), _words(None, more)) if part)
    pairs = {**(settings or {}), **(more or {})}
    out = []
    for key, value in pairs.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if any(c.isspace() for c in f"{key}{text}"):
            raise UsageError(_USAGE, f"{key!r}: a setting has no blanks")
        out.append(f"{key}={text}")
    return _text(" ".join(out), "a setting") if out else None


def _path(path: Path) -> bytes:
    found = os.fsencode(path)
    if b"\0" in found:
        raise UsageError(_USAGE, "a path has a NUL")
    return found


class _View:
    """Memory of the library as NumPy takes it over; the array keeps this, and this the handle."""

    def __init__(self, owner: object, at: int | None, shape: tuple[int, int], kind: str) -> None:
        self.owner = owner
        # NumPy wants an address where there are no rows, too
        self.__array_interface__ = {"version": 3, "data": (at or 1, True), "shape": shape, "typestr": kind}


# ---- graphs ----

class Names(Sequence[str]):
    """The names of a graph's entities or relations by their numbers."""

    def __init__(self, graph: Graph, what: str) -> None:
        self._graph, self._kind = graph, _KINDS[what]

    def __len__(self) -> int:
        return int(_lib.fkge_graph_count(self._graph._handle, self._kind))

    @overload
    def __getitem__(self, number: int) -> str: ...

    @overload
    def __getitem__(self, number: slice) -> list[str]: ...

    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        n, size = operator.index(number), _SIZE()
        n += len(self) if n < 0 else 0
        if not 0 <= n < len(self):
            raise IndexError(f"{number}: there are {len(self)} names")
        at = _lib.fkge_graph_name(self._graph._handle, self._kind, n, ctypes.byref(size))
        return ctypes.string_at(at, size.value).decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) != NONE

    def _find(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"a name must be a str, not {type(name).__name__}")
        text = name.encode("utf-8", "surrogateescape")
        return int(_lib.fkge_graph_find(self._graph._handle, self._kind, text, len(text)))

    def number(self, name: str) -> int:
        """The number of a name, or of prefix:rest; NotFoundError."""
        found = self._find(name)
        if found == NONE:
            raise NotFoundError(_NOTFOUND, f"the graph has no {('entity', 'relation')[self._kind]} '{name}'")
        return found

    def label(self, name: str | int) -> str | None:
        """The label of a name, or of a number's; None: it has none."""
        text = _lib.fkge_graph_label(self._graph._handle, self._kind, self._number(name))
        return None if text is None else str(text.decode("utf-8", "surrogateescape"))

    def short(self, name: str | int) -> str:
        """A name, or a number's, as prefix:rest where a prefix fits, else as it is."""
        number = self._number(name)
        size = _lib.fkge_graph_short_name(self._graph._handle, self._kind, number, None, 0)
        text = ctypes.create_string_buffer(size + 1)
        _lib.fkge_graph_short_name(self._graph._handle, self._kind, number, text, size + 1)
        return text.value.decode("utf-8", "surrogateescape")

    def _number(self, name: str | int) -> int:
        if isinstance(name, str):
            return self.number(name)
        number = operator.index(name)
        if not 0 <= number < len(self):
            raise IndexError(f"{number}: there are {len(self)} names")
        return number

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """As list.index(): ValueError where it is not there."""
        found = self._find(value) if isinstance(value, str) else NONE
        if found not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{value!r} is not a name of the graph")
        return found


class _Held:
    """What holds a handle, which is given back once.  Nothing changes it, so it is its own copy."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a fkge.{type(self).__name__} cannot be pickled: another process opens or loads its own")


class Graph(_Held):
    """Names and triples.  Made by load_graph(), or a model's."""

    def __init__(self, handle: int, owner: object = None) -> None:
        self._handle = handle
        self._owner = owner  # a model whose graph this is; it gives the handle back

    @property
    def entities(self) -> Names:
        """Names of entities, by number."""
        return Names(self, "entities")

    @property
    def relations(self) -> Names:
        """Names of relations, by number."""
        return Names(self, "relations")

    def __del__(self) -> None:
        if getattr(self, "_owner", self) is None:
            _lib.fkge_graph_free(self._handle)

    def __repr__(self) -> str:
        return f"<fkge.Graph of {len(self.entities)} entities and {len(self.relations)} relations>"

    def triples(self, split: str = "train") -> NDArray[np.uint32]:
        """Head, relation and tail of each triple of a split, by number: a view of shape (n, 3)."""
        if split not in _SPLITS:
            raise UsageError(_USAGE, f"{split!r} is no split: train, valid or test")
        at, n = _HANDLE(), _SIZE()
        _check(_lib.fkge_graph_triples(self._handle, _SPLITS[split], ctypes.byref(at), ctypes.byref(n)))
        return np.asarray(_View(self, at.value, (n.value, 3), "=u4"))


def load_graph(path: Path, settings: Settings = None, **more: Any) -> Graph:
    """Read a graph: a folder of train, valid and test, one file, or an agent's folder.

    settings, or keywords, but for an agent's folder: format, valid, test, seed, keep_literals, drop_blank_nodes,
    keep_header, trim, prefix, labels."""
    out = _HANDLE()
    _check(_lib.fkge_graph_load(ctypes.byref(out), _path(path), _words(settings, more)))
    assert out.value is not None
    return Graph(out.value)


# ---- models ----

class Model(_Held):
    """Tables over a graph.  Made by open(), load_rows(), train() or Model.of_rows()."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.about: dict[str, Any] = json.loads(_lib.fkge_model_about(handle))
        self.kind: str = self.about["model"]
        self.dim: int = self.about["dim"]

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            _lib.fkge_model_free(self._handle)

    def __repr__(self) -> str:
        return f"<fkge.Model {self.kind} of dimension {self.dim}>"

    @staticmethod
    def of_rows(graph: Graph, settings: Settings, entities: ArrayLike, relations: ArrayLike) -> Model:
        """A model of rows from elsewhere, copied: a row an entity and a relation, in the order of their numbers, in the
        shape that the settings (model.kind, model.dim, model.gamma ...) say."""
        tables = [np.ascontiguousarray(t, dtype=np.float32) for t in (entities, relations)]
        for table, names in zip(tables, (graph.entities, graph.relations)):
            if table.ndim != 2 or len(table) != len(names):
                raise UsageError(_USAGE, f"a table of shape {table.shape} where {len(names)} rows are wanted")
        out = _HANDLE()
        _check(_lib.fkge_model_new(ctypes.byref(out), graph._handle, _words(settings), tables[0].ctypes.data,
                                   tables[0].shape[1], tables[1].ctypes.data, tables[1].shape[1]))
        assert out.value is not None
        return Model(out.value)

    @property
    def graph(self) -> Graph:
        """Its graph, which keeps the model."""
        return Graph(_lib.fkge_model_graph(self._handle), self)

    def _rows(self, what: str) -> NDArray[np.float32]:
        at, n, floats = _HANDLE(), _SIZE(), _SIZE()
        _check(_lib.fkge_rows(self._handle, _KINDS[what], ctypes.byref(at), ctypes.byref(n), ctypes.byref(floats)))
        return np.asarray(_View(self, at.value, (n.value, floats.value), "=f4"))

    @property
    def entities(self) -> NDArray[np.float32]:
        """The rows of the entities by their numbers: a view, read-only."""
        return self._rows("entities")

    @property
    def relations(self) -> NDArray[np.float32]:
        """The rows of the relations by their numbers: a view, read-only."""
        return self._rows("relations")

    def evaluate(self, split: str = "test", **how: Any) -> Metrics:
        """Rank the triples of a split.  how: protocol, sides, filter, candidates, ties, limit, seed, threads, with the
        words of `fkge eval`; by default the model's own protocol."""
        out = _Metrics()
        _check(_lib.fkge_evaluate(self._handle, _words({"split": split, **how}), ctypes.byref(out)))
        return Metrics(*(getattr(out, name) for name in Metrics._fields))

    def score(self, triples: ArrayLike, side: str = "tail") -> NDArray[np.float32]:
        """The score of each triple of numbers, an array of shape (n, 3); side: which is asked, of reciprocal models."""
        if side not in ("tail", "head"):
            raise UsageError(_USAGE, f"{side!r} is no side: tail or head")
        numbers = np.asarray(triples)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() > NONE):
            raise UsageError(_USAGE, "triples are numbers of entities and relations")
        asked = np.ascontiguousarray(numbers, dtype=np.uint32)
        if asked.ndim != 2 or asked.shape[1] != 3:
            raise UsageError(_USAGE, f"triples of shape {asked.shape}: (n, 3) is wanted")
        scores = np.empty(len(asked), dtype=np.float32)
        _check(_lib.fkge_score(self._handle, asked.ctypes.data, len(asked), int(side == "head"), scores.ctypes.data))
        return scores

    def _answers(self, names: Names, top: int, ask: Callable[[Any, Any], int]) -> list[Answer]:
        if top < 0:
            raise UsageError(_USAGE, f"top {top}: so many answers there cannot be")
        out, n = (_Answer * min(top, len(names)))(), _SIZE(min(top, len(names)))
        _check(ask(out, ctypes.byref(n)))
        return [Answer(names[a.number], a.score, bool(a.known), a.number) for a in out[:n.value]]

    def predict(self, head: str | None, relation: str | None, tail: str | None, top: int = 10, known: bool = False,
                typed: bool = False) -> list[Answer]:
        """The likeliest answers for the one of the three that is None.  known: what the graph holds already, too.
        typed: only what the graph has on that side of the relation.  The asked entity itself is no answer, unless
        train has a loop of that relation, or known ones are wanted, too: then all are answers."""
        g = self.graph
        if [head, relation, tail].count(None) != 1:
            raise UsageError(_USAGE, "exactly one of head, relation and tail is None")
        numbers = [NONE if name is None else names.number(name) for name, names in
                   ((head, g.entities), (relation, g.relations), (tail, g.entities))]
        flags = int(known) + 2 * int(typed)
        return self._answers(g.relations if relation is None else g.entities, top,
                             lambda out, n: _lib.fkge_predict(self._handle, *numbers, flags, out, n))

    def similar(self, name: str, top: int = 10, relations: bool = False, by: str = "cosine") -> list[Answer]:
        """The names whose rows are nearest, by cosine (the highest first) or distance (the lowest first)."""
        if by not in ("cosine", "distance"):
            raise UsageError(_USAGE, f"{by!r}: cosine or distance")
        names = self.graph.relations if relations else self.graph.entities
        number = names.number(name)
        return self._answers(names, top, lambda out, n: _lib.fkge_similar(
            self._handle, int(relations), number, int(by == "distance"), out, n))

    def query(self, sparql: str, top: int = 10, **how: Any) -> list[Answer]:
        """Answers to a question over several steps, as `fkge query` reads it: at most top, and at most its LIMIT;
        score is a truth.  how: beam, norm, threads."""
        return self._answers(self.graph.entities, top, lambda out, n: _lib.fkge_query(
            self._handle, _text(sparql, "a query"), _words(how), out, n))

    def export(self, folder: Path, format: str = "npy") -> None:
        """Write the tables by name, in a format of `fkge export`."""
        _check(_lib.fkge_export(self._handle, _path(folder), _text(format, "format")))


def open(folder: Path, checkpoint: int = 0) -> Model:
    """The tables of an agent's folder: the best, or those of `fkge checkpoint list`."""
    out, number = _HANDLE(), operator.index(checkpoint)
    if not 0 <= number < 2**64:  # ctypes would cut it off
        raise UsageError(_USAGE, f"checkpoint {number}: one of `fkge checkpoint list`, or 0 for the best tables")
    _check(_lib.fkge_open(ctypes.byref(out), _path(folder), number))
    assert out.value is not None
    return Model(out.value)


def load_rows(folder: Path, settings: Settings = None, graph: Graph | None = None) -> Model:
    """Rows that `fkge export` or Model.export() wrote, in the shape that the settings say (safetensors of ours say it
    themselves); without a graph under the files' own names, and then there are no triples."""
    out = _HANDLE()
    handle = graph._handle if graph is not None else None
    _check(_lib.fkge_import(ctypes.byref(out), handle, _path(folder), _words(settings)))
    assert out.value is not None
    return Model(out.value)


def train(graph: Graph, settings: Settings = None, start: Model | None = None,
          progress: Callable[[Progress], Any] | None = None) -> Model:
    """Train as `fkge train` does, and keep what valid liked best.  start: to go on from, a model of this graph.
    Where the tables diverge, what was best until then is kept, and about["diverged_after"] has the epochs; Error where
    nothing was.

    progress is called after each epoch; if it gives True, or raises, training ends there."""
    raised: list[BaseException] = []

    def tell(_: Any, at: Any) -> int:
        try:
            p = at.contents
            wanted = progress(Progress(*(getattr(p, f) for f in Progress._fields))) if progress is not None else False
            return int(bool(raised) or isinstance(wanted, (bool, np.bool_)) and bool(wanted))
        except BaseException as e:  # pylint: disable=broad-except; it goes on where train() was called
            raised.append(e)
            return 1

    # An interrupt would be raised on the way into tell(), where ctypes drops it: it is noted, and ends the training.
    takes = (threading.current_thread() is threading.main_thread()
             and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    out, call, words = _HANDLE(), _PROGRESS(tell), _words(settings)
    if takes:
        signal.signal(signal.SIGINT, lambda *_: raised.append(KeyboardInterrupt()))
    try:
        status = _lib.fkge_train(ctypes.byref(out), graph._handle, start._handle if start is not None else None,
                                 words, call, None)
    finally:
        if takes:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    model = Model(out.value) if out.value is not None else None
    if raised:
        raise raised[0]
    _check(status)
    assert model is not None
    return model


def version() -> str:
    """The version of the library."""
    return str(_lib.fkge_version().decode())
