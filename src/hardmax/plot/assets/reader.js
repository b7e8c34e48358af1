// Says what the picture shows, and does what the reader asks for.

const MILLISECONDS_PER_LAYER = 650;
const REACH = 22;

class Reader extends Picture {
  constructor(section) {
    super(section);
    this.slider = this.find("input[type=range]");
    this.button = this.find("button.play");
    this.playing = false;
    this.listen();
    this.show();
  }

  show() {
    super.show();
    this.tell(this.row());
  }

  // --- what is said -----------------------------------------------------------------

  tell(row) {
    const { layers, leaders, follows } = this.data;
    const layer = layers[row];
    this.slider.value = row;
    this.slider.setAttribute("aria-valuetext", `layer ${layer}`);
    this.find(".controls output").textContent = layer;
    const born = leaders.filter((leader) => leader.born <= layer);
    const there = this.spots.filter(Boolean).length;
    const more = born.length > 10 ? ` and ${born.length - 10} more` : "";
    const list = born.slice(0, 10).map((leader) => leader.name).join(", ") + more;
    const who = born.length ? `${born.length} ${born.length === 1 ? "leader" : "leaders"}: ${list}` : "no leader yet";
    const text = `Layer ${layer} of ${layers[this.last]}: ${there} ${there === 1 ? "token" : "tokens"}, ${who}.`;
    const description = this.find(".description");
    if (description.textContent !== text) description.textContent = text;
    this.svg.setAttribute("aria-label", text);
    const count = new Map();
    follows[row].forEach((f, i) => { if (f !== i) count.set(f, (count.get(f) || 0) + 1); });
    for (const line of this.section.querySelectorAll("tr[data-leader]")) {
      const leader = Number(line.dataset.leader);
      line.classList.toggle("unborn", Number(line.dataset.born) > layer);
      line.querySelector(".followers").textContent = count.get(leader) || 0;
    }
    this.tellToken(row);
  }

  tellToken(row) {
    if (this.token === null) return;
    const token = this.token, goal = this.data.follows[row][token];
    const { leaders, layers } = this.data;
    const leads = leaders.some((leader) => leader.index === token && leader.born <= layers[row]);
    let does = `follows ${this.nameOf(goal)}`;
    if (goal < 0) does = "follows several tokens, or none";
    else if (goal === token) does = leads ? "is a leader" : "follows itself";
    const point = this.position(token);
    const where = known(point) ? `at ${place(point)}` : "has no known position";
    this.find(".token").textContent = `Token ${this.nameOf(token)} ${where}; it ${does}.`;
  }

  // --- what the reader does ---------------------------------------------------------

  listen() {
    this.slider.addEventListener("input", () => {
      const row = Number(this.slider.value);
      this.stop();
      this.go(row);
    });
    this.button.addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerdown", (event) => this.point(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.resize()) this.show(); }).observe(this.svg);
    if (this.data.kind === "space") this.listenTurning();
  }

  listenTurning() {
    let from = null;
    this.stage.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY, ...this.turn];
      this.stage.setPointerCapture(event.pointerId);
      this.stage.classList.add("turning");
    });
    const end = () => { from = null; this.stage.classList.remove("turning"); };
    this.stage.addEventListener("pointerup", end);
    this.stage.addEventListener("pointercancel", end);
    this.stage.addEventListener("pointermove", (event) => {
      if (from) this.rotate(from[2] + (event.clientX - from[0]) / 150, from[3] + (event.clientY - from[1]) / 150);
    });
  }

  rotate(yaw, pitch) {
    this.turn = [yaw, Math.max(-1.57, Math.min(1.57, pitch))];
    this.show();
  }

  point(event) {
    const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    let nearest = null, reach = REACH;
    this.spots.forEach((s, i) => {
      const distance = s ? Math.hypot(s[0] - spot.x, s[1] - spot.y) : Infinity;
      if (distance < reach) [nearest, reach] = [i, distance];
    });
    if (nearest !== null && nearest !== this.token) this.choose(nearest);
  }

  choose(token) {
    this.token = token;
    this.drawChosen(this.row(), this.spots);
    this.tellToken(this.row());
  }

  key(event) {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    if (event.shiftKey && this.data.kind === "space") {
      this.rotate(this.turn[0] + step[0] / 8, this.turn[1] + step[1] / 8);
    } else {
      const move = step[0] + step[1];
      this.choose(this.token === null ? 0 : (this.token + move + this.count) % this.count);
    }
  }

  go(time) { this.time = time; this.show(); }

  play() {
    this.playing = true;
    this.button.textContent = "Pause";
    this.find(".description").setAttribute("aria-live", "off");
    if (this.time >= this.last) this.time = 0;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const began = performance.now(), start = this.time;
    const tick = (now) => {
      if (!this.playing) return;
      const time = start + Math.max(0, now - began) / MILLISECONDS_PER_LAYER;
      const shown = Math.min(calm ? Math.floor(time) : time, this.last);
      if (shown !== this.time) this.go(shown);
      if (shown >= this.last) this.stop();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  stop() {
    this.playing = false;
    this.button.textContent = "Play";
    this.find(".description").setAttribute("aria-live", "polite");
    if (this.time !== this.row()) this.go(this.row());
  }
}

for (const section of document.querySelectorAll("section.scene")) new Reader(section);
