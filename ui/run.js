/**
 * The data that all views share: the run, its processes and its findings, and their names in addresses.
 *
 * @typedef {import('./api.js').Run} Run
 * @typedef {import('./api.js').Finding} Finding
 * @typedef {import('./api.js').Side} Side
 * @typedef {{run: Run, check: any, stats: any}} RunData
 */
import { ask } from './api.js';
import { plain } from './dom.js';
import { who } from './format.js';

export const SEVERITIES = /** @type {const} */ (['error', 'warning', 'note']);

/**
 * Fetches everything that the overview shows, in parallel.
 * @returns {Promise<RunData>}
 */
export async function fetchRun() {
  const [run, check, stats] = await Promise.all([ask('run'), ask('check'), ask('stats')]);
  return { run, check, stats };
}

/**
 * The name of a finding in addresses: its identity, which is the same in another run, and its number among equal ones.
 * @param {Finding[]} findings
 * @param {number} index
 */
export function nameOf(findings, index) {
  const { identity } = findings[index];
  const before = findings.slice(0, index).filter((finding) => finding.identity === identity).length;
  return before ? `${identity}.${before + 1}` : identity;
}

/**
 * The index of the finding with this name, or -1.
 * @param {Finding[]} findings
 * @param {string} name
 */
export function finding(findings, name) {
  const [identity, place = '1'] = name.split('.');
  const alike = findings.flatMap((finding, index) => (finding.identity === identity ? [index] : []));
  return alike[Number(place) - 1] ?? -1;
}

/** The processes of each run by pid and host. @type {WeakMap<Run, Map<string, import('./api.js').Process[]>>} */
const byPid = new WeakMap();

/** @param {Run} run */
function ofPid(run) {
  let known = byPid.get(run);
  if (!known) {
    known = new Map();
    for (const process of run.processes) {
      const key = `${process.pid} ${process.host}`;
      known.set(key, [...(known.get(key) ?? []), process]);
    }
    byPid.set(run, known);
  }
  return known;
}

/**
 * The process of a side. A pid can be reused, and a process can become another program by exec: the one that began last before
 * the side's time is meant.
 * @param {Run} run
 * @param {Side} side
 */
export function processOf(run, side) {
  const same = ofPid(run).get(`${side.pid} ${side.host}`) ?? [];
  const begun = same.filter((process) => process.began_ns <= side.time_ns && process.executable === side.executable);
  return begun.at(-1) ?? same[0] ?? null;
}

/** The name of a process without control characters, with its rank if it has one, and its host if there are several. */
export function called(/** @type {Run} */ run, /** @type {number} */ index) {
  const process = run.processes[index];
  if (!process) return 'a process without a trace';
  const hosts = run.processes.some((other) => other.host !== process.host);
  return plain(`${who(process)}${hosts ? ` on ${process.host}` : ''}`);
}

/**
 * The processes in the order of all lists: by rank, and those without a rank before them, as they began.
 * @param {Run} run
 */
export const inOrder = (run) =>
  [...run.processes].sort((a, b) => (a.rank ?? -1) - (b.rank ?? -1) || (a.rank === null ? a.index - b.index : a.pid - b.pid));

/** The finding in few words, with its place. @param {Run} run @param {any} check @param {number} index */
export const sentence = (run, check, index) => run.sentences[index]?.text ?? check.findings[index].message;

/** A short name of a process, for labels in drawings. */
export function short(/** @type {Run} */ run, /** @type {number} */ index) {
  const process = run.processes[index];
  if (!process) return '?';
  return process.rank === null ? (process.role ?? `pid ${process.pid}`) : `rank ${process.rank}`;
}
