/**
 * The chart of pinned bytes over time. A click leads to that moment on the timeline. The figures are also in a table.
 */
import { drawingWidth, el, svg } from './dom.js';
import { bytes, figure, moment, roundStep, size, span, tickLabel, ticks, when } from './format.js';
import { grid } from './grid.js';
import { href } from './router.js';

const HEIGHT = 150;
const LEFT = 62;
const BOTTOM = 22;
const TOP = 10;
/** At most this many samples are in the table. */
const ROWS = 40;

/** How many lines the grid has above 0, at most. */
const LINES = 4;

/** Round numbers of bytes from 0 to the first that is not less than `most`. */
function marksUpTo(/** @type {number} */ most) {
  let step = 1;
  while (step * LINES < most) step *= 2;
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, index) => index * step);
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
  const marks = marksUpTo(samples.reduce((most, sample) => Math.max(most, sample.pinned_bytes), stats.peak.pinned_bytes));
  const most = marks[marks.length - 1];
  // Nothing is pinned while the programs start: the chart begins shortly before that.
  const begin = Math.max(0, samples[0].time_ns - (last - samples[0].time_ns) * 0.05);
  const x = (/** @type {number} */ ns) => LEFT + ((ns - begin) / (last - begin)) * (width - LEFT - 8);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);

  let line = `M${x(begin).toFixed(1)} ${y(0)}`;
  for (const sample of samples) line += `H${x(sample.time_ns).toFixed(1)}V${y(sample.pinned_bytes).toFixed(1)}`;
  line += `H${x(last).toFixed(1)}`;
  const across = width < 480 ? 3 : 6;
  const step = roundStep(last - begin, across);
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
    ticks(begin, last, across).map((ns) =>
      svg(
        'text',
        { x: x(ns), y: HEIGHT - 6, 'text-anchor': x(ns) < LEFT + 20 ? 'start' : x(ns) > width - 40 ? 'end' : 'middle' },
        tickLabel(ns, step),
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
    return begin + Math.min(Math.max(part, 0), 1) * (last - begin);
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
    const from = Math.max(0, Math.round(ns - (last - begin) / 20));
    location.hash = href('timeline', '', { from, to: Math.min(last, from + Math.round((last - begin) / 10)) });
  });

  const every = Math.ceil(samples.length / ROWS);
  const rows = samples.filter((_, index) => index % every === 0);
  return el(
    'figure',
    {},
    picture,
    caption,
    el(
      'details',
      { 'data-key': 'pinned-table' },
      el('summary', {}, 'As a table', every > 1 && ` (one in ${every} of ${samples.length} samples)`),
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
