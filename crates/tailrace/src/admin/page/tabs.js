// The tabs below: sources, query, problems and own log. Each asks the agent only while it is shown.

import { getJson } from './api.js';
import { attr, bytes, clock, count, duration, el, follow, pathNodes, put, visible, visibleLines } from './format.js';

const byId = (id) => document.getElementById(id);
const TABS = ['sources', 'query', 'problems', 'log', 'tail'];
const LOG_LINES = 200;
const SOURCES = 20;

/** The tab list. The open tab is part of the address, so that it can be linked. */
export class Tabs {
  #changed;

  constructor(changed) {
    this.#changed = changed;
    for (const name of TABS) byId(`tab-${name}`).addEventListener('click', () => this.open(name));
    byId('tabs').addEventListener('keydown', (event) => this.#key(event));
    window.addEventListener('hashchange', () => this.open(location.hash.slice(1)));
    this.open(location.hash.slice(1));
  }

  open(name) {
    const wanted = TABS.includes(name) ? name : (this.current ?? TABS[0]);
    if (wanted === this.current) return;
    this.current = wanted;
    for (const tab of TABS) {
      const isOpen = tab === wanted;
      attr(byId(`tab-${tab}`), 'aria-selected', isOpen);
      attr(byId(`tab-${tab}`), 'tabindex', isOpen ? 0 : -1);
      byId(`panel-${tab}`).hidden = !isOpen;
    }
    if (location.hash !== `#${wanted}` && (location.hash !== '' || wanted !== TABS[0])) history.replaceState(null, '', `#${wanted}`);
    this.#changed();
  }

  #key(event) {
    const at = TABS.indexOf(this.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    const name = TABS[(to + TABS.length) % TABS.length];
    this.open(name);
    byId(`tab-${name}`).focus();
    event.preventDefault();
  }
}

/** Asks for what a tab shows. `pipeline` is the selected one, or null. */
export async function refresh(tab, pipeline) {
  if (tab === 'sources') return showSources();
  if (tab === 'query') return showQuery(pipeline);
  if (tab === 'problems') return showProblems();
  if (tab === 'log') return showLog();
}

async function showSources() {
  const form = byId('source-form').elements;
  const { sources, total } = await getJson(`api/v1/sources?by=${form.by.value}&sort=${form.sort.value}&n=${SOURCES}`);
  const create = (source) => {
    const cells = ['wide', 'n wide', 'n', 'n', 'n wide'].map((c) => el('td', { class: c }));
    return el('tr', {}, el('th', { scope: 'row' }, pathNodes(source.name)), ...cells);
  };
  const update = (row, source) => {
    const age = typeof source.oldest_unread_s === 'number' ? duration(source.oldest_unread_s) : '–';
    const texts = [visible(source.pipeline), count(source.files), bytes(source.read_bytes), bytes(source.behind_bytes), age];
    texts.forEach((text, n) => put(row.cells[n + 1], text));
  };
  follow(byId('source-rows'), sources, ({ pipeline, name }) => JSON.stringify([pipeline, name]), create, update);
  put(byId('source-total'), sources.length < total ? `${count(sources.length)} of ${count(total)}` : '');
  byId('source-empty').hidden = sources.length > 0;
  byId('source-rows').closest('.scroll').hidden = sources.length === 0;
}

let explained = null;

async function showQuery(pipeline) {
  if (pipeline === null) return;
  put(byId('query'), visibleLines(pipeline.query));
  const wanted = JSON.stringify([pipeline.name, pipeline.query]);
  if (explained === wanted) return;
  const { text } = await getJson(`api/v1/explain?pipeline=${encodeURIComponent(pipeline.name)}`);
  put(byId('explain'), visibleLines(text).trimEnd());
  explained = wanted;
}

/** After a restart or a reload the text may be another. */
export function forgetExplain() {
  explained = null;
}

async function showProblems() {
  const { reasons } = await getJson('api/v1/reasons');
  const create = () => {
    const head = el('p', {}, el('span', { class: 'state' }), el('strong', { class: 'mono' }), el('span', { class: 'muted' }));
    return el('li', {}, head, el('p'), el('pre', { class: 'example' }));
  };
  const update = (item, reason) => {
    const [head, text, example] = item.children;
    const isLoss = ['lost', 'dropped', 'rejected'].includes(reason.kind);
    put(head.children[0], visible(reason.kind).replaceAll('_', ' '));
    attr(head.children[0], 'data-state', isLoss ? 'bad' : 'warn');
    put(head.children[1], visible(reason.subject ?? ''));
    const times = reason.count === 1 ? 'once' : `${count(reason.count)} times`;
    put(head.children[2], `${times} · ${visible(reason.pipeline)} · ${visible(reason.stage)} · ${clock(reason.unix_s * 1000)}`);
    put(text, visible(reason.reason));
    put(example, visible(reason.example ?? ''));
    example.hidden = !reason.example;
  };
  const key = (reason) => JSON.stringify([reason.kind, reason.pipeline, reason.subject, reason.reason]);
  follow(byId('problem-rows'), reasons, key, create, update);
  byId('problem-empty').hidden = reasons.length > 0;
}

const WARNINGS = ['WARN', 'ERROR'];

async function showLog() {
  const wanted = byId('log-form').elements.level.value;
  const { lines } = await getJson(`api/v1/log?n=${LOG_LINES}`);
  const shown = lines.filter(({ level }) => wanted === 'all' || WARNINGS.includes(level.toUpperCase()));
  shown.sort((a, b) => b.unix_ms - a.unix_ms);
  const create = (line) => {
    const fields = Object.entries(line.fields ?? {}).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
    const level = line.level.toLowerCase();
    const time = el('time', { class: 'muted' }, clock(line.unix_ms));
    const message = el('span', {}, visible(line.message), ' ', el('span', { class: 'muted' }, visible(fields.join('  '))));
    return el('li', {}, time, el('span', { class: 'level', 'data-level': level }, visible(level)), message);
  };
  follow(byId('log-rows'), shown, (line) => JSON.stringify([line.unix_ms, line.message, line.fields]), create, () => {});
  byId('log-empty').hidden = shown.length > 0;
  byId('log-rows').closest('.scroll').hidden = shown.length === 0;
}

/** Calls back when a choice of a tab was made. */
export function onChoice(callback) {
  for (const id of ['source-form', 'log-form']) {
    byId(id).addEventListener('change', callback);
    byId(id).addEventListener('submit', (event) => event.preventDefault());
  }
}
