/**
 * Assigns each lifetime to a lane of the timeline. The lifetimes of one export (an allocation's handle data and what was opened
 * with it) are adjacent: first its handles, then its openings. Exports are grouped by the process that got them. No two lifetimes
 * in a lane overlap, so a lane can be searched by bisection. Draws nothing.
 */

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
 * @typedef {{group: number, lifetimes: number[], opening: boolean, marks: number[], head: boolean, one: boolean}} Row
 *   `group` is the process that the row belongs to; a head has no lifetimes; `marks` are the lifetimes with findings;
 *   `one` is true if all handles of the row have the same address, or all openings the same process
 * @typedef {{rows: Row[], rowOf: Int32Array, groups: {process: number, lifetimes: number}[]}} Layout
 */

/**
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {Uint32Array} chosen
 * @param {{packed: boolean, closed: Set<number>}} how  packed: exports that do not overlap share lanes
 * @returns {Layout}
 */
export function layOut(lifetimes, chosen, { packed, closed }) {
  /** @type {Map<number, {owner: number, from: number, to: number, lifetimes: number[], owned: boolean}>} */
  const blocks = new Map();
  for (const lifetime of chosen) {
    const key = lifetimes.export[lifetime];
    let block = blocks.get(key);
    if (!block) {
      block = { owner: lifetimes.process[lifetime], from: lifetimes.from[lifetime], to: 0, lifetimes: [], owned: false };
      blocks.set(key, block);
    }
    if (!lifetimes.opening[lifetime] && !block.owned) {
      block.owner = lifetimes.process[lifetime];
      block.owned = true;
    }
    block.to = Math.max(block.to, lifetimes.to[lifetime]);
    block.lifetimes.push(lifetime);
  }

  /** @type {Map<number, {slots: {handles: LaneGroup, openings: LaneGroup}[], free: Heap, lifetimes: number}>} */
  const groups = new Map();
  for (const block of blocks.values()) {
    let group = groups.get(block.owner);
    if (!group) {
      group = { slots: [], free: new Heap(), lifetimes: 0 };
      groups.set(block.owner, group);
    }
    const slot =
      (packed && group.free.take(block.from)) ||
      group.slots[group.slots.push({ handles: new LaneGroup(), openings: new LaneGroup() }) - 1];
    for (const lifetime of block.lifetimes) {
      (lifetimes.opening[lifetime] ? slot.openings : slot.handles).add(
        lifetime,
        lifetimes.from[lifetime],
        lifetimes.to[lifetime],
      );
    }
    group.lifetimes += block.lifetimes.length;
    if (packed) group.free.put(block.to, slot);
  }

  /** @type {Row[]} */
  const rows = [];
  const rowOf = new Int32Array(lifetimes.size).fill(-1);
  const order = [...groups.keys()].sort((a, b) => a - b);
  for (const process of order) {
    const group = groups.get(process);
    if (!group) continue;
    rows.push({ group: process, lifetimes: [], opening: false, marks: [], head: true, one: true });
    if (closed.has(process)) continue;
    for (const { handles, openings } of group.slots) {
      for (const laneGroup of [handles, openings]) {
        for (const lane of laneGroup.lanes) {
          for (const lifetime of lane) rowOf[lifetime] = rows.length;
          const opening = laneGroup === openings;
          const one = lane.every((lifetime) =>
            opening
              ? lifetimes.process[lifetime] === lifetimes.process[lane[0]]
              : lifetimes.address[lifetime] === lifetimes.address[lane[0]],
          );
          rows.push({
            group: process,
            lifetimes: lane,
            opening,
            marks: lane.filter((lifetime) => lifetimes.findings.has(lifetime)),
            head: false,
            one,
          });
        }
      }
    }
  }
  return { rows, rowOf, groups: order.map((process) => ({ process, lifetimes: groups.get(process)?.lifetimes ?? 0 })) };
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
