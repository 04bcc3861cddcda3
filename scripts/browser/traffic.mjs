// Load on a real Redis, written by hand so that keys and clients can be
// anything: each client has a loopback address of its own.
import net from 'node:net';

// command is a RESP array of bulk strings or buffers.
export function command(...args) {
  const parts = [Buffer.from(`*${args.length}\r\n`)];
  for (const a of args) {
    const b = Buffer.isBuffer(a) ? a : Buffer.from(String(a));
    parts.push(Buffer.from(`$${b.length}\r\n`), b, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

// connect opens a client connection from a loopback address.
export function connect(port, address = '127.0.0.1') {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port, localAddress: address, noDelay: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    socket.on('data', () => {});
  });
}

// send sends commands on a connection of its own and waits for all replies
// (simple, bulk and integer ones).
export async function send(port, ...commands) {
  const socket = await connect(port);
  socket.on('error', () => {});
  socket.write(Buffer.concat([...commands, command('ECHO', 'the-end')]));
  await new Promise(resolve => socket.on('data', data => data.includes('the-end') && resolve()));
  socket.destroy();
}

// Traffic is a mix of requests. `mix` lists {share, key() or key, command,
// value, clients}; the rest are reads of `keys` cold keys.
export class Traffic {
  constructor(port, { rate = 4000, keys = 5000, mix = [], addresses = 12 } = {}) {
    Object.assign(this, { port, rate, keys, mix, addresses, sockets: [], timer: null });
  }

  async start() {
    for (let i = 0; i < this.addresses; i++) {
      const s = await connect(this.port, `127.0.1.${10 + i}`);
      s.on('error', () => {});
      this.sockets.push(s);
    }
    let due = 0, last = Date.now();
    this.timer = setInterval(() => {
      const now = Date.now();
      due += (now - last) / 1000 * this.rate;
      last = now;
      const batches = this.sockets.map(() => []);
      for (; due >= 1; due--) {
        const [i, request] = this.next();
        batches[i].push(request);
      }
      batches.forEach((b, i) => b.length > 0 && this.sockets[i].write(Buffer.concat(b)));
    }, 10);
  }

  next() {
    let u = Math.random();
    for (const m of this.mix) {
      if ((u -= m.share) < 0) {
        const i = Math.floor(Math.random() ** (m.skew ?? 1) * Math.min(m.clients ?? this.addresses, this.addresses));
        const write = Math.random() < (m.writes ?? 0);
        return [i, write ? command(m.writeCommand ?? 'SET', m.key, m.value ?? 'x') : command(m.command ?? 'GET', m.key, ...(m.args ?? []))];
      }
    }
    const i = Math.floor(Math.random() * this.addresses);
    return [i, command('GET', `user:${Math.floor(Math.random() ** 2 * this.keys)}:profile`)];
  }

  stop() {
    clearInterval(this.timer);
    for (const s of this.sockets) s.destroy();
    this.sockets = [];
  }
}
