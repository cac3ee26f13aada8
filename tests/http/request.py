#!/usr/bin/env python3
"""One request, byte for byte: what a browser or curl would not send, too.

usage: request.py WHERE METHOD PATH [Name: value]... [body=TEXT | body=@FILE] [-o FILE] [--slow] [--half] [--old]

WHERE is the status's `http`: http://HOST:PORT or unix:PATH.  Prints the status; the body goes to FILE, the head to
FILE.head.  Host is 127.0.0.1 unless it is given (`Host:` alone: none).  --slow sends a byte a second, and prints
what comes of it: `cut` where the connection was closed without an answer.  --half closes the sending side behind the
request.  --old: HTTP/1.0."""
import socket
import sys
import time


def connect(where):
    if where.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(where[len("unix:"):])
        return s
    host, port = where[len("http://"):].rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)))


def read_all(s):
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got


def main():
    where, method, path, *rest = sys.argv[1:]
    headers, body, out, slow, half, version = {"Host": "127.0.0.1"}, b"", None, False, False, "1.1"
    while rest:
        word = rest.pop(0)
        if word == "-o":
            out = rest.pop(0)
        elif word == "--slow":
            slow = True
        elif word == "--half":
            half = True
        elif word == "--old":
            version = "1.0"
        elif word.startswith("body=@"):
            body = open(word[6:], "rb").read()
        elif word.startswith("body="):
            body = word[5:].encode()
        else:
            name, value = word.split(":", 1)
            headers[name] = value.strip()
    if body and "Transfer-Encoding" not in headers:
        headers.setdefault("Content-Length", str(len(body)))
    headers["Connection"] = "close"
    lines = [f"{method} {path} HTTP/{version}"] + [f"{k}: {v}" for k, v in headers.items() if v]
    request = "\r\n".join(lines).encode() + b"\r\n\r\n"
    if headers.get("Transfer-Encoding") == "chunked":
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in
                        (body[i:i + 4096] for i in range(0, len(body), 4096))) + b"0\r\n\r\n"
    s = connect(where)
    s.settimeout(60)
    try:
        if slow:
            for byte in request + body:
                s.sendall(bytes([byte]))
                time.sleep(1)
        else:
            s.sendall(request + body)
        if half:
            s.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass
    answer = read_all(s)
    head, _, text = answer.partition(b"\r\n\r\n")
    while head.split()[1:2] == [b"100"]:  # whether one that has closed its side is still there
        head, _, text = text.partition(b"\r\n\r\n")
    print(head.split()[1].decode() if head else "cut")
    if b"transfer-encoding: chunked" in head.lower():
        whole, text = text, b""
        while whole:
            size, _, whole = whole.partition(b"\r\n")
            text += whole[:int(size, 16)]
            whole = whole[int(size, 16) + 2:]
    if out:
        open(out, "wb").write(text)
        open(out + ".head", "wb").write(head)


main()
