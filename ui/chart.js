/**
 * The chart of pinned bytes over time. A click leads to that moment on the timeline. The figures are also in a table.
 */
import { drawingWidth, el, svg } from './dom.js';
import { bytes, figure, moment, size, span, when } from './format.js';
import { grid } from './grid.js';
import { href } from './router.js';

const HEIGHT = 150;
const LEFT = 62;
const BOTTOM = 22;
const TOP = 10;
/** At most this many samples are in the table. */
const ROWS = 40;

/** The next higher round number of bytes. */
function ceiling(/** @type {number} */ most) {
  if (most <= 0) return 1;
  const unit = 1024 ** Math.floor(Math.log2(most) / 10);
  const lead = most / unit;
  const round =
    [1, 2, 4, 6, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 400, 512, 800, 1024].find((step) => step >= lead) ?? 1024;
  return round * unit;
}

const total = (/** @type {Record<string, number>} */ kinds) => Object.values(kinds).reduce((sum, count) => sum + count, 0);

/**
 * @param {import('./run.js').RunData} data
 * @returns {Node}
 */
export function chart({ run, stats }) {
  const width = drawingWidth();
  /** @type {import('./api.js').Sample[]} */
  const samples = stats.shared;
  if (samples.length === 0) return el('p', { class: 'empty' }, 'Nothing was shared, so nothing was pinned.');
  const last = Math.max(run.last_ns, samples[samples.length - 1].time_ns, 1);
  const most = ceiling(Math.max(stats.peak.pinned_bytes, ...samples.map((sample) => sample.pinned_bytes)));
  const x = (/** @type {number} */ ns) => LEFT + (ns / last) * (width - LEFT - 8);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);

  let line = `M${x(0).toFixed(1)} ${y(0)}`;
  for (const sample of samples) line += `H${x(sample.time_ns).toFixed(1)}V${y(sample.pinned_bytes).toFixed(1)}`;
  line += `H${x(last).toFixed(1)}`;
  const marks = [0, 0.5, 1].map((part) => part * most);
  const moments = (width < 480 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((part) => part * last);
  const peak = stats.peak;
  const label = `Pinned bytes over ${span(last)}: at most ${bytes(peak.pinned_bytes)}, at ${moment(peak.time_ns)}`;

  const cross = svg('line', { class: 'cross', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
  const caption = el('p', { class: 'caption faint' }, label.replace('Pinned bytes over', 'Over'), '.');
  const picture = svg(
    'svg',
    { viewBox: `0 0 ${width} ${HEIGHT}`, class: 'chart', role: 'img', 'aria-label': label },
    marks.map((mark) => [
      svg('line', { class: 'grid', x1: LEFT, x2: width - 8, y1: y(mark), y2: y(mark) }),
      svg('text', { x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end' }, mark === 0 ? '0' : bytes(mark)),
    ]),
    moments.map((ns, index) =>
      svg(
        'text',
        { x: x(ns), y: HEIGHT - 6, 'text-anchor': index === 0 ? 'start' : index === moments.length - 1 ? 'end' : 'middle' },
        span(ns),
      ),
    ),
    svg('path', { class: 'area', d: `${line}V${y(0)}Z` }),
    svg('path', { class: 'line', d: line }),
    peak.pinned_bytes > 0 && svg('circle', { class: 'peak', cx: x(peak.time_ns), cy: y(peak.pinned_bytes), r: 3.5 }),
    cross,
  );
  const at = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const part = (((event.clientX - box.left) / box.width) * width - LEFT) / (width - LEFT - 8);
    return Math.min(Math.max(part, 0), 1) * last;
  };
  picture.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const ns = at(event);
    const sample = samples.findLast((sample) => sample.time_ns <= ns);
    cross.setAttribute('x1', String(x(ns)));
    cross.setAttribute('x2', String(x(ns)));
    cross.setAttribute('visibility', 'visible');
    caption.textContent = sample
      ? `${moment(sample.time_ns)}: ${bytes(sample.pinned_bytes)} pinned, ${figure(total(sample.handles))} handles not put, ${figure(total(sample.opened))} open`
      : `${moment(ns)}: nothing was shared yet`;
  });
  picture.addEventListener('pointerleave', () => {
    cross.setAttribute('visibility', 'hidden');
    caption.textContent = `${label.replace('Pinned bytes over', 'Over')}.`;
  });
  picture.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    const ns = at(event);
    const from = Math.max(0, Math.round(ns - last / 20));
    location.hash = href('timeline', '', { from, to: Math.min(last, from + Math.round(last / 10)) });
  });

  const step = Math.ceil(samples.length / ROWS);
  const rows = samples.filter((_, index) => index % step === 0);
  return el(
    'figure',
    {},
    picture,
    caption,
    el(
      'details',
      { 'data-key': 'pinned-table' },
      el('summary', {}, 'As a table', step > 1 && ` (one in ${step} of ${samples.length} samples)`),
      grid(
        'Pinned bytes over time',
        [
          { name: 'time', cell: (sample) => when(sample.time_ns) },
          { name: 'pinned', number: true, cell: (sample) => size(sample.pinned_bytes) },
          { name: 'handles not put', number: true, cell: (sample) => figure(total(sample.handles)) },
          { name: 'open', number: true, cell: (sample) => figure(total(sample.opened)) },
        ],
        rows,
      ),
    ),
  );
}
