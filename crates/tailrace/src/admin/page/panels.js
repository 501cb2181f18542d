// The list of pipelines, the ledger and the outputs.

import { attr, bytes, clock, compact, count, el, follow, many, percent, put, visible } from './format.js';
import { fill, numbers } from './flow.js';

/** One row for each pipeline; `rates` gives the rate of a counter by the name of a pipeline. */
export function showPipelines(pipelines, selected, rates, select) {
  document.getElementById('pipelines').hidden = pipelines.length < 2;
  if (pipelines.length < 2) return;
  const create = ({ name }) => {
    const button = el('button', { type: 'button', class: 'link', title: visible(name) }, visible(name));
    button.addEventListener('click', () => select(name));
    const meter = el('div', { class: 'meter', role: 'meter', 'aria-label': 'in flight', 'aria-valuemin': 0, 'aria-valuemax': 100 }, el('i'));
    const cells = ['n', 'n wide', 'n', 'n wide', 'n wide'].map((c) => el('td', { class: c }));
    return el('tr', {}, el('th', { scope: 'row' }, button), ...cells, el('td', { class: 'wide' }, meter), el('td', {}, el('span', { class: 'state' })));
  };
  const update = (row, pipeline) => {
    const rate = (counter) => rates(pipeline.name, counter);
    const now = numbers(rate);
    const { stages, queue } = pipeline;
    const kept = now.records > 0 ? 1 - now.filtered / now.records : stages.records > 0 ? 1 - stages.filtered / stages.records : NaN;
    const texts = [`${bytes(now.read)}/s`, `${compact(now.records)}/s`, percent(kept), `${compact(now.delivered)}/s`, bytes(stages.unread_bytes)];
    texts.forEach((text, n) => put(row.cells[n + 1], text.startsWith('–') ? '–' : text));
    fill(row.querySelector('.meter'), queue.capacity_bytes > 0 ? queue.size_bytes / queue.capacity_bytes : 0);
    const state = worst(pipeline.outputs.map((output) => output.state));
    showState(row.querySelector('.state'), state);
    const isSelected = pipeline.name === selected;
    attr(row, 'data-selected', isSelected ? '' : null);
    attr(row.querySelector('button'), 'aria-current', isSelected ? 'true' : null);
  };
  follow(document.getElementById('pipeline-rows'), pipelines, ({ name }) => name, create, update);
}

const SEVERITY = ['idle', 'ok', 'detached', 'retrying', 'holding'];

function worst(states) {
  return states.reduce((a, b) => (SEVERITY.indexOf(b) > SEVERITY.indexOf(a) ? b : a), 'idle');
}

/** Shows the state of an output as a word with a mark. */
function showState(node, state) {
  put(node, visible(state));
  attr(node, 'data-state', { ok: 'ok', idle: 'idle' }[state] ?? (state === 'holding' ? 'bad' : 'warn'));
}

/** The ledger of a pipeline: where its bytes and records went. */
export function showLedger(ledger) {
  const groups = [{ title: 'Bytes', rows: byteRows(ledger) }, { title: 'Records', rows: recordRows(ledger) }];
  let unexplained = 0;
  let inFlight = 0;
  for (const output of ledger.outputs) {
    // Nothing is in flight, and yet records have no outcome: the counts do not add up.
    const isOff = ledger.in_flight_bytes === 0 && !output.detached && output.in_flight_records > 0;
    if (isOff) unexplained += output.in_flight_records;
    else inFlight = Math.max(inFlight, output.in_flight_records);
    groups.push({ title: `At output ${visible(output.output)}`, rows: outputRows(ledger, output, isOff), bar: shares(ledger, output) });
  }
  const balance = document.getElementById('balance');
  const text = unexplained > 0 ? `${count(unexplained)} unexplained` : 'balanced';
  put(balance, ledger.records === 0 ? 'no records yet' : inFlight > 0 && unexplained === 0 ? `balanced, ${compact(inFlight)} in flight` : text);
  attr(balance, 'data-state', unexplained > 0 ? 'bad' : ledger.records === 0 ? 'idle' : 'ok');
  follow(document.getElementById('ledger'), groups, ({ title }) => title, createGroup, updateGroup);
}

function byReason(reasons, name, unit) {
  return Object.entries(reasons).map(([reason, n]) => [`${name}: ${visible(reason).replaceAll('_', ' ')}`, unit(n), null, 'warn']);
}

function byteRows(ledger) {
  const cut = ledger.truncated_unread;
  return [
    ['read', bytes(ledger.read_bytes)],
    ['not read yet', bytes(ledger.unread_bytes)],
    ...byReason(ledger.skipped_bytes, 'skipped', bytes),
    ...byReason(ledger.lost_bytes, 'lost', bytes),
    ...byReason(ledger.lost_files, 'files lost', count),
    ...(cut.truncations > 0 ? [[`truncated unread ${many(cut.truncations, 'time')}, at most`, bytes(cut.bytes_max), null, 'warn']] : []),
  ];
}

function recordRows(ledger) {
  const some = (name, n) => (n > 0 ? [[name, count(n), percent(n / ledger.records), 'sub']] : []);
  return [
    ['framed', count(ledger.records)],
    ...some('malformed', ledger.malformed_records),
    ...some('truncated', ledger.truncated_records),
    ...some('read again', ledger.replayed_records),
    ['− filtered', count(ledger.filtered_records), ledger.records > 0 ? percent(ledger.filtered_records / ledger.records) : ''],
  ];
}

const OUTCOMES = [
  ['delivered', 'delivered_records', 'accent'],
  ['dead-lettered', 'dead_lettered_records', 'warn'],
  ['rejected', 'rejected_records', 'warn'],
  ['dropped', 'dropped_records', 'bad'],
  ['of before a reload', 'earlier_records', 'muted'],
];

function outputRows(ledger, output, isOff) {
  const share = (n) => (ledger.records > 0 ? percent(n / ledger.records) : '');
  const rows = OUTCOMES.filter(([, key]) => key === 'delivered_records' || output[key] > 0);
  const rest = output.in_flight_records;
  return [
    ...rows.map(([name, key, kind]) => [`− ${name}`, count(output[key]), share(output[key]), kind === 'bad' || kind === 'warn' ? 'warn' : '']),
    [isOff ? '= unexplained' : '= in flight', count(rest), '', isOff ? 'total warn' : 'total'],
  ];
}

function shares(ledger, output) {
  const outcomes = OUTCOMES.map(([, key, kind]) => [output[key], kind]);
  return [[ledger.filtered_records, 'filtered'], ...outcomes, [output.in_flight_records, 'flight']];
}

function createGroup({ title, bar }) {
  const group = el('div', { class: 'group' }, el('h3', {}, title), el('table', {}, el('tbody')));
  if (bar) group.insertBefore(el('div', { class: 'shares', 'aria-hidden': 'true' }), group.lastChild);
  return group;
}

function updateGroup(group, { rows, bar }) {
  const hasNotes = rows.some(([, , note]) => note);
  const cells = ['n', 'n muted'].slice(0, hasNotes ? 2 : 1);
  const create = () => el('tr', {}, el('th', { scope: 'row' }), ...cells.map((c) => el('td', { class: c })));
  const update = (row, [name, value, note, kind = '']) => {
    while (row.cells.length < 1 + cells.length) row.append(el('td', { class: 'n muted' }));
    [name, value, note ?? ''].slice(0, row.cells.length).forEach((text, n) => put(row.cells[n], text));
    attr(row, 'class', kind === '' ? null : kind);
  };
  follow(group.querySelector('tbody'), rows, ([name]) => name, create, update);
  if (!bar) return;
  const part = (node, [n, kind]) => {
    attr(node, 'class', kind);
    node.style.flexGrow = n;
    node.hidden = n === 0;
  };
  follow(group.querySelector('.shares'), bar, (_) => 'part', () => el('i'), part);
}

/** The outputs of a pipeline, with state, last error and the time of the next attempt. */
export function showOutputs(pipeline, rate) {
  const create = () => {
    const name = el('p', { class: 'name' }, el('strong'), el('span', { class: 'muted' }), el('span', { class: 'state' }));
    const error = el('p', { class: 'error', hidden: '' }, el('span'), el('span', { class: 'muted' }));
    return el('li', {}, name, el('dl', { class: 'facts' }, ...['delivered', 'sent', 'compression', 'in flight'].map((title) => el('div', {}, el('dt', {}, title), el('dd')))), error);
  };
  const update = (item, output) => {
    const [strong, kind, state] = item.firstElementChild.children;
    put(strong, visible(output.name));
    put(kind, visible(output.endpoint ? `${output.type} · ${output.endpoint}` : output.type));
    showState(state, output.state);
    const of = (key) => rate((now) => now.outputs.find(({ name }) => name === output.name)?.[key] ?? NaN);
    const ratio = output.sent_bytes > 0 && output.encoded_bytes > 0 ? `${(output.encoded_bytes / output.sent_bytes).toFixed(1)} : 1` : '–';
    const delivered = of('delivered');
    const sent = of('sent_bytes');
    const texts = [
      Number.isFinite(delivered) ? `${compact(delivered)}/s` : '–',
      Number.isFinite(sent) ? `${bytes(sent)}/s` : '–',
      ratio,
      many(output.in_flight_requests, 'request'),
    ];
    item.querySelectorAll('dd').forEach((node, n) => put(node, texts[n]));
    showError(item.lastElementChild, output);
  };
  follow(document.getElementById('outputs'), pipeline.outputs, ({ name }) => name, create, update);
}

function showError(node, { state, last_error, retry_in_s }) {
  node.hidden = last_error === null;
  if (last_error === null) return;
  const isOver = state === 'ok' || state === 'idle';
  attr(node, 'data-state', isOver ? 'idle' : 'warn');
  const next = typeof retry_in_s === 'number' ? ` · next attempt in ${Math.ceil(retry_in_s)} s` : '';
  put(node.firstElementChild, visible(last_error.text));
  put(node.lastElementChild, ` ${isOver ? 'last error, ' : ''}${clock(last_error.unix_s * 1000)}${next}`);
}
