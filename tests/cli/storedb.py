"""A store opened past the program, by tests that change what stands in it: with the functions that
its triggers call (store/sums.c), so that the sums of the tables follow."""
import hashlib
import sqlite3
import struct


def _row(*values):
    h = hashlib.blake2b(digest_size=32)
    for v in values:
        if v is None:
            h.update(bytes([5]))
        elif isinstance(v, int):
            h.update(bytes([1]) + struct.pack("<q", v))
        elif isinstance(v, float):
            h.update(bytes([2]) + struct.pack("<d", v))
        else:
            kind, data = (3, v.encode()) if isinstance(v, str) else (4, bytes(v))
            h.update(bytes([kind]) + struct.pack("<Q", len(data)) + data)
    return h.digest()


def _xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def connect(path):
    db = sqlite3.connect(path)
    db.create_function("sum_row", -1, _row, deterministic=True)
    db.create_function("sum_xor", 2, _xor, deterministic=True)
    db.execute("PRAGMA recursive_triggers = ON")
    return db
