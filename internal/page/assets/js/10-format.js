// Text for people: what format.go and the package report say of the same
// numbers. A browser test compares the two.
const none = '-';
const cellKeyWidth = 64;

// Whatever could hide or reorder text becomes an escape.
const unprintable = /[^\p{L}\p{Mc}\p{N}\p{P}\p{S} ]/gu;
const escaped = c => {
  const n = c.codePointAt(0);
  return n < 0x80 ? '\\x' + n.toString(16).padStart(2, '0') : `\\u{${n.toString(16)}}`;
};

function printable(text, width) {
  const out = text.replace(unprintable, escaped);
  if (out === '') return '""';
  if (!width || out.length <= width) return out;
  const runes = Array.from(out);
  if (runes.length <= width) return out;
  const head = Math.floor((width - 1) / 2);
  return runes.slice(0, head).join('') + '…' + runes.slice(runes.length - (width - 1 - head)).join('');
}

// fixed writes v with so many decimals. Halves go to the even digit, as in Go.
function fixed(v, decimals) {
  const up = v.toFixed(decimals);
  const rest = v.toFixed(decimals + 25).slice(-25); // exact: a half has no more digits
  if (!/^50*$/.test(rest) || Number(up.at(-1)) % 2 === 0) return up;
  return up.slice(0, -1) + (Number(up.at(-1)) - 1);
}

const percent = share => fixed(share * 100, 2) + '%';
const bounds = key => percent(key.share_low).slice(0, -1) + '–' + percent(key.share_high);
const percent0 = share => share > 0 && share < 0.01 ? '<1%' : fixed(share * 100, 0) + '%';
const number = v => fixed(v, 0).replace(/\B(?=(\d{3})+$)/g, ',');
const rate = v => fixed(v, v >= 100 ? 0 : 1);

function bytes(v) {
  v = Math.floor(v);
  let unit = 0;
  for (; v >= 1024 && unit < 4; unit++) v /= 1024;
  return unit === 0 ? fixed(v, 0) + ' B' : fixed(v, 1) + ' ' + 'KMGT'[unit - 1] + 'iB';
}

function age(seconds) {
  const s = Math.floor(Math.max(seconds, 0));
  const whole = Math.floor;
  if (s < 60) return s + ' s';
  if (s < 3600) return `${whole(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${whole(s / 3600)} h ${whole(s % 3600 / 60)} min`;
  return `${whole(s / 86400)} d ${whole(s % 86400 / 3600)} h`;
}

// moment reads a time of a report. Its zero is before everything.
function moment(text) {
  const t = Date.parse(text);
  return t > 0 ? t : NaN;
}

const clock = t => new Date(t).toISOString().slice(0, 19).replace('T', ' ') + ' UTC';

// between is the time from one to another in seconds, to the nanosecond.
function between(from, to) {
  const parts = text => {
    const [, fraction = '0'] = text.match(/\.(\d+)/) ?? [];
    return [Date.parse(text.replace(/\.\d+/, '')) / 1000, Number('0.' + fraction)];
  };
  const [a, x] = parts(from), [b, y] = parts(to);
  return b - a + (y - x);
}

// secondsOf is the length of what the report covers.
function secondsOf(report) {
  let covered = between(report.from, report.to);
  if (report.window_seconds > 0 && (covered <= 0 || covered > report.window_seconds)) covered = report.window_seconds;
  return Math.max(covered, 0.001);
}

// coveredBy is the same in whole seconds, with the one that is not over yet.
function coveredBy(report) {
  const covered = Math.floor(secondsOf(report)) + 1;
  return report.window_seconds > 0 ? Math.min(covered, report.window_seconds) : covered;
}

function readsWrites(key) {
  const total = key.reads + key.writes;
  if (total === 0 || unwatched(key)) return none;
  let writes = Math.round(100 * key.writes / total);
  if (key.writes > 0 && key.reads > 0) writes = Math.min(Math.max(writes, 1), 99);
  return `${100 - writes}/${writes}`;
}

// topClient names the heaviest client, with the part that it surely has unless
// that says nothing: one of n clients has an n-th at least.
function topClient(key) {
  if (!key.top_client) return none;
  const { address, share } = key.top_client;
  return share < 0.01 || share * key.clients < 1 ? address : `${address} ${fixed(share * 100, 0)}%`;
}

// unwatched: only the accesses of the key are known, not its writes, bytes and clients.
const unwatched = key => key.accesses > 0 && key.clients === 0;
const clientsText = key => unwatched(key) ? none : number(key.clients);

// commandsOf lists the commands of a key, the most frequent first.
function commandsOf(key) {
  return Object.entries(key.commands).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function topCommand(key) {
  const all = commandsOf(key);
  const sum = all.reduce((n, c) => n + c[1], 0);
  return sum === 0 ? none : `${all[0][0]} ${percent0(all[0][1] / sum)}`;
}

const coordinate = v => String(Math.round(v * 100) / 100);
