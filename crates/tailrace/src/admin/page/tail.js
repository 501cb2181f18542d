// The live tail: a sample of the records, and what became of each. It asks only between Start and Stop.

import { getText } from './api.js';
import { attr, bytes, clock, el, put, visible } from './format.js';

const byId = (id) => document.getElementById(id);
const ENTRIES = 50;
const SHOWN_MAX = 200;
/** Of a longer record or row only the beginning is shown. */
const TEXT_MAX = 2000;

export class Tail {
  #isRunning = false;
  #seen = new Set();

  constructor() {
    byId('tail-form').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.#isRunning) this.#stop('Stopped.');
      else this.#start();
    });
    byId('where').addEventListener('input', () => this.#isRunning && this.#stop('Press Start to use the new filter.'));
  }

  #start() {
    this.#isRunning = true;
    this.#seen.clear();
    byId('tail-rows').replaceChildren();
    this.#say('Waiting for records…');
  }

  #stop(text, level = null) {
    this.#isRunning = false;
    this.#say(text, level);
  }

  #say(text, level = null) {
    put(byId('tail-text'), text);
    attr(byId('tail-text'), 'data-level', level);
    put(byId('tail-button'), this.#isRunning ? 'Stop' : 'Start');
  }

  /** Asks once, if it runs. `name` is that of the pipeline. Throws when the agent cannot be reached or wants a token. */
  async refresh(name) {
    if (!this.#isRunning || name === null) return;
    const query = new URLSearchParams({ pipeline: name, stage: 'output', where: byId('where').value.trim(), n: ENTRIES });
    let text;
    try {
      text = await getText(`api/v1/tap?${query}`);
    } catch (error) {
      if (error.status === 404) return this.#stop('This agent has no live tail.', 'warn');
      if (error.status === 400 || error.status === 422) return this.#stop(visible(error.message), 'bad');
      if (error.wantsToken) this.#stop('The live tail shows contents of logs, and needs the token.', 'warn');
      throw error;
    }
    if (this.#isRunning) this.#show(text);
  }

  #show(text) {
    const fresh = [];
    let note = null;
    for (const line of text.split('\n')) {
      const entry = parsed(line);
      note = entry?.note ?? note;
      if (entry?.note) continue;
      if (entry === null || this.#seen.has(line)) continue;
      this.#seen.add(line);
      fresh.push(entry);
    }
    const list = byId('tail-rows');
    fresh.sort((a, b) => b.unix_ms - a.unix_ms);
    list.prepend(...fresh.map(row));
    while (list.children.length > SHOWN_MAX) list.lastElementChild.remove();
    if (this.#seen.size > 4 * SHOWN_MAX) this.#seen = new Set([...this.#seen].slice(-SHOWN_MAX));
    if (note !== null) this.#say(visible(note));
    else if (list.children.length > 0) this.#say('Newest first. A sample, not every record.');
  }
}

function parsed(line) {
  try {
    const entry = JSON.parse(line);
    return typeof entry === 'object' ? entry : null;
  } catch {
    return null;
  }
}

/** The beginning of a text of which `size` bytes are all. */
function beginning(value, size) {
  const text = String(value);
  return text.length <= TEXT_MAX ? visible(text) : `${visible(text.slice(0, TEXT_MAX))}… (${bytes(size ?? text.length)})`;
}

const STATES = { kept: 'ok', filtered: 'idle', malformed: 'warn', failed: 'bad' };

function row(entry) {
  const state = el('span', { class: 'state', 'data-state': STATES[entry.verdict] ?? 'idle' }, visible(entry.verdict));
  const rows = (entry.rows ?? []).map((fields) => el('p', { class: 'mono' }, '→ ', beginning(JSON.stringify(fields))));
  const reason = entry.reason ? [el('p', { class: 'warning' }, visible(entry.reason))] : [];
  const from = entry.source ? el('p', { class: 'muted' }, visible(entry.source)) : '';
  const body = el('div', {}, el('p', { class: 'mono' }, beginning(entry.raw ?? '', entry.raw_bytes)), ...reason, ...rows, from);
  return el('li', {}, el('time', { class: 'muted' }, clock(entry.unix_ms)), state, body);
}
