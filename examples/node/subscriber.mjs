// Follows the hot list that hotsniff publishes, as docs/PROTOCOL.md says.
//
//   node subscriber.mjs [redis://user:password@host:port] [channel]
//
// Prints the whole list as one line of JSON, first when it is known, then
// whenever a key comes or goes or changes its state or action.
import { createClient } from 'redis';

const [url = 'redis://127.0.0.1:6379', channel = 'hotsniff:hot'] = process.argv.slice(2);
const maxBytes = 1 << 20, maxKeys = 1000, maxKeyBytes = 1024, maxNodes = 1024, maxTTL = 600_000;
const silence = 6000; // ms without a word after which a connection is asked whether it lives

const nodes = new Map(); // node -> its newest list, with lapse on our own clock
let known = false; // the retained lists were read once
let printed;

const number = (v, hi) => (Number.isFinite(v) ? Math.min(Math.max(v, 0), hi) : 0);
const positive = (v) => Number.isSafeInteger(v) && v > 0;
const rank = { cooling: 0, hot: 1, pinned: 2 };
const actions = ['localize', 'replicate', 'aggregate', 'limit'];

// decode returns a list, or undefined for what is none; it throws on what is broken.
function decode(text) {
  if (Buffer.byteLength(text) > maxBytes) throw new Error('too large');
  const l = JSON.parse(text);
  if (l?.schema !== 'hotsniff.list/v1') return undefined;
  const { node, epoch, seq, at, ttl_ms } = l;
  if (typeof node !== 'string' || !/^[^\p{Cc} ]+$/u.test(node) || Buffer.byteLength(node) > 255) throw new Error('bad node');
  if (![epoch, seq, at, ttl_ms].every(positive)) throw new Error('bad numbers');
  if ((l.keys ?? []).length > maxKeys) throw new Error('too many keys');
  const keys = new Map(); // of two entries with the same key and port the first counts
  for (const k of l.keys ?? []) {
    const raw = Buffer.from(k.key_base64 || k.key, k.key_base64 ? 'base64' : 'utf8');
    if (typeof k.key !== 'string' || raw.length > maxKeyBytes || (k.key_base64 && raw.toString('base64') !== k.key_base64)) throw new Error('bad key');
    const id = raw.toString('latin1'), port = number(k.port, 65535);
    if (keys.has(`${port} ${id}`)) continue;
    keys.set(`${port} ${id}`, {
      id, key: k.key, key_base64: k.key_base64, state: Object.hasOwn(rank, k.state) ? k.state : 'hot',
      action: actions.includes(k.action) ? k.action : 'none', share: number(k.share, 1),
      rate: number(k.accesses_per_second, 1e12), ttl: number(k.ttl_ms, maxTTL),
    });
  }
  return { node, epoch, seq, at, ttl: Math.min(ttl_ms, maxTTL), rate: number(l.accesses_per_second, 1e12), keys: [...keys.values()] };
}

function take(text, retained) {
  let l;
  try { l = decode(text); } catch { return; } // whoever may publish may send anything
  if (!l) return;
  const left = retained ? Math.min(l.ttl, l.at + l.ttl - Date.now()) : l.ttl;
  const old = nodes.get(l.node);
  if (left <= 0 || (old ? l.epoch < old.epoch || (l.epoch === old.epoch && l.seq <= old.seq) : nodes.size >= maxNodes)) return;
  nodes.set(l.node, { ...l, lapse: performance.now() + left });
  show();
}

// merge joins the lists of all nodes; a key on several ports or nodes is one.
function merge() {
  const all = [...nodes.values()].sort((a, b) => (a.node < b.node ? -1 : 1)), hot = new Map();
  const total = all.reduce((sum, l) => sum + l.rate, 0);
  for (const l of all) for (const k of l.keys) {
    const rate = k.rate || k.share * l.rate, weight = rate + (k.state === 'pinned' ? 1e18 : 0);
    const h = hot.get(k.id) ?? { key: k.key, key_base64: k.key_base64, state: k.state, rate: 0, share: 0, weight: -1 };
    if (weight > h.weight) Object.assign(h, { weight, action: k.action });
    if (rank[k.state] > rank[h.state]) h.state = k.state;
    hot.set(k.id, Object.assign(h, { rate: h.rate + rate, share: Math.max(h.share, k.share) }));
  }
  return [...hot.values()].map(({ key, key_base64, state, action, rate, share }) => ({
    key, key_base64, state, action, share: Math.round(1e4 * (total > 0 ? Math.min(rate / total, 1) : share)) / 1e4,
  })).sort((a, b) => b.share - a.share || (a.key < b.key ? -1 : 1));
}

function show() {
  const now = performance.now();
  for (const [name, l] of nodes) {
    if (now < l.lapse) continue;
    l.keys = l.keys.filter((k) => now < l.lapse + k.ttl); // nobody renewed it: each key lives out its own time
    if (l.keys.length === 0) nodes.delete(name);
  }
  const list = merge(), sign = JSON.stringify(list.map((k) => [k.key, k.state, k.action]).sort());
  if (known && sign !== printed) console.log(JSON.stringify(list));
  if (known) printed = sign;
}
setInterval(show, 250);

const within = (promise) => Promise.race([promise, new Promise((_, no) => setTimeout(no, silence, new Error('no sign of life')).unref())]);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// No reconnecting behind our back: each connection must begin with SUBSCRIBE, then the retained lists.
const connection = () => createClient({ url, disableClientInfo: true, socket: { reconnectStrategy: false, connectTimeout: 2000 } });

async function follow() {
  const sub = connection(), reader = connection();
  try {
    let heard = performance.now();
    const broken = new Promise((_, no) => { for (const c of [sub, reader]) c.on('error', no); });
    broken.catch(() => {});
    await within(sub.connect());
    await within(sub.subscribe(channel, (text) => { heard = performance.now(); take(text, false); }));
    await within(reader.connect());
    const names = await within(reader.sendCommand(['ZREVRANGE', 'hotsniff:nodes', '0', String(maxNodes - 1)]));
    for (const name of names) take(await within(reader.sendCommand(['GETRANGE', `hotsniff:list:${name}`, '0', String(maxBytes)])), true);
    reader.destroy();
    known = true;
    show();
    for (;;) {
      await Promise.race([broken, sleep(1000)]);
      // Any answer is a sign of life, also that we may not PING.
      if (performance.now() - heard > silence) await within(sub.ping().catch((e) => { if (!sub.isReady) throw e; }));
    }
  } finally {
    for (const c of [sub, reader]) if (c.isOpen) c.destroy();
  }
}

for (;;) {
  await follow().catch((e) => console.error(`subscriber: ${e.message}`));
  await sleep(500 + 500 * Math.random());
}
