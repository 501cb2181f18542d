// A real agent with a server that takes its records, another output that cannot deliver, and files that grow.

import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, openSync, closeSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';

export const TOKEN = 'a-token-of-the-page-test';
/** A file name that would run a script, colour a terminal and turn the direction of the text. */
export const HOSTILE = '<img src=x onerror=alert(1)>\u001b[31m\u202egnp.log';
/** The files that grow. */
const FILES = ['checkout.log', 'cart.log', 'search.log', 'payment.log', 'mail.log'];
/** In a turn: for the checks, and for pictures. */
const [LINES_FEW, LINES_MANY] = [400, 2000];
const LOAD_MS = 100;
const TIMEOUT_MS = 60_000;

/** Waits until `question` gives something that is true. */
export async function until(what, question) {
  const end = Date.now() + TIMEOUT_MS;
  while (Date.now() < end) {
    const answer = await question();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`in vain: ${what}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export class Site {
  #dir = mkdtempSync(join(tmpdir(), 'tailrace-page-'));
  #program;
  #agent = null;
  #server = null;
  #load = null;
  #written = 0;

  constructor(program) {
    this.#program = program;
  }

  /** Starts everything. `isHostile` adds a file with a hostile name and an output that cannot deliver. */
  async start(isHostile) {
    for (const name of ['logs', 'other']) mkdirSync(join(this.#dir, name));
    const listen = ['blackhole', '--listen', '127.0.0.1:0', '--summary', 'json'];
    this.#server = spawn(this.#program, listen, { stdio: ['ignore', 'pipe', 'ignore'] });
    const [first] = await once(createInterface(this.#server.stdout), 'line');
    const { port } = new URL(`http://${Object.values(JSON.parse(first))[0]}`);
    this.origin = `http://127.0.0.1:${await freePort()}`;
    const closed = await freePort();
    this.config = join(this.#dir, 'tailrace.yaml');
    const config = [
      `data_dir: ${this.#dir}/data`,
      `admin: {listen: "${new URL(this.origin).host}", token: ${TOKEN}}`,
      'pipelines:',
      '  app:',
      `    input: {type: file, include: ["${this.#dir}/logs/*.log"]}`,
      '    batch: {max_wait: 200ms}',
      '    transform: |',
      '      SELECT *, duration_ms / 1000 AS duration_s',
      '      FROM logs',
      "      WHERE level IN ('WARN', 'ERROR') OR http->>'status' >= '500'",
      `    output: {type: otlp, name: collector, endpoint: "http://127.0.0.1:${port}"}`,
    ];
    const refused = [
      '  audit:',
      `    input: {type: file, include: ["${this.#dir}/other/*.log"]}`,
      '    batch: {max_wait: 200ms}',
      `    output: {type: otlp, name: archive, endpoint: "http://127.0.0.1:${closed}", retry: {initial: 1s, max: 3s}}`,
    ];
    writeFileSync(this.config, [...config, ...(isHostile ? refused : []), ''].join('\n'));
    if (isHostile) {
      appendFileSync(join(this.#dir, 'other', 'a.log'), '{"level":"ERROR"}\n');
    }
    this.#load = setInterval(() => this.#write(isHostile), LOAD_MS);
    await this.startAgent();
  }

  /** Where the logs are. */
  get logs() {
    return join(this.#dir, 'logs');
  }

  /** Writes lines, more at some times than at others, and most of them to the first file. */
  #write(isHostile) {
    const wave = 1 + 0.5 * Math.sin(Date.now() / 40_000) + 0.25 * Math.sin(Date.now() / 9000);
    const lines = [];
    const count = (isHostile ? LINES_FEW : LINES_MANY) * wave;
    for (let n = 0; n < count; n += 1) {
      this.#written += 1;
      const level = this.#written % 10 === 0 ? 'ERROR' : this.#written % 7 === 0 ? 'WARN' : 'INFO';
      const line = { ts: new Date().toISOString(), level, message: `request ${this.#written} done`, duration_ms: this.#written % 900, http: { method: 'GET', path: `/cart/${this.#written % 97}`, status: this.#written % 50 === 0 ? '503' : '200' } };
      lines.push(JSON.stringify(line));
    }
    if (isHostile) {
      lines.push('{"level":"ERROR", "message": ');
      appendFileSync(join(this.#dir, 'logs', HOSTILE), '{"level":"ERROR"}\n');
    }
    const sizes = FILES.map((_, n) => Math.ceil(lines.length / 2 ** (n + 1)));
    for (const [n, name] of FILES.entries()) {
      const part = n + 1 < FILES.length ? lines.splice(0, sizes[n]) : lines;
      if (part.length > 0) appendFileSync(join(this.logs, name), `${part.join('\n')}\n`);
    }
  }

  async startAgent() {
    const log = openSync(join(this.#dir, 'agent.log'), 'a');
    this.#agent = spawn(this.#program, ['run', '-c', this.config], { stdio: ['ignore', log, log] });
    closeSync(log);
    await until('the agent answers', async () => {
      if (this.#agent.exitCode !== null) throw new Error(`the agent ended:\n${this.ownLog()}`);
      return fetch(`${this.origin}/livez`).then(({ ok }) => ok, () => false);
    });
  }

  async stopAgent() {
    await ended(this.#agent);
  }

  /** Runs `tailrace top` on a terminal until it shows `wanted`, ends it with SIGTERM, and gives what the terminal got. */
  async top(wanted) {
    // The shell becomes the program, so that the signal reaches it.
    const command = `stty cols 100 rows 30; exec '${this.#program}' top --admin ${new URL(this.origin).host}`;
    const env = { ...process.env, TERM: 'xterm' };
    const terminal = spawn('script', ['-qfec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'], env });
    let shown = '';
    terminal.stdout.on('data', (bytes) => { shown += bytes; });
    const exit = once(terminal, 'exit');
    try {
      await until(`top shows ${wanted}`, () => {
        if (terminal.exitCode !== null) throw new Error(`top ended: ${shown}`);
        return shown.includes(wanted);
      });
      const children = readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8');
      process.kill(Number(children.trim().split(' ')[0]), 'SIGTERM');
      const [code] = await exit;
      return { shown, code };
    } finally {
      terminal.kill('SIGKILL');
    }
  }

  ownLog() {
    return readFileSync(join(this.#dir, 'agent.log'), 'utf8');
  }

  /** Ends all processes and removes the directory. */
  async end() {
    clearInterval(this.#load);
    await ended(this.#agent);
    await ended(this.#server);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

async function ended(child) {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exit;
  clearTimeout(timer);
}
