// The pictures of the page for the README, in light and dark of one run:
// picture.mjs FILE.png makes FILE.png and FILE-dark.png.
import fs from 'node:fs';
import path from 'node:path';
import * as lib from './lib.mjs';
import { command, send, Traffic } from './traffic.mjs';

const file = process.argv[2], width = 1440, most = 300 << 10;
const redis = await lib.startRedis();
const daemon = await lib.startDaemon(redis.port, await lib.freePort(), '--top', 7, '--publish.redis-url', `redis://127.0.0.1:${redis.port}`);
await send(redis.port, command('SET', 'product:1842:stock', 'x'.repeat(900)), command('SET', 'feature-flags', 'f'.repeat(8000)),
  command('SET', 'session:anonymous', 'x'), command('HSET', 'cart:{eu-west}:index', 'a', 'b'));
const flags = { share: 0.045, key: 'feature-flags' }, product = { share: 0.01, key: 'product:1842:stock', writes: 0.02 };
const traffic = new Traffic(redis.port, { rate: 5000, mix: [flags, product,
  { share: 0.07, key: 'session:anonymous', writes: 0.4, skew: 3 },
  { share: 0.026, key: 'cart:{eu-west}:index', command: 'HGETALL', clients: 2 },
  { share: 0.012, key: 'rate:login', command: 'INCR', clients: 1 }] });
await traffic.start();
await lib.sleep(15000);
flags.share = 0.001; // it cools once it has left the minute
await lib.sleep(32000);
for (let i = 0; i < 30; i++) { // a key takes off
  await lib.sleep(150);
  product.share += 0.012;
}
await lib.sleep(26000);
const browser = await lib.launch();
const page = await lib.watched(browser, { viewport: { width, height: 640 }, reducedMotion: 'reduce' });
await page.goto(daemon.url);
await page.locator('#rows .open').first().waitFor();
await lib.sleep(1500);
const height = await page.evaluate(() => Math.ceil(document.getElementById('table').getBoundingClientRect().bottom + 16));
fs.mkdirSync(path.dirname(file), { recursive: true });
for (const [colorScheme, name] of [['light', file], ['dark', file.replace(/\.png$/, '-dark.png')]]) {
  await page.emulateMedia({ colorScheme });
  await lib.sleep(300);
  await page.screenshot({ path: name, clip: { x: 0, y: 0, width, height: Math.min(height, 900) }, fullPage: true });
  const { size } = fs.statSync(name);
  console.log(`${name}: ${size} bytes`);
  if (size > most) throw new Error(`${name} has more than ${most} bytes`);
}
const trouble = [...page.trouble, ...await page.violations()];
if (trouble.length) throw new Error(trouble.join('\n'));
await browser.close();
traffic.stop();
await daemon.stop();
await redis.stop();
