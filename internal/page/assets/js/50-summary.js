// What stands above the table: the answer, the hot list, what may be hidden.
const maxCards = 12;

function headline(report) {
  const of = state => report.keys.filter(k => k.state === state);
  const hot = of('hot'), cooling = of('cooling').length, pinned = of('pinned').length;
  const sum = hot.reduce((n, k) => n + k.accesses, 0);
  const part = percent0(Math.min(sum / Math.max(report.accesses, 1), 1));
  if (hot.length === 1) return `1 hot key takes ${part} of all accesses`;
  if (hot.length > 1) return `${hot.length} hot keys take ${part} of all accesses`;
  if (cooling > 0) return `No key is hot; ${cooling} cooling`;
  if (pinned > 0) return `No key is hot; ${pinned} pinned`;
  return report.accesses === 0 ? 'No traffic has been seen' : 'No key is hot';
}

const fewOf = 0.001, busyCPU = 0.25;

function lost(name, n, all) {
  if (!n) return [name, 'none', 'ok'];
  const ratio = n / Math.max(all, n);
  return [name, `${number(n)} (${percent0(ratio)})`, ratio > fewOf ? 'warn' : 'ok'];
}

function publishing(p) {
  if (!p) return ['Publishing', 'off', 'ok'];
  if (p.failing > 0) return ['Publishing', `${p.result}, ${p.failing} in a row`, 'warn'];
  return ['Publishing', p.receivers === 1 ? 'to 1 subscriber' : `to ${number(p.receivers)} subscribers`, 'ok'];
}

function health(report, status) {
  const c = report.capture, packets = c.packets + c.dropped;
  const hidden = c.encrypted_connections;
  const tiles = [
    lost('Dropped packets', c.dropped, packets),
    ['Sampling', report.sample_every > 1 ? `1 in ${report.sample_every}` : 'off', report.sample_every > 1 ? 'note' : 'ok'],
    lost('Gaps', c.gaps, packets),
    ['Encrypted', hidden ? `${percent0(hidden / Math.max(c.connections, hidden))} of connections` : 'no connections', hidden ? 'warn' : 'ok'],
    lost('Not decoded', Object.values(c.decode_errors).reduce((a, b) => a + b, 0), packets),
  ];
  if (!status) return tiles;
  return [...tiles,
    ['CPU', `${percent0(status.cpu_ratio)} of a core`, status.cpu_ratio >= busyCPU ? 'warn' : 'ok'],
    publishing(status.publish),
    ['Capture', status.healthy ? 'running' : 'stalled', status.healthy ? 'ok' : 'warn'],
  ];
}

function card(item) {
  const k = item.key;
  const open = make('button', { type: 'button', class: 'open', 'aria-haspopup': 'dialog' }, make('bdi', {}, printable(k.key, cellKeyWidth)));
  open.addEventListener('click', () => openDetail(item.id, open));
  return make('li', {}, make('p', { class: 'name' }, open), make('p', { class: 'share' }), make('p', { class: 'what' }));
}

const cardOf = new Map();

function renderCards() {
  const all = view.items.filter(i => listed(i.key));
  const shown = all.slice(0, maxCards);
  const list = byId('hot');
  const keep = new Set(shown.map(i => i.id));
  for (const [id, element] of cardOf) {
    if (!keep.has(id)) {
      element.remove();
      cardOf.delete(id);
    }
  }
  if (shown.length === 0) replace(list, make('li', { class: 'empty' }, 'No key is on the hot list.'));
  else list.querySelector('.empty')?.remove();
  const focused = document.activeElement;
  let at = list.firstElementChild;
  for (const item of shown) {
    const k = item.key;
    let element = cardOf.get(item.id);
    if (!element) cardOf.set(item.id, element = card(item));
    setAttribute(element, 'data-state', k.state);
    setText(element.children[1], percent(k.share));
    replace(element.children[2], make('span', { class: 'chip' }, k.state),
      ...(k.since ? [' ', make('time', { datetime: k.since }, `for ${ageOf(item)}`)] : []),
      ...(k.action ? [' ', make('span', { class: 'action' }, k.action)] : []));
    if (element === at) at = at.nextElementSibling;
    else list.insertBefore(element, at);
  }
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  byId('more').hidden = all.length <= maxCards;
  setText(byId('more'), `and ${all.length - maxCards} more in the table`);
}

// announce tells screen readers what has changed on the list, in one sentence.
let announced = null;
function announce() {
  const now = new Map(view.items.filter(i => listed(i.key)).map(i => [i.id, i]));
  const before = announced;
  announced = new Map([...now].map(([id, i]) => [id, i.key.state]));
  if (!before) return;
  const said = [];
  for (const [id, i] of now) {
    if (before.get(id) !== i.key.state) said.push(`${printable(i.key.key, 40)} is ${i.key.state}, ${percent0(i.key.share)}`);
  }
  if (said.length > 0) setText(byId('announce'), said.slice(0, 3).join('. ') + (said.length > 3 ? `. And ${said.length - 3} more.` : '.'));
}

function renderSummary(data) {
  const report = data.report;
  setText(byId('headline'), headline(report));
  replace(byId('figures'), ...[['accesses/s', number(report.accesses / secondsOf(report))], ['distinct keys', number(report.distinct_keys)]]
    .map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
  replace(byId('health'), ...health(report, data.status)
    .map(([name, value, level]) => make('div', { 'data-level': level }, make('dt', {}, name), make('dd', {}, value))));
  const to = moment(report.to);
  const at = isNaN(to) ? ['', none] : clock(to).split(/ (.*)/);
  setText(byId('at').children[0], at[0] + ' ');
  setText(byId('at').children[1], at[1]);
  setAttribute(byId('at'), 'datetime', isNaN(to) ? '' : report.to);
  if (page.live) setText(byId('window'), `last ${number(coveredBy(report))} s`);
  const hot = report.keys.filter(k => k.state === 'hot').length;
  document.title = (hot > 0 ? `(${hot}) ` : '') + 'hotsniff · ' + printable(report.node, 0);
  renderCards();
  announce();
}
