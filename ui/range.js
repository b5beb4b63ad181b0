/**
 * The visible part of the timeline: zooming, panning, and the part that it begins with.
 */

/** The shortest visible range, in nanoseconds. */
export const CLOSEST = 200;
/** How much is shown on each side of the activity, as a part of it. */
const MARGIN = 0.04;

/**
 * The part that a timeline begins with: where something is shared, or the whole run if that is most of it.
 * @param {{first: number, last: number} | null} activity
 * @param {number} length  of the run, in nanoseconds
 */
export function home(activity, length) {
  if (!activity) return { from: 0, to: length };
  const margin = Math.max((activity.last - activity.first) * MARGIN, CLOSEST);
  const [from, to] = [Math.max(0, activity.first - margin), Math.min(length, activity.last + margin)];
  return to - from > 0.98 * length ? { from: 0, to: length } : { from: Math.round(from), to: Math.round(to) };
}

/**
 * Sets the visible range, within the run and not shorter than the shortest.
 * @param {import('./painter.js').Viewport} viewport
 * @param {number} from
 * @param {number} to
 * @param {number} length
 */
export function setRange(viewport, from, to, length) {
  const shown = Math.min(Math.max(to - from, CLOSEST), length);
  viewport.from = Math.min(Math.max(from, 0), length - shown);
  viewport.to = viewport.from + shown;
}
