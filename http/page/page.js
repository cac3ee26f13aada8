// The dashboard: what /api/v1/stream says, as it comes.  The key is in this tab's memory alone.
"use strict";

const byId = (id) => document.getElementById(id);
const STORE = "fkge-key";
let key = sessionStorage.getItem(STORE);
let connection = null; // an AbortController while there is one
let lastState = "";
let figuresOf = ""; // what the tables from other paths were read for
let lastEvent = 0;
let eventsRun = 0; // of which process
let events = [];
let gains = {}; // by partner's name, from the history

// ---- numbers as text ----

const count = new Intl.NumberFormat("en-US");
const shown = {
  text: (v) => String(v),
  count: (v) => count.format(v),
  score: (v) => v.toFixed(4),
  epsilon: (v) => v.toFixed(3),
  time: (v) => (v > 0 ? new Date(v).toLocaleString("sv-SE") : "–"),
};

function at(object, path) {
  return path.split(".").reduce((o, k) => (o === null || o === undefined ? undefined : o[k]), object);
}

// Each figure says where in the status it comes from, and its exact value.
function fill(element, status) {
  const value = at(status, element.dataset.path);
  if (value === null || value === undefined || value === "") {
    // of an epsilon, null is what nobody can tell: not nothing
    element.textContent = value === null && element.dataset.as === "epsilon" ? "unknown" : "–";
    delete element.dataset.value;
    return;
  }
  const text = shown[element.dataset.as](value);
  if (element.textContent !== text) element.textContent = text;
  element.dataset.value = JSON.stringify(value);
}

// ---- elements ----

function make(name, text, attributes = {}) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

function cells(row, ...texts) {
  for (const t of texts) row.append(make("td", t));
  return row;
}

function figureCell(path, as) {
  const td = make("td", undefined, { "data-path": path, "data-as": as });
  td.className = as === "text" || as === "time" ? as : "number";
  return td;
}

// Only what has changed is made anew: focus and the reader's place stay.
function put(parent, sign, build) {
  if (parent.dataset.sign === sign) return;
  parent.dataset.sign = sign;
  parent.replaceChildren(...build());
}

// ---- the status ----

function warningsOf(s) {
  const all = [];
  const add = (who, text) => { if (text) all.push(who ? `${who}: ${text}` : text); };
  add("", s.gains_nothing && "this agent gains nothing: its last looks at valid took in none of what partners " +
    "brought (federation.weight)");
  add("", s.best && s.best.floor_warning);
  if (s.round) {
    add("last round", s.round.trouble);
    add("rounds have stopped", s.round.stopped_why);
    add("no round now", s.round.waits);
  }
  for (const p of s.peers) {
    const who = p.name || p.id.slice(0, 9);
    if (!p.linked && p.standing === "partner") add(`${who}: no link`, p.down_why);
    add(who, p.trouble);
    add(who, p.names_warning);
    add(who, p.round_account);
    if (Math.abs(p.clock_off_s || 0) > 300) add(who, `its clock is ${Math.round(p.clock_off_s / 60)} minutes off`);
  }
  return all;
}

const columns = [
  ["link_ms", "time"], ["shared_entities", "count"], ["shared_relations", "count"], ["sessions", "count"],
  ["failed", "count"], null, ["rows_sent", "count"], ["noisy_rows_sent", "count"], ["epsilon", "epsilon"],
  ["epsilon_cap", "epsilon"], ["bytes_in", "count"], ["bytes_out", "count"],
];

function peerRow(s, p, i) {
  const row = make("tr");
  row.append(make("th", `${p.name || "no name"} (${p.id.slice(0, 9)})`, { scope: "row" }));
  cells(row, p.standing);
  row.append(make("td", p.linked ? "up" : "down", { class: p.linked ? "up" : "down" }));
  for (const c of columns) {
    if (c) row.append(figureCell(`peers.${i}.${c[0]}`, c[1]));
    else row.append(make("td", p.id in gains ? shown.score(gains[p.id]) : "–", { class: "number" }));
  }
  return row;
}

function pendingRow(p) {
  const row = make("tr");
  const id = make("th", undefined, { scope: "row" });
  id.append(make("code", p.id));
  row.append(id);
  cells(row, p.name || "–", p.address || p.source || "–", shown.time(p.seen_ms));
  const decide = make("td");
  for (const [verb, label] of [["accept", "Accept"], ["reject", "Reject"]]) {
    const b = make("button", label, { type: "button", "aria-label": `${label} ${p.id.slice(0, 9)}` });
    if (verb === "reject") b.className = "quiet";
    b.addEventListener("click", () => decideOn(verb, p.id));
    decide.append(b, " ");
  }
  row.append(decide);
  return row;
}

async function decideOn(verb, id) {
  const said = byId("decision");
  try {
    await ask(`peers/${verb}`, { peer: id });
    said.textContent = `${id.slice(0, 9)}: ${verb}ed.`;
  } catch (e) {
    said.textContent = `${id.slice(0, 9)}: ${e.message}`;
  }
}

function showStatus(s) {
  const state = s.doing && s.doing !== s.state ? `${s.state}: ${s.doing}` : s.state;
  if (state !== lastState) byId("state").textContent = lastState = state;
  document.title = `${s.name}: ${s.state}`;
  byId("job").max = s.job.total || 1;
  byId("job").value = s.job.done;
  byId("epsilon").max = s.privacy.epsilon_cap;
  byId("epsilon").value = s.privacy.epsilon || 0;
  byId("epsilon").hidden = s.privacy.epsilon === null;
  const isPrivate = s.privacy.private_steps > 0;
  byId("score-note").hidden = !isPrivate;
  byId("scores").hidden = isPrivate;
  byId("rounds-section").hidden = !s.round;
  const warnings = warningsOf(s);
  put(byId("warnings"), JSON.stringify(warnings), () => warnings.map((w) => make("li", w)));
  const rows = s.peers.map((p, i) => [p, i]).filter(([p]) => p.standing !== "pending");
  const sign = JSON.stringify([gains, rows.map(([p, i]) => [i, p.id, p.name, p.standing, p.linked])]);
  put(byId("peers"), sign, () => rows.map(([p, i]) => peerRow(s, p, i)));
  const pending = s.peers.filter((p) => p.standing === "pending");
  byId("pending-section").hidden = pending.length === 0 && byId("decision").textContent === "";
  put(byId("pending"), JSON.stringify(pending.map((p) => [p.id, p.name, p.address])), () => pending.map(pendingRow));
  document.querySelectorAll("[data-path]").forEach((e) => fill(e, s));
  byId("board").dataset.status = String(Number(byId("board").dataset.status || 0) + 1);
}

// ---- what is read beside it ----

async function ask(path, body) {
  const answer = await fetch(`/api/v1/${path}`, {
    method: body ? "POST" : "GET",
    headers: { Authorization: `Bearer ${key}`, ...(body ? { "Content-Type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error || `HTTP ${answer.status}`);
  return said;
}

function svg(name, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

// Scores in the order in which they came, and the arms as lines across.
function drawChart(points, arms) {
  const box = byId("chart");
  const scores = points.map((p) => p.after).concat(arms.map((a) => a.score)).filter(Number.isFinite);
  if (scores.length === 0) {
    box.replaceChildren();
    return;
  }
  const width = 640, height = 200, left = 50, right = 110, low = Math.min(...scores), high = Math.max(...scores);
  const spread = high - low || high || 1;
  const x = (i) => left + (points.length > 1 ? (i * (width - left - right)) / (points.length - 1) : 0);
  const y = (v) => height - 20 - ((v - low) * (height - 40)) / spread;
  const words = `${points.length} scores on valid between ${low.toFixed(4)} and ${high.toFixed(4)}` +
    arms.map((a) => `; ${a.name} ${a.score.toFixed(4)}`).join("");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  const text = (px, py, t) => { const e = svg("text", { x: px, y: py }); e.textContent = t; picture.append(e); };
  picture.append(svg("line", { x1: left, y1: y(low), x2: width - right, y2: y(low), class: "axis" }));
  text(2, y(high) + 4, high.toFixed(4));
  text(2, y(low) + 4, low.toFixed(4));
  let free = height; // names of lines do not stand on each other
  for (const a of [...arms].sort((p, q) => p.score - q.score)) {
    const place = Math.min(y(a.score), free - 13);
    free = place;
    picture.append(svg("line", { x1: left, y1: y(a.score), x2: width - right, y2: y(a.score), class: a.kind }));
    text(width - right + 6, place + 4, a.name);
  }
  picture.append(svg("polyline", { class: "line", points: points.map((p, i) => `${x(i)},${y(p.after)}`).join(" ") }));
  points.forEach((p, i) => picture.append(
    svg("circle", { cx: x(i), cy: y(p.after), r: 3.5, class: p.kept === false ? "lost" : "dot" })));
  box.replaceChildren(picture);
}

function showHistory(h, s) {
  const all = (s.round ? h.rounds : h.sessions) || [];
  const points = all.filter((p) => Number.isFinite(p.after));
  const arms = [["before", "before"], ["alone", "alone"], ["with_partners", "with"]]
    .map(([k, kind]) => ({ name: k.replace("_", " "), kind, score: at(s, `arms.${k}`) }))
    .filter((a) => Number.isFinite(a.score));
  if (points.length > 0 && Number.isFinite(points[0].before)) points.unshift({ after: points[0].before });
  gains = {};
  for (const p of h.partners || []) gains[p.id] = p.valid_gain;
  drawChart(points, arms);
  byId("history").replaceChildren(...[...all].reverse().map((p) => cells(make("tr"),
    p.time_ms ? shown.time(p.time_ms) : `round ${p.round}`, p.partners.map((name, i) => `${name} (${p.ids[i].slice(0, 9)})`).join(", "),
    Number.isFinite(p.before) ? shown.score(p.before) : "–", Number.isFinite(p.after) ? shown.score(p.after) : "–",
    p.kept === undefined ? "–" : p.kept ? "yes" : "no")));
}

function showLedger(l) {
  const rows = [];
  const add = (who, text) => { if (text) rows.push(make("dt", who), make("dd", text)); };
  if (l.own) {
    add("Protected, toward all", l.own.protected);
    add("Not protected", l.own.not_protected);
  }
  for (const c of l.chains || []) {
    for (const side of [c.as_host, c.as_client]) {
      if (!side) continue;
      add(`With ${c.partner}: protected`, side.protected);
      add(`With ${c.partner}: not protected`, side.not_protected);
    }
  }
  byId("words").replaceChildren(...rows);
}

function showRounds(r) {
  byId("rounds").replaceChildren(...(r.rounds || []).map((x) => cells(make("tr"),
    count.format(x.number), shown.time(x.started_ms), ((x.finished_ms - x.started_ms) / 1000).toFixed(1),
    count.format(x.members.length), Number.isFinite(x.valid_score) ? shown.score(x.valid_score) : "–",
    x.reason || (x.outcome === 0 ? "done" : "came to nothing"))));
}

async function readEvents() {
  const said = await ask(`events?after=${lastEvent}&run=${eventsRun}`);
  if (said.run !== eventsRun) events = []; // of an agent that has started anew
  eventsRun = said.run;
  lastEvent = said.last;
  events = events.concat(said.events).slice(-100);
  put(byId("events"), JSON.stringify([eventsRun, ...events.map((e) => e.seq)]), () => [...events].reverse().map((e) => {
    const row = cells(make("tr"), shown.time(e.time_ms), e.kind, e.text);
    if (e.kind === "error" || e.kind === "trouble") row.className = "error";
    return row;
  }));
}

// The tables from other paths, when a figure that they hang on has changed.
let reading = false;
let newest = null; // the status that came meanwhile

async function readFigures(s, sign) {
  const [history, ledger, rounds] = await Promise.all([ask("history"), ask("ledger"), s.round ? ask("rounds") : {}]);
  showHistory(history, s);
  showLedger(ledger);
  showRounds(rounds);
  figuresOf = sign;
  showStatus(newest || s);
}

async function readBeside(s) {
  const sign = JSON.stringify([s.rounds, s.improved, s.sessions, s.round && s.round.done, s.arms, s.started_ms]);
  if (reading) {
    newest = s;
    return;
  }
  reading = true;
  newest = null;
  for (const read of [() => sign === figuresOf || readFigures(s, sign), readEvents]) {
    try {
      await read();
    } catch (e) { // what the other one says is shown all the same
      byId("state").textContent = lastState = e.message;
    }
  }
  setTimeout(() => {
    reading = false;
    if (newest && connection) readBeside(newest);
  }, 1000);
}

// ---- the connection ----

function showLogin(why) {
  if (connection) connection.abort();
  connection = null;
  key = null;
  sessionStorage.removeItem(STORE);
  byId("board").hidden = true;
  byId("forget").hidden = true;
  byId("login").hidden = false;
  byId("login-error").textContent = why;
  byId("state").textContent = lastState = "not connected";
  byId("key").focus();
}

function take(block) {
  const data = block.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
  if (data === "") return;
  const status = JSON.parse(data);
  byId("login").hidden = true;
  byId("board").hidden = false;
  byId("forget").hidden = false;
  showStatus(status);
  readBeside(status);
}

async function connect() {
  const mine = (connection = new AbortController());
  while (connection === mine) {
    try {
      const answer = await fetch("/api/v1/stream", { headers: { Authorization: `Bearer ${key}` }, signal: mine.signal });
      if (answer.status === 401) return showLogin((await answer.json()).error);
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const blocks = (text + value).split("\n\n");
        text = blocks.pop();
        blocks.forEach(take);
      }
    } catch (e) {
      if (mine.signal.aborted) return;
    }
    byId("state").textContent = lastState = "the agent does not answer; trying again";
    await new Promise((go) => setTimeout(go, 2000));
  }
}

byId("key-form").addEventListener("submit", (e) => {
  e.preventDefault();
  key = byId("key").value.trim();
  byId("key").value = "";
  sessionStorage.setItem(STORE, key);
  byId("login-error").textContent = "";
  connect();
});
byId("forget").addEventListener("click", () => showLogin(""));
if (key) connect();
