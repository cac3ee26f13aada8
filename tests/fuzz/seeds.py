#!/usr/bin/env python3
"""Where fuzzers begin: inputs that decoders take, so that what is behind them is reached at once.

usage: seeds.py FOLDER [TARGET]

Writes FOLDER/TARGET/NAME for the targets whose bytes nobody guesses: steps of queries (AGENT_PROTOCOL 9), rows of 16
bits a value, entries and rotations of the ledger, masked scores in parts, what auditors and owners are handed, files of
settings, greetings, requests over HTTP, queries; and for each what corpus/TARGET.tar.xz beside this file holds, which
fuzzers have found before (keep.py). `./run fuzz` gives each target its own."""
import base64
import glob
import json
import os
import struct
import sys
import tarfile

# Of an agent that was made for this, by `fkge key rotate`: both signatures hold.
ROTATION = ("fkge-rotation1:ZmtnZVJPVDEBAAAAAAAAAJtS3BmiAQAA0ZAVZ55XCJ7OHwGrJwJOxQbrhKm7muCdENB33IGQ9XiZ80IXa"
            "xDOij8PqM-faw2m_QlpsIiMtXmvqvIdhoGaONGQFWeeVwiezh8BqycCTsUG64Spu5rgnRDQd9yBkPV4uqJAo-E6obsvvORb4"
            "YyoQKJnLmExBPv658LgU4UJ4HsbZ55xVtomSm-9CyzzTtJFf8Zo3Ax1VFk4rIIViQ9ouwAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            "AAAAAAAAAAAAAAAASMHvAK6cbRT0vC4Dv7l5ClmRVC5up1ygk65R_OmrLHqDtskwYOVzNKr1rJ1AEBWHoWFRBX6yqIoCpG_f"
            "8sPBPj0HmlEZF-k4AHiKcdCnBQ9ub-HlXVfdsnpjLsSSrClVzpxEERjc8mtvCXEbUquQVWz7YUHBJLrgEvs-Z2zqQg")


# The keys to sign with of fuzz_exports.c's agents, and what the first has asked the second (exports()): signed by both.
SIGN_KEYS = ("cecc1507dc1ddd7295951c290888f095adb9044d1b73d696e6df065d683bd4fc",
             "6b79c57e6a095239282c04818e96112f3f03a4001ba97a564c23852a3f1ea5fc")
ASKED = ("57976caa8bb119c70608d8e27da51264308bea444a2e096f9ffd00f4f2af94e0"
         "959ccabfe06e061675c3fc88b12f674df509d1acd4cd05c01c800e705e045309")
ANSWERED = ("b011ee127f92d96ded14b38c97afe25fb649a35ae177122a1a227c7e4eef4fed"
            "76fe3c979e9cfa87c9b6ab7b6dcfa01d088175b2d9808c4937e0d0505e27d306")


def count(n):
    """Seven bits a byte, the lowest first (agent/core/step_bytes.c)."""
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def rows(at, point=None, truth=True):
    """Slots ascend and go as what they are above the one before; of each its point and its truth, if wanted."""
    out, after = b"", 0
    for slot, t in at:
        out += count(slot - after)
        after = slot + 1
        if point is not None:
            out += count(point)
        if truth:
            out += struct.pack("<f", t)
    return out


def ask(points, inverse=0, norm=0, beam=16, known=8, want=8):
    body = rows(points)
    return bytes([0, inverse, norm, beam, known, want - 1, len(body)]) + body


def answer(known, predicted, facts=True, ways=False):
    point = 0 if ways else None
    body = count(len(known)) + rows(known, point, truth=not ways) + rows(predicted, point)
    return bytes([1, int(facts), int(ways), len(known) + len(predicted), len(body)]) + body


def steps():
    three = [(0, 1.0), (3, .5), (5, .25)]
    yield "ask", ask(three)
    yield "ask-inverse", ask(three[:1], inverse=1, norm=1)
    yield "ask-nothing", ask([])
    yield "ask-wide", ask([(k, 1 / (k + 1)) for k in range(24)], beam=255, known=255, want=256)
    yield "answer-facts", answer([(1, 1.0), (2, .5)], [(4, .25), (6, .125)])
    yield "answer-known-alone", answer([(1, 1.0)], [])
    yield "answer-ways", answer([(1, 1.0), (7, 1.0)], [(2, .25)], ways=True)
    yield "answer-soft", answer([], [(1, .5), (2, .5), (3, .0625)], facts=False)
    yield "answer-nothing", answer([], [])
    yield "both", ask(three) + answer([(1, 1.0)], [(2, .5)]) + ask(three, inverse=1)


def short_row(values, scale):
    return struct.pack("<f", scale) + b"".join(struct.pack("<h", round(32767 * v / scale) if scale else 0)
                                               for v in values)


def short_rows():
    yield "two", bytes([3]) + short_row([.5, -.25, 0, 1], 1) + short_row([3, -3, 1, 0], 3)
    yield "zeros", bytes([3]) + short_row([0, 0, 0, 0], 0)
    yield "one-value", bytes([0]) + short_row([-2], 2)
    yield "tiny", bytes([1]) + short_row([1e-38, -1e-38], 1e-38)
    yield "wide", bytes([63]) + short_row([(-1) ** k * k / 64 for k in range(64)], 1)
    yield "beyond", bytes([1]) + struct.pack("<fhh", 1, -32768, 0)


def scores():
    one = bytes([0, 0])  # a word of a member; 128: of the second one
    yield "whole", bytes([0])
    yield "word-by-word", bytes([8])
    yield "in-turn", bytes([8]) + (one + bytes([0, 128])) * 6
    yield "halves", bytes([8]) + bytes([2, 0, 2, 128, 7, 128, 7, 0])
    yield "cut-word", bytes([8]) + one + bytes([1, 1 | 3 << 2])
    yield "wrong-follow", bytes([8]) + bytes([1, 2, 9, 0])
    yield "spoiled-in-parts", bytes([12, 3, 1, 2, 3, 1]) + one * 2


def ledger():
    text = ROTATION.encode()
    yield "rotation-text", text
    raw = text.split(b":")[1]
    yield "rotation", base64.urlsafe_b64decode(raw + b"=" * (-len(raw) % 4))
    yield "export", (b'{"fkge_ledger": 3, "owner": {"key": "' + b"00" * 32 + b'", "sign_key": "' + b"00" * 32 +
                     b'", "name": "a"}, "peer": null, "time": 1, "nonce": null, "parties": [], "chains": [], '
                     b'"training": {"statements": 0, "head": "' + b"00" * 32 + b'"}, "entries": [], '
                     b'"statements": [], "rotations": ["' + text + b'"], "signature": "' + b"00" * 64 + b'"}')


def party(k):
    return {"key": ("11", "22")[k] * 32, "sign_key": SIGN_KEYS[k], "name": "ab"[k]}


def traffic(rows_out, rows_in):
    return {"rows_out": rows_out, "rows_in": rows_in, "floats_out": 8 * rows_out, "floats_in": 8 * rows_in}


def round_of(k):
    """As agent k has it: it sent 3 + k rows, the other 4 - k."""
    none, out = "00" * 64, (3 + k, 4 - k)
    members = [dict(key=party(i)["key"], fate="took part", **traffic(*(0, 0) if i == k else out),
                    signed=None if i == k else dict(traffic(*out[::-1]), signature=none, refused=None)) for i in (0, 1)]
    return {"number": 1, "id": "a1" * 16, "method": "fede", "topology": "sharded", "secret_bits": 0,
            "proposer": party(0)["key"], "started_ms": 1000, "finished_ms": 1900, "error": 0, "members": members,
            "previous": none[:64], "hash": none[:64], "signature": none}


def rounds_of(k, **other):
    return dict({"fkge_rounds": 2, "owner": party(k), "time": 2000, "nonce": "fuzz", "older": 0,
                 "parties": [party(1 - k)], "rounds": [round_of(k)], "signature": "00" * 64}, **other)


def queries_of(k, **other):
    step = {"id": "01" * 16, "asker": SIGN_KEYS[0], "owner": SIGN_KEYS[1], "relation": "r", "inverse": False,
            "norm": "product", "points": 2, "want": 8, "asked_ms": 1000, "answered_ms": 1100, "alignment": "02" * 32,
            "frontier": "03" * 32, "answer": "04" * 32, "policy": "facts", "rows": 3, "ways": False,
            "asker_signature": ASKED, "owner_signature": ANSWERED}
    return dict({"fkge_queries": 1, "name": "ab"[k], "sign_key": SIGN_KEYS[k], "steps": [step],
                 "signature": "00" * 64}, **other)


def exports():
    """Each alone and both together; the target signs the whole of them, which is why no signature is there."""
    for first, of, key in ("R", rounds_of, "fkge_rounds"), ("Q", queries_of, "fkge_queries"):
        files = [json.dumps(of(k), separators=(",", ":")).encode() for k in (0, 1)]
        rotated = json.dumps(of(0, rotations=[ROTATION], **{key: of(0)[key] + 1}), separators=(",", ":")).encode()
        yield "one-" + first, first.encode() + files[0]
        yield "both-" + first, first.encode() + b"\xff".join(files)
        yield "unsigned-" + first, first.lower().encode() + files[1]
        yield "rotated-" + first, first.encode() + rotated
    dated = [json.dumps(queries_of(k, fkge_queries=3, time_ms=2000, older=0), separators=(",", ":")).encode() for k in (0, 1)]
    yield "dated-Q", b"Q" + b"\xff".join(dated)


AGENT = b"""name: "acme" # partners see it
listen: "off"
model: {kind: transe, dim: 8}
train:
  lr: 0.1234567
  epochs: 4
  filtered: false
  shared_chunk: 0
  dp:
    epsilon: 2
federation: {rows_share: 0.5, roles: client, translator: ppat}
ppat: {mode: budget, teachers: 4}
privacy: {delta: 1e-6, epsilon_per_peer: 4, epsilon_total: 8}
query: {answer: nothing, rules: "nothing * r; soft * *"}
"""
ROUNDS = b"""federation:
  mode: rounds
rounds: {method: fedprox, mu: 0.5, topology: hosted, host: own}
"""
SPACE = b"""search: {method: halving, trials: 9, epochs: 10, eta: 3, budget: 300, seed: 1}
model:
  kind: [transe, distmult]
train:
  margin: {from: 1, to: 8}
  batch: {from: 16, to: 64}
  reg_weight: {from: 0.012345, to: 0.012346}
  lr: {from: 1e-4, to: 0.1, scale: log}
"""
EXPERIMENT = b"""experiment: {name: e, data: d, seeds: [1, 2], rounds: 4, epochs: 1, eval_every: 4, forget: 0.1}
model: {kind: transe, dim: 8}
eval: {protocol: standard}
variants:
  collective:
  fede: {topology: hosted, slow: {a: 2}}
  fedlu: {warm_up: 1, keep: each}
  gone: {unlearn: fedlu, weights: paper}
  tcp: {method: fede, agents: processes}
  pairs: {own: {a: {train.lr: 0.1}}, federation.patience: 2}
"""
QUERIES = b"""experiment: {data: d, epochs: 2}
queries: {types: [1p, 2i], test_count: 9, dim: 8}
variants:
  fedcqa: {queries.lr: 0.1}
  search_federated: {queries.beam: 4}
"""


def config():
    yield "agent", b"c" + AGENT
    yield "rounds", b"c" + ROUNDS
    yield "space", b"s" + SPACE
    yield "experiment", b"x" + EXPERIMENT
    yield "queries", b"x" + QUERIES
    yield "command", b"x" + EXPERIMENT + b"  runs: {method: single, train.command: \"a {folder}\"}\n"
    for key, value, text in ((b"name", b"a \\ \"b\"", AGENT), (b"train.lr", b"1e-3", AGENT),
                             (b"model.dim", b"16", AGENT), (b"train.dp.epsilon", b"3", AGENT),
                             (b"train.dp.rate", b"0.5", AGENT), (b"federation.aligned_share", b"1", AGENT),
                             (b"eval.valid_limit", b"7", AGENT), (b"model.preset", b"best", AGENT),
                             (b"ppat.mode", b"paper", AGENT), (b"federation.psk_file", b"a\xc2\x85b", AGENT),
                             (b"train.seed", b"1", b"\xef\xbb\xbftrain: {lr: 1, seed: 2}\r\nname: x\r\n"),
                             (b"train.seed", b"1", b"name: x\xc2\x85train:\n  lr: 1\n  seed: 3\n"),
                             (b"train.lr", b"2", b"? train\n:\n  ? lr\n  : &a 1\n  ? seed\n  : *a\n"),
                             (b"query.rules", b"soft * *", b"query:\n  rules: |\n    soft * r\n\nname: x"),
                             (b"rounds.mu", b"0.25", ROUNDS), (b"rounds.method", b"fede", b""),
                             (b"name", b"x", b"name: y\n"), (b"log.level", b"error", b"# nothing"),
                             (b"train.dp.epsilon", b"3", b"train:\n"), (b"train.lr", b"3", b"train: # c")):
        yield "set-%s-%d" % (key.decode(), len(text)), b"e" + key + b"\n" + value + b"\n" + text


def packed(value):
    """msgpack, as far as texts of people need it."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(packed(k) + packed(v) for k, v in value.items())
    if isinstance(value, bytes):
        return bytes([0xc4, len(value)]) + value
    if isinstance(value, str):
        return (bytes([0xa0 | len(value)]) if len(value) < 32 else bytes([0xd9, len(value)])) + value.encode()
    return bytes([value]) if value < 128 else struct.pack(">BQ", 0xcf, value)


def invite():
    least = {"n": b"n" * 32, "s": b"s" * 32, "name": "", "host": "", "port": 0}
    whole = dict(least, name="gene bank", host="acme.example", port=7447, psk=b"p" * 32, tk=b"t" * 16, sd=b"d" * 32,
                 to=b"o" * 32)
    yield "least", b"L" + packed(least)
    yield "whole", b"L" + packed(whole)
    yield "long", b"L" + packed(dict(whole, name="n" * 64, host="h" * 255))
    yield "half-address", b"L" + packed(dict(least, host="h"))
    yield "line", b"l fkge1:aaaa\n"
    yield "newer", b"lfkge2:aaaa"
    yield "key", b"k" + b"k" * 32
    yield "no-key", b"k" + b"mzxw6ytboi" + b"a" * 46
    for k, text in enumerate(("acme.example:7447", "[::1]:0", "localhost:80", "127.0.0.1:65535", "run/http.sock")):
        yield "address-%d" % k, b"a" + text.encode()
    member = {"k": b"k" * 32, "g": bytes.fromhex(SIGN_KEYS[0]), "n": "acme", "a": "acme.example:7447", "t": 1 << 40}
    yield "member", b"M" + packed(member)
    yield "anothers", b"M" + packed(dict(member, g=bytes.fromhex(SIGN_KEYS[1])))
    yield "unsigned", b"m" + bytes(64) + packed(member)


def greeting():
    """As fuzz_greeting.c says it: who dials, what is said, whether there is a secret; then steps."""
    def steps(first, *at):
        return bytes([first]) + b"".join(bytes([what, len(data)]) + data for what, data in at)

    greet, ping, part = (1, b""), (2, bytes([2])), (2, bytes([1, 0, 0, 0, 3]) + b"abc")
    rest = [(3, b"one"), (3, b"\xff" * 64), (6, b"ours"), (4, bytes([60])), (2, bytes([3])), (2, bytes([4]) + b"bye")]
    head = b"FKGE" + struct.pack(">HBB", 3, 0, 0)
    for dials in (0, 1):
        yield "up-%d" % dials, steps(dials, greet, ping, *rest)
        yield "pair-%d" % dials, steps(dials | 16, greet, ping, part, (5, b""))
        yield "part-%d" % dials, steps(dials, greet, ping, (2, bytes([1, 0, 0, 1, 0]) + b"a" * 200), *rest)
        yield "paused-%d" % dials, steps(dials, greet, ping, (7, b"\1"), (3, b"a" * 9), (7, b"\0"), (9, b""))
        yield "large-%d" % dials, steps(dials, greet, ping, (3, b"\xff" * 255))
        yield "changed-%d" % dials, steps(dials, (1, b"\x30\1"), ping)
        yield "in-parts-%d" % dials, steps(dials, (0, head[:3]), (0, head[3:]), (0, bytes(64)), (0, bytes(56)))
        yield "version-%d" % dials, steps(dials, (0, head[:5] + b"\4" + head[6:]), (4, b"\x04"))
        yield "silent-%d" % dials, steps(dials, (4, b"\xff"), greet)
        yield "broken-%d" % dials, steps(dials, (8, b""), greet, (4, b"\1"))
    for says in range(1, 6):
        yield "said-%d" % says, steps(2 * says, greet, ping)
        yield "refused-%d" % says, steps(1, (0, head[:6] + bytes([says, 0])))


def hub():
    """As fuzz_hub.c says it: steps of what, who (hub + 3 * the other), how."""
    def steps(*at):
        return bytes(b for step in at for b in (*step, 0)[:3])

    send, forget, pause, want, close, turn = 1, 2, 3, 4, 6, (11, 0, 9)  # hubs dial when their timer comes
    ring = (want, 3), (want, 7), (want, 2), turn
    both = (want, 3), (want, 1), turn
    yield "ring", steps(*ring, (send, 3, 16), (send, 7, 16), turn, (11, 0, 255), (send, 2), turn)
    yield "crossed", steps(*both, (send, 3), (send, 1), turn, (forget, 3), (11, 0, 60))
    yield "two-addresses", steps((want, 3, 16), turn, (11, 0, 60), (send, 3), turn)
    yield "paused", steps(*both, (pause, 1, 16), *((send, 3, 240),) * 9, turn, (pause, 1), turn, (11, 0, 20))
    pauses = (10, 19, 2)  # hub 1, at a message
    yield "held", steps(pauses, *both, *((send, 3),) * 5, turn, *((send, 3),) * 5, turn, (pause, 1), (19, 0), turn)
    yield "cut", steps(*ring, (send, 3), (13, 0, 0), turn, (11, 0, 90), (send, 3), turn)
    yield "changed", steps((want, 3), (20, 0), (20, 0), (20, 0), (13, 0, 3), turn, (11, 0, 90))
    yield "silent", steps(*both, (16, 0, 2), (send, 3), (11, 0, 255), (16, 0, 0), turn, (send, 3), turn)
    yield "late", steps(*ring, (12, 0, 255), turn, (send, 2), turn)
    yield "again", steps(*ring, (close, 3), turn, (11, 0, 60), (18, 0), (want, 3), turn, (11, 0, 60))
    yield "stranger", steps((want, 3), (20, 0), (20, 0), (20, 0), (14, 0), turn, *((15, 1, k) for k in (0, 1, 65, 129)), turn)
    yield "pairs", steps((8, 3, 16), *both, (8, 1, 16), (11, 0, 60), turn)
    yield "reacts", steps((10, 1, 2), (10, 2, 1), (10, 6, 1), *ring, (send, 1), turn, (13, 0, 0), turn)


def members():
    """As fuzz_members.c says it: who is away; who tells of how many, the first key, who signs, name, time, tenths of a
    second."""
    two, full, more = bytes([1, 9, 3, 0, 0, 20]), bytes([127, 10, 1, 0, 0, 20]), bytes([144, 200, 2, 1, 0, 20])
    for away in b"\0", b"\1":
        yield "two-%d" % away[0], away + two
        yield "two-again-%d" % away[0], away + two + bytes([1, 9, 3, 33, 1, 20]) + bytes([128, 9, 4, 33, 1, 20])
        yield "full-%d" % away[0], away + full + more + full + bytes([60, 100, 1, 0, 0, 20])
        yield "partners-%d" % away[0], away + bytes([2, 0, 1, 0, 0, 20, 2, 0, 2, 0, 0, 20, 130, 0, 2, 0, 9, 255])


def http():
    """As fuzz_http.c says it: nine lines of a head, - for what is not there; then the body."""
    def asked(method, path, body=b"", *, type="-", key="-", parameter="-", origin="-", site="-", host="127.0.0.1:8080"):
        head = (method, path, host, origin, site, type, str(len(body)) if body else "-", key, parameter)
        return "".join(f"{line}\n" for line in head).encode() + body

    for path in ("healthz", "metrics", "api/v1/status", "api/v1/rounds", "api/v1/events", "", "page.js"):
        yield "get-" + path.replace("/", "-"), asked("GET", "/" + path, key="Bearer k", parameter="7")
    yield "head", asked("HEAD", "/readyz", host="localhost")
    yield "page", asked("GET", "/", host="[::1]:80", origin="http://localhost:80", site="same-origin")
    for name, path, body in (
            ("predict", "predict", {"head": "a", "relation": "r", "top": 5, "typed": True, "known": False}),
            ("predict-head", "predict", {"relation": "r", "tail": "b"}),
            ("predict-relation", "predict", {"head": "a", "tail": "b", "known": True}),
            ("similar", "similar", {"name": "a", "top": 3, "typed": False, "by": "cosine"}),
            ("similar-relation", "similar", {"name": "r", "relations": True, "by": "distance"}),
            ("query", "query", {"query": "SELECT ?x { <a> <r> ?x }", "top": 9, "explain": True}),
            ("query-all", "query", {"query": "SELECT ?x { <a> <r> ?x }"}),
            ("accept", "peers/accept", {"peer": "a1b2"}),
            ("reject", "peers/reject", {"peer": "acme"})):
        yield "post-" + name, asked("POST", "/api/v1/" + path, json.dumps(body).encode(),
                                    type="application/json; charset=utf-8", key="Bearer k", site="none")


# Of each pattern (query/pattern.c): what its branches walk, and whether a step follows them.
PATTERNS = {"1p": ([1], 0), "2p": ([2], 0), "3p": ([3], 0), "2i": ([1, 1], 0), "3i": ([1, 1, 1], 0), "ip": ([1, 1], 1),
            "pi": ([2, 1], 0), "2u": ([1, 1], 0), "up": ([1, 1], 1), "2in": ([1, 1], 0), "3in": ([1, 1, 1], 0),
            "inp": ([1, 1], 1), "pin": ([2, 1], 0), "pni": ([2, 1], 0)}


def queries():
    """In fuzz_queries.c's graph: a and b by r."""
    def record(type, branches, last, **more):
        one = {"type": type, "anchors": list("aba"[:len(branches)]),
               "relations": [["^r" if step % 2 else "r" for step in range(n)] for n in branches], "hard": ["b"]}
        return json.dumps(dict(one, **({"last": "r"} if last else {}), **more)).encode() + b"\n"

    for type, (branches, last) in PATTERNS.items():
        yield type, record(type, branches, last)
    yield "whole", record("2i", [1, 1], 0, easy=["a"], missing=[1])
    yield "all", b"".join(record(type, *how) for type, how in PATTERNS.items())


def sparql():
    """In fuzz_sparql.c's graph: a and two literals by r and s."""
    for name, text in (("step", "SELECT ?x { <a> <r> ?x }"),
                       ("words", 'PREFIX p: <>\nSELECT ?x WHERE { "b"@en <r> ?x . "1"^^<t> p:s ?x } LIMIT 10'),
                       ("path", "SELECT ?x { ?x ^<r>/(<s>/^<r>) <a> }"),
                       ("lists", "SELECT ?x { ?x <r> <a>, ?y ; <s> <a> . ?y <s> <a> . }"),
                       ("union", "SELECT ?x { { ?x <r> <a> } UNION { ?x ^<s> <a> } }"),
                       ("not", "SELECT ?x { ?x <r> <a> FILTER NOT EXISTS { ?x <s> <a> } }"),
                       ("all", "SELECT ?x { { ?x <r> <a> } UNION { ?x <s> <a> } ?x <s> ?y . <a> <r> ?y "
                               "FILTER NOT EXISTS { ?x <r>/<r> <a> } }")):
        yield name, text.encode()


# Of the third agent around a table (tests/agent/table.c): its key to sign with, its proof that this and the link's key
# are one agent's, the version of its names.  Anew, should these change: what it says, by the tamper of table.h.
TABLE_SIGN_KEY = "dadbd184a2d526f1ebdd5c06fdad9359b228759b4d7f79d66689fa254aad8546"
TABLE_PROOF = ("702bd1b5cbb2595dfb7ee3f2afdf48c33bdc82c982f4be4f03ae2cf32eeb7041"
               "0c55c1d03e4e3d00f48c53c3a3590e0c761c7ea04ba8fe0114d5ce820382b209")
TABLE_NAMES = "9f6bfe841307717dbd95592d5a9d24473af6f7d8fe7bbcc849ce064d0c5119ec"
AGENT_PROTOCOL = 20
HELLO, SIGNAL, PROPOSE, OUTSIDE = 1, 2, 3, 8


def core():
    """As fuzz_core.c says it: a partner says HELLO, has news, proposes."""
    def said(type, how, body):
        data = packed(body)
        words = (len(data) + 3) // 4
        return bytes([type, how | 4 * words - len(data) << 1, words]) + data

    names = bytes.fromhex(TABLE_NAMES)
    greets = said(HELLO, OUTSIDE, {"v": AGENT_PROTOCOL, "n": "agent-2", "g": bytes.fromhex(TABLE_SIGN_KEY),
                                   "gs": bytes.fromhex(TABLE_PROOF), "s": 0, "a": names})
    news = said(SIGNAL, OUTSIDE, {"s": 1})
    proposal = {"t": 0, "ef": 4, "rf": 4, "a": names, "q": 0, "h": bytes(32), "w": 0, "vn": False, "d": b""}
    for steps in 5, 8:  # the link is up, its own HELLO not there
        yield "hello-%d" % steps, bytes([255, steps]) + greets
        yield "news-%d" % steps, bytes([255, steps]) + greets + news + bytes([255, 40])
    for steps in 6, 9, 12:  # the first training is over, or not yet
        yield "proposes-%d" % steps, (bytes([255, 5]) + greets + bytes([255, steps]) + said(PROPOSE, 0, proposal) +
                                      bytes([255, 9]) + said(SIGNAL, OUTSIDE, {"s": 2}) + bytes([255, 40]))


def found(only):
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", f"{only}.tar.xz"))):
        with tarfile.open(path) as tar:
            yield os.path.basename(path)[:-len(".tar.xz")], [(m.name, tar.extractfile(m).read()) for m in tar]


def main():
    only = sys.argv[2] if len(sys.argv) > 2 else "*"
    made = {"fuzz_steps": steps, "fuzz_short_row": short_rows, "fuzz_ledger": ledger, "fuzz_score": scores,
            "fuzz_exports": exports, "fuzz_config": config, "fuzz_invite": invite, "fuzz_greeting": greeting,
            "fuzz_hub": hub, "fuzz_members": members, "fuzz_http": http, "fuzz_queries": queries, "fuzz_sparql": sparql,
            "fuzz_core": core}
    for target, seeds in (*((name, seeds()) for name, seeds in made.items()), *found(only)):
        if only not in ("*", target):
            continue
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, data in seeds:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)


main()
