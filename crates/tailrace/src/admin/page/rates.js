// From cumulative counters to rates. It knows no DOM and no clock: callers pass times in milliseconds.

/** Rates are of so many milliseconds, so that they are calm. */
const WINDOW_MS = 5000;
const MINUTES_15_S = 900;
/** The time between two points. */
const INTERVAL_S = 5;
/** CPU per record is of six points: half a minute. */
const CPU_POINTS = 6;
/** Fewer records say nothing about the cost of a million. */
const RECORDS_MIN = 200;

/** The overviews of the last seconds. */
export class Samples {
  #samples = [];

  push(overview, ms) {
    const last = this.#samples.at(-1);
    if (last && last.overview.started_unix_s !== overview.started_unix_s) this.#samples = [];
    const pipelines = new Map(overview.pipelines.map((pipeline) => [pipeline.name, pipeline]));
    this.#samples.push({ overview, pipelines, ms });
    // One sample older than the window is kept, to cover it.
    while (this.#samples.length > 2 && ms - this.#samples[1].ms >= WINDOW_MS) this.#samples.shift();
  }

  /** How much a counter of a pipeline grew, and in how many seconds; null until that is known. */
  growth(name, counter) {
    const known = this.#samples.filter((sample) => sample.pipelines.has(name));
    const [first, last] = [known[0], known.at(-1)];
    if (!first || first === last) return null;
    const grown = counter(last.pipelines.get(name)) - counter(first.pipelines.get(name));
    const seconds = (last.ms - first.ms) / 1000;
    return grown < 0 || seconds <= 0 ? null : { grown, seconds };
  }

  /** The growth for each second, or NaN. */
  rate(name, counter) {
    const growth = this.growth(name, counter);
    return growth ? growth.grown / growth.seconds : NaN;
  }
}

/** The points of the last 15 minutes, also across restarts of the agent. */
export class History {
  #points = new Map();

  /** Adds the points of an answer, in place of what overviews gave meanwhile; those of other starts stay. */
  merge(points, started_unix_s) {
    const first = Math.min(...points.map((point) => point.unix_s));
    for (const [time, point] of this.#points) {
      if (time >= first && point.started_unix_s === started_unix_s) this.#points.delete(time);
    }
    for (const point of points) this.#points.set(point.unix_s, { ...point, started_unix_s });
    this.#forget();
  }

  /** Adds an overview as a point if it is time for one; true if so. The agent need not be asked for the past again. */
  add(overview) {
    const time = overview.started_unix_s + overview.uptime_s;
    if (this.#points.size === 0 || time - Math.max(...this.#points.keys()) < INTERVAL_S) return false;
    const { cpu_seconds, resident_bytes } = overview.process;
    const pipelines = overview.pipelines.map(({ name, stages, ledger }) => {
      const delays = ledger.outputs.map((output) => output.delivery_delay_seconds);
      const sum = (key) => delays.reduce((total, delay) => total + delay[key], 0);
      return { name, read_bytes: stages.read_bytes, records: stages.records, delay_total_s: sum('total'), delay_batches: sum('batches') };
    });
    this.#points.set(time, { unix_s: time, cpu_seconds, resident_bytes, pipelines, started_unix_s: overview.started_unix_s });
    this.#forget();
    return true;
  }

  #forget() {
    const newest = Math.max(...this.#points.keys());
    for (const time of this.#points.keys()) {
      if (time < newest - MINUTES_15_S || time > newest) this.#points.delete(time);
    }
  }

  /** The series of all plots, for one pipeline: lists of `{t, v}`, where `v` is null if it is not known. */
  series(name) {
    const points = [...this.#points.values()].sort((a, b) => a.unix_s - b.unix_s);
    const of = (point) => point.pipelines.find((pipeline) => pipeline.name === name);
    const sum = (point, key) => point.pipelines.reduce((total, pipeline) => total + pipeline[key], 0);
    const pair = (n, back, value) => {
      const [from, to] = [points[n - back], points[n]];
      const isOneRun = from && from.started_unix_s === to.started_unix_s;
      const result = isOneRun ? value(from, to) : null;
      return { t: to.unix_s, v: Number.isFinite(result) && result >= 0 ? result : null };
    };
    const each = (back, value) => points.map((_, n) => pair(n, back, value));
    const grown = (from, to, key) => (of(from) && of(to) ? of(to)[key] - of(from)[key] : NaN);
    return {
      throughput: each(1, (from, to) => grown(from, to, 'read_bytes') / (to.unix_s - from.unix_s)),
      cpu: each(CPU_POINTS, (from, to) => {
        const records = sum(to, 'records') - sum(from, 'records');
        return records < RECORDS_MIN ? null : ((to.cpu_seconds - from.cpu_seconds) / records) * 1e6;
      }),
      cores: each(1, (from, to) => (to.cpu_seconds - from.cpu_seconds) / (to.unix_s - from.unix_s)),
      records: each(1, (from, to) => grown(from, to, 'records') / (to.unix_s - from.unix_s)),
      memory: points.map((point) => ({ t: point.unix_s, v: point.resident_bytes })),
      delay: each(1, (from, to) => {
        const batches = grown(from, to, 'delay_batches');
        return batches > 0 ? grown(from, to, 'delay_total_s') / batches : null;
      }),
    };
  }
}
