/**
 * Which life is drawn in which lane. Lives of one export (an allocation's handle data, and what was opened with it) stand
 * together: its handles first, its openings under them; exports stand under the process that got them. No two lives in a
 * lane overlap, so a lane is searched by halving. Draws nothing.
 */

/** The end that comes first on top. */
class Heap {
  constructor() {
    /** @type {{end: number, value: any}[]} */ this.items = [];
  }

  /** Takes the value whose end is the earliest, if that is not after `time`. @param {number} time */
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

/** Lanes in which lives follow each other. */
class Bundle {
  constructor() {
    /** @type {number[][]} */ this.lanes = [];
    this.free = new Heap();
  }

  /** @param {number} life @param {number} from @param {number} to */
  add(life, from, to) {
    const lane = this.free.take(from) ?? this.lanes[this.lanes.push([]) - 1];
    lane.push(life);
    this.free.put(to, lane);
  }
}

/**
 * @typedef {{group: number, lives: number[], opening: boolean, marks: number[], head: boolean, one: boolean}} Row
 *   `group` is the process it stands under; a head has no lives of its own; `marks` are those that findings are about;
 *   `one` says that all handles of it have one address, or all openings one process
 * @typedef {{rows: Row[], rowOf: Int32Array, groups: {process: number, lives: number}[]}} Layout
 */

/**
 * @param {import('./lifetimes.js').Lives} lives
 * @param {Uint32Array} chosen
 * @param {{packed: boolean, closed: Set<number>}} how  packed: exports that follow each other share lanes
 * @returns {Layout}
 */
export function lay(lives, chosen, { packed, closed }) {
  /** @type {Map<number, {owner: number, from: number, to: number, lives: number[], owned: boolean}>} */
  const blocks = new Map();
  for (const life of chosen) {
    const key = lives.export[life];
    let block = blocks.get(key);
    if (!block) {
      block = { owner: lives.process[life], from: lives.from[life], to: 0, lives: [], owned: false };
      blocks.set(key, block);
    }
    if (!lives.opening[life] && !block.owned) {
      block.owner = lives.process[life];
      block.owned = true;
    }
    block.to = Math.max(block.to, lives.to[life]);
    block.lives.push(life);
  }

  /** @type {Map<number, {slots: {handles: Bundle, openings: Bundle}[], free: Heap, lives: number}>} */
  const groups = new Map();
  for (const block of blocks.values()) {
    let group = groups.get(block.owner);
    if (!group) {
      group = { slots: [], free: new Heap(), lives: 0 };
      groups.set(block.owner, group);
    }
    const slot =
      (packed && group.free.take(block.from)) ||
      group.slots[group.slots.push({ handles: new Bundle(), openings: new Bundle() }) - 1];
    for (const life of block.lives) {
      (lives.opening[life] ? slot.openings : slot.handles).add(life, lives.from[life], lives.to[life]);
    }
    group.lives += block.lives.length;
    if (packed) group.free.put(block.to, slot);
  }

  /** @type {Row[]} */
  const rows = [];
  const rowOf = new Int32Array(lives.size).fill(-1);
  const order = [...groups.keys()].sort((a, b) => a - b);
  for (const process of order) {
    const group = groups.get(process);
    if (!group) continue;
    rows.push({ group: process, lives: [], opening: false, marks: [], head: true, one: true });
    if (closed.has(process)) continue;
    for (const { handles, openings } of group.slots) {
      for (const bundle of [handles, openings]) {
        for (const lane of bundle.lanes) {
          for (const life of lane) rowOf[life] = rows.length;
          const opening = bundle === openings;
          const one = lane.every((life) =>
            opening ? lives.process[life] === lives.process[lane[0]] : lives.address[life] === lives.address[lane[0]],
          );
          rows.push({
            group: process,
            lives: lane,
            opening,
            marks: lane.filter((life) => lives.findings.has(life)),
            head: false,
            one,
          });
        }
      }
    }
  }
  return { rows, rowOf, groups: order.map((process) => ({ process, lives: groups.get(process)?.lives ?? 0 })) };
}

/**
 * The place of the first life of a lane that ends after `time`.
 * @param {Float64Array} ends
 * @param {number[]} lane
 * @param {number} time
 * @param {number} [from]  where to begin
 */
export function after(ends, lane, time, from = 0) {
  // What is looked for is often near: steps are doubled until it is passed, and then halved.
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
