/**
 * What the parts of the timeline share: the run, the lifetimes that are shown, what is selected, and the visible part. Draws nothing.
 */
import { inOrder, nameOf } from './run.js';

export class TimelineState {
  /** @param {import('./run.js').RunData} data @param {URLSearchParams} query */
  constructor(data, query) {
    this.data = data;
    this.query = query;
    /** @type {import('./lifetimes.js').Lifetimes | null} */
    this.lifetimes = null;
    /** The lifetimes that match the filters. @type {Uint32Array} */
    this.chosen = new Uint32Array(0);
    /** @type {import('./lanes.js').Layout} */
    this.layout = { rows: [], rowOf: new Int32Array(0), headOf: new Int32Array(0), groups: [] };
    /** The lifetime that is selected, or -1. */
    this.selected = -1;
    /** The mistakes, and those of each lifetime. @type {import('./marks.js').Instant[]} */
    this.instants = [];
    /** @type {Map<number, import('./marks.js').Instant[]>} */
    this.ofLifetime = new Map();
    /** The mistake that is selected. @type {import('./marks.js').Instant | null} */
    this.instant = null;
    /** The part that the timeline begins with. */
    this.begin = { from: 0, to: this.runLength() };
    /** Whether the right edge follows the end of the run. */
    this.following = data.run.running;
    /** @type {import('./painter.js').Viewport} */
    this.viewport = { ...this.begin, top: 0, width: 0, height: 0, gutter: 240, last: this.runLength() };
  }

  runLength() {
    return Math.max(this.data.run.last_ns, 1);
  }

  /** The processes in the order of all lists. */
  order() {
    return inOrder(this.data.run).map(({ index }) => index);
  }

  /** A choice that the address holds. @param {string} name */
  value(name) {
    return this.query.get(name) ?? '';
  }

  /** The name of a lifetime in the address. @param {number} lifetime */
  nameOf(lifetime) {
    return lifetime >= 0 && this.lifetimes ? this.lifetimes.name(lifetime) : null;
  }

  /** The name of the selected mistake's finding in the address. */
  nameOfFinding() {
    return this.instant ? nameOf(this.data.check.findings, this.instant.finding) : null;
  }
}
