// Checks the agent's page in a real browser: that it loads, follows the agent over a restart, asks nobody else, and can be
// used with a keyboard, on a phone and with a screen reader. `cargo xtask page` runs it:
//
//     node page.mjs --agent PROGRAM --browser PROGRAM [--screenshots DIR] [--seconds N]
//
// With `--screenshots` it takes pictures of an agent that has run for N seconds instead.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { HOSTILE, Site, TOKEN, until } from './agent.mjs';

const { values: args } = parseArgs({
  options: {
    agent: { type: 'string' },
    browser: { type: 'string' },
    screenshots: { type: 'string' },
    seconds: { type: 'string', default: '60' },
  },
});
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGE_BYTES_MAX = 100 * 1024;
const TABS = ['sources', 'query', 'problems', 'log', 'tail'];
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 375, height: 812 };

const site = new Site(args.agent);
// A browser refuses its sandbox to root.
const isRoot = process.getuid?.() === 0;
const browser = await chromium.launch({ executablePath: args.browser, args: isRoot ? ['--no-sandbox'] : [] });

/** Opens the page, and notes what must not be: errors, and requests to elsewhere. */
async function open({ viewport = DESKTOP, colorScheme = 'light', headers = {}, expected = /^$/, hash = '', names = null } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, extraHTTPHeaders: headers, reducedMotion: 'reduce' });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const faults = [];
  page.expected = expected;
  page.requests = 0;
  page.on('pageerror', (error) => faults.push(`error: ${error.stack}`));
  page.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on('console', (message) => {
    const isBad = ['error', 'warning'].includes(message.type());
    if (isBad && !page.expected.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    page.requests += 1;
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && origin !== site.origin) faults.push(`request to ${request.url()}`);
  });
  page.done = async () => {
    // An answer may be on its way.
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
    assert.deepEqual(faults, []);
  };
  if (names) await page.route('**/api/v1/**', (route) => renamed(route, names));
  page.answer = await page.goto(`${site.origin}/${hash}`);
  return page;
}

/** The answer with other names: a picture for everybody shows no directory or machine of the one who took it. */
async function renamed(route, names) {
  const response = await route.fetch();
  let body = await response.text();
  for (const [name, other] of names) body = body.replaceAll(name, other);
  await route.fulfill({ response, body });
}

const text = (page, selector) => page.textContent(selector);
const number = (value) => Number(value.replaceAll(',', ''));
const framed = async (page) => number(await text(page, '#ledger .group:nth-child(2) td'));

async function showsRates(page) {
  await until('the page shows a rate', async () => /^[1-9].*\/s$/.test(await text(page, '#stages li:nth-child(2) .big')));
}

async function hasNoFault(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`));
  assert.deepEqual(found, [], `accessibility, ${where}`);
}

const checks = {
  async 'it is small, strict and loads'() {
    const page = await open();
    const policy = page.answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /frame-ancestors 'none'/);
    const loaded = await page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventEnd);
    const sizes = await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
      .filter(({ name }) => !name.includes('/api/')).map(({ decodedBodySize }) => decodedBodySize));
    const size = sizes.reduce((a, b) => a + b, 0);
    assert.ok(sizes.length > 5 && size < PAGE_BYTES_MAX, `${size} bytes in ${sizes.length} files`);
    await showsRates(page);
    console.log(`    ${size} bytes in ${sizes.length} files, loaded after ${Math.round(loaded)} ms`);
    await page.done();
  },

  async 'its numbers are live, and stop while it pauses'() {
    const page = await open();
    await showsRates(page);
    const before = await framed(page);
    await until('more records', async () => (await framed(page)) > before);
    await until('a plot', async () => /M.*L/.test(await page.getAttribute('.plot .curve', 'd') ?? ''));
    assert.match(await text(page, '#phase'), /running/);
    await page.click('#pause');
    // A request may be on its way.
    await page.waitForLoadState('networkidle');
    const requests = page.requests;
    const uptime = await text(page, '#as-of');
    // tidy: that nothing is asked can only be seen by waiting.
    await page.waitForTimeout(2500);
    assert.equal(page.requests, requests);
    await page.click('#pause');
    await until('it goes on', async () => (await text(page, '#as-of')) !== uptime);
    await page.done();
  },

  async 'a restart of the agent is announced and survived'() {
    const page = await open({ expected: /net::ERR_/ });
    await showsRates(page);
    await site.stopAgent();
    await page.waitForSelector('#banners :text("Agent unreachable since")');
    assert.match(await page.title(), /⚠/);
    await hasNoFault(page, 'unreachable');
    await site.startAgent();
    await page.waitForSelector('#banners .banner', { state: 'detached' });
    const before = await framed(page);
    await until('more records', async () => (await framed(page)) > before);
    await page.done();
  },

  async 'hostile names are text'() {
    const page = await open({ hash: '#sources' });
    await page.waitForSelector('#source-rows :text("onerror")');
    const shown = await page.evaluate(() => document.body.textContent);
    assert.equal(await page.locator('main img').count(), 0);
    assert.ok(!shown.includes('\u202e') && !shown.includes('\u001b'));
    assert.ok(shown.includes(HOSTILE.replace('\u001b', '\\u{1b}').replace('\u202e', '\\u{202e}')));
    await page.done();
  },

  async 'an output that cannot deliver says why and when it tries again'() {
    const page = await open();
    await page.click('#pipeline-rows button:text("audit")');
    await page.waitForSelector('#outputs .state[data-state="warn"], #outputs .state[data-state="bad"]');
    await page.waitForSelector('#outputs .error:has-text("next attempt in")');
    await page.click('#tab-problems');
    await page.waitForSelector('#problem-rows li');
    await page.done();
  },

  async 'every tab shows something'() {
    const page = await open({ expected: /40[34]/ });
    await page.waitForSelector('#source-rows tr');
    await page.click('#tab-query');
    await page.waitForSelector('#query:text("duration_s")');
    await page.waitForSelector('#explain:text("level")');
    await page.click('#tab-log');
    await page.waitForSelector('#log-rows li');
    await page.click('#tab-tail');
    await page.fill('#where', "level = 'ERROR'");
    await page.click('#tail-button');
    await until('the live tail answers', async () => !/Waiting|runs only/.test(await text(page, '#tail-text')));
    await page.done();
  },

  async 'the live tail asks for the token, and shows records as text'() {
    const page = await open({ expected: /403/ });
    const asked = [];
    const entry = (verdict, more) => JSON.stringify({ unix_ms: Date.now(), pipeline: 'app', source: `/logs/${HOSTILE}`, verdict, reason: null, raw: HOSTILE, rows: [], ...more });
    const body = [
      entry('kept', { rows: [{ body: HOSTILE }] }),
      entry('filtered', { reason: "`level IN ('WARN')` is false: level = 'INFO'", rows: undefined }),
      entry('malformed', {}),
      entry('failed', { raw: 'x'.repeat(70_000), raw_bytes: 1e6 }),
      'no JSON',
    ].join('\n');
    await page.route('**/api/v1/tap?*', async (route) => {
      const request = route.request();
      asked.push(new URL(request.url()).searchParams);
      if (request.headers().authorization === `Bearer ${TOKEN}`) return route.fulfill({ contentType: 'application/x-ndjson', body });
      await route.fulfill({ status: 403, json: { error: 'records are shown with the token' } });
    });
    await page.click('#tab-tail');
    await page.fill('#where', "level = 'ERROR' AND n < 3");
    await page.click('#tail-button');
    await page.waitForSelector('#token:visible');
    assert.ok(await page.isVisible('#content'), 'the rest stays');
    await page.fill('#token', TOKEN);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#token', { state: 'hidden' });
    await page.click('#tail-button');
    await until('four records', async () => (await page.locator('#tail-rows li').count()) === 4);
    assert.equal(asked.at(-1).get('where'), "level = 'ERROR' AND n < 3");
    const shown = await text(page, '#tail-rows');
    assert.ok(shown.includes('<img src=x') && !shown.includes('\u202e') && !shown.includes('\u001b'), shown.slice(0, 500));
    assert.ok(shown.length < 10_000 && shown.includes('… (977 KiB)'), `${shown.length} characters`);
    assert.equal(await page.locator('main img').count(), 0);
    await hasNoFault(page, 'live tail');
    await page.click('#tail-button');
    const count = asked.length;
    await until('other requests', async () => page.requests > 0 && (await text(page, '#tail-text')) === 'Stopped.');
    assert.ok(asked.length <= count + 1, 'a tail that is stopped asks no more');
    await page.done();
  },

  async 'a terminal shows the same, and is restored at SIGTERM'() {
    const { shown, code } = await site.top('collector');
    assert.equal(code, 0);
    const [enter, leave] = ['\u001b[?1049h', '\u001b[?1049l'];
    assert.ok(shown.includes(enter) && shown.lastIndexOf(leave) > shown.lastIndexOf(enter), 'the screen before is there again');
    assert.ok(shown.endsWith('\u001b[?25h') || shown.lastIndexOf('\u001b[?25h') > shown.lastIndexOf('\u001b[?25l'), 'the cursor is shown');
    assert.ok(shown.includes('overview') && shown.includes('throughput'));
  },

  async 'it asks for the token where the agent wants one'() {
    // As from another machine: a proxy passed it on.
    const page = await open({ headers: { 'x-forwarded-for': '192.0.2.1' }, expected: /40[13]/ });
    await page.waitForSelector('#token:visible');
    await hasNoFault(page, 'token');
    await page.fill('#token', 'another-token-altogether');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#token-text:text("not the token")');
    await page.fill('#token', TOKEN);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#content:visible');
    await showsRates(page);
    assert.ok(!page.url().includes(TOKEN));
    await page.reload();
    await page.waitForSelector('#content:visible');
    await page.click('#forget');
    await page.waitForSelector('#token:visible');
    await page.done();
  },

  async 'a keyboard reaches everything'() {
    const page = await open();
    await showsRates(page);
    const focused = () => page.evaluate(() => {
      const node = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(node);
      const { top, left, width, height } = node.getBoundingClientRect();
      const isSeen = width > 0 && height > 0 && left >= 0 && top < innerHeight && top + height > 0;
      return { id: node.id || node.getAttribute('aria-label') || node.textContent.trim() || `${node.name} ${node.value}`, isMarked: outlineStyle !== 'none' && outlineWidth !== '0px', isSeen, tag: node.tagName };
    });
    await page.keyboard.press('Tab');
    assert.equal((await focused()).id, 'Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal((await focused()).id, 'main');
    const seen = [];
    for (let n = 0; n < 80; n += 1) {
      await page.keyboard.press('Tab');
      const now = await focused();
      if (now.tag === 'BODY') break;
      if (seen.includes(now.id)) break;
      assert.ok(now.isMarked && now.isSeen, `focus on ${now.id}: ${JSON.stringify(now)}`);
      seen.push(now.id);
    }
    for (const id of ['app', 'audit', 'Throughput, last 15 minutes', 'tab-sources', 'metrics']) {
      assert.ok(seen.includes(id), `${id} is not among ${seen.join(', ')}`);
    }
    await page.focus('#tab-sources');
    await page.keyboard.press('ArrowRight');
    assert.equal((await focused()).id, 'tab-query');
    assert.ok(await page.isVisible('#panel-query') && await page.isHidden('#panel-sources'));
    await page.keyboard.press('End');
    assert.equal((await focused()).id, 'tab-tail');
    await page.focus('.plot');
    await page.keyboard.press('ArrowLeft');
    assert.match(await page.getAttribute('.plot', 'aria-valuetext'), /^\d\d:\d\d:\d\d: /);
    await page.done();
  },

  async 'a screen reader finds no fault, in light and dark'() {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open({ colorScheme, expected: /40[34]/ });
      await showsRates(page);
      for (const tab of TABS) {
        await page.click(`#tab-${tab}`);
        if (tab === 'problems') await page.waitForSelector('#problem-rows li');
        if (tab === 'log') await page.waitForSelector('#log-rows li');
        await hasNoFault(page, `${colorScheme}, ${tab}`);
      }
      await page.done();
    }
    const page = await open();
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    for (let n = 0; n < 2; n += 1) await page.click('#theme');
    assert.match(await text(page, '#theme'), /dark/);
    assert.notEqual(await background(), light);
    await page.reload();
    assert.notEqual(await background(), light, 'the choice outlasts a reload');
    await page.done();
  },

  async 'a phone scrolls in one direction only'() {
    const page = await open({ viewport: PHONE, expected: /40[34]/ });
    await showsRates(page);
    for (const tab of TABS) {
      await page.click(`#tab-${tab}`);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(beyond, 0, tab);
    }
    await hasNoFault(page, 'phone');
    await page.done();
  },
};

async function screenshots(dir) {
  await site.start(false);
  // tidy: the plots are of the time that passes.
  await new Promise((resolve) => setTimeout(resolve, Number(args.seconds) * 1000));
  const shots = [
    ['page-light', { colorScheme: 'light' }, true],
    ['page-dark', { colorScheme: 'dark' }, true],
    ['page-narrow', { viewport: { width: 375, height: 1180 } }, false],
  ];
  const names = [[site.logs, '/var/log/shop'], [JSON.stringify(hostname()), '"web-04"']];
  for (const [name, options, fullPage] of shots) {
    const page = await open({ ...options, names });
    await showsRates(page);
    // tidy: so that rates are of a whole window.
    await page.waitForTimeout(6000);
    await page.screenshot({ path: join(dir, `${name}.png`), fullPage });
    await page.done();
    console.log(`wrote ${name}.png`);
  }
}

let failed = 0;
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => site.end().finally(() => process.exit(1)));
// What nobody waits for must not leave the agent behind.
process.on('unhandledRejection', (error) => {
  failed += 1;
  console.log(error.stack ?? error);
});
try {
  if (args.screenshots) {
    await screenshots(args.screenshots);
  } else {
    await site.start(true);
    for (const [name, check] of Object.entries(checks)) {
      const start = Date.now();
      const error = await check().then(() => null, (error) => error);
      console.log(`${error ? 'FAILED' : 'ok    '} ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
      if (error) {
        failed += 1;
        console.log(error.stack ?? error);
      }
    }
  }
} catch (error) {
  failed += 1;
  console.log(error.stack ?? error);
} finally {
  await browser.close();
  await site.end();
}
process.exitCode = failed > 0 ? 1 : 0;
