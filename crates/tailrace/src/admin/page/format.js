// Turns values into text, and text into nodes. All text from the agent passes `visible` and becomes a text node; nothing is
// ever parsed as HTML.

const UNSAFE = /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/gu;

/** The text with characters that are invisible or change the writing direction shown as `\u{..}`. */
export function visible(text) {
  return String(text).replace(UNSAFE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** The same of a text with lines, which stay. */
export function visibleLines(text) {
  return String(text).split('\n').map((line) => visible(line.replaceAll('\t', '    '))).join('\n');
}

/** Sets the text of a node if it is another, so that a selection survives. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets an attribute, or removes it if the value is null. */
export function attr(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** An element with attributes and children; a string among the children becomes a text node. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Makes the children of a node follow a list: one child for each key, kept while the key stays. */
export function follow(parent, items, key, create, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let before = parent.firstElementChild;
  const seen = new Set();
  for (const item of items) {
    let name = String(key(item));
    while (seen.has(name)) name += '+';
    seen.add(name);
    let child = old.get(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    old.delete(name);
    if (child === before) before = before.nextElementSibling;
    else parent.insertBefore(child, before);
    update(child, item);
  }
  for (const child of old.values()) child.remove();
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Bytes, as `3.1 MiB`. */
export function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  let unit = 0;
  while (Math.abs(n) >= 1000 && unit < UNITS.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${short(n, unit > 0)} ${UNITS[unit]}`;
}

/** A count with separators, as `41,283`. */
export function count(n) {
  return Number.isFinite(n) ? Math.round(n).toLocaleString('en') : '–';
}

/** A count of things, as `1 file` or `37 files`. */
export function many(n, thing) {
  return `${count(n)} ${thing}${n === 1 ? '' : 's'}`;
}

/** A count in three digits, as `41.3 k`. */
export function compact(n) {
  if (!Number.isFinite(n)) return '–';
  let unit = 0;
  while (Math.abs(n) >= 999.5 && unit < 5) {
    n /= 1000;
    unit += 1;
  }
  const suffix = ['', ' k', ' M', ' G', ' T', ' P'][unit];
  return short(n, unit > 0) + suffix;
}

/** Three digits, with a fraction where there is room for one. */
function short(n, fraction) {
  const size = Math.abs(n);
  if (size >= 99.95 || (!fraction && Number.isInteger(n))) return String(Math.round(n));
  if (size >= 9.995 || !fraction) return n.toFixed(1);
  return n.toFixed(size >= 0.995 ? 2 : 1);
}

/** A share, as `10.0 %`. */
export function percent(share) {
  if (!Number.isFinite(share)) return '–';
  const n = share * 100;
  if (n > 0 && n < 0.01) return '<0.01 %';
  if (n < 100 && n > 99.9) return '>99.9 %';
  return `${n < 1 && n > 0 ? n.toFixed(2) : n === 0 || n === 100 ? n : n.toFixed(1)} %`;
}

/** A duration in seconds, as `3 min 12 s`. */
export function duration(s) {
  if (!Number.isFinite(s)) return '–';
  if (s > 0 && s < 0.001) return '<1 ms';
  if (s > 0 && s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10 && !Number.isInteger(s)) return `${s.toFixed(1)} s`;
  s = Math.round(s);
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => s >= size);
  if (first < 0) return '0 s';
  const [size, unit] = parts[first];
  const [next, small] = parts[first + 1] ?? [0, ''];
  const rest = next ? Math.floor((s % size) / next) : 0;
  return `${Math.floor(s / size)} ${unit}` + (rest ? ` ${rest} ${small}` : '');
}

/** The time of day of milliseconds since the epoch, as `12:03:11`; with the date unless it is of today. */
export function clock(ms) {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return '–';
  const two = (n) => String(n).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} `;
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':');
  return (new Date().toDateString() === time.toDateString() ? '' : day) + text;
}

/** The nodes of a path: a directory that is cut where there is no room, and a name that stays. */
export function pathNodes(path) {
  const text = visible(path);
  const cut = text.lastIndexOf('/') + 1;
  const directory = el('span', { class: 'dir' }, text.slice(0, cut));
  return el('span', { class: 'path', title: text }, directory, el('span', { class: 'base' }, text.slice(cut)));
}
