/**
 * The lives of handles and openings, in columns: a hundred thousand of them are a few arrays, not as many objects.
 */
import { ask } from './api.js';

const PAGE = 50_000;
/** More are not fetched: they would fill the browser's memory. The page says so. */
export const MOST = 500_000;

/** What the kinds are shown as: one colour each. */
const FAMILIES = [
  ['event', /event/],
  ['physical', /phys/],
  ['memory', /./],
];
export const family = (/** @type {string} */ kind) =>
  /** @type {string} */ (FAMILIES.find(([, words]) => /** @type {RegExp} */ (words).test(kind))?.[0]);

/** All lives of a run, sorted by when they began. */
export class Lives {
  /** @param {number} size */
  constructor(size) {
    this.size = 0;
    this.total = 0;
    /** @type {string[]} */ this.kinds = [];
    /** @type {string[]} */ this.hows = [];
    this.process = new Int32Array(size);
    this.opening = new Uint8Array(size);
    this.kind = new Uint8Array(size);
    this.export = new Float64Array(size);
    this.from = new Float64Array(size);
    /** Infinity while it lives. */
    this.to = new Float64Array(size);
    this.how = new Uint8Array(size);
    this.bytes = new Float64Array(size);
    /** @type {string[]} */ this.address = [];
    /** @type {(string | null)[]} */ this.fingerprint = [];
    /** The findings that are about it, where there are any. @type {Map<number, number[]>} */
    this.findings = new Map();
  }

  /** @param {any} answer  one of api/lives */
  append({ total, kinds, how, columns }) {
    this.total = total;
    this.kinds = kinds;
    this.hows = how;
    const room = Math.min(columns.id.length, this.from.length - this.size);
    for (let i = 0; i < room; i++) {
      const at = this.size + i;
      this.process[at] = columns.process[i];
      this.opening[at] = columns.lane[i];
      this.kind[at] = columns.kind[i];
      // What was opened of nobody that was seen stands by itself.
      this.export[at] = columns.export[i] ?? -1 - at;
      this.from[at] = columns.from_ns[i];
      this.to[at] = columns.to_ns[i] ?? Infinity;
      this.how[at] = columns.how[i];
      this.bytes[at] = columns.bytes[i] ?? 0;
      this.address.push(columns.address[i]);
      this.fingerprint.push(columns.fingerprint[i]);
      if (columns.findings[i].length > 0) this.findings.set(at, columns.findings[i]);
    }
    this.size += room;
  }

  /** The name of a life in addresses. @param {number} life */
  name(life) {
    return `${this.process[life]}.${this.opening[life]}.${this.from[life]}`;
  }

  /** The life that has this name, or -1. @param {string} name */
  named(name) {
    const from = Number(name.split('.')[2]);
    for (let life = this.first(from); life < this.size && this.from[life] === from; life++) {
      if (this.name(life) === name) return life;
    }
    return -1;
  }

  /** The first life that begins then or later. @param {number} ns */
  first(ns) {
    let [low, high] = [0, this.size];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.from[middle] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first life with this fingerprint or address, or -1. @param {string} word */
  known(word) {
    const bytes = this.fingerprint.indexOf(word);
    return bytes >= 0 ? bytes : this.address.indexOf(word);
  }

  /**
   * Those that are asked for, in the order of time.
   * @param {{kind?: string, process?: string, rule?: string, q?: string}} filter
   * @param {import('./api.js').Finding[]} findings
   * @returns {Uint32Array}
   */
  chosen({ kind, process, rule, q }, findings) {
    const kindWanted = kind ? this.kinds.map((name) => name === kind || family(name) === kind) : null;
    const processWanted = process ? Number(process) : null;
    // An opening is shown with what it opens, and the other way round, or nobody could see who shares.
    const exports = processWanted === null ? null : new Set();
    if (exports)
      for (let life = 0; life < this.size; life++) if (this.process[life] === processWanted) exports.add(this.export[life]);
    const word = q?.toLowerCase();
    const found = new Uint32Array(this.size);
    let count = 0;
    for (let life = 0; life < this.size; life++) {
      if (kindWanted && !kindWanted[this.kind[life]]) continue;
      if (exports && !exports.has(this.export[life])) continue;
      if (rule && !this.findings.get(life)?.some((index) => rule === 'any' || findings[index]?.rule === rule)) continue;
      if (word && !this.address[life].includes(word) && !this.fingerprint[life]?.includes(word)) continue;
      found[count++] = life;
    }
    return found.slice(0, count);
  }
}

/**
 * Fetches them, page by page.
 * @param {number} expected  how many the run has
 * @param {(lives: Lives) => void} more  is told after the first page, while the rest is fetched
 * @returns {Promise<Lives>}
 */
export async function fetchLives(expected, more) {
  let lives = new Lives(Math.min(expected, MOST));
  let generation = null;
  for (;;) {
    const answer = await ask('lives', { offset: lives.size, limit: PAGE });
    if (generation !== null && answer.generation !== generation) {
      // The run went on between two pages: what is there already is of another run.
      lives = new Lives(Math.min(answer.total, MOST));
      generation = null;
      continue;
    }
    generation = answer.generation;
    if (lives.size === 0 && answer.total > lives.from.length) lives = new Lives(Math.min(answer.total, MOST));
    lives.append(answer);
    if (answer.columns.id.length === 0 || lives.size >= Math.min(answer.total, MOST)) return lives;
    more(lives);
  }
}
