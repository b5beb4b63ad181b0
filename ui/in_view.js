/**
 * What is in the visible part of the timeline while nothing is selected: which call sites held how many bytes.
 */
import { el, swap } from './dom.js';
import { bytes, count, figure, span } from './format.js';
import { grid } from './grid.js';
import { keyList } from './help.js';

/** How many call sites are listed. */
const SITES = 12;
/** With more lifetimes in view than this, the sum would take longer than a frame or two. */
const MOST = 200_000;

/**
 * @typedef {{site: string, lifetimes: number, most: number}} Held  `most` is the largest number of bytes at one moment
 */

/**
 * What each call site held in a time span, the most first.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {ArrayLike<number>} chosen
 * @param {number} from
 * @param {number} to
 * @returns {Held[] | null} null if there are too many lifetimes
 */
export function heldBySite(lifetimes, chosen, from, to) {
  /** The changes of each site: times and bytes. @type {Map<string, [number, number][]>} */
  const changes = new Map();
  let seen = 0;
  for (let i = 0; i < chosen.length; i++) {
    const lifetime = chosen[i];
    if (lifetimes.from[lifetime] > to || lifetimes.to[lifetime] < from) continue;
    if (++seen > MOST) return null;
    const site = `${lifetimes.opening[lifetime] ? 'opened' : 'got'} in ${lifetimes.site(lifetime) ?? 'an unknown place'}`;
    const known = changes.get(site) ?? [];
    changes.set(site, known);
    known.push([Math.max(from, lifetimes.from[lifetime]), lifetimes.bytes[lifetime]]);
    known.push([Math.min(to, lifetimes.to[lifetime]), -lifetimes.bytes[lifetime]]);
  }
  const held = [...changes].map(([site, list]) => {
    // What ends when another one begins is still there.
    list.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    let [now, most] = [0, 0];
    for (const [, change] of list) {
      now += change;
      most = Math.max(most, now);
    }
    return { site, lifetimes: list.length / 2, most };
  });
  return held.sort((a, b) => b.most - a.most || b.lifetimes - a.lifetimes);
}

/**
 * @param {HTMLElement} aside
 * @param {import('./lifetimes.js').Lifetimes | null} lifetimes
 * @param {ArrayLike<number>} chosen
 * @param {import('./painter.js').Viewport} viewport
 * @param {Parameters<typeof keyList>[0]} keys
 */
export function nothingSelected(aside, lifetimes, chosen, { from, to }, keys) {
  const held = lifetimes && heldBySite(lifetimes, chosen, from, to);
  swap(
    aside,
    el('h2', {}, 'Nothing selected'),
    el('p', {}, 'Click a mark to go to a mistake, a process to open its lanes, a lifetime to see its history. Drag to zoom.'),
    held &&
      held.length > 0 && [
        el('h3', {}, `Held in the ${span(to - from)} in view`),
        grid(
          'Held in view, by call site',
          [
            { name: 'call site', cell: (one) => el('code', {}, one.site) },
            { name: 'times', number: true, cell: (one) => figure(one.lifetimes) },
            { name: 'at most', number: true, cell: (one) => (one.most > 0 ? bytes(one.most) : null) },
          ],
          held.slice(0, SITES),
        ),
        held.length > SITES && el('p', { class: 'faint' }, `and ${count(held.length - SITES, 'more call site')}`),
      ],
    keyList(keys),
    el('p', { class: 'faint' }, 'All keys: ', el('kbd', {}, '?')),
  );
}
