// What the tests share: servers that they start and end, and the browser.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

export const program = process.env.HOTSNIFF_BIN;
export const artifacts = process.env.HOTSNIFF_ARTIFACTS || fs.mkdtempSync(path.join(os.tmpdir(), 'hotsniff-browser-'));
fs.mkdirSync(artifacts, { recursive: true });

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// eventually waits until check returns something true, and returns it.
export async function eventually(what, check, timeout = 20000) {
  const end = Date.now() + timeout;
  let last;
  for (;;) {
    try {
      const got = await check();
      if (got) return got;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`not within ${timeout} ms: ${what}` + (last ? ` (${last.message})` : ''));
    await sleep(100);
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const children = new Set();
process.on('exit', () => children.forEach(c => c.kill('SIGKILL')));

function start(bin, args) {
  const child = spawn(bin, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const server = { child, log: '', ended: new Promise(resolve => child.once('exit', resolve)) };
  child.stdout.on('data', d => (server.log += d));
  child.stderr.on('data', d => (server.log += d));
  children.add(child);
  server.stop = async () => {
    child.kill('SIGTERM');
    await server.ended;
    children.delete(child);
  };
  return server;
}

export async function startRedis() {
  const port = await freePort();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hotsniff-redis-'));
  const server = start('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--protected-mode', 'no', '--dir', dir]);
  await eventually('redis listens', () => new Promise((resolve, reject) => {
    const s = net.connect(port, '127.0.0.1', () => { s.destroy(); resolve(true); });
    s.once('error', reject);
  }));
  const stop = server.stop;
  server.stop = async () => { await stop(); fs.rmSync(dir, { recursive: true, force: true }); };
  return Object.assign(server, { port });
}

export async function startDaemon(redisPort, webPort, ...flags) {
  const server = start(program, ['run', '--interface', 'lo', '--port', redisPort, '--web.listen-address', `127.0.0.1:${webPort}`,
    '--node', 'redis-1', ...flags].map(String));
  const url = `http://127.0.0.1:${webPort}/`;
  await eventually('hotsniff answers', async () => (await fetch(url + 'api/v1/status')).ok).catch(e => {
    throw new Error(e.message + '\n' + server.log);
  });
  return Object.assign(server, { url });
}

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] });
}

// watched opens a page whose errors, dialogs and policy violations are noted.
export async function watched(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', timezoneId: 'UTC', ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on('console', m => ['error', 'warning'].includes(m.type()) && trouble.push(`console ${m.type()}: ${m.text()}`));
  page.on('pageerror', e => trouble.push(`exception: ${e.message}`));
  page.on('dialog', d => { trouble.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on('request', r => { if (/^https?:/.test(r.url()) && !r.url().startsWith('http://127.0.0.1:')) trouble.push(`request to ${r.url()}`); });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', e => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  return Object.assign(page, {
    trouble,
    violations: () => page.evaluate(() => window.violations),
    done: () => context.close(),
  });
}
