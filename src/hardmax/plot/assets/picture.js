// Draws a scene of the page from the numbers embedded beside it, and nothing else:
// between two saved layers a token lies on the straight line that the layer moves it along.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const SIZE = 640;
const EDGE = 46;
const STAR = starPath(11, 4.6);
const DIAMOND = "M0-9L9 0L0 9L-9 0Z";
const MANY_NAMES = 30;
const MANY_TAILS = 30000;

function starPath(outer, inner) {
  const corners = [];
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? inner : outer;
    const angle = (Math.PI * i) / 5 - Math.PI / 2;
    corners.push(`${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`);
  }
  return `M${corners.join("L")}Z`;
}

function node(parent, tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

const known = (point) => point.every(Number.isFinite);
const short = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(4))).replace("-", "−") : "?");
const place = (point) => `(${point.map(short).join(", ")})`;

class Picture {
  constructor(section) {
    this.section = section;
    this.data = JSON.parse(section.querySelector("script.data").textContent);
    this.find = (selector) => section.querySelector(selector);
    this.stage = this.find(".stage");
    this.svg = this.find(".stage svg");
    this.time = 0;
    this.token = null;
    this.turn = [-0.6, 0.35];
    this.count = this.data.zs[0].length;
    this.last = this.data.layers.length - 1;
    this.measure();
    this.build();
    this.resize();
  }

  // --- where things lie -------------------------------------------------------------

  measure() {
    const { zs, kind, layers, vertices, rests } = this.data;
    const cloud = [...zs.flat(), ...vertices, ...rests].filter(known);
    if (!cloud.length) cloud.push(zs[0][0].map(() => 0));
    const range = (i) => cloud.reduce(
      ([low, high], p) => [Math.min(low, p[i]), Math.max(high, p[i])], [Infinity, -Infinity]);
    const box = zs[0][0].map((_, i) => range(i));
    if (kind === "line") box.unshift([layers[0], layers[this.last]]);
    const half = box.map(([low, high]) => (high - low) / 2);
    this.middle = box.map(([low, high]) => low + (high - low) / 2);
    const room = SIZE / 2 - EDGE;
    if (kind === "line") {
      this.scale = half.map((h) => room / (h || 1));
    } else {
      const far = (p) => Math.hypot(...p.map((x, i) => x - this.middle[i]));
      const most = kind === "space" ? cloud.reduce((r, p) => Math.max(r, far(p)), 0) : Math.max(...half);
      this.scale = half.map(() => room / (most || 1));
    }
  }

  // marks keep a size that can be seen when the picture is small
  resize() {
    const zoom = Math.max(1, Math.min(1.7, SIZE / (this.svg.clientWidth || SIZE)));
    const changed = zoom !== this.zoom;
    this.zoom = zoom;
    return changed;
  }

  // paper coordinates, and the depth toward the reader in space
  project(point, layer) {
    const { kind } = this.data;
    const p = (kind === "line" ? [layer, ...point] : point).map(
      (x, i) => (x - this.middle[i]) * this.scale[i]);
    if (kind !== "space") return [SIZE / 2 + p[0], SIZE / 2 - p[1], 0];
    const [yaw, pitch] = this.turn;
    const right = p[0] * Math.cos(yaw) - p[1] * Math.sin(yaw);
    const away = p[0] * Math.sin(yaw) + p[1] * Math.cos(yaw);
    const up = p[2] * Math.cos(pitch) + away * Math.sin(pitch);
    return [SIZE / 2 + right, SIZE / 2 - up, (p[2] * Math.sin(pitch) - away * Math.cos(pitch)) / SIZE];
  }

  row() { return Math.min(Math.floor(this.time), this.last); }

  layerNow() {
    const { layers } = this.data, row = this.row(), share = this.time - row;
    return share ? layers[row] + share * (layers[row + 1] - layers[row]) : layers[row];
  }

  position(token) {
    const { zs } = this.data, row = this.row(), share = this.time - row;
    const here = zs[row][token];
    if (!share || !known(here)) return here;
    return here.map((x, i) => x + share * (zs[row + 1][token][i] - x));
  }

  nameOf(token) {
    const { names } = this.data;
    return names ? `${token} “${names[token]}”` : String(token);
  }

  // --- what is drawn ----------------------------------------------------------------

  build() {
    const { data, svg } = this, { leaders, colours, nobody, kind } = data;
    this.axes = node(svg, "g", {});
    this.faces = data.faces.map(() => node(svg, "path", { class: "polytope" }));
    const final = data.follows[this.last].map((f) => colours[f] || nobody);
    this.tails = [];
    if (this.count * (this.last + 1) <= MANY_TAILS) {
      for (const colour of new Set(final)) {
        const tokens = final.map((c, i) => (c === colour ? i : -1)).filter((i) => i >= 0);
        this.tails.push([node(svg, "path", { class: "tail", stroke: colour }), tokens]);
      }
    }
    this.link = node(svg, "line", { class: "link", visibility: "hidden" });
    const radius = Math.max(2, Math.min(6.5, 90 / Math.sqrt(this.count)));
    this.radius = radius;
    svg.classList.toggle("crowd", this.count > 300);
    this.dots = data.zs[0].map((_, i) => node(svg, "circle", { class: "dot", "data-token": i }));
    this.rests = data.rests.map(() => node(svg, "path", { class: "rest", d: DIAMOND }));
    this.stars = leaders.map((leader) => node(svg, "path", {
      class: "star", d: STAR, fill: colours[leader.index], "data-leader": leader.index,
    }));
    this.names = leaders.length > MANY_NAMES ? [] : leaders.map((leader) =>
      node(svg, "text", { class: "name" }, leader.name));
    this.ring = node(svg, "circle", { class: "ring", visibility: "hidden" });
    if (kind !== "space") this.drawAxes();
  }

  drawAxes() {
    const { labels, kind } = this.data, end = SIZE - EDGE / 2;
    [0, 1].forEach((i) => {
      const half = (SIZE / 2 - EDGE / 2) / this.scale[i];
      const [low, high] = [this.middle[i] - half, this.middle[i] + half];
      const wish = 10 ** Math.floor(Math.log10((high - low) / 4));
      const fair = [1, 2, 5, 10].find((m) => (high - low) / (m * wish) <= 7) * wish;
      const step = kind === "line" && i === 0 ? Math.max(1, fair) : fair;
      for (let k = Math.ceil(low / step); k * step <= high; k++) {
        const at = SIZE / 2 + (i ? -1 : 1) * (k * step - this.middle[i]) * this.scale[i];
        const line = i ? { x1: 0, x2: SIZE, y1: at, y2: at } : { y1: 0, y2: SIZE, x1: at, x2: at };
        node(this.axes, "line", { class: "axis", ...line });
        const spot = i ? { x: 5, y: at - 4 } : { x: at + 4, y: SIZE - 6 };
        if (at < end && at > EDGE / 2) node(this.axes, "text", { class: "tick", ...spot }, short(k * step));
      }
    });
    node(this.axes, "text", { class: "tick", x: SIZE - 8, y: SIZE - 24, "text-anchor": "end" }, labels[0]);
    node(this.axes, "text", { class: "tick", x: 8, y: 18 }, labels[1]);
  }

  drawTriad() {
    this.axes.replaceChildren();
    const from = [62, SIZE - 62];
    this.data.labels.forEach((label, i) => {
      const tip = [0, 1, 2].map((j) => this.middle[j] + (i === j ? 40 / this.scale[j] : 0));
      const [x, y] = this.project(tip).map((v, j) => (j < 2 ? from[j] + v - SIZE / 2 : v));
      node(this.axes, "line", { class: "axis", x1: from[0], y1: from[1], x2: x, y2: y });
      node(this.axes, "text", { class: "tick", x: x + 3, y }, label.replace("coordinate ", ""));
    });
  }

  show() {
    const { data } = this, row = this.row(), layer = this.layerNow();
    const spots = this.dots.map((_, i) => {
      const point = this.position(i);
      return known(point) ? this.project(point, layer) : null;
    });
    this.spots = spots;
    if (data.kind === "space") this.drawTriad();
    this.drawPolytope();
    for (const [path, tokens] of this.tails) path.setAttribute("d", this.tailPath(tokens, row, spots));
    this.drawDots(row, spots);
    this.drawStars(row, spots);
    this.rests.forEach((rest, i) => {
      const [x, y] = this.project(data.rests[i], data.layers[this.last]);
      rest.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${this.zoom})`);
    });
    this.drawChosen(row, spots);
  }

  drawPolytope() {
    const { faces, vertices, kind, layers } = this.data;
    faces.forEach((face, i) => {
      let corners = face.map((v) => this.project(vertices[v], layers[0]));
      if (kind === "line") {
        const [y1, y2] = [corners[0][1], corners[corners.length - 1][1]];
        corners = [[0, y1], [SIZE, y1], [SIZE, y2], [0, y2]];
      }
      const d = corners.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L");
      this.faces[i].setAttribute("d", `M${d}Z`);
    });
  }

  tailPath(tokens, row, spots) {
    const { zs, layers } = this.data, parts = [];
    for (const token of tokens) {
      let pen = "M";
      for (let k = 0; k <= row; k++) {
        if (!known(zs[k][token])) continue;
        const [x, y] = this.project(zs[k][token], layers[k]);
        parts.push(`${pen}${x.toFixed(1)} ${y.toFixed(1)}`);
        pen = "L";
      }
      if (pen === "L" && spots[token]) parts.push(`L${spots[token][0].toFixed(1)} ${spots[token][1].toFixed(1)}`);
    }
    return parts.join("");
  }

  drawDots(row, spots) {
    const { follows, colours, nobody } = this.data, radius = this.radius * this.zoom;
    this.dots.forEach((dot, i) => {
      dot.setAttribute("visibility", spots[i] ? "visible" : "hidden");
      if (!spots[i]) return;
      dot.setAttribute("cx", spots[i][0].toFixed(3));
      dot.setAttribute("cy", spots[i][1].toFixed(3));
      dot.setAttribute("fill", colours[follows[row][i]] || nobody);
      dot.setAttribute("r", (radius * (1 + 0.5 * spots[i][2])).toFixed(2));
    });
  }

  drawStars(row, spots) {
    const { leaders, layers } = this.data;
    leaders.forEach((leader, i) => {
      const spot = spots[leader.index];
      const born = leader.born <= layers[row] && spot;
      for (const part of [this.stars[i], this.names[i]]) {
        if (!part) continue;
        part.setAttribute("visibility", born ? "visible" : "hidden");
        if (born && part === this.stars[i]) {
          part.setAttribute("transform", `translate(${spot[0].toFixed(3)} ${spot[1].toFixed(3)}) scale(${this.zoom})`);
        } else if (born) {
          const left = spot[0] > SIZE / 2;
          part.setAttribute("x", spot[0] + (left ? -13 : 13) * this.zoom);
          part.setAttribute("y", Math.max(15 * this.zoom, spot[1] - 7));
          part.setAttribute("text-anchor", left ? "end" : "start");
        }
      }
    });
  }

  drawChosen(row, spots) {
    const spot = this.token === null ? null : spots[this.token];
    this.ring.setAttribute("visibility", spot ? "visible" : "hidden");
    const goal = spot ? this.data.follows[row][this.token] : -1;
    const far = goal >= 0 && goal !== this.token && spots[goal];
    this.link.setAttribute("visibility", far ? "visible" : "hidden");
    if (!spot) return;
    this.ring.setAttribute("r", 13 * this.zoom);
    this.ring.setAttribute("cx", spot[0]);
    this.ring.setAttribute("cy", spot[1]);
    if (!far) return;
    const ends = { x1: spot[0], y1: spot[1], x2: far[0], y2: far[1] };
    for (const [key, value] of Object.entries(ends)) this.link.setAttribute(key, value);
  }
}
