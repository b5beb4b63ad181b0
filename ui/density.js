/**
 * How many lifetimes of a process overlap each pixel. The begins and the ends of a process are sorted once, so that any part of the run
 * is counted without looking at every lifetime.
 */

/** The position of the first of these sorted numbers that is greater than `value`. @param {Float64Array} sorted @param {number} value */
export function above(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Density {
  /** @param {import('./lifetimes.js').Lifetimes} lifetimes @param {Uint32Array} members */
  constructor(lifetimes, members) {
    this.begins = new Float64Array(members.length);
    this.ends = new Float64Array(members.length);
    for (let i = 0; i < members.length; i++) {
      this.begins[i] = lifetimes.from[members[i]];
      this.ends[i] = lifetimes.to[members[i]];
    }
    this.begins.sort();
    this.ends.sort();
  }

  /**
   * The number of lifetimes that overlap each of `count` equal parts of a time span.
   * @param {number} from
   * @param {number} to
   * @param {number} count
   * @returns {Float64Array}
   */
  overlaps(from, to, count) {
    const step = (to - from) / count;
    const found = new Float64Array(count);
    for (let at = 0; at < count; at++) {
      const [left, right] = [from + at * step, from + (at + 1) * step];
      found[at] = above(this.begins, right) - above(this.ends, left);
    }
    return found;
  }
}
