// The pipeline as a line: read, frame, transform, encode, send. The ribbon above it is as wide as the share of records that
// passes, and what the query filters leaves it at the transform.

import { attr, bytes, compact, duration, el, many, percent, put } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
const NAMES = ['read', 'frame', 'transform', 'encode', 'send'];
const [TOP, THICK, HEIGHT] = [3, 20, 50];
/** The least thickness of what passes, so that it is seen. */
const THIN = 2;
const QUEUE_WARN = 0.9;

export class Flow {
  #kept = NaN;
  #state = 'idle';

  constructor() {
    this.svg = document.getElementById('ribbon');
    this.stages = NAMES.map((name) => new Stage(name));
    document.getElementById('stages').append(...this.stages.map((stage) => stage.node));
    this.paths = ['filtered', 'kept', 'sent', 'motion'].map((name) => {
      const path = document.createElementNS(SVG, 'path');
      path.setAttribute('class', name);
      return path;
    });
    this.svg.append(gradient(), ...this.paths);
    new ResizeObserver(() => this.#draw()).observe(this.svg.parentElement);
  }

  /** Shows a pipeline; `rate` tells the growth of one of its counters per second. */
  show(pipeline, rate) {
    const { stages, outputs } = pipeline;
    const now = numbers(rate);
    const total = stages.records > 0 ? 1 - stages.filtered / stages.records : NaN;
    const kept = now.records > 0 ? 1 - now.filtered / now.records : total;
    const ratio = now.sent > 0 ? now.encoded / now.sent : NaN;
    const behind = stages.unread_bytes > 0 ? `${bytes(stages.unread_bytes)} not read yet` : 'nothing left to read';
    const age = stages.oldest_unread_s > 0 ? `oldest unread ${duration(stages.oldest_unread_s)}` : '';
    const bad = outputs.filter((output) => output.state !== 'ok' && output.state !== 'idle');
    const requests = outputs.reduce((sum, output) => sum + output.in_flight_requests, 0);
    const [read, frame, transform, encode, send] = this.stages;
    read.show(perSecond(bytes, now.read), [`${many(stages.files_open, 'file')} open`, behind, age]);
    const malformed = stages.malformed > 0 ? `${percent(stages.malformed / stages.records)} malformed` : '';
    const size = now.records > 0 ? `${bytes(now.read / now.records)} per record` : '';
    frame.show(perSecond(compact, now.records), [size], malformed);
    const since = now.records > 0 ? `${perSecond(compact, now.filtered)} filtered` : 'since the start';
    const failed = stages.failed_rows > 0 ? many(stages.failed_rows, 'failed expression') : '';
    transform.show(Number.isFinite(kept) ? `${percent(kept)} kept` : '–', [Number.isFinite(kept) ? since : ''], failed);
    const packed = Number.isFinite(ratio) ? `${perSecond(bytes, now.sent)} compressed, ${ratio.toFixed(1)} : 1` : '';
    encode.show(perSecond(bytes, now.encoded), [packed]);
    const states = bad.map((output) => output.state);
    const trouble = bad.length > 0 ? `${bad.length} of ${outputs.length} ${[...new Set(states)].join(', ')}` : '';
    send.show(perSecond(compact, now.delivered), [`${many(requests, 'request')} in flight`], trouble);
    this.#kept = Number.isFinite(kept) ? Math.min(Math.max(kept, 0), 1) : 1;
    this.#state = bad.length > 0 ? 'warn' : now.records > 0 || now.delivered > 0 ? 'ok' : 'idle';
    this.#draw();
    showQueue(pipeline.queue);
  }

  #draw() {
    const width = this.svg.clientWidth;
    if (width === 0) return;
    attr(this.svg, 'viewBox', `0 0 ${width} ${HEIGHT}`);
    attr(this.svg, 'data-state', this.#state);
    const [cut, end, send] = [width * 0.4, width * 0.52, width * 0.8];
    const share = Number.isFinite(this.#kept) ? this.#kept : 1;
    const low = TOP + Math.max(THIN, THICK * share);
    const middle = (cut + end) / 2;
    const [filtered, kept, sent, motion] = this.paths;
    attr(kept, 'd', `M0,${TOP}H${send}V${low}H${end}C${middle},${low} ${middle},${TOP + THICK} ${cut},${TOP + THICK}H0z`);
    attr(sent, 'd', `M${send},${TOP}H${width - 8}L${width},${(TOP + low) / 2}L${width - 8},${low}H${send}z`);
    const lost = THICK - (low - TOP);
    const floor = HEIGHT - 2;
    const bend = `C${middle},${TOP + THICK} ${middle},${floor} ${end + 30},${floor}`;
    const back = `V${floor - lost}C${middle + 10},${floor - lost} ${middle},${low} ${cut},${low}`;
    attr(filtered, 'd', lost > 0.5 ? `M${cut},${TOP + THICK}${bend}${back}z` : '');
    const [before, after] = [TOP + THICK / 2, (TOP + low) / 2];
    attr(motion, 'd', `M0,${before}H${cut}C${middle},${before} ${middle},${after} ${end},${after}H${width - 10}`);
  }
}

/** What is filtered fades out. */
function gradient() {
  const node = document.createElementNS(SVG, 'linearGradient');
  attr(node, 'id', 'fade');
  for (const [offset, opacity] of [['0', '0.9'], ['1', '0']]) {
    const stop = document.createElementNS(SVG, 'stop');
    attr(stop, 'offset', offset);
    attr(stop, 'stop-opacity', opacity);
    node.append(stop);
  }
  return node;
}

function perSecond(format, n) {
  return Number.isFinite(n) ? `${format(n)}/s` : '–';
}

function sumOf(key) {
  return (pipeline) => pipeline.outputs.reduce((sum, output) => sum + output[key], 0);
}

/** The rates of a pipeline by what they count; `rate` as above. */
export function numbers(rate) {
  return {
    read: rate((pipeline) => pipeline.stages.read_bytes),
    records: rate((pipeline) => pipeline.stages.records),
    filtered: rate((pipeline) => pipeline.stages.filtered),
    encoded: rate(sumOf('encoded_bytes')),
    sent: rate(sumOf('sent_bytes')),
    delivered: rate(sumOf('delivered')),
  };
}

class Stage {
  constructor(name) {
    this.value = el('p', { class: 'big' }, '–');
    this.lines = [0, 1, 2].map(() => el('p', { class: 'muted' }));
    this.warning = el('p', { class: 'warning' });
    this.node = el('li', {}, el('h3', {}, name), el('div', {}, this.value, ...this.lines, this.warning));
  }

  show(value, lines, warning = '') {
    put(this.value, value);
    this.lines.forEach((line, n) => put(line, lines[n] ?? ''));
    put(this.warning, warning);
  }
}

function showQueue({ size_bytes, capacity_bytes }) {
  const share = capacity_bytes > 0 ? size_bytes / capacity_bytes : 0;
  const meter = document.getElementById('queue');
  fill(meter, share);
  put(document.getElementById('queue-text'), `${bytes(size_bytes)} of ${bytes(capacity_bytes)}`);
}

/** Sets how full a meter is. */
export function fill(meter, share) {
  const full = Math.min(Math.max(share, 0), 1);
  meter.firstElementChild.style.width = `${(full * 100).toFixed(1)}%`;
  attr(meter, 'data-state', full >= QUEUE_WARN ? 'warn' : 'ok');
  attr(meter, 'aria-valuenow', Math.round(full * 100));
}
