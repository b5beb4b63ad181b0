/**
 * Fetches answers from `urscope view` and caches them until the run changes. No other module of the page talks to the server.
 * A page that is a file has its answers inside.
 *
 * docs/report.schema.json and the types of the library's `questions` module define the answers.
 *
 * @typedef {{index: number, pid: number, host: string, rank: number | null, role?: string | null, executable: string, command: string[],
 *   began_ns: number, ended_ns: number, ended: string, calls: number, ipc_calls: number}} Process
 * @typedef {{generation: number, running: boolean, title: string, urscope: string, first_ns: number, last_ns: number, calls: number,
 *   lives: number, limits: string[], error: string | null, perfetto: {url: string, local: boolean} | null, processes: Process[],
 *   sentences: Sentence[], again: string}} Run
 * @typedef {{text: string, here: string | null, there: string | null, shown: number[][]}} Sentence
 * @typedef {{host: string, pid: number, rank: number | null, executable: string, tid: number, time_ns: number, call: number | null,
 *   subject: string | null, size: number | null, fingerprint: string | null, count: number}} Occurrence
 * @typedef {{file: string, line: number, first: number, lines: string[], changed: boolean}} Excerpt
 * @typedef {{module: string, offset: string, function: string | null, file: string | null, line: number | null, source?: string, wrapper?: boolean}} Frame
 * @typedef {{host: string, pid: number, rank?: number | null, executable: string, tid: number, time_ns: number, function: string | null,
 *   call: number | null, known_ns?: number, stack: Frame[], site?: string}} Side
 * @typedef {{rule: string, severity: 'error' | 'warning' | 'note', process: Side, other: Side | null, others?: Side[], later?: Side, time_ns: number,
 *   function: string | null, call: number | null, message: string, advice: string, count: number, occurrences: Occurrence[], hosts: Record<string, number>,
 *   subject: string | null, kind: string | null, size: number | null, fingerprint: string | null, identity: string, fails: boolean,
 *   excuse: object | null}} Finding
 * @typedef {{time_ns: number, handles: Record<string, number>, opened: Record<string, number>, pinned_bytes: number}} Sample
 * @typedef {{producer: {process: number}, consumer: {process: number}, kind: string, handles: number, opens: number, open: number,
 *   bytes: number}} Share
 * @typedef {{process: number, tid: number, call: number, function: string, from_ns: number, took_ns: number | null, result: string | null,
 *   value: string | null, size: number | null, fingerprint: string | null, site: string | null}} Call
 */

/** The answers of a page that is a file. */
const saved = globalThis.document?.getElementById('answers') ? await import('./saved.js') : null;

/** @type {Map<string, Promise<any>>} */
let cache = new Map();

/** The server refused the request or did not answer; the message is fit for a person. */
export class ServerError extends Error {}

/** @param {string} path */
async function response(path) {
  try {
    return await fetch(`api/${path}`);
  } catch {
    throw new ServerError('this was not loaded before urscope view ended');
  }
}

/**
 * A part of the lifetimes in columns, not cached.
 * @param {number} offset
 * @param {number} limit
 * @returns {Promise<ArrayBuffer>}
 */
export async function askLifetimes(offset, limit) {
  if (saved) return saved.lifetimes(offset);
  const path = `lives.bin?offset=${offset}&limit=${limit}`;
  const answered = await response(path);
  if (!answered.ok) throw new ServerError(`urscope view answered ${answered.status} to api/${path}`);
  return answered.arrayBuffer();
}

/** @param {string} path */
async function fetched(path) {
  const answered = await response(path);
  const body = await answered.json().catch(() => null);
  if (!answered.ok || body === null) {
    throw new ServerError(body?.error ?? `urscope view answered ${answered.status} to api/${path}`);
  }
  return body;
}

/**
 * One answer. It is fetched once until the run changes.
 * @param {string} path  below api/
 * @param {Record<string, string | number | null | undefined>} [query]
 * @returns {Promise<any>}
 */
export function ask(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const url = search ? `${path}?${search}` : path;
  const known = cache.get(url);
  if (known) return known;
  const answer = saved ? saved.answer(path, query) : fetched(url);
  cache.set(url, answer);
  const here = cache;
  answer.catch(() => here.delete(url));
  return answer;
}

/** Drops all cached answers, because the run has grown. */
export function clearCache() {
  cache = new Map();
}

/**
 * Subscribes to changes of the run.
 * @param {(news: {generation: number, running: boolean}) => void} changed
 * @param {(connected: boolean) => void} connection
 */
export function subscribe(changed, connection) {
  if (saved) return;
  const source = new EventSource('api/events');
  source.addEventListener('run', (event) => {
    connection(true);
    changed(JSON.parse(/** @type {MessageEvent} */ (event).data));
  });
  source.addEventListener('error', () => connection(false));
}
