"""Exports of a ledger as somebody writes them who holds the keys: entries changed, signed anew, and
the whole sealed (bytes: store/ledger/entry.h, store/ledger/verify.h).  No statements, no rotations."""
import ctypes
import hashlib
import json
import struct

_sodium = ctypes.CDLL("libsodium.so.23")
_sodium.sodium_init()
_KINDS = {"contract": 1, "reserve": 2, "settle": 3, "refuse": 4, "close": 5}
_TRANSLATORS = {"none": 0, "ppat": 1, "procrustes": 2, "map": 3, "unrotated": 4}
_NOISES = {"none": 0, "laplace": 1, "gaussian": 2, "release": 3, "discrete_release": 4}
_ACCOUNTANTS = {"none": 0, "exact": 1, "paper": 2, "gnmax": 3, "pld": 4}
_ADJACENCIES = {"none": 0, "row replaced": 1}
_hex = bytes.fromhex


class Key:
    """Of an agent's folder, or of somebody made up (32 bytes)."""

    def __init__(self, folder=None, seed=None):
        public, self.secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        seed = seed or _hex(open(folder + "/identity.key").read().split("\n")[2])
        _sodium.crypto_sign_seed_keypair(public, self.secret, seed)
        self.public = public.raw.hex()

    def sign(self, text):
        out = ctypes.create_string_buffer(64)
        _sodium.crypto_sign_detached(out, None, text, ctypes.c_ulonglong(len(text)), self.secret.raw)
        return out.raw.hex()


def _hash(text):
    return hashlib.blake2b(text, digest_size=32).digest()


def lineage(key):
    return _hash(b"fkge lineage 1" + _hex(key.public)).hex()


def _encode(e):
    return (b"fkgeLDG1" + bytes([_KINDS[e["kind"]], _TRANSLATORS[e["translator"]], _NOISES[e["noise"]],
                                 _ACCOUNTANTS[e["accountant"]], _ADJACENCIES[e["adjacency"]], 0, 0, 0])
            + _hex(e["host"]) + _hex(e["client"]) + _hex(e["lineage"]) + struct.pack("<Q", e["sequence"])
            + _hex(e["previous"]) + struct.pack("<Q", e["time"]) + _hex(e["session"])
            + struct.pack("<IIII", e["teachers"], e["batch"], e["dim"], 0)
            + struct.pack("<dd", e["param"], e["delta"])
            + struct.pack("<QQQQQ", *(e[k] for k in ("count", "total_pair", "total_lineage", "cap_pair",
                                                     "cap_lineage")))
            + struct.pack("<dd", e["epsilon_pair"], e["epsilon_lineage"])
            + struct.pack("<QQ", e["rows"], e["floats"]) + _hex(e["transcript"]))


def sign(e, host, client=None):
    """The entry's hash and signatures; without a client's it waits for one."""
    h = _hash(_encode(e))
    e["hash"] = h.hex()
    e["signature"] = host.sign(b"fkge ledger entry 1" + h)
    e["countersignature"] = client.sign(b"fkge ledger countersign 1" + h) if client else None


def _number(n):
    return struct.pack("<Q", n)


def _text(s):
    return _number(len(s.encode())) + s.encode()


def _party(p):
    return _hex(p["key"]) + _hex(p["sign_key"]) + _text(p["name"])


def seal(x, owner):
    """What the owner's program writes last: lengths of chains, and the signature of the whole."""
    chains = {}
    for e in x["entries"]:
        partner = e["client"] if e["host"] == x["owner"]["sign_key"] else e["host"]
        chains[partner] = (chains.get(partner, (0,))[0] + 1, e["hash"])
    x["chains"] = [{"partner": p, "entries": chains[p][0], "head": chains[p][1]} for p in sorted(chains)]
    assert not x["statements"]
    text = (b"fkge ledger export 2\0" + _party(x["owner"]) + (_hex(x["peer"]) if x["peer"] else bytes(32))
            + _number(x["time"]) + _text(x["nonce"] or "")
            + _number(len(x["parties"])) + b"".join(map(_party, x["parties"]))
            + _number(len(x["chains"]))
            + b"".join(_hex(c["partner"]) + _number(c["entries"]) + _hex(c["head"]) for c in x["chains"])
            + _number(0) + bytes(32) + _number(len(x["entries"])))
    for e in x["entries"]:
        by_client = e["countersignature"]
        text += (_encode(e) + _hex(e["hash"]) + _hex(e["signature"])
                 + (b"\1" + _hex(by_client) if by_client else b"\0" + bytes(64)))
    x["signature"] = owner.sign(_hash(text + _number(0)))


def read(path):
    return json.load(open(path))


def write(x, path):
    json.dump(x, open(path, "w"))
