/**
 * Formats figures and names for people. The exact values are in the titles of the elements.
 */
import { el } from './dom.js';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Three significant digits, without trailing zeros. */
const three = (/** @type {number} */ value) => String(Number(value.toPrecision(3)));

/**
 * @param {number} bytes
 */
export function bytes(bytes) {
  const step = bytes > 0 ? Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1) : 0;
  return `${three(bytes / 1024 ** step)} ${UNITS[step]}`;
}

/**
 * A duration.
 * @param {number} ns
 */
export function span(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 999.5e3) return `${three(ns / 1e3)} us`;
  if (size < 999.5e6) return `${three(ns / 1e6)} ms`;
  return size < 1e12 ? `${three(ns / 1e9)} s` : `${Math.round(ns / 1e9)} s`;
}

/**
 * A round step of which about `count` fit into `length`: 1, 2 or 5 times a power of ten.
 * @param {number} length
 * @param {number} count
 */
export function roundStep(length, count) {
  const raw = Math.max(length / Math.max(count, 1), 1);
  const ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((lead) => lead * ten).find((step) => step >= raw) ?? 10 * ten;
}

/**
 * The round moments between two others.
 * @param {number} from
 * @param {number} to
 * @param {number} count  about how many
 */
export function ticks(from, to, count) {
  const step = roundStep(to - from, count);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step);
}

/**
 * The label of a round moment: no more digits than its step needs.
 * @param {number} ns
 * @param {number} step
 */
export function tickLabel(ns, step) {
  const [unit, name] = [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'us'],
  ].find(([unit]) => ns >= Number(unit)) ?? [1, 'ns'];
  const digits = Math.max(0, Math.ceil(Math.log10(Number(unit) / step) - 1e-9));
  return ns === 0 ? '0' : `${(ns / Number(unit)).toFixed(digits)} ${name}`;
}

/**
 * A time since the first process of the run began, as reports show it.
 * @param {number} ns
 */
export const moment = (ns) => (ns < 1e10 ? `+${(ns / 1e6).toFixed(3)} ms` : `+${(ns / 1e9).toFixed(3)} s`);

/**
 * @param {number} number
 */
export const figure = (number) => number.toLocaleString('en-US');

/**
 * A number and its noun.
 * @param {number} number
 * @param {string} noun
 * @param {string} [many]
 */
export const count = (number, noun, many = `${noun}s`) => `${figure(number)} ${number === 1 ? noun : many}`;

/** An element that shows a moment, with its nanoseconds in the title. */
export const when = (/** @type {number} */ ns) =>
  el('time', { class: 'figure', title: `${ns} ns after the first process began` }, moment(ns));

/** An element that shows a duration, with its nanoseconds in the title. */
export const took = (/** @type {number | null} */ ns) =>
  ns === null ? el('span', { class: 'faint' }, 'never returned') : el('span', { class: 'figure', title: `${ns} ns` }, span(ns));

/** An element that shows a size, with its bytes in the title. */
export const size = (/** @type {number | null} */ value) =>
  value === null ? null : el('span', { class: 'figure', title: `${value} bytes` }, bytes(value));

/** The last part of a path. */
export const file = (/** @type {string} */ path) => path.split('/').pop() || path;

/**
 * The name of a process, as in all reports.
 * @param {{executable: string, pid: number, rank?: number | null, role?: string | null}} process
 */
export const who = ({ executable, pid, rank, role }) => {
  if (rank !== null && rank !== undefined) return `rank ${rank} (pid ${pid})`;
  if (role) return `${role} (pid ${pid})`;
  return executable ? `${file(executable)} (pid ${pid})` : `pid ${pid}`;
};

const ENDED = {
  exited: 'exited',
  killed: 'killed',
  running: 'still running',
  exec: 'became another program',
  incomplete: 'incomplete trace',
};

/** How a process ended. */
export const ended = (/** @type {string | null} */ how) =>
  how === null ? '' : (ENDED[/** @type {keyof typeof ENDED} */ (how)] ?? how);

/**
 * The severity as a word with its own shape, so that colour is not the only carrier.
 * @param {string} severity
 */
export const badge = (severity) => el('span', { class: `badge ${severity}` }, severity);

/** The result of a call: short for success, without the common prefix for errors. */
export function answer(/** @type {string | null} */ result) {
  if (result === null) return el('span', { class: 'faint' }, 'never returned');
  if (/^UR_RESULT_SUCCESS\b/.test(result)) return el('span', { class: 'faint' }, 'success');
  return el('span', { class: 'bad', title: result }, result.replace('UR_RESULT_ERROR_', ''));
}

/**
 * Numbers in short: `0-3, 5`.
 * @param {number[]} numbers
 */
export function listed(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  /** @type {[number, number][]} */
  const runs = [];
  for (const number of sorted) {
    const last = runs.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
