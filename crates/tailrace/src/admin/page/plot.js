// Plots over the last 15 minutes, drawn as SVG in the pixels that they have. The pointer or the arrow keys choose a time,
// and all plots show their value of it.

import { attr, clock, el, put } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 96;
const [TOP, BOTTOM, LEFT] = [6, 18, 58];
const SPAN_S = 900;
/** A hole of more than so many seconds is not drawn over. */
const HOLE_S = 12;
const all = [];
/** The chosen time in seconds, or null for the latest. */
let chosen = null;

function svg(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** The smallest round number that is not below `n`, in steps of `base`, so that lines of the grid are round. */
function roundUp(n, base) {
  if (!(n > 0)) return 1;
  const size = base ** Math.floor(Math.log(n) / Math.log(base));
  const steps = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 3, 4, 5, 6, 8, 10];
  return size * steps.find((step) => size * step >= n * 0.999);
}

export class Plot {
  #series = [];
  #note = '';
  #width = 0;
  #max = 1;

  /** `format` turns a value into text; `base` is 1024 for bytes, else 10. */
  constructor(title, format, base = 10) {
    this.title = title;
    this.format = format;
    this.base = base;
    this.heading = el('h3', {}, title);
    this.value = el('p', { class: 'big' }, '–');
    this.small = el('span', { class: 'muted' });
    this.svg = svg('svg', { height: HEIGHT, 'aria-hidden': 'true' });
    this.area = svg('path', { class: 'area' });
    this.path = svg('path', { class: 'curve' });
    this.grid = svg('g', { class: 'grid' });
    this.labels = svg('g', { class: 'labels' });
    this.cursor = svg('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM });
    this.dot = svg('circle', { class: 'dot', r: 3 });
    this.svg.append(this.grid, this.area, this.path, this.cursor, this.dot, this.labels);
    const box = { class: 'plot', role: 'slider', tabindex: 0, 'aria-label': `${title}, last 15 minutes`, 'aria-valuemin': -SPAN_S, 'aria-valuemax': 0 };
    this.box = el('div', box, this.svg);
    this.node = el('div', { class: 'panel card' }, el('div', { class: 'head' }, this.heading, this.small), this.value, this.box);
    this.box.addEventListener('pointermove', (event) => this.#point(event));
    this.box.addEventListener('pointerleave', () => choose(null));
    this.box.addEventListener('blur', () => choose(null));
    this.box.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry.contentRect.width);
      this.#draw();
    }).observe(this.box);
    all.push(this);
  }

  /** Shows a series, and a note beside the title. */
  show(series, note) {
    this.#series = series;
    this.#note = note;
    this.#draw();
  }

  get #end() {
    return this.#series.at(-1)?.t ?? 0;
  }

  #x(t) {
    return LEFT + ((t - this.#end + SPAN_S) / SPAN_S) * (this.#width - LEFT);
  }

  #y(v) {
    return TOP + (1 - v / this.#max) * (HEIGHT - TOP - BOTTOM);
  }

  #draw() {
    if (this.#width === 0) return;
    const values = this.#series.map((point) => point.v).filter((v) => v !== null);
    this.#max = roundUp(Math.max(0, ...values), this.base);
    attr(this.svg, 'width', this.#width);
    attr(this.svg, 'viewBox', `0 0 ${this.#width} ${HEIGHT}`);
    this.#drawGrid(values.length > 0);
    const [curve, area] = this.#curves();
    attr(this.path, 'd', curve);
    attr(this.area, 'd', area);
    this.read();
  }

  #drawGrid(hasValues) {
    this.grid.replaceChildren();
    this.labels.replaceChildren();
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.#y(this.#max * share)) + 0.5;
      this.grid.append(svg('line', { x1: LEFT, x2: this.#width, y1: y, y2: y }));
      if (hasValues) this.#label(LEFT - 6, y + 3, 'end', share === 0 ? '0' : this.format(this.#max * share).replace(/\.0+(?= )/, ''));
    }
    for (const [minutes, anchor] of [[15, 'start'], [10, 'middle'], [5, 'middle'], [0, 'end']]) {
      const x = this.#width - ((this.#width - LEFT) * minutes) / 15;
      this.#label(x, HEIGHT - 4, anchor, minutes === 0 ? 'now' : minutes === 15 ? '−15 min' : `−${minutes}`);
    }
  }

  #label(x, y, anchor, text) {
    const label = svg('text', { x, y, 'text-anchor': anchor });
    label.textContent = text;
    this.labels.append(label);
  }

  /** The line, and the area below it; both have holes where nothing is known. */
  #curves() {
    const runs = [];
    let last = null;
    for (const { t, v } of this.#series) {
      if (v === null) {
        last = null;
        continue;
      }
      if (last === null || t - last > HOLE_S) runs.push([]);
      runs.at(-1).push(`${this.#x(t).toFixed(1)},${this.#y(v).toFixed(1)}`);
      last = t;
    }
    const floor = HEIGHT - BOTTOM;
    const x = (point) => point.split(',')[0];
    const curve = runs.map((run) => `M${run.join('L')}${run.length === 1 ? 'h1' : ''}`).join('');
    const area = runs.map((run) => `M${x(run[0])},${floor}L${run.join('L')}L${x(run.at(-1))},${floor}z`).join('');
    return [curve, area];
  }

  /** Shows the value of the chosen time. */
  read() {
    const target = chosen === null ? this.#end : chosen;
    let nearest = null;
    for (const point of this.#series) {
      if (nearest === null || Math.abs(point.t - target) < Math.abs(nearest.t - target)) nearest = point;
    }
    const known = nearest !== null && nearest.v !== null;
    const text = known ? this.format(nearest.v) : '–';
    put(this.value, text);
    put(this.small, chosen === null || !nearest ? this.#note : clock(nearest.t * 1000));
    const show = known && this.#width > 0;
    attr(this.dot, 'visibility', show ? 'visible' : 'hidden');
    attr(this.cursor, 'visibility', show && chosen !== null ? 'visible' : 'hidden');
    if (show) {
      const x = Math.min(Math.max(this.#x(nearest.t), 0), this.#width);
      attr(this.dot, 'cx', Math.min(x, this.#width - 3));
      attr(this.dot, 'cy', this.#y(nearest.v));
      attr(this.cursor, 'x1', x);
      attr(this.cursor, 'x2', x);
    }
    attr(this.box, 'aria-valuenow', nearest ? nearest.t - this.#end : 0);
    attr(this.box, 'aria-valuetext', nearest ? `${clock(nearest.t * 1000)}: ${known ? text : 'not known'}` : 'no data yet');
  }

  #point(event) {
    const { left } = this.svg.getBoundingClientRect();
    const share = (event.clientX - left - LEFT) / (this.#width - LEFT);
    choose(this.#end - SPAN_S * (1 - Math.max(share, 0)));
  }

  #key(event) {
    const steps = { ArrowLeft: -15, ArrowDown: -15, ArrowRight: 15, ArrowUp: 15, PageDown: -60, PageUp: 60 };
    const first = this.#series[0]?.t ?? this.#end;
    if (event.key === 'Escape') choose(null);
    else if (event.key === 'Home') choose(first);
    else if (event.key === 'End') choose(this.#end);
    else if (event.key in steps) choose(Math.min(Math.max((chosen ?? this.#end) + steps[event.key], first), this.#end));
    else return;
    event.preventDefault();
  }
}

function choose(t) {
  chosen = t;
  for (const plot of all) plot.read();
}
