/**
 * What all views know of the run: its processes and its findings, by the names that they have in addresses.
 *
 * @typedef {import('./api.js').Run} Run
 * @typedef {import('./api.js').Finding} Finding
 * @typedef {import('./api.js').Side} Side
 * @typedef {{run: Run, check: any, stats: any}} World
 */
import { ask } from './api.js';
import { plain } from './dom.js';
import { who } from './format.js';

export const SEVERITIES = /** @type {const} */ (['error', 'warning', 'note']);

/**
 * Everything that the first view shows, asked for at once.
 * @returns {Promise<World>}
 */
export async function world() {
  const [run, check, stats] = await Promise.all([ask('run'), ask('check'), ask('stats')]);
  return { run, check, stats };
}

/**
 * The name of a finding in addresses: what it is known again by in another run, and its place among those that are alike.
 * @param {Finding[]} findings
 * @param {number} index
 */
export function nameOf(findings, index) {
  const { identity } = findings[index];
  const before = findings.slice(0, index).filter((finding) => finding.identity === identity).length;
  return before ? `${identity}.${before + 1}` : identity;
}

/**
 * The index of the finding that has this name, or -1.
 * @param {Finding[]} findings
 * @param {string} name
 */
export function finding(findings, name) {
  const [identity, place = '1'] = name.split('.');
  const alike = findings.flatMap((finding, index) => (finding.identity === identity ? [index] : []));
  return alike[Number(place) - 1] ?? -1;
}

/**
 * The process that a side is of. Numbers are used again and programs become other programs: then the one counts that had begun
 * last.
 * @param {Run} run
 * @param {Side} side
 */
export function processOf(run, side) {
  const same = run.processes.filter((process) => process.pid === side.pid && process.host === side.host);
  const begun = same.filter((process) => process.began_ns <= side.time_ns && process.executable === side.executable);
  return begun.at(-1) ?? same[0] ?? null;
}

/** Its name, fit to be painted, with its rank where it has one and its host where there are several. */
export function called(/** @type {Run} */ run, /** @type {number} */ index) {
  const process = run.processes[index];
  if (!process) return 'a process without a trace';
  const hosts = run.processes.some((other) => other.host !== process.host);
  const rank = process.rank === null ? '' : `rank ${process.rank}, `;
  return plain(`${rank}${who(process)}${hosts ? ` on ${process.host}` : ''}`);
}

/** It in few letters, for the end of a line in a picture. */
export function short(/** @type {Run} */ run, /** @type {number} */ index) {
  const process = run.processes[index];
  if (!process) return '?';
  return process.rank === null ? `pid ${process.pid}` : `rank ${process.rank}`;
}
