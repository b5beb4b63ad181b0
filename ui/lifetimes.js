/**
 * The lifetimes of handles and openings. They are stored in columns, as the server sends them: a million lifetimes are a few arrays.
 */
import { askLifetimes } from './api.js';

const PAGE = 200_000;
/** At most this many are fetched, to bound the browser's memory. The page says when there are more. */
export const MOST = 2_000_000;
/** No call site, in the column of sites. */
const NOWHERE = 0xffffffff;

/** The classes of kinds, each with its own colour. */
const KIND_CLASSES = [
  ['event', /event/],
  ['physical', /phys/],
  ['memory', /./],
];
export const kindClass = (/** @type {string} */ kind) =>
  /** @type {string} */ (KIND_CLASSES.find(([, words]) => /** @type {RegExp} */ (words).test(kind))?.[0]);

/** A 64-bit number in two halves, as hexadecimal digits. @param {Uint32Array} halves @param {number} at */
const hexadecimal = (halves, at) => {
  const [low, high] = [halves[2 * at], halves[2 * at + 1]];
  return high === 0 ? `0x${low.toString(16)}` : `0x${high.toString(16)}${low.toString(16).padStart(8, '0')}`;
};

/** The two halves of a hexadecimal number, or null. @param {string} word */
function halvesOf(word) {
  const digits = /^0x([0-9a-f]{1,16})$/.exec(word)?.[1].padStart(16, '0');
  return digits ? [parseInt(digits.slice(8), 16), parseInt(digits.slice(0, 8), 16)] : null;
}

/** The head of a part, with the offset of its columns. @param {ArrayBuffer} bytes */
function headOf(bytes) {
  const length = Number(new DataView(bytes).getBigUint64(0, true));
  return { ...JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length))), columns: 8 + length };
}

/** All lifetimes of a run, sorted by their begin. */
export class Lifetimes {
  /** @param {number} size */
  constructor(size) {
    this.size = 0;
    this.total = 0;
    /** @type {string[]} */ this.kinds = [];
    /** @type {string[]} */ this.endings = [];
    /** The call sites. @type {string[]} */ this.sites = [];
    this.process = new Int32Array(size);
    this.opening = new Uint8Array(size);
    this.kind = new Uint8Array(size);
    /** What shares an allocation and a pointer; -1 if the producer was not traced. */
    this.export = new Float64Array(size);
    this.from = new Float64Array(size);
    /** Infinity if it is still alive. */
    this.to = new Float64Array(size);
    /** When its memory was allocated and freed; Infinity if that is not known. */
    this.allocated = new Float64Array(size);
    this.freed = new Float64Array(size);
    this.ending = new Uint8Array(size);
    this.bytes = new Float64Array(size);
    this.addresses = new Uint32Array(2 * size);
    this.fingerprints = new Uint32Array(2 * size);
    this.siteAt = new Uint32Array(size);
    /** The findings that concern a lifetime, if there are any. @type {Map<number, number[]>} */
    this.findings = new Map();
  }

  /** Adds a part that `api/lives.bin` sent; returns its head. @param {ArrayBuffer} bytes */
  append(bytes) {
    const head = headOf(bytes);
    const { count } = head;
    let at = head.columns;
    const room = Math.min(count, this.process.length - this.size);
    /** @param {any} column @param {any} form @param {number} [each] */
    const take = (column, form, each = 1) => {
      column.set(new form(bytes, at, room * each), this.size * each);
      at += count * each * form.BYTES_PER_ELEMENT;
    };
    for (const column of [this.from, this.to, this.allocated, this.freed, this.export, this.bytes]) take(column, Float64Array);
    for (const column of [this.addresses, this.fingerprints]) take(column, Uint32Array, 2);
    for (const column of [this.process, this.siteAt]) take(column, Uint32Array);
    for (const column of [this.opening, this.kind, this.ending]) take(column, Uint8Array);
    // Each part numbers its call sites by itself.
    const numbers = head.sites.map((/** @type {string} */ name) => {
      const known = this.sites.indexOf(name);
      return known >= 0 ? known : this.sites.push(name) - 1;
    });
    for (let i = this.size; i < this.size + room; i++) if (this.siteAt[i] !== NOWHERE) this.siteAt[i] = numbers[this.siteAt[i]];
    for (const [place, findings] of head.findings) if (place < room) this.findings.set(this.size + place, findings);
    [this.total, this.kinds, this.endings] = [head.total, head.kinds, head.how];
    this.size += room;
    return head;
  }

  /** @param {number} lifetime */
  address(lifetime) {
    return hexadecimal(this.addresses, lifetime);
  }

  /** The fingerprint of its handle data, or null. @param {number} lifetime */
  fingerprint(lifetime) {
    const known = this.fingerprints[2 * lifetime] !== 0 || this.fingerprints[2 * lifetime + 1] !== 0;
    return known ? hexadecimal(this.fingerprints, lifetime) : null;
  }

  /** Where the program began it, as `exchange_halo, ring.cpp:37`, or null. @param {number} lifetime */
  site(lifetime) {
    return this.sites[this.siteAt[lifetime]] ?? null;
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
    const wanted = halvesOf(word);
    if (!wanted) return -1;
    for (const column of [this.fingerprints, this.addresses]) {
      for (let at = 0; at < this.size; at++) if (column[2 * at] === wanted[0] && column[2 * at + 1] === wanted[1]) return at;
    }
    return -1;
  }

  /** The time in which something is shared: from the first allocation or handle to the last begin or end. */
  activity() {
    let [first, last] = [Infinity, 0];
    for (let at = 0; at < this.size; at++) {
      first = Math.min(first, this.from[at], this.allocated[at]);
      last = Math.max(last, this.from[at]);
      if (this.to[at] !== Infinity) last = Math.max(last, this.to[at]);
      if (this.freed[at] !== Infinity) last = Math.max(last, this.freed[at]);
    }
    return first < Infinity ? { first, last } : null;
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
        if (this.process[lifetime] === processWanted && this.export[lifetime] >= 0) exports.add(this.export[lifetime]);
    const word = q?.toLowerCase();
    const digits = word && /^(0x)?[0-9a-f]+$/.test(word);
    const sites = word ? this.sites.map((name) => name.toLowerCase().includes(word)) : [];
    const found = new Uint32Array(this.size);
    let count = 0;
    for (let lifetime = 0; lifetime < this.size; lifetime++) {
      if (kindWanted && !kindWanted[this.kind[lifetime]]) continue;
      if (exports && !exports.has(this.export[lifetime]) && this.process[lifetime] !== processWanted) continue;
      if (rule && !this.findings.get(lifetime)?.some((index) => rule === 'any' || findings[index]?.rule === rule)) continue;
      if (
        word &&
        !sites[this.siteAt[lifetime]] &&
        !(digits && (this.address(lifetime).includes(word) || this.fingerprint(lifetime)?.includes(word)))
      )
        continue;
      found[count++] = lifetime;
    }
    return found.subarray(0, count);
  }
}

/** The lifetimes of the latest analysis that were fetched. @type {{generation: number, all: Promise<Lifetimes>} | null} */
let latest = null;

/**
 * All lifetimes of a run. They are fetched once, until the run changes.
 * @param {import('./api.js').Run} run
 * @param {(lifetimes: Lifetimes) => void} more  called after each page but the last, while they are fetched
 * @returns {Promise<Lifetimes>}
 */
export function fetchLifetimes(run, more) {
  if (latest?.generation === run.generation) return latest.all;
  const mine = { generation: run.generation, all: fetchPages(run.lives, more) };
  mine.all.catch(() => {
    if (latest === mine) latest = null;
  });
  latest = mine;
  return mine.all;
}

/** @param {number} expected @param {(lifetimes: Lifetimes) => void} more */
async function fetchPages(expected, more) {
  let lifetimes = new Lifetimes(Math.min(expected, MOST));
  let generation = null;
  for (;;) {
    const bytes = await askLifetimes(lifetimes.size, PAGE);
    const { generation: now, total, count } = headOf(bytes);
    if ((generation !== null && now !== generation) || (lifetimes.size === 0 && total > lifetimes.process.length)) {
      // The run grew between two pages: the pages so far do not match the rest. Start again.
      const restarts = generation !== null && now !== generation;
      lifetimes = new Lifetimes(Math.min(total, MOST));
      generation = null;
      if (restarts) continue;
    }
    generation = now;
    lifetimes.append(bytes);
    if (count === 0 || lifetimes.size >= Math.min(total, MOST)) return lifetimes;
    more(lifetimes);
  }
}
