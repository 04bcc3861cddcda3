// The detail of a key, in a dialog that follows the key while it is open.
const shownDetail = { id: null, opener: null };

function openDetail(id, opener) {
  shownDetail.id = id;
  shownDetail.opener = opener;
  byId('detail-body').replaceChildren();
  renderDetail();
  byId('detail').showModal();
  byId('detail-key').focus();
}

function prepareDetail() {
  const dialog = byId('detail');
  dialog.addEventListener('close', () => {
    shownDetail.id = null;
    if (shownDetail.opener?.isConnected) shownDetail.opener.focus();
  });
  dialog.addEventListener('click', e => {
    if (e.target === dialog) dialog.close(); // beside the dialog's content
  });
}

const fact = (name, ...value) => make('div', {}, make('dt', {}, name), make('dd', {}, ...value));

function facts(item) {
  const k = item.key, r = item.report, s = secondsOf(r);
  const sure = k.accesses_error > 0 ? `${number(k.accesses)}, at most ${number(k.accesses_error)} more`
    : r.sample_every > 1 ? `${number(k.accesses)}, estimated from a sample` : `${number(k.accesses)}, exact`;
  const list = [
    fact('Share', `${percent(k.share)}, surely ${percent(k.share_low)} to ${percent(k.share_high)}`),
    fact('Accesses', sure),
    fact('Accesses/s', rate(k.accesses_per_second)),
    fact('Reads', unwatched(k) ? none : number(k.reads)),
    fact('Writes', unwatched(k) ? none : number(k.writes)),
    fact('Requests', unwatched(k) ? none : bytes(k.request_bytes / s) + '/s'),
    fact('Replies', unwatched(k) ? none : (item.estimated ? '~' : '') + bytes(k.reply_bytes / s) + '/s'),
    fact('Clients', clientsText(k)),
    fact('Top client', topClient(k)),
    fact('Port', String(k.port)),
  ];
  if (k.rule) list.push(fact('Rule', printable(k.rule, 0)));
  if (k.action) list.push(fact('Advice', k.action));
  if (k.key_bytes) list.push(fact('Length', `${number(k.key_bytes)} bytes; the first ${number(new TextEncoder().encode(k.key).length)} are shown`));
  if (k.key_base64) list.push(fact('Base64', make('code', {}, k.key_base64)));
  return make('dl', { class: 'facts' }, ...list);
}

function historyOf(item) {
  const line = points(item.history, 600, 120);
  if (line === '') return null;
  const most = Math.max(...item.history.slice(0, -1));
  return make('figure', {},
    make('figcaption', {}, `Accesses/s, last ${item.history.length - 1} s; highest ${rate(most)}, now ${rate(item.history.at(-2))}`),
    draw('svg', { class: 'history', viewBox: '0 0 600 120', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      draw('polygon', { points: `0,120 ${line} 600,120` }), draw('polyline', { points: line })));
}

function commandTable(item) {
  const all = commandsOf(item.key);
  const sum = all.reduce((n, c) => n + c[1], 0);
  if (sum === 0) return null;
  return make('table', { class: 'commands' },
    make('caption', {}, 'Commands'),
    make('thead', {}, make('tr', {}, ...['Command', 'Accesses', 'Part'].map(t => make('th', { scope: 'col' }, t)))),
    make('tbody', {}, ...all.map(([name, n]) => make('tr', {}, make('th', { scope: 'row' }, name),
      make('td', {}, number(n)), make('td', {}, percent0(n / sum))))));
}

function stateLine(item) {
  const k = item.key;
  if (k.state === 'none') return make('p', { class: 'what' }, 'Not on the hot list');
  const since = k.since ? ` since ${clock(Date.parse(k.since))}, for ${ageOf(item)}` : '';
  return make('p', { class: 'what', 'data-state': k.state }, make('span', { class: 'chip' }, k.state), since);
}

function renderDetail() {
  if (shownDetail.id === null) return;
  const item = view.items.find(i => i.id === shownDetail.id);
  const body = byId('detail-body');
  if (!item) { // it left the top keys: the last figures stay
    if (!byId('left')) body.prepend(make('p', { id: 'left', class: 'what' }, 'This key is no longer among the top keys; these are its last figures.'));
    return;
  }
  replace(byId('detail-key'), make('bdi', {}, item.text));
  replace(body, ...[stateLine(item), historyOf(item), facts(item), commandTable(item)].filter(e => e !== null));
}
