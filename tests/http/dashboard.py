#!/usr/bin/env python3
"""Drives headless Chromium (chromedriver) over a running agent's dashboard and prints TAP: every figure of the page
beside `fkge status --json`.

usage: dashboard.py FKGE FOLDER ADDRESS KEY STRANGER [PICTURES]

STRANGER is the id of a key that waits; it is accepted.  Into PICTURES go dashboard-light.png and dashboard-dark.png."""
import base64
import json
import math
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

FKGE, FOLDER, ADDRESS, KEY, STRANGER = sys.argv[1:6]
PICTURES = sys.argv[6] if len(sys.argv) > 6 else None
PATIENCE_S = 60
MOVING = {"bytes_in", "bytes_out"}  # pings weigh something


class Browser:
    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        wait_for(lambda: self.call("GET", "/status")["ready"])
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1100,1500"]
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += f"/session/{made['sessionId']}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        return json.load(urllib.request.urlopen(request, timeout=PATIENCE_S))["value"]

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def keys(self, text):
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": [
            a for c in text for a in ({"type": "keyDown", "value": c}, {"type": "keyUp", "value": c})]}]})

    def cdp(self, command, params):
        self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("GET", "/screenshot")))

    def end(self):
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()


def wait_for(what):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = what()
            if found:
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        if time.monotonic() > end:
            return None
        time.sleep(.1)


def status():
    said = json.loads(subprocess.run([FKGE, "-d", FOLDER, "status", "--json"], capture_output=True, text=True).stdout)
    return said


def still(s):
    s = json.loads(json.dumps(s))
    for p in s["peers"]:
        for k in MOVING:
            p.pop(k)
    return s


def at(s, path):
    for k in path.split("."):
        s = None if s is None else s[int(k)] if isinstance(s, list) else s.get(k)
    return s


def text_fits(text, kind, value):
    if value in (None, ""):
        return text == "–" or (kind == "epsilon" and text == "unknown")
    if kind == "text":
        return text == str(value)
    if kind == "time":
        return (text == "–") == (value == 0)
    return math.isclose(float(text.replace(",", "")), value, rel_tol=0,
                        abs_tol={"count": 0, "score": 5.1e-5, "epsilon": 5.1e-4}[kind])


FIGURES = "return [...document.querySelectorAll('[data-path]')].map(e => [e.dataset.path, e.dataset.as, " \
          "e.dataset.value === undefined ? null : JSON.parse(e.dataset.value), e.textContent])"


def compare(browser):
    """How many figures are as in the status; None where the status has changed meanwhile, or the page lags."""
    before = status()
    shown = browser.run(FIGURES)
    if still(before) != still(status()):
        return None
    wrong = []
    for path, kind, value, text in shown:
        want = at(before, path)
        if path.split(".")[-1] in MOVING:
            if value is None or not text_fits(text, kind, value):
                wrong.append((path, value, text))
        elif (value or want not in (None, "")) and value != want or not text_fits(text, kind, want):
            wrong.append((path, value, text, want))
    compare.wrong = wrong
    return None if wrong else len(shown)


# What a screen reader and a keyboard need, counted in the page.
CARE = """
const all = (q) => [...document.querySelectorAll(q)];
return {
  lang: document.documentElement.lang, main: all('main').length, header: all('header').length,
  headings: all('h1').length, sections: all('section').filter(s => !s.getAttribute('aria-labelledby')).length,
  tables: all('table').filter(t => !t.caption || [...t.tHead.rows[0].cells].some(c => c.scope !== 'col')).length,
  rows: all('#peers tr').filter(r => r.cells[0].scope !== 'row').length,
  fields: all('input, progress, meter').filter(i => i.labels.length === 0).length,
  live: all('[aria-live], [role=alert]').length,
  outside: all('[src], [href]').filter(e => new URL(e.src || e.href).origin !== location.origin).length,
  inline: all('[style], style, script:not([src])').length,
}"""


class Tap:
    n = failed = 0

    def ok(self, what, good):
        self.n += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {what}", flush=True)


def log_in(browser, tap):
    browser.open(ADDRESS + "/")
    tap.ok("without a key there are no figures", browser.run("return document.getElementById('board').hidden"))
    browser.keys("\ue004\ue004")  # Tab: past the link to the content
    tap.ok("the keyboard reaches the field", browser.run("return document.activeElement.id") == "key")
    browser.keys("nonsense\ue007")
    tap.ok("a wrong key is told", wait_for(
        lambda: browser.run("return document.getElementById('login-error').textContent") == "this is not the key"))
    browser.keys(KEY + "\ue007")
    tap.ok("the key opens it", wait_for(lambda: not browser.run("return document.getElementById('board').hidden")))
    tap.ok("and is in no address, cookie or storage that stays", browser.run(
        "return !location.href.includes(arguments[0]) && document.cookie === '' && localStorage.length === 0", KEY))


def look(browser, tap):
    n = wait_for(lambda: compare(browser))
    tap.ok("every figure is that of the status", n is not None and n >= 40)
    print(f"# {n} figures", *([] if n else compare.wrong), sep="\n# ")
    care = browser.run(CARE)
    print("#", care)
    zero = ("sections", "tables", "rows", "fields", "outside", "inline")
    tap.ok("landmarks, names of rows and columns, labels; nothing from outside", care["lang"] == "en" and
           care["main"] == care["header"] == care["headings"] == 1 and care["live"] >= 3 and not any(care[k] for k in zero))
    tap.ok("history and words of the ledger are there", wait_for(lambda: browser.run(
        "return document.querySelectorAll('#history tr').length > 0 && document.querySelectorAll('#words dd').length > 1 "
        "&& document.querySelector('#chart svg') !== null")))
    tap.ok("events, too", wait_for(lambda: browser.run("return document.querySelectorAll('#events tr').length") > 0))


def pictures(browser, tap):
    for theme in ("light", "dark"):
        browser.cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        paper = browser.run("return getComputedStyle(document.body).backgroundColor")
        tap.ok(f"{theme}: {paper}", (sum(map(int, paper[4:-1].split(","))) > 384) == (theme == "light"))
        if PICTURES:
            browser.picture(os.path.join(PICTURES, f"dashboard-{theme}.png"))
    browser.cdp("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
    wide = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    tap.ok(f"a narrow screen needs no scrolling to the side: {wide}", wide[0] <= 360)
    if PICTURES:
        browser.picture("/tmp/dashboard-narrow.png")
    browser.cdp("Emulation.clearDeviceMetricsOverride", {})


def decide(browser, tap):
    row = "return [...document.querySelectorAll('#pending tr')].find(r => r.textContent.includes(arguments[0]))"
    tap.ok("the stranger waits", wait_for(lambda: browser.run(row, STRANGER) is not None))
    browser.run(row.replace("return ", "const r = ") + "; r.querySelector('button').click()", STRANGER)
    tap.ok("accepted, it is a partner", wait_for(lambda: any(
        p["id"] == STRANGER and p["standing"] == "partner" for p in status()["peers"])))
    tap.ok("and the page says so, without being loaded anew", wait_for(lambda: browser.run(
        "return document.getElementById('decision').textContent.includes('accepted') && "
        "[...document.querySelectorAll('#peers tr')].some(r => r.textContent.includes(arguments[0].slice(0, 9)))",
        STRANGER)))


def main():
    tap, browser = Tap(), Browser()
    try:
        log_in(browser, tap)
        look(browser, tap)
        decide(browser, tap)
        tap.ok("every figure is that of the status, still", wait_for(lambda: compare(browser)))
        pictures(browser, tap)
        bad = [m["message"] for m in browser.call("POST", "/se/log", {"type": "browser"})
               if "401" not in m["message"] and "favicon" not in m["message"]]
        tap.ok(f"the browser has nothing to complain of {bad[:3]}", not bad)
        subprocess.run([FKGE, "-d", FOLDER, "stop"], check=True)
        tap.ok("when the agent ends, the page says so", wait_for(lambda: "does not answer" in browser.run(
            "return document.getElementById('state').textContent")))
    finally:
        browser.end()
    print(f"1..{tap.n}")
    return tap.failed > 0


sys.exit(main())
