/**
 * Finds lifetimes by their positions in the lanes of the timeline. The answers are -1 where there is none.
 */
import { after } from './lanes.js';

/** How many lifetimes near a position are compared. */
const COMPARED = 64;

/**
 * The next lifetime in the order of lanes, or the first that is visible.
 * @param {import('./lanes.js').Layout} layout
 * @param {number} selected
 * @param {number} by  1 or -1
 * @param {number} first  the first visible row
 */
export function neighbour(layout, selected, by, first) {
  const { rows, rowOf } = layout;
  let row = selected >= 0 ? rowOf[selected] : by > 0 ? first : rows.length;
  let at = selected >= 0 && row >= 0 ? rows[row].lifetimes.indexOf(selected) + by : by > 0 ? 0 : -1;
  row = Math.max(row, 0);
  while (row >= 0 && row < rows.length && rows[row].lifetimes[at] === undefined) {
    row += by;
    at = by > 0 ? 0 : (rows[row]?.lifetimes.length ?? 0) - 1;
  }
  return rows[row]?.lifetimes[at] ?? -1;
}

/**
 * The lifetime that is nearest in time in another lane; without a selection, the first.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {import('./lanes.js').Layout} layout
 * @param {number} selected
 * @param {number} by  1 or -1
 */
export function inOtherLane(lifetimes, layout, selected, by) {
  if (selected < 0) return neighbour(layout, selected, by, 0);
  for (let row = layout.rowOf[selected] + by; row >= 0 && row < layout.rows.length; row += by) {
    const lane = layout.rows[row].lifetimes;
    if (lane.length > 0) return lane[Math.min(after(lifetimes.to, lane, lifetimes.from[selected]), lane.length - 1)];
  }
  return -1;
}

/**
 * The lifetime of a row that is nearest to a moment.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {import('./lanes.js').Row} row
 * @param {number} first  no lifetime that ends before this
 * @param {number} now
 * @param {number} last  no lifetime that begins after this
 */
export function nearest(lifetimes, row, first, now, last) {
  const at = after(lifetimes.to, row.lifetimes, first);
  let best = -1;
  let distance = Infinity;
  for (const lifetime of row.lifetimes.slice(at, at + COMPARED)) {
    if (lifetimes.from[lifetime] > last) break;
    const off = Math.max(lifetimes.from[lifetime] - now, now - lifetimes.to[lifetime], 0);
    if (off < distance) [best, distance] = [lifetime, off];
  }
  return best;
}
