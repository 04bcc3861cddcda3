// Text for people. format.go says the same; a browser test compares the two.
const none = '–';
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

const percent = share => (share * 100).toFixed(2) + '%';
const bounds = key => percent(key.share_low).slice(0, -1) + '–' + percent(key.share_high);
const percent0 = share => share > 0 && share < 0.01 ? '<1%' : (share * 100).toFixed(0) + '%';
const number = v => v.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',');
const rate = v => v >= 100 ? number(v) : v.toFixed(1);

function bytes(v) {
  let unit = 0;
  for (; v >= 1024 && unit < 4; unit++) v /= 1024;
  return unit === 0 ? v.toFixed(0) + ' B' : v.toFixed(1) + ' ' + 'KMGT'[unit - 1] + 'iB';
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

// secondsOf is the length of the time that a report covers.
function secondsOf(report) {
  const s = (Date.parse(report.to) - Date.parse(report.from)) / 1000;
  if (s > 0 && (report.window_seconds <= 0 || s < report.window_seconds)) return Math.max(s, 1);
  return Math.max(report.window_seconds, 1);
}

function readsWrites(key) {
  const all = key.reads + key.writes;
  if (all === 0) return none;
  let w = key.writes / all * 100;
  w = w <= 50 ? Math.ceil(w) : Math.floor(w);
  return `${100 - w}/${w}`;
}

// The share of the top client is what it surely has.
function topClient(key) {
  if (!key.top_client) return none;
  const { address, share } = key.top_client;
  return share < 0.01 ? address : `${address} ≥${percent0(share)}`;
}

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
