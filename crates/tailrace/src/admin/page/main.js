// The agent's page: asks the agent each second while it is visible, and shows the answers. It changes nothing.

import { ApiError, getJson, hasToken, setToken } from './api.js';
import { Flow } from './flow.js';
import { attr, bytes, clock, duration, el, follow, put, visible } from './format.js';
import { showLedger, showOutputs, showPipelines } from './panels.js';
import { Plot } from './plot.js';
import { History, Samples } from './rates.js';
import { Tabs, forgetExplain, onChoice, refresh } from './tabs.js';
import { Tail } from './tail.js';

const OVERVIEW_MS = 1000;
const HISTORY_MS = 60_000;
const TAB_MS = 3000;
const TAIL_MS = 1000;

const byId = (id) => document.getElementById(id);
const samples = new Samples();
const past = new History();
const flow = new Flow();
const tail = new Tail();
const plots = {
  throughput: new Plot('Throughput', (n) => `${bytes(n)}/s`, 1024),
  cpu: new Plot('CPU per million records', (n) => (n < 9.95 ? `${n.toFixed(2)} s` : duration(n))),
  memory: new Plot('Memory', bytes, 1024),
  delay: new Plot('Delivery delay', duration),
};
byId('plots').append(...Object.values(plots).map((plot) => plot.node));

/** The last overview, the name of the pipeline that is shown, and the state of the connection. */
let overview = null;
let selected = null;
let unreachableSince = null;
let isBusy = false;
/** What a token is asked for: the whole page, the live tail, or (null) nothing. */
let tokenFor = null;
let wasTokenWrong = false;
let isPaused = false;

const isWatching = () => !isPaused && !document.hidden;

/** Runs `work` again and again while the page is visible; `kick` runs it at once. Runs never overlap. */
function every(ms, work) {
  let timer = null;
  let isRunning = false;
  let isWanted = false;
  const kick = async () => {
    clearTimeout(timer);
    isWanted = isRunning;
    if (isRunning || !isWatching()) return;
    isRunning = true;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failed(error);
    } finally {
      isRunning = false;
      timer = setTimeout(kick, isWanted ? 0 : ms);
    }
  };
  return kick;
}

const askOverview = every(OVERVIEW_MS, async () => {
  if (tokenFor === 'page') return;
  const answer = await getJson('api/v1/overview');
  const wasAway = unreachableSince !== null;
  const isRestarted = overview !== null && overview.started_unix_s !== answer.started_unix_s;
  const isReloaded = overview !== null && overview.config?.hash !== answer.config?.hash;
  const isFirst = overview === null;
  overview = answer;
  unreachableSince = null;
  isBusy = false;
  if (isRestarted || isReloaded) forgetExplain();
  samples.push(overview, performance.now());
  show();
  if (past.add(overview)) showPlots();
  if (isFirst || wasAway || isRestarted) {
    askHistory();
    askTab();
  }
});

const askHistory = every(HISTORY_MS, async () => {
  if (!isOnline()) return;
  const { points } = await getJson('api/v1/history');
  past.merge(points, overview.started_unix_s);
  showPlots();
});

const askTab = every(TAB_MS, async () => {
  if (isOnline() && tabs.current !== 'tail') await refresh(tabs.current, current());
});

const askTail = every(TAIL_MS, async () => {
  if (!isOnline() || tabs.current !== 'tail') return;
  try {
    await tail.refresh(selected);
  } catch (error) {
    if (!error.wantsToken || hasToken()) throw error;
    askToken('tail', error.message);
  }
});

const tabs = new Tabs(() => askTab());

function isOnline() {
  return overview !== null && unreachableSince === null && tokenFor !== 'page';
}

function current() {
  return overview?.pipelines.find(({ name }) => name === selected) ?? null;
}

function failed(error) {
  if (error.wantsToken && hasToken()) {
    // The agent may have another one by now; from this machine it may want none.
    setToken(null);
    wasTokenWrong = true;
    askOverview();
  } else if (error.wantsToken) {
    askToken('page', error.message);
  } else if (error.status === 503) {
    isBusy = true;
  } else if (error.status === 0) {
    unreachableSince ??= Date.now();
  } else {
    unreachableSince ??= Date.now();
    showBanner('answer', 'bad', `The agent does not answer as expected: ${visible(error.message)}.`);
    return;
  }
  showState();
}

/** Shows the last overview. */
function show() {
  byId('content').hidden = false;
  byId('token-section').hidden = tokenFor === null;
  const { pipelines } = overview;
  if (current() === null) selected = pipelines[0]?.name ?? null;
  const pipeline = current();
  byId('no-pipeline').hidden = pipeline !== null;
  byId('pipeline').hidden = pipeline === null;
  showPipelines(pipelines, selected, (name, counter) => samples.rate(name, counter), select);
  if (pipeline !== null) {
    const rate = (counter) => samples.rate(pipeline.name, counter);
    put(byId('flow-title'), pipelines.length > 1 ? `Pipeline ${visible(pipeline.name)}` : visible(pipeline.name));
    put(byId('flow-inputs'), pipeline.inputs.map(({ name, type }) => visible(name === type ? type : `${name} (${type})`)).join(', '));
    flow.show(pipeline, rate);
    showLedger(pipeline.ledger);
    showOutputs(pipeline, rate);
  }
  showState();
}

function select(name) {
  selected = name;
  show();
  showPlots();
  askTab();
}

function showPlots() {
  if (selected === null) return;
  const { throughput, cpu, cores, records, memory, delay } = past.series(selected);
  const last = (series) => series.at(-1)?.v ?? NaN;
  const { memory_limit_bytes: limit } = overview.process;
  const many = overview.pipelines.length > 1;
  plots.throughput.show(throughput, many ? 'this pipeline' : Number.isFinite(last(records)) ? `${Math.round(last(records)).toLocaleString('en')} records/s` : '');
  plots.cpu.show(cpu, Number.isFinite(last(cores)) ? `${(last(cores) * 100).toFixed(1)} % of a core` : '');
  plots.memory.show(memory, limit ? `limit ${bytes(limit)}` : '');
  plots.delay.show(delay, many ? 'this pipeline' : 'read to acknowledged');
}

/** Shows the header and the banners. */
function showState() {
  const phase = byId('phase');
  const isAway = unreachableSince !== null;
  if (overview !== null) {
    put(byId('host'), visible(overview.hostname));
    put(byId('version'), visible(overview.version));
    put(byId('uptime'), duration(Math.floor(overview.uptime_s)));
    put(byId('config'), configText(overview.config));
    document.title = `${isAway || tokenFor === 'page' ? '⚠ ' : ''}${visible(overview.hostname)} – Tailrace`;
    put(byId('as-of'), `As of ${clock((overview.started_unix_s + overview.uptime_s) * 1000)}.`);
  }
  put(phase, isAway ? 'unreachable' : tokenFor === 'page' ? 'locked' : isPaused ? 'paused' : visible(overview?.phase ?? 'connecting'));
  const isWell = overview !== null && overview.phase === 'running' && !isPaused;
  attr(phase, 'data-state', isAway ? 'bad' : tokenFor === 'page' ? 'warn' : isWell ? 'ok' : 'idle');
  showBanner('away', 'bad', isAway ? `Agent unreachable since ${clock(unreachableSince)}. Retrying each second; the numbers are of before.` : null);
  showBanner('busy', 'warn', isBusy && !isAway ? 'The agent answers slowly: others ask it as well.' : null);
  showBanner('safe', 'warn', overview?.safe_mode ? `Safe mode: ${visible(overview.safe_mode)}.` : null);
  showBanner('config', 'bad', overview?.config?.error ? `The changed config is not in use: ${visible(overview.config.error)}` : null);
  const restart = overview?.config?.needs_restart ?? [];
  showBanner('restart', 'warn', restart.length > 0 ? `Takes effect after a restart: ${visible(restart.join(', '))}.` : null);
  if (!isAway) showBanner('answer', 'bad', null);
}

function configText(config) {
  if (!config) return '–';
  if (config.error) return 'refused';
  return `in use since ${clock(config.in_use_since_unix_s * 1000)}`;
}

const banners = new Map();

/** Sets or, without a text, removes a banner. */
function showBanner(name, level, text) {
  if (text === null) banners.delete(name);
  else banners.set(name, { name, level, text });
  const create = () => el('p', { class: 'banner' });
  const update = (node, banner) => {
    attr(node, 'data-level', banner.level);
    put(node, banner.text);
  };
  follow(byId('banners'), [...banners.values()], (banner) => banner.name, create, update);
}

function askToken(what, answer) {
  const isShown = tokenFor === what;
  tokenFor = what;
  byId('token-section').hidden = false;
  byId('content').hidden = what === 'page';
  put(byId('token-text'), wasTokenWrong ? 'That was not the token of this agent.' : `It answered: ${visible(answer)}.`);
  if (!isShown || wasTokenWrong) byId('token').focus();
  wasTokenWrong = false;
  byId('forget').hidden = true;
}

byId('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const value = byId('token').value.trim();
  byId('token').value = '';
  if (/^[!-~]+$/.test(value)) {
    setToken(value);
    tokenFor = null;
    byId('forget').hidden = false;
    askOverview();
  } else {
    put(byId('token-text'), 'A token consists of visible ASCII characters, without spaces.');
  }
});

byId('forget').hidden = !hasToken();
byId('forget').addEventListener('click', () => {
  setToken(null);
  byId('forget').hidden = true;
  byId('main').focus();
  askOverview();
});

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  attr(byId('pause'), 'aria-pressed', isPaused);
  put(byId('pause'), isPaused ? 'Resume' : 'Pause');
  showState();
  resume();
});

const THEMES = ['system', 'light', 'dark'];

function showTheme() {
  put(byId('theme'), `Theme: ${document.documentElement.dataset.theme ?? THEMES[0]}`);
}

byId('theme').addEventListener('click', () => {
  const at = THEMES.indexOf(document.documentElement.dataset.theme ?? THEMES[0]);
  const next = THEMES[(at + 1) % THEMES.length];
  attr(document.documentElement, 'data-theme', next === THEMES[0] ? null : next);
  try {
    localStorage.setItem('tailrace-theme', next);
  } catch {
    // Storage is forbidden: it lasts until the page is loaded again.
  }
  showTheme();
});

function resume() {
  for (const ask of [askOverview, askHistory, askTab, askTail]) ask();
}

onChoice(() => askTab());
document.addEventListener('visibilitychange', resume);
showTheme();
resume();
