// The page as people meet it: in a browser, at a daemon that captures what
// clients send to a Redis. The tests build on each other: the same servers, and
// traffic that grows.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import * as lib from './lib.mjs';
import { Traffic } from './traffic.mjs';

const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const long = 'long:' + 'x'.repeat(9995);
const hostile = [
  '<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>', '"><svg onload=alert(3)>', 'javascript:alert(4)',
  'rtl\u202egpj.exe', 'שלום:עולם', 'esc\x1b[31mred', 'new\nline', 'zero\u200bwidth', 'nul\0', '${alert(5)}', '{{constructor}}', '', long,
  Buffer.from([0x62, 0x69, 0x6e, 0xff, 0xfe]),
];

let browser, redis, webPort, daemon, traffic, dump;
const capture = path.join(lib.artifacts, 'traffic.pcap');

before(async () => {
  redis = await lib.startRedis();
  webPort = await lib.freePort();
  daemon = await start();
  dump = spawn('tcpdump', ['-i', 'lo', '-U', '-w', capture, 'tcp', 'port', String(redis.port)], { stdio: 'ignore' });
  traffic = new Traffic(redis.port, { rate: 1000 });
  await traffic.start();
  browser = await lib.launch();
});

after(async () => {
  traffic?.stop();
  dump?.kill();
  await browser?.close();
  await daemon?.stop();
  await redis?.stop();
});

const start = () => lib.startDaemon(redis.port, webPort, '--publish.redis-url', `redis://127.0.0.1:${redis.port}`, '--top', 24);

// open opens the page and waits until it is live.
async function open(options = {}, query = '') {
  const page = await lib.watched(browser, options);
  await page.goto(daemon.url + query);
  await lib.eventually('the page is live', async () => await page.textContent('#connection') === 'live');
  return page;
}

// clean closes a page that must have had no trouble.
async function clean(page) {
  assert.deepEqual(page.trouble, []);
  assert.deepEqual(await page.violations(), []);
  await page.done();
}

const rowOf = (page, text) => page.locator('#rows tr').filter({ has: page.locator('th bdi', { hasText: text }) });

test('a key that becomes hot shows without a reload', async () => {
  const page = await open();
  await page.evaluate(() => { window.sameDocument = true; });
  assert.match(await page.textContent('#headline'), /No key is hot|No traffic/);
  traffic.mix = [{ share: 0.26, key: 'product:star', writes: 0.03, writeCommand: 'SET' }];
  const begin = Date.now();
  const row = rowOf(page, 'product:star');
  await lib.eventually('the row is hot', async () => await row.count() === 1 && await row.getAttribute('data-state') === 'hot');
  console.log(`# hot on the page after ${Date.now() - begin} ms`);
  assert.match(await page.textContent('#headline'), /1 hot key takes/);
  assert.match(await page.textContent('#announce'), /product:star is hot/);
  assert.match(await page.title(), /^\(1\) hotsniff · redis-1$/);
  await page.click('.windows a[href="?window=5s"]');
  await lib.eventually('its share grows to about 26 %', async () =>
    Math.abs(parseFloat(await row.locator('td.share span').textContent()) - 26) < 5);
  assert.match(page.url(), /window=5s/);
  assert.ok(await page.evaluate(() => window.sameDocument));
  assert.match(await page.textContent('#health'), /Dropped packetsnone.*Capturerunning/);
  await clean(page);
});

test('hostile keys are harmless', async () => {
  traffic.mix.push(...hostile.map(key => ({ share: 0.008, key })));
  const page = await open();
  const want = ['<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>', 'rtl\\u{202e}gpj.exe', 'שלום:עולם', 'esc\\x1b[31mred',
    'new\\x0aline', 'zero\\u{200b}width', 'nul\\x00', 'bin\\xff\\xfe', '""', '${alert(5)}'];
  let keys = [];
  await lib.eventually('the keys are there', async () => {
    keys = await page.locator('#rows th bdi').allTextContents();
    assert.deepEqual(want.filter(k => !keys.includes(k)), []);
    return keys.some(k => k.startsWith('long:'));
  }, 40000);
  assert.ok(keys.every(k => Array.from(k).length <= 64), 'a long key is not cut');
  assert.equal(await page.locator('img, iframe, script:not([src]), svg[onload]').count(), 0);
  assert.ok(await page.locator('#rows th').evaluateAll(all => all.every(th => th.querySelector('bdi'))), 'a key is not isolated');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'a key makes the page wider');
  await page.fill('#filter', 'onerror');
  assert.equal(await page.locator('#rows tr').count(), 1);
  await page.click('#rows .open');
  assert.equal(await page.textContent('#detail-key'), '<img src=x onerror=alert(1)>');
  await page.click('.close');
  await page.fill('#filter', 'long:');
  await page.click('#rows .open');
  assert.match(await page.textContent('#detail-body'), /10,000 bytes/);
  await clean(page);
});

test('everything can be done with the keyboard', async () => {
  const page = await open();
  const tab = async until => {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(s => document.activeElement.matches(s), until)) return;
    }
    assert.fail(`Tab never comes to ${until}`);
  };
  await tab('.skip');
  await tab('#pause');
  await page.keyboard.press('Space');
  assert.equal(await page.textContent('#connection'), 'paused');
  const at = await page.textContent('#at');
  await lib.sleep(2200);
  assert.equal(await page.textContent('#at'), at, 'figures move while paused');
  await page.keyboard.press('Space');
  await lib.eventually('figures move on', async () => await page.textContent('#at') !== at);
  await tab('#filter');
  await page.keyboard.type('product');
  assert.equal(await page.locator('#rows tr').count(), 1);
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await tab('th[data-sort="key"] button');
  await page.keyboard.press('Enter');
  assert.equal(await page.getAttribute('th[data-sort="key"]', 'aria-sort'), 'ascending');
  const sorted = await page.locator('#rows th bdi').allTextContents();
  assert.equal(sorted[0] <= sorted.at(-1), true);
  await page.keyboard.press('Enter');
  assert.equal(await page.getAttribute('th[data-sort="key"]', 'aria-sort'), 'descending');
  await tab('#rows .open');
  const key = await page.evaluate(() => document.activeElement.textContent);
  await lib.sleep(2500); // rows come and go
  assert.equal(await page.evaluate(() => document.activeElement.textContent), key, 'the focus was lost');
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
  await page.keyboard.press('Enter');
  assert.ok(await page.evaluate(() => document.getElementById('detail').open && document.getElementById('detail').contains(document.activeElement)));
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.getElementById('detail').open), false);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), key, 'the focus does not come back');
  await clean(page);
});

test('axe finds nothing', async () => {
  const page = await open({ reducedMotion: 'reduce' });
  await rowOf(page, 'product:star').waitFor();
  await page.evaluate(axeSource);
  const look = async what => {
    const found = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    assert.deepEqual(found.violations.map(v => `${v.id}: ${v.nodes.map(n => n.target + ' ' + n.failureSummary).join('; ')}`), [], what);
  };
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 1440]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: path.join(lib.artifacts, `page-${colorScheme}-${width}.png`) });
      await look(`the page, ${colorScheme}, ${width}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `wider than ${width} px`);
      await page.locator('#rows .open').first().click();
      await page.screenshot({ path: path.join(lib.artifacts, `detail-${colorScheme}-${width}.png`) });
      await look(`the detail, ${colorScheme}, ${width}`);
      await page.keyboard.press('Escape');
    }
  }
  await clean(page);
});

test('where streams fail the page polls', async () => {
  const page = await lib.watched(browser);
  await page.route('**/api/v1/events*', route => route.abort());
  await page.goto(daemon.url);
  await lib.eventually('the page polls', async () => await page.textContent('#connection') === 'polling');
  await rowOf(page, 'product:star').waitFor();
  const at = await page.textContent('#at');
  await lib.eventually('polled figures move on', async () => await page.textContent('#at') !== at);
  assert.match(await page.textContent('#health'), /CPU\d+%|CPU<1%/);
  await page.unroute('**/api/v1/events*');
  await lib.eventually('the stream is back', async () => await page.textContent('#connection') === 'live', 30000);
  page.trouble.splice(0, Infinity, ...page.trouble.filter(t => !t.includes('net::ERR_FAILED')));
  await clean(page);
});

test('after a restart of the daemon the page is live again', async () => {
  const page = await open();
  await page.evaluate(() => { window.sameDocument = true; });
  const begin = Date.now();
  await daemon.stop();
  assert.ok(Date.now() - begin < 2000, 'an open page holds the daemon up');
  await lib.eventually('the page says that it is alone', async () => await page.textContent('#connection') === 'no connection');
  assert.ok(await page.isVisible('#notice'));
  assert.ok(await rowOf(page, 'product:star').count() === 1, 'the last figures are gone');
  daemon = await start();
  await lib.eventually('it is live', async () => await page.textContent('#connection') === 'live', 30000);
  await lib.eventually('the key is hot again', async () => await rowOf(page, 'product:star').getAttribute('data-state') === 'hot');
  assert.equal(await page.isVisible('#notice'), false);
  assert.ok(await page.evaluate(() => window.sameDocument));
  // What the browser itself says of refused connections is no error of ours.
  page.trouble.splice(0, Infinity, ...page.trouble.filter(t => !/net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/.test(t)));
  await clean(page);
});

test('without JavaScript the page is a table', async () => {
  const page = await lib.watched(browser, { javaScriptEnabled: false });
  await page.goto(daemon.url);
  assert.equal(await rowOf(page, 'product:star').count(), 1);
  assert.match(await rowOf(page, 'product:star').textContent(), /%[\s\S]*GET[\s\S]*hot/);
  assert.equal(await page.isVisible('#filter'), false);
  assert.equal(await page.locator('noscript meta[http-equiv=refresh], meta[http-equiv=refresh]').count(), 1);
  await page.screenshot({ path: path.join(lib.artifacts, 'no-javascript-1440.png') });
  assert.deepEqual(page.trouble, []);
  await page.done();
});

// text takes the page apart into what is read on it.
const text = page => page.evaluate(() => {
  const plain = e => e.textContent.replace(/\s+/g, ' ').trim();
  return {
    head: [...document.querySelectorAll('#headline, #window, #at, #figures > div, #health > div, #count, #hot > li')].map(plain),
    rows: [...document.querySelectorAll('#rows tr')].map(tr => [tr.dataset.state, ...[...tr.cells].map(plain)]),
    drawn: [...document.querySelectorAll('#rows svg')].map(s => [...s.children].map(c => [...c.attributes].map(a => a.name + a.value).sort().join())),
    columns: [...document.getElementById('table').classList].sort(),
  };
});

for (const window of ['60s', 'all']) {
  test(`a file of read --html stands alone, --window ${window}`, async () => {
    dump.kill();
    const file = path.join(lib.artifacts, `report-${window}.html`);
    execFileSync(lib.program, ['read', '--port', redis.port, '--window', window, '--top', 30, '--html', file, capture], { stdio: ['ignore', 'ignore', 'inherit'] });
    const url = pathToFileURL(file).href;
    // Without JavaScript it says what it says with it: the two ways of making
    // the same text are held together here.
    const off = await lib.watched(browser, { javaScriptEnabled: false });
    await off.goto(url);
    const served = await text(off);
    await off.done();
    const page = await lib.watched(browser);
    await page.goto(url);
    await page.locator('#rows .open').first().waitFor();
    assert.deepEqual(await text(page), served);
    assert.ok(served.rows.length >= hostile.length && served.rows.some(r => r[1] === '<img src=x onerror=alert(1)>'));
    assert.equal(served.columns.includes('trends'), window === '60s');
    await page.locator('th[data-sort="rate"] button').click();
    await page.locator('#rows .open').first().click();
    assert.ok(await page.isVisible('#detail .commands'));
    await page.screenshot({ path: path.join(lib.artifacts, `file-${window}-1440.png`) });
    await page.keyboard.press('Escape');
    await page.evaluate(axeSource);
    const found = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    assert.deepEqual(found.violations.map(v => v.id), []);
    // Its policy forbids what is not its own.
    assert.equal(await page.evaluate(() => {
      const s = document.createElement('script');
      try { s.textContent = 'window.injected = 1'; } catch { return 'refused'; }
      document.body.append(s);
      return String(window.injected);
    }), 'refused');
    page.trouble.splice(0, Infinity, ...page.trouble.filter(t => !/TrustedScript|Trusted Type/.test(t)));
    assert.deepEqual(page.trouble, []);
    await page.done();
  });
}
