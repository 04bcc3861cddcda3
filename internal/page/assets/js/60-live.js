// Where the data comes from: a stream; where that fails, polling, while the
// stream is tried again; in a file, the file itself.
const pollEvery = 5000, retryFirst = 1000, retryMost = 15000, silence = 6000;

const page = { live: true, window: '60s', paused: false, latest: null, leftOut: '', tookOver: false };
const link = { stream: null, retry: retryFirst, retryTimer: 0, pollTimer: 0, watchdog: 0, lostSince: 0 };

function render(data) {
  if (!page.tookOver) { // the rows as they were served give way to the same with handles
    byId('rows').replaceChildren();
    byId('hot').replaceChildren();
    page.tookOver = true;
  }
  view.items = itemsOf(data);
  renderSummary(data);
  renderTable();
  renderDetail();
}

function receive(data) {
  page.latest = data;
  link.lostSince = 0;
  const stalled = data.status && !data.status.healthy;
  notice(stalled ? 'The capture has stalled: what you see is of the time above.' : '');
  if (!page.paused) render(data);
}

function notice(text) {
  setText(byId('notice'), text);
  byId('notice').hidden = text === '';
}

function show(state, text) {
  const p = byId('connection');
  setAttribute(p, 'data-state', state);
  setText(p.firstElementChild, text);
}

function connect() {
  clearTimeout(link.retryTimer);
  link.stream?.close();
  const stream = link.stream = new EventSource('api/v1/events?window=' + page.window);
  // A connection that hangs tells nothing by itself.
  const watch = () => {
    clearTimeout(link.watchdog);
    link.watchdog = setTimeout(() => fail(stream), silence);
  };
  stream.onmessage = event => {
    if (stream !== link.stream) return;
    watch();
    clearTimeout(link.pollTimer);
    link.pollTimer = 0;
    link.retry = retryFirst;
    if (!page.paused) show('live', 'live');
    receive(JSON.parse(event.data));
  };
  stream.onerror = () => fail(stream);
  watch();
}

function fail(stream) {
  if (stream !== link.stream) return;
  stream.close();
  link.stream = null;
  clearTimeout(link.watchdog);
  link.retryTimer = setTimeout(connect, link.retry * (0.75 + Math.random() / 2));
  link.retry = Math.min(link.retry * 2, retryMost);
  if (link.pollTimer === 0) poll();
}

async function get(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(4000) });
  if (!response.ok) throw new Error(String(response.status));
  return response.json();
}

async function poll() {
  link.pollTimer = -1; // one at a time
  const window = page.window;
  try {
    const [report, status] = await Promise.all([get('api/v1/hotkeys?window=' + window), get('api/v1/status')]);
    if (link.pollTimer === 0) return; // the stream is back
    if (window === page.window) {
      if (!page.paused) show('poll', 'polling');
      receive({ report, status, details: null });
    }
  } catch {
    if (link.pollTimer === 0) return;
    link.lostSince ||= Date.now();
    show('lost', 'no connection');
    notice(`No connection to hotsniff since ${clock(link.lostSince)}: what you see is of the time above.`);
  }
  link.pollTimer = setTimeout(poll, pollEvery * (0.8 + Math.random() * 0.4));
}

function pause() {
  page.paused = !page.paused;
  setAttribute(byId('pause'), 'aria-pressed', String(page.paused));
  if (page.paused) show('paused', 'paused');
  else {
    show(link.stream ? 'live' : 'poll', link.stream ? 'live' : 'polling');
    if (page.latest) render(page.latest);
  }
}

function chooseWindow(event) {
  event.preventDefault();
  const chosen = event.currentTarget;
  for (const a of document.querySelectorAll('.windows a')) {
    if (a === chosen) a.setAttribute('aria-current', 'true');
    else a.removeAttribute('aria-current');
  }
  page.window = new URL(chosen.href).searchParams.get('window');
  history.replaceState(null, '', '?window=' + page.window);
  if (page.paused) pause();
  connect();
}

function prepareLive() {
  page.window = new URL(location.href).searchParams.get('window') || '60s';
  byId('pause').hidden = false;
  byId('pause').addEventListener('click', pause);
  for (const a of document.querySelectorAll('.windows a')) a.addEventListener('click', chooseWindow);
  show('off', 'connecting');
  connect();
}
