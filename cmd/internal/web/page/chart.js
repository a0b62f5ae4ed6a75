"use strict";
// A chart of lines over time, as SVG. All text is set as text.
const svgNS = "http://www.w3.org/2000/svg";
function svg(name, attrs, text) {
  const e = document.createElementNS(svgNS, name);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}

class Chart {
  constructor(parent, title, unit) {
    this.title = title; this.unit = unit; this.lines = []; this.times = []; this.at = -1;
    const figure = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.svg = svg("svg", { role: "img", "aria-label": title });
    figure.append(this.caption, this.svg);
    parent.append(figure);
    this.svg.addEventListener("pointermove", e => { this.at = e.clientX - this.svg.getBoundingClientRect().left; this.draw(); });
    this.svg.addEventListener("pointerleave", () => { this.at = -1; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }
  // set takes times in milliseconds and lines of {name, values}; null is a gap.
  set(times, lines) { this.times = times; this.lines = lines; this.draw(); }
  draw() {
    const w = this.svg.clientWidth || 400, h = 170, left = 46, bottom = 18, top = 6, right = 6;
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    const t = this.times, n = t.length;
    let most = 0;
    for (const l of this.lines) for (const v of l.values) if (v > most) most = v;
    const step = nice(most / 3), max = Math.max(step * Math.ceil(most / step), step);
    const t0 = n ? t[0] : 0, t1 = n > 1 ? t[n - 1] : t0 + 1;
    const x = v => left + (v - t0) / (t1 - t0) * (w - left - right), y = v => top + (1 - v / max) * (h - top - bottom);
    const parts = [];
    for (let v = 0; v <= max + step / 2; v += step) {
      parts.push(svg("line", { class: "grid", x1: left, x2: w - right, y1: y(v), y2: y(v) }));
      parts.push(svg("text", { x: left - 5, y: y(v) + 4, "text-anchor": "end" }, this.unit(v)));
    }
    if (n > 1) for (const [f, anchor] of [[0, "start"], [.5, "middle"], [1, "end"]])
      parts.push(svg("text", { x: left + f * (w - left - right), y: h - 3, "text-anchor": anchor }, clock(t0 + f * (t1 - t0))));
    this.lines.forEach((l, i) => {
      let points = [];
      const flush = () => { if (points.length) parts.push(svg("polyline", { class: "k" + i % 8, points: points.join(" ") })); points = []; };
      l.values.forEach((v, j) => v === null ? flush() : points.push(x(t[j]).toFixed(1) + "," + y(v).toFixed(1)));
      flush();
    });
    let pick = n - 1;
    if (this.at >= 0 && n > 1) {
      const want = t0 + (this.at - left) / (w - left - right) * (t1 - t0);
      pick = t.reduce((best, v, j) => Math.abs(v - want) < Math.abs(t[best] - want) ? j : best, 0);
      parts.push(svg("line", { class: "at", x1: x(t[pick]), x2: x(t[pick]), y1: top, y2: h - bottom }));
    }
    this.svg.replaceChildren(...parts);
    const head = document.createElement("b");
    head.textContent = this.title + (this.at >= 0 && n > 1 ? " " + clock(t[pick]) : "");
    this.caption.replaceChildren(head, ...this.lines.map((l, i) => {
      const e = document.createElement("i"), v = l.values[pick];
      e.className = "k" + i % 8;
      e.textContent = l.name + " " + (v === null || v === undefined ? "–" : this.unit(v));
      return e;
    }));
  }
}
function nice(v) {
  if (!(v > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(v)), f = v / p;
  return (f > 5 ? 10 : f > 2 ? 5 : f > 1 ? 2 : 1) * p;
}
function clock(ms) { return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }); }
