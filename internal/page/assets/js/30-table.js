// The table: one row element per key for as long as the key is there, so that
// focus and selection stay while figures change.
const view = { items: [], sort: 'share', descending: true, filter: '', scale: 1 };
const rowOf = new Map();

const sortValue = {
  key: i => i.text,
  port: i => i.key.port,
  share: i => i.key.share,
  rate: i => i.key.accesses_per_second,
  writes: i => i.key.writes / Math.max(i.key.reads + i.key.writes, 1),
  bytes: i => i.key.request_bytes + i.key.reply_bytes,
  clients: i => i.key.clients,
  topclient: i => i.key.top_client ? i.key.top_client.share : 0,
  command: i => topCommand(i.key),
  since: i => ['none', 'banned', 'probable', 'pinned', 'cooling', 'hot'].indexOf(i.key.state) * 1e15 - (i.key.since ? Date.parse(i.key.since) : 0),
};
const ascendsFirst = new Set(['key', 'command', 'port']);

const listed = key => key.state === 'hot' || key.state === 'cooling' || key.state === 'pinned';

// itemsOf takes a report apart into what the rows are made of.
function itemsOf(data) {
  const seen = new Map();
  const items = data.report.keys.map((key, i) => {
    let id = `${key.port} ${key.key_base64 ?? ''} ${key.key}`;
    const n = seen.get(id) ?? 0; // keys that are known by the same prefix
    seen.set(id, n + 1);
    if (n > 0) id += ` #${n}`;
    const more = data.details?.[i] ?? {};
    return {
      id, key, report: data.report, text: printable(key.key, 0), estimated: more.reply_estimated === true,
      history: remembered(id, key, more.history),
    };
  });
  const present = new Set(items.map(i => i.id));
  for (const id of memory.keys()) if (!present.has(id)) memory.delete(id);
  return items;
}

// remembered is the history of a key. A polled report has none; then it is
// what this page saw.
const memory = new Map();
function remembered(id, key, history) {
  if (!history && page.live) {
    history = [...(memory.get(id) ?? []), key.accesses_per_second].slice(-60);
  }
  if (page.live && history) memory.set(id, history);
  return history ?? [];
}

const ageOf = item => item.key.since ? age(between(item.key.since, item.report.to)) : '';
const bytesOf = item => unwatched(item.key) ? none : (item.estimated ? '~' : '') + bytes((item.key.request_bytes + item.key.reply_bytes) / secondsOf(item.report)) + '/s';
const stateChip = key => key.state === 'none' ? make('span', { class: 'quiet' }, none) : make('span', { class: 'chip' }, key.state);

// cells returns the contents of the cells beside the key, in their order.
function cells(item) {
  const k = item.key;
  return [
    ['port', 'Port', String(k.port)],
    ['share', 'Share', bar(k, view.scale), ' ', make('span', {}, percent(k.share)), ' ', make('small', {}, bounds(k))],
    ['number', 'Accesses/s', rate(k.accesses_per_second)],
    ['trend', null, spark(item.history)],
    ['number', 'R/W %', readsWrites(k)],
    ['number', 'Bytes/s', bytesOf(item)],
    ['number', 'Clients', clientsText(k)],
    [null, 'Top client', topClient(k)],
    [null, 'Command', topCommand(k)],
    ['state', 'State', stateChip(k), ...(k.since ? [' ', make('time', { datetime: k.since }, ageOf(item))] : [])],
  ];
}

function makeRow(item) {
  const open = make('button', { type: 'button', class: 'open', 'aria-haspopup': 'dialog' }, make('bdi', {}, printable(item.key.key, cellKeyWidth)));
  open.addEventListener('click', () => openDetail(item.id, open));
  return make('tr', { role: 'row' }, make('th', { role: 'rowheader', scope: 'row', class: 'key' }, open),
    ...cells(item).map(([name, label]) => make('td', { role: 'cell', class: name, 'data-label': label })));
}

function updateRow(row, item) {
  setAttribute(row, 'data-state', item.key.state);
  cells(item).forEach(([, , ...content], i) => replace(row.cells[i + 1], ...content));
}

function renderTable() {
  view.scale = scaleOf(view.items.map(i => i.key));
  const words = view.filter.toLowerCase();
  const value = sortValue[view.sort];
  const shown = view.items.filter(i => `${i.text} ${topClient(i.key)} ${Object.keys(i.key.commands).join(' ')} ${i.key.state}`.toLowerCase().includes(words));
  shown.sort((a, b) => {
    const x = value(a), y = value(b);
    return (x < y ? -1 : x > y ? 1 : 0) * (view.descending ? -1 : 1);
  });
  const body = byId('rows');
  const keep = new Set(shown.map(i => i.id));
  for (const [id, row] of rowOf) {
    if (!keep.has(id)) {
      row.remove();
      rowOf.delete(id);
    }
  }
  const focused = document.activeElement;
  let at = body.firstElementChild;
  for (const item of shown) {
    let row = rowOf.get(item.id);
    if (!row) rowOf.set(item.id, row = makeRow(item));
    updateRow(row, item);
    if (row === at) at = at.nextElementSibling;
    else body.insertBefore(row, at);
  }
  // Moving an element takes its focus away.
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  byId('table').classList.toggle('ports', new Set(view.items.map(i => i.key.port)).size > 1);
  byId('table').classList.toggle('trends', view.items.some(i => i.history.length > 2));
  byId('nothing').hidden = shown.length > 0;
  setText(byId('nothing'), view.items.length > 0 ? 'No key matches the filter.' : 'No key has been seen.');
  const all = view.items.length;
  setText(byId('count'), (shown.length < all ? `${shown.length} of ${all} keys` : `${all} keys`) + page.leftOut);
}

function sortBy(name) {
  view.descending = view.sort === name ? !view.descending : !ascendsFirst.has(name);
  view.sort = name;
  showSort();
  renderTable();
}

function showSort() {
  for (const th of document.querySelectorAll('#table th[data-sort]')) {
    if (th.dataset.sort === view.sort) th.setAttribute('aria-sort', view.descending ? 'descending' : 'ascending');
    else th.removeAttribute('aria-sort');
  }
  byId('sorter').value = view.sort;
}

// prepareTable makes the head sortable and takes over from the served rows.
function prepareTable() {
  for (const th of document.querySelectorAll('#table th[data-sort]')) {
    const name = th.dataset.sort, title = th.textContent;
    const button = make('button', { type: 'button' }, title);
    button.addEventListener('click', () => sortBy(name));
    th.replaceChildren(button);
    byId('sorter').append(make('option', { value: name }, title));
  }
  byId('sorter').addEventListener('change', e => sortBy(e.target.value));
  byId('filter').addEventListener('input', e => {
    view.filter = e.target.value;
    renderTable();
  });
  byId('tools').hidden = false;
  showSort();
}
