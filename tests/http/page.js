// The page's script without a browser: what it asks for as statuses come.  usage: node page.js PAGE_JS
"use strict";
const fs = require("fs");
const assert = require("assert");

const elements = {};
function element() {
  return {
    dataset: {}, children: [], hidden: false, textContent: "", max: 0, value: 0,
    append(...x) { this.children.push(...x); }, replaceChildren(...x) { this.children = x; },
    setAttribute() {}, addEventListener() {}, focus() {},
  };
}
global.document = {
  getElementById: (id) => (elements[id] = elements[id] || element()), createElement: element, createElementNS: element,
  querySelectorAll: () => [], title: "",
};
global.sessionStorage = { getItem: () => "key", setItem() {}, removeItem() {} };

// An agent in rounds that also has had sessions of pairs; its third event comes while the page reads.
const status = (event, rounds) => ({
  name: "a", state: "sleep", doing: "sleep", started_ms: 1, newest_event: event, gains_nothing: rounds > 1, rounds,
  improved: 1, sessions: 1, job: { total: 0, done: 0 }, privacy: { epsilon: unknown ? null : 0, epsilon_cap: 1, private_steps: 0 },
  best: { floor_warning: "" }, round: { done: rounds, trouble: "", stopped_why: "", waits: "" }, arms: null,
  peers: ["c", "d"].map((id) => ({ name: "b", id: id.repeat(10), standing: "partner", linked: true })),
});
let unknown = false, now = 2, rounds = 1, run = 7, sends;
const score = (round) => ({ round, before: 0.1, after: 0.2, partners: ["b"], ids: ["bbbbbbbbbb"] });
const answers = {
  history: () => ({ sessions: [{ time_ms: 1, before: 0.1, after: 0.2, kept: true, partners: ["b"], ids: ["bbbbbbbbbb"] }],
    rounds: [...Array(rounds + 1).keys()].map(score),
    partners: ["c", "d"].map((id, i) => ({ partner: "b", id: id.repeat(10), valid_gain: i / 4 })) }),
  ledger: () => ({ chains: [] }),
  rounds: () => ({ rounds: [] }),
};
function tell(event, n) {
  now = event;
  rounds = n;
  sends(`event: status\ndata: ${JSON.stringify(status(event, n))}\n\n`);
}
const asked = [];
let fails = true; // the first history
global.fetch = async (path) => {
  asked.push(path);
  if (path.endsWith("/stream")) {
    const body = new ReadableStream({ start: (c) => { sends = (t) => c.enqueue(new TextEncoder().encode(t)); } });
    setTimeout(() => tell(2, 1), 10);
    return { ok: true, status: 200, body };
  }
  const [, what, after, of] = path.match(/api\/v1\/(\w+)(?:\?after=(\d+)(?:&run=(\d+))?)?/);
  if (what === "ledger" && now === 2) tell(3, 2);
  const seqs = [...Array(now + 1).keys()].filter((n) => n > (of === undefined || of === `${run}` ? Number(after) : 0));
  const said = what === "events"
    ? { events: seqs.map((seq) => ({ seq, time_ms: 1, kind: "trouble", text: `it of ${run}` })), last: now, run }
    : answers[what]();
  await new Promise((go) => setTimeout(go, 20));
  if (what === "history" && fails) {
    fails = false;
    return { ok: false, status: 503, json: async () => ({ error: "not now" }) };
  }
  return { ok: true, status: 200, json: async () => said };
};

(0, eval)(fs.readFileSync(process.argv[2], "utf8").replace('"use strict";', ""));
setTimeout(() => {
  assert.strictEqual(asked.filter((p) => p.endsWith("/history")).length, 2, "what came while it read is read, too");
  const events = asked.findIndex((p) => p.includes("/events"));
  assert.ok(events < asked.findLastIndex((p) => p.endsWith("/history")), "events, also where the history fails");
  assert.strictEqual(document.getElementById("events").children.length, 3, "all events");
  assert.strictEqual(document.getElementById("history").children.length, 3, "rounds, not sessions of before");
  assert.ok(document.getElementById("warnings").children.some((w) => w.textContent.includes("gains nothing")));
  const gained = document.getElementById("peers").children.map((r) => r.children.map((c) => c.textContent));
  assert.ok(gained[0].includes("0.0000") && gained[1].includes("0.2500"), "two partners of one name: each has its own");
  const shown = (value) => {
    const e = { dataset: { path: "privacy.epsilon", as: "epsilon" } };
    global.fill(e, { privacy: { epsilon: value } });
    return e.textContent;
  };
  assert.deepStrictEqual([0, 1.5, null, undefined].map(shown), ["0.000", "1.500", "unknown", "–"],
    "an epsilon that nobody can tell is not nothing");
  assert.strictEqual(document.getElementById("epsilon").hidden, false);
  unknown = true;
  run = 8; // another process, which has come further
  tell(5, 2);
  setTimeout(() => {
    const rows = document.getElementById("events").children.map((r) => r.children[2].textContent);
    assert.strictEqual(document.getElementById("epsilon").hidden, true, "nor is there a bar of it");
    assert.deepStrictEqual(rows, Array(5).fill("it of 8"), "all events of a new process, and none of the one before");
    process.exit(0);
  }, 1500);
}, 2000);
