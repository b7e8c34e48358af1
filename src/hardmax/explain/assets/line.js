// The decision line of a head: where a text standing there would be undecided.
{
  const build = Picture.prototype.drawAxes;
  Picture.prototype.drawAxes = function () {
    build.call(this);
    const wish = this.section.previousElementSibling;
    if (!wish || !wish.dataset.line || this.data.kind !== "plane") return;
    const [a, b, c] = wish.dataset.line.split(" ").map(Number);
    const long = Math.hypot(a, b);
    if (!(long > 0)) return;
    const far = (2 * SIZE) / Math.min(...this.scale), m = this.middle;
    const gap = (a * m[0] + b * m[1] + c) / (long * long);
    const foot = [m[0] - gap * a, m[1] - gap * b];
    const ends = [-far, far].map((t) => this.project([foot[0] - (t * b) / long, foot[1] + (t * a) / long], 0));
    node(this.axes, "line", { class: "line", x1: ends[0][0], y1: ends[0][1], x2: ends[1][0], y2: ends[1][1] });
  };
}
