// Making elements: what came from the wire only ever becomes a text node or
// the value of an attribute that has no meaning to a browser.
const byId = id => document.getElementById(id);

function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(c => c !== null));
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// replace gives an element other children, unless they are the same: people
// may be selecting text in them.
function replace(element, ...children) {
  const next = make('div', {}, ...children);
  if (element.childNodes.length === next.childNodes.length &&
    Array.from(element.childNodes).every((c, i) => c.isEqualNode(next.childNodes[i]))) return;
  element.replaceChildren(...next.childNodes);
}

const scales = [0.05, 0.1, 0.25, 0.5];
const scaleOf = keys => scales.find(s => keys.every(k => k.share_high <= s)) ?? 1;

// bar shows a share: full up to the lower bound, pale up to the upper one.
function bar(key, scale) {
  const x = share => coordinate(Math.min(share / scale, 1) * 100);
  return draw('svg', { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    draw('rect', { class: 'track', width: 100, height: 10 }),
    draw('rect', { class: 'fill', width: x(key.share_low), height: 10 }),
    draw('rect', { class: 'band', x: x(key.share_low), width: x(key.share_high - key.share_low), height: 10 }));
}

// points places counts per second, oldest first, in a box; the last second is
// not over and is left out.
function points(history, width, height) {
  if (history.length < 3) return '';
  const past = history.slice(0, -1);
  const most = Math.max(1, ...past);
  const step = width / (past.length - 1);
  return past.map((n, i) => `${coordinate(i * step)},${coordinate(height - 1 - (height - 2) * n / most)}`).join(' ');
}

function spark(history) {
  const line = points(history, 60, 16);
  if (line === '') return null;
  return draw('svg', { class: 'spark', viewBox: '0 0 60 16', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    draw('polyline', { points: line }));
}
