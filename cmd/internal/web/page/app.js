"use strict";
const $ = id => document.getElementById(id);
const KEPT = 3600e3, EVERY = 2000, WINDOW = 12e3;
let points = [], changes = false, cause = "", causesShown = "";

// el makes an element. What it holds is set as text or is an element, never markup.
function el(name, attrs, ...inner) {
  const e = document.createElement(name);
  for (const k in attrs || {}) k === "onclick" ? e.addEventListener("click", attrs[k]) : e.setAttribute(k, attrs[k]);
  e.append(...inner.map(v => v instanceof Node ? v : String(v ?? "")));
  return e;
}
const n = v => Number(v).toLocaleString("en");
function short(v) {
  for (const [d, s] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= d) return +(v / d).toPrecision(3) + s;
  return String(+(+v).toPrecision(3));
}
const bytes = v => v >= 1e3 ? short(v) + "B" : short(v) + " B";
const span = ns => { const s = ns / 1e9; return s < 0 ? "-" + span(-ns) : s < 1 ? Math.round(s * 1e3) + "ms" : s < 120 ? +s.toFixed(1) + "s" : s < 7200 ? Math.round(s / 60) + "min" : s < 172800 ? Math.round(s / 3600) + "h" : Math.round(s / 86400) + "d"; };
const ago = t => span((Date.now() - new Date(t)) * 1e6);

// redraw replaces what an element holds. The keyboard stays where it was: on what has
// the same key.
function redraw(e, ...inner) {
  const at = document.activeElement, key = e.contains(at) ? at.dataset.key : undefined;
  e.replaceChildren(...inner);
  if (key !== undefined) [...e.querySelectorAll("[data-key]")].find(x => x.dataset.key === key)?.focus({ preventScroll: true });
}

const token = () => sessionStorage.getItem("token") || "";
let asking = null, dismissed = false;
// askToken asks for the token, and says whether one was given.
function askToken(why) {
  asking ??= new Promise(done => {
    const d = $("token");
    $("wanted").textContent = why;
    d.addEventListener("close", () => {
      const given = $("secret").value;
      $("secret").value = ""; asking = null; dismissed = !given;
      if (given) sessionStorage.setItem("token", given);
      done(!dismissed);
    }, { once: true });
    d.showModal();
  });
  return asking;
}
async function call(path, body) {
  for (;;) {
    const init = { headers: {}, cache: "no-store" };
    if (token()) init.headers["X-Seine-Token"] = token();
    if (body) { init.method = "POST"; init.body = JSON.stringify(body); init.headers["Content-Type"] = "application/json"; if (!token()) { if (await askToken("Changes need the token of this page's server.")) continue; throw new Error("Nothing was changed: no token was given."); } }
    const r = await fetch(path, init);
    if (r.status === 401) {
      const wrong = init.headers["X-Seine-Token"] !== undefined;
      if (wrong && token() !== init.headers["X-Seine-Token"]) continue; // another was given meanwhile
      sessionStorage.removeItem("token");
      if (dismissed && !body) throw new Error("It needs its token; load the page again to give it.");
      if (await askToken(wrong ? "The token is wrong. Give the token of this page's server." : "This page needs the token of its server.")) continue;
      throw new Error(wrong ? "The token is wrong." : "No token was given.");
    }
    if (!r.ok) throw new Error((await r.text()).trim());
    if (r.headers.get("X-Seine-Missing")) say(r.headers.get("X-Seine-Missing"));
    return r.json();
  }
}
let sayTimer;
function say(text) { $("result").textContent = text; clearTimeout(sayTimer); sayTimer = setTimeout(() => $("result").textContent = "", 6000); }
async function change(body, button) {
  if (button?.ariaBusy === "true") return;
  if (button) button.ariaBusy = "true"; // not disabled: that would take the keyboard away
  say((button?.textContent || "Set") + " …");
  try { say((await call("api/change", body)).done); await refresh(); if (cause) await showDeadLetters(cause); await showSites(); await showStopped(); }
  catch (e) { say(e.message); }
  if (button) button.ariaBusy = "false";
}
const act = (text, body) => el("button", { class: "small", "data-key": text + JSON.stringify(body()), onclick: e => change(body(), e.currentTarget) }, text);
function table(id, head, rows) {
  const kinds = head.map(h => h.startsWith("#") ? "n" : h.startsWith("~") ? "t" : "w"); // numbers, texts of any length, words
  const cells = (tag, row) => el("tr", {}, ...row.map((v, i) => el(tag, { class: kinds[i] }, v)));
  redraw($(id), ...(rows.length ? [el("thead", {}, cells("th", head.map(h => h.replace(/^[#~]/, "")))), el("tbody", {}, ...rows.map(r => cells("td", r)))] : []));
}

const charts = {
  rate: new Chart($("charts"), "Pages/s", short), bytes: new Chart($("charts"), "Bytes/s", bytes),
  outcomes: new Chart($("charts"), "Outcomes/s", short), queue: new Chart($("charts"), "URLs", short), limits: new Chart($("charts"), "Fetchers limited by", short),
};
// rateOf is how fast a total grew before each point, over a few of them.
function rateOf(key) {
  let from = 0;
  return points.map((p, i) => {
    while (from < i && p.at - points[from].at > WINDOW) from++;
    const q = points[from];
    return p.at > q.at && p.at - q.at <= 2 * WINDOW ? Math.max(0, p[key] - q[key]) * 1000 / (p.at - q.at) : null;
  });
}
function showCharts() {
  const t = points.map(p => p.at), of = key => points.map(p => p[key]);
  charts.rate.set(t, [{ name: "fetchers say", values: of("rate") }]);
  charts.bytes.set(t, [{ name: "on the wire", values: rateOf("bytes") }]);
  charts.outcomes.set(t, ["done", "retried", "dead"].map(k => ({ name: k, values: rateOf(k) })));
  charts.queue.set(t, ["known", "queued", "done"].map(k => ({ name: k, values: of(k) })));
  const bounds = [...new Set(points.flatMap(p => Object.keys(p.limits)))].sort();
  charts.limits.set(t, bounds.map(b => ({ name: b || "unknown", values: points.map(p => p.limits[b] || 0) })));
}
function showFaults(s) {
  const r = s.report, list = [];
  if (s.fault) list.push("The crawl cannot be read now: " + s.fault);
  if (r) {
    const silent = r.shards.filter(k => k.silent).map(k => k.shard);
    if (silent.length) list.push(`Silent: shard ${silent.join(", ")}. It does not answer and is not counted.`);
    for (const key of r.lost_filters || []) list.push(`Filter missing: ${key}; restore it with frontier bloom load.`);
    for (const k of r.filters_over || []) list.push(`Shard ${k} holds more new URLs for known than it may.`);
    list.push(...r.troubles.filter(t => !/ (does|do) not answer$/.test(t)).map(t => "Not ready: " + t + "."), ...(r.pressure || []), ...(r.unread || []));
  }
  $("faults").replaceChildren(...list.map(text => el("p", {}, text)));
}
function show(s) {
  const r = s.report;
  changes = s.changes;
  $("fresh").textContent = "read " + clock(Date.now());
  showFaults(s);
  if (!r) return;
  const t = r.total, last = points[points.length - 1], members = r.members || [];
  document.title = r.crawl + " – Seine";
  $("crawl").textContent = r.crawl;
  $("state").textContent = s.fault ? "not readable" : r.state;
  $("state").className = "pill " + (s.fault ? "bad" : r.state === "ready" ? "good" : "warn");
  showSet(s.settings);
  $("acts").hidden = !changes;
  if (changes) redraw($("acts"), r.state.startsWith("paused") ? act("Resume", () => ({ do: "resume" })) : act("Pause", () => ({ do: "pause" })));
  $("tiles").replaceChildren(...[["pages/s", last ? short(last.rate) : "–"], ["done", n(t.done)], ["queued", n(t.queued)], ["wait for a retry", n(t.waiting)], ["in flight", n(t.open)], ["known URLs", n(t.known)], ["dead", n(t.dead)],
    ["sites with work", n(t.ready + t.paused_ready + t.leases)], ["paused, blocked, behind walls", n(r.sites_paused) + ", " + n(r.sites_blocked) + ", " + n(t.walled)], ["feed", r.feed < 0 ? "?" : n(r.feed)], ["fetchers", n(members.filter(m => m.kind === "fetcher").length)], ["done in", r.eta.known ? r.eta.left || "0s" : "unknown", r.eta.by]]
    .map(([name, v, more]) => el("div", { title: more || "" }, el("b", {}, v), el("span", {}, name))));
  table("fetchers", ["host", "#pid", "version", "#pages/s", "#pages", "#visits", "limited by", "#up", "#seen"], members.map(m =>
    [m.host, m.pid, m.version, short(m.rate), n(m.pages), n(m.visits), m.kind === "fetcher" ? m.limit : m.kind, ago(m.started), ago(m.seen) + " ago"]));
  const gone = r.vanished || [];
  table("vanished", ["vanished", "#pid", "version", "#pages", "#up", "#seen"], gone.slice(0, 20).map(m => [m.host, m.pid, m.version, n(m.pages), span((new Date(m.seen) - new Date(m.started)) * 1e6), ago(m.seen) + " ago"]));
  if (!members.length) $("fetchers").replaceChildren(el("tbody", {}, el("tr", {}, el("td", {}, r.members ? "No fetcher is live." : "The list of programs cannot be read."))));
  const fill = k => (s.filters || [])[k];
  table("shards", ["#shard", "master", "#slot", "#sites", "#queued", "#in flight", "#known", "#done", "#dead", "#filter", "#false positives", "#memory", "state", ...(changes ? [""] : [])], r.shards.map(k =>
    [k.shard, k.master, k.slot, n(k.ready + k.paused_ready + k.leases), n(k.queued), n(k.open), n(k.known), n(k.done), n(k.dead), fill(k.shard) ? (100 * fill(k.shard).fill).toFixed(1) + "%" : "–",
      fill(k.shard)?.probed ? fill(k.shard).rate ? fill(k.shard).rate.toExponential(1) : "0" : "–",
      k.memory.limit ? (100 * k.memory.used / k.memory.limit).toFixed(1) + "% of " + bytes(k.memory.limit) : k.memory.used ? bytes(k.memory.used) : "–",
      el("span", { class: k.silent || k.fault ? "bad" : k.paused ? "warn" : "good" }, k.silent ? "silent" : k.fault ? "no writes" : k.paused ? "paused" : "ready"),
      ...(changes ? [k.paused ? act("Resume", () => ({ do: "resume", shard: k.shard })) : act("Pause", () => ({ do: "pause", shard: k.shard }))] : [])]));
  showCauses(r.dead || {});
  table("settings", ["setting", "~value"], [...Object.entries(r.settings).map(([k, v]) => [k, shownValue(v)]), ...Object.entries(r.layout).map(([k, v]) => ["layout: " + k, shownValue(v)])]);
}
const shownValue = v => v === "" ? "–" : typeof v === "object" ? JSON.stringify(v) : v;
function showCauses(dead) {
  const names = Object.keys(dead).sort((a, b) => dead[b] - dead[a]), now = JSON.stringify([names.map(c => [c, dead[c]]), cause, changes]);
  if (now === causesShown) return; // so that a button under a finger stays
  causesShown = now;
  redraw($("causes"), ...(names.length ? names.map(c => el("button", { "data-key": c, "aria-pressed": c === cause, onclick: () => showDeadLetters(c) }, c + " " + n(dead[c]))) : [el("span", { class: "soft" }, "Nothing was given up.")]),
    ...(changes && cause && dead[cause] ? [act("Retry all of " + cause, () => ({ do: "retry", cause }))] : []));
}
async function showDeadLetters(of) {
  cause = of;
  try {
    const list = await call("api/dead?cause=" + encodeURIComponent(of));
    table("deadletters", ["~URL", "~text", "#attempts", "#depth", ...(changes ? [""] : [])], list.map(d => [d.url, d.text, d.attempts, d.depth, ...(changes ? [act("Retry", () => ({ do: "retry", cause: d.cause, id: d.id }))] : [])]));
  } catch (e) { say(e.message); }
  refresh();
}
async function showStopped() {
  try {
    const list = await call("api/stopped");
    table("stopped", ["site", "state", "since", "~reason", ...(changes ? [""] : [])], list.map(s => [s.site, s.blocked ? "blocked" : "paused", new Date(s.since).toLocaleString(), s.reason || "",
      ...(changes ? [act(s.blocked ? "Unblock" : "Resume", () => ({ do: s.blocked ? "unblock" : "resume", site: s.site }))] : [])]));
  } catch { } // the reading of the crawl tells it
}
$("why").addEventListener("submit", async e => {
  e.preventDefault();
  try {
    const f = new FormData(e.target), a = await call(`api/why?url=${encodeURIComponent(f.get("url"))}&from=${encodeURIComponent(f.get("from"))}`);
    $("answer").replaceChildren(el("p", {}, a.why), el("div", { class: "wide" }, el("table", {}, el("tbody", {}, ...a.rows.map(r => el("tr", {}, el("th", {}, r.name), el("td", { class: "t" }, r.text)))))));
  } catch (err) { $("answer").replaceChildren(el("p", { class: "bad" }, err.message)); }
});
// The sites that are shown: the first of an order, or one.
let sitesBy = "queued", siteOne = "";
async function showSites() {
  try {
    const list = await call("api/sites?by=" + sitesBy + "&site=" + encodeURIComponent(siteOne));
    table("sites", ["~site", "#shard", "state", "#queued", "#wait", "#pages", "#dead", "#pages/s", "#delay", "reason", "#failed", "walls", "last", "#age", "#left"], list.sites.map(s =>
      [el("button", { class: "link", "data-key": s.site, onclick: () => pickSite(s.site) }, s.site), s.shard, s.place, n(s.queued), n(s.waiting), n(s.pages), n(s.dead), short(s.rate), s.delay, s.reason, n(s.failures), s.walls ? `${n(s.walls.count)} ${s.walls.vendor}` : "–", s.last || "–", s.age, s.left]));
    $("sitesnote").textContent = siteOne ? "" : (list.unread || []).join("; ") || (list.sites.length ? list.exact ? "" : `Of ${n(list.with_work)} sites with work ${n(list.looked)} were looked at.` : "No site has work.");
  } catch (e) { table("sites", [], []); $("sitesnote").textContent = e.message; }
}
async function pickSite(site) {
  siteOne = site;
  $("site").elements.site.value = site;
  await showSites();
  const reason = el("input", { placeholder: "reason", "aria-label": "Reason" }), button = (text, body) => { const b = act(text, body); b.type = "button"; return b; };
  $("siteacts").replaceChildren(...(changes && site && $("sites").rows.length ? [el("form", {}, reason, button("Pause " + site, () => ({ do: "pause", site, reason: reason.value })), button("Block " + site, () => ({ do: "block", site, reason: reason.value })))] : []));
}
$("site").addEventListener("submit", e => {
  e.preventDefault();
  const f = new FormData(e.target);
  sitesBy = f.get("by");
  pickSite(f.get("site").trim());
});
$("site").elements.by.addEventListener("change", e => { sitesBy = e.target.value; pickSite(""); });
$("set").addEventListener("submit", e => {
  e.preventDefault();
  const f = new FormData(e.target);
  change({ do: "set", name: f.get("name"), value: f.get("value"), site: f.get("site").trim() });
});
function showSet(names) {
  const list = $("set").elements.name;
  $("set").hidden = !names;
  if (names && list.options.length !== names.length) list.replaceChildren(...names.map(v => el("option", v === "delay" ? { selected: "" } : {}, v)));
}
async function refresh() {
  try {
    const s = await call("api/now?since=" + (points.length ? points[points.length - 1].at : 0));
    points.push(...s.points);
    while (points.length && points[0].at < Date.now() - KEPT) points.shift();
    show(s);
    showCharts();
  } catch (e) {
    $("state").textContent = "no answer"; $("state").className = "pill bad";
    $("faults").replaceChildren(el("p", {}, "This page's program does not answer: " + e.message));
  }
}
(async function () {
  for (let i = 0; ; i++) {
    if (!document.hidden) { await refresh(); if (i % 5 === 0) { await showSites(); await showStopped(); } }
    await new Promise(done => setTimeout(done, EVERY));
  }
})();
