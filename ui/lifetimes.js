/**
 * The lifetimes of handles and openings. They are stored in columns: a hundred thousand lifetimes are a few arrays, not objects.
 */
import { ask } from './api.js';

const PAGE = 50_000;
/** At most this many are fetched, to bound the browser's memory. The page says when there are more. */
export const MOST = 500_000;

/** The classes of kinds, each with its own colour. */
const KIND_CLASSES = [
  ['event', /event/],
  ['physical', /phys/],
  ['memory', /./],
];
export const kindClass = (/** @type {string} */ kind) =>
  /** @type {string} */ (KIND_CLASSES.find(([, words]) => /** @type {RegExp} */ (words).test(kind))?.[0]);

/** All lifetimes of a run, sorted by their begin. */
export class Lifetimes {
  /** @param {number} size */
  constructor(size) {
    this.size = 0;
    this.total = 0;
    /** @type {string[]} */ this.kinds = [];
    /** @type {string[]} */ this.endings = [];
    this.process = new Int32Array(size);
    this.opening = new Uint8Array(size);
    this.kind = new Uint8Array(size);
    this.export = new Float64Array(size);
    this.from = new Float64Array(size);
    /** Infinity if it is still alive. */
    this.to = new Float64Array(size);
    this.ending = new Uint8Array(size);
    this.bytes = new Float64Array(size);
    /** @type {string[]} */ this.address = [];
    /** @type {(string | null)[]} */ this.fingerprint = [];
    /** The findings that concern a lifetime, if there are any. @type {Map<number, number[]>} */
    this.findings = new Map();
  }

  /** @param {any} answer  an answer to api/lives */
  append({ total, kinds, how, columns }) {
    this.total = total;
    this.kinds = kinds;
    this.endings = how;
    const room = Math.min(columns.id.length, this.from.length - this.size);
    for (let i = 0; i < room; i++) {
      const at = this.size + i;
      this.process[at] = columns.process[i];
      this.opening[at] = columns.lane[i];
      this.kind[at] = columns.kind[i];
      // An opening whose producer was not traced is an export of its own.
      this.export[at] = columns.export[i] ?? -1 - at;
      this.from[at] = columns.from_ns[i];
      this.to[at] = columns.to_ns[i] ?? Infinity;
      this.ending[at] = columns.how[i];
      this.bytes[at] = columns.bytes[i] ?? 0;
      this.address.push(columns.address[i]);
      this.fingerprint.push(columns.fingerprint[i]);
      if (columns.findings[i].length > 0) this.findings.set(at, columns.findings[i]);
    }
    this.size += room;
  }

  /** The name of a lifetime in the address of the page. @param {number} lifetime */
  name(lifetime) {
    return `${this.process[lifetime]}.${this.opening[lifetime]}.${this.from[lifetime]}`;
  }

  /** The lifetime with this name, or -1. @param {string} name */
  named(name) {
    const from = Number(name.split('.')[2]);
    for (let lifetime = this.first(from); lifetime < this.size && this.from[lifetime] === from; lifetime++) {
      if (this.name(lifetime) === name) return lifetime;
    }
    return -1;
  }

  /** The first lifetime that begins at `ns` or later. @param {number} ns */
  first(ns) {
    let [low, high] = [0, this.size];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.from[middle] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first lifetime with this fingerprint or address, or -1. @param {string} word */
  known(word) {
    const bytes = this.fingerprint.indexOf(word);
    return bytes >= 0 ? bytes : this.address.indexOf(word);
  }

  /**
   * The lifetimes that match a filter, in order of time.
   * @param {{kind?: string, process?: string, rule?: string, q?: string}} filter
   * @param {import('./api.js').Finding[]} findings
   * @returns {Uint32Array}
   */
  chosen({ kind, process, rule, q }, findings) {
    const kindWanted = kind ? this.kinds.map((name) => name === kind || kindClass(name) === kind) : null;
    const processWanted = process ? Number(process) : null;
    // An opening is shown with the handle that it opened and vice versa: otherwise the sharing is not visible.
    const exports = processWanted === null ? null : new Set();
    if (exports)
      for (let lifetime = 0; lifetime < this.size; lifetime++)
        if (this.process[lifetime] === processWanted) exports.add(this.export[lifetime]);
    const word = q?.toLowerCase();
    const found = new Uint32Array(this.size);
    let count = 0;
    for (let lifetime = 0; lifetime < this.size; lifetime++) {
      if (kindWanted && !kindWanted[this.kind[lifetime]]) continue;
      if (exports && !exports.has(this.export[lifetime])) continue;
      if (rule && !this.findings.get(lifetime)?.some((index) => rule === 'any' || findings[index]?.rule === rule)) continue;
      if (word && !this.address[lifetime].includes(word) && !this.fingerprint[lifetime]?.includes(word)) continue;
      found[count++] = lifetime;
    }
    return found.slice(0, count);
  }
}

/**
 * Fetches all lifetimes, page by page.
 * @param {number} expected  the number of lifetimes in the run
 * @param {(lifetimes: Lifetimes) => void} more  called after each page but the last
 * @returns {Promise<Lifetimes>}
 */
export async function fetchLifetimes(expected, more) {
  let lifetimes = new Lifetimes(Math.min(expected, MOST));
  let generation = null;
  for (;;) {
    const answer = await ask('lives', { offset: lifetimes.size, limit: PAGE });
    if (generation !== null && answer.generation !== generation) {
      // The run grew between two pages: the pages so far do not match the rest. Start again.
      lifetimes = new Lifetimes(Math.min(answer.total, MOST));
      generation = null;
      continue;
    }
    generation = answer.generation;
    if (lifetimes.size === 0 && answer.total > lifetimes.from.length) lifetimes = new Lifetimes(Math.min(answer.total, MOST));
    lifetimes.append(answer);
    if (answer.columns.id.length === 0 || lifetimes.size >= Math.min(answer.total, MOST)) return lifetimes;
    more(lifetimes);
  }
}
