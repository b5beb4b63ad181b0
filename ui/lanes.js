/**
 * Assigns lifetimes to the rows of the timeline. Each process has a row of its own, in the order of ranks, which shows how many of its
 * lifetimes there are at each moment. Where it is open, lanes follow: the lifetimes of one export (an allocation's handle data and what
 * was opened with it) are adjacent, first its handles, then its openings. No two lifetimes in a lane overlap, so a lane can be searched by
 * bisection. Draws nothing.
 */

/** How much of a process is shown: its own row, also the lanes of findings, or all lanes. */
export const SHUT = 0;
export const FOUND = 1;
export const OPEN = 2;

/** A min-heap by end time. */
class Heap {
  constructor() {
    /** @type {{end: number, value: any}[]} */ this.items = [];
  }

  /** Removes and returns the value with the earliest end, if that is not after `time`. @param {number} time */
  take(time) {
    const { items } = this;
    const top = items[0];
    if (!top || top.end > time) return undefined;
    const last = items.pop();
    if (items.length > 0 && last) {
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= items.length) break;
        if (child + 1 < items.length && items[child + 1].end < items[child].end) child++;
        if (items[child].end >= last.end) break;
        items[at] = items[child];
        at = child;
      }
      items[at] = last;
    }
    return top.value;
  }

  /** @param {number} end @param {any} value */
  put(end, value) {
    const { items } = this;
    let at = items.length;
    items.push({ end, value });
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent].end <= end) break;
      items[at] = items[parent];
      at = parent;
    }
    items[at] = { end, value };
  }
}

/** Lanes that are reused: a lifetime takes a lane whose last lifetime has ended. */
class LaneGroup {
  constructor() {
    /** @type {number[][]} */ this.lanes = [];
    this.free = new Heap();
  }

  /** @param {number} lifetime @param {number} from @param {number} to */
  add(lifetime, from, to) {
    const lane = this.free.take(from) ?? this.lanes[this.lanes.push([]) - 1];
    lane.push(lifetime);
    this.free.put(to, lane);
  }
}

/**
 * @typedef {{process: number, members: Uint32Array, exports: number, found: number}} Group  the lifetimes of one process: of what it
 *   exported, with what others opened of that; how many exports they are of, and how many lifetimes have findings
 */

/**
 * Groups lifetimes by the process that exported them, in the order of `order`.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {Uint32Array} chosen
 * @param {number[]} order  all processes
 * @returns {Group[]}
 */
export function grouped(lifetimes, chosen, order) {
  let most = -1;
  for (const lifetime of chosen) most = Math.max(most, lifetimes.export[lifetime]);
  /** The process of each export: the one that got its first handle, or else the first that opened it. */
  const owners = new Int32Array(most + 1).fill(-1);
  const owned = new Uint8Array(most + 1);
  for (const lifetime of chosen) {
    const key = lifetimes.export[lifetime];
    if (key < 0 || owned[key]) continue;
    if (!lifetimes.opening[lifetime]) owned[key] = 1;
    if (owners[key] < 0 || owned[key]) owners[key] = lifetimes.process[lifetime];
  }
  const owner = (/** @type {number} */ lifetime) =>
    lifetimes.export[lifetime] < 0 ? lifetimes.process[lifetime] : owners[lifetimes.export[lifetime]];
  const last = Math.max(-1, ...order);
  const counts = new Uint32Array(last + 2);
  const exports = new Uint32Array(last + 1);
  const found = new Uint32Array(last + 1);
  for (const lifetime of chosen) {
    const process = owner(lifetime);
    counts[process + 1]++;
    if (lifetimes.findings.has(lifetime)) found[process]++;
    const key = lifetimes.export[lifetime];
    if (key < 0) exports[process]++;
    else if (owned[key] < 2) {
      owned[key] = 2;
      exports[process]++;
    }
  }
  for (let process = 1; process < counts.length; process++) counts[process] += counts[process - 1];
  const places = counts.slice();
  const members = new Uint32Array(chosen.length);
  for (const lifetime of chosen) members[places[owner(lifetime)]++] = lifetime;
  return order
    .map((process) => ({
      process,
      members: members.subarray(counts[process], counts[process + 1]),
      exports: exports[process],
      found: found[process],
    }))
    .filter((group) => group.members.length > 0);
}

/**
 * @typedef {{group: number, lifetimes: number[], opening: boolean, marks: number[], head: boolean, one: boolean}} Row
 *   `group` is the position of the group that the row belongs to; the row of a process itself has no lifetimes; `marks` are the
 *   lifetimes with findings; `one` is true if all handles of the row have the same address, or all openings the same process
 * @typedef {{rows: Row[], rowOf: Int32Array, headOf: Int32Array, groups: Group[]}} Layout
 *   the rows of lifetimes, and the rows of processes, or -1
 */

/**
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {Group[]} groups
 * @param {{packed: boolean, mode: (group: Group) => number, order: number[]}} how  packed: exports that do not overlap share lanes;
 *   order: all processes
 * @returns {Layout}
 */
export function layOut(lifetimes, groups, { packed, mode, order }) {
  const processes = Math.max(-1, ...order) + 1;
  /** @type {Row[]} */
  const rows = [];
  const rowOf = new Int32Array(lifetimes.size).fill(-1);
  const headOf = new Int32Array(processes).fill(-1);
  const places = new Int32Array(processes);
  order.forEach((process, place) => {
    places[process] = place;
  });
  const placeOf = (/** @type {number[]} */ lane) => places[lifetimes.process[lane[0]]];
  groups.forEach((group, at) => {
    headOf[group.process] = rows.length;
    rows.push({ group: at, lifetimes: [], opening: false, marks: [], head: true, one: true });
    const how = mode(group);
    if (how === SHUT) return;
    for (const { handles, openings } of slots(lifetimes, group, packed && how === OPEN, how === FOUND)) {
      openings.lanes.sort((a, b) => placeOf(a) - placeOf(b));
      for (const laneGroup of [handles, openings]) {
        for (const lane of laneGroup.lanes) {
          for (const lifetime of lane) rowOf[lifetime] = rows.length;
          const opening = laneGroup === openings;
          const one = lane.every((lifetime) =>
            opening
              ? lifetimes.process[lifetime] === lifetimes.process[lane[0]]
              : lifetimes.addresses[2 * lifetime] === lifetimes.addresses[2 * lane[0]] &&
                lifetimes.siteAt[lifetime] === lifetimes.siteAt[lane[0]],
          );
          const marks = lane.filter((lifetime) => lifetimes.findings.has(lifetime));
          rows.push({ group: at, lifetimes: lane, opening, marks, head: false, one });
        }
      }
    }
  });
  return { rows, rowOf, headOf, groups };
}

/**
 * The lanes of a process.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {Group} group
 * @param {boolean} packed
 * @param {boolean} found  only exports with findings
 */
function slots(lifetimes, group, packed, found) {
  /** @type {Map<number, {from: number, to: number, lifetimes: number[], found: boolean}>} */
  const blocks = new Map();
  for (const lifetime of group.members) {
    // An opening whose producer was not traced is an export of its own.
    const key = lifetimes.export[lifetime] >= 0 ? lifetimes.export[lifetime] : -1 - lifetime;
    let block = blocks.get(key);
    if (!block) {
      block = { from: lifetimes.from[lifetime], to: 0, lifetimes: [], found: false };
      blocks.set(key, block);
    }
    // The memory is drawn in the lane of its handle.
    block.from = Math.min(block.from, lifetimes.allocated[lifetime]);
    const freed = lifetimes.allocated[lifetime] === Infinity ? 0 : lifetimes.freed[lifetime];
    block.to = Math.max(block.to, lifetimes.to[lifetime], freed);
    block.found ||= lifetimes.findings.has(lifetime);
    block.lifetimes.push(lifetime);
  }
  const wanted = [...blocks.values()].filter((block) => !found || block.found);
  if (packed) wanted.sort((a, b) => a.from - b.from);
  const free = new Heap();
  /** @type {{handles: LaneGroup, openings: LaneGroup}[]} */
  const all = [];
  for (const block of wanted) {
    const slot = (packed && free.take(block.from)) || all[all.push({ handles: new LaneGroup(), openings: new LaneGroup() }) - 1];
    for (const lifetime of block.lifetimes) {
      (lifetimes.opening[lifetime] ? slot.openings : slot.handles).add(
        lifetime,
        lifetimes.from[lifetime],
        lifetimes.to[lifetime],
      );
    }
    if (packed) free.put(block.to, slot);
  }
  return all;
}

/**
 * The position of the first lifetime of a lane that ends after `time`.
 * @param {Float64Array} ends
 * @param {number[]} lane
 * @param {number} time
 * @param {number} [from]  where to begin
 */
export function after(ends, lane, time, from = 0) {
  // The position is often near `from`: double the step until it is passed, then bisect.
  let step = 1;
  let low = from;
  while (low + step < lane.length && ends[lane[low + step]] <= time) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, lane.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[lane[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
