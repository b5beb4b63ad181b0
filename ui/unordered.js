/**
 * Two commands of two processes that nothing orders: as a picture, and on the timeline. Each is a bar from its enqueue until its process
 * knew that it was over.
 */
import { drawingWidth, el, svg } from './dom.js';
import { span } from './format.js';
import { BAR, ROW, TOP } from './measures.js';
import { processOf, short } from './run.js';

/** The height of a command in the picture. */
const HEIGHT = 36;

/**
 * The two commands of a finding, the one that was enqueued first in front, and from when to when nothing can have ordered them; null if
 * that is not known. A bar without a known end is as long as that time.
 * @param {import('./run.js').Run} run
 * @param {import('./run.js').Finding} finding
 */
export function unordered(run, { process, other }) {
  if (!other) return null;
  const [first, second] = process.time_ns < other.time_ns ? [process, other] : [other, process];
  const to = first.known_ns ?? 0;
  if (to <= second.time_ns) return null;
  const bars = [first, second].map((side) => ({ side, from: side.time_ns, to: side.known_ns ?? to }));
  return { bars, from: second.time_ns, to, processes: bars.map(({ side }) => processOf(run, side)?.index ?? -1) };
}

/** What the bars are. @param {{from: number, to: number}} found */
export const legend = ({ from, to }) =>
  `Each command is a bar from its enqueue until its process knew that it was over. In the ${span(to - from)} that are marked, nothing orders them.`;

/** A picture of the two commands of a finding, or null. @param {import('./run.js').Run} run @param {import('./run.js').Finding} finding */
export function unorderedPicture(run, finding) {
  const found = unordered(run, finding);
  if (!found) return null;
  const { bars, from, to, processes } = found;
  const [begin, end] = [bars[0].from, Math.max(...bars.map((bar) => bar.to))];
  const width = drawingWidth();
  const x = (/** @type {number} */ ns) => ((ns - begin) / (end - begin)) * width;
  const reach = (/** @type {number} */ from, /** @type {number} */ to) => ({ x: x(from), width: Math.max(x(to) - x(from), 1) });
  const names = bars.map(
    ({ side }, at) => `${short(run, processes[at])}: ${side.function ?? 'command'}${side.known_ns ? '' : ', end not known'}`,
  );
  return el(
    'figure',
    { class: 'unordered card' },
    svg(
      'svg',
      { viewBox: `0 0 ${width} ${2 * HEIGHT}`, role: 'img', 'aria-label': `Both commands: ${names.join(' and ')}` },
      svg('rect', { class: 'between', y: 0, height: 2 * HEIGHT, ...reach(from, to) }),
      bars.map(({ side, from, to }, at) => [
        svg('text', { x: 0, y: at * HEIGHT + 13 }, names[at]),
        svg('rect', { class: side.known_ns ? null : 'unknown', y: at * HEIGHT + 20, height: 10, ...reach(from, to) }),
      ]),
    ),
    el('figcaption', { class: 'faint' }, legend(found)),
  );
}

/**
 * Paints the two commands of the selected finding at the rows of their processes, and through all rows the time between.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} ink
 * @param {import('./painter.js').Frame} frame
 */
export function paintUnordered(context, ink, { layout, lifetimes, viewport, instant }) {
  if (!instant?.unordered) return;
  const { bars, from, to, processes } = instant.unordered;
  const [left, right] = [viewport.gutter, viewport.width - BAR];
  const scale = (right - left) / (viewport.to - viewport.from);
  const x = (/** @type {number} */ ns) => Math.min(Math.max(left + (ns - viewport.from) * scale, left), right);
  const fill = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ y, /** @type {number} */ tall) => {
    if (to >= viewport.from && from <= viewport.to) context.fillRect(x(from), y, Math.max(x(to) - x(from), 1), tall);
  };
  context.fillStyle = ink[instant.severity];
  context.globalAlpha = 0.15;
  fill(from, to, TOP, viewport.height);
  context.globalAlpha = 1;
  bars.forEach(({ from, to }, at) => {
    const process = processes[at];
    // A process that exports nothing has no row of its own, but lanes of what it opened.
    const head = layout.headOf[process] ?? -1;
    const row = head >= 0 ? head : layout.rows.findIndex((row) => row.opening && lifetimes.process[row.lifetimes[0]] === process);
    if (row >= 0) fill(from, to, TOP + row * ROW - viewport.top + 2, 5);
  });
}
