/**
 * Searches the calls of a page that is a file, as `view/search.rs` searches those of a server.
 */

/** What a file does not have, and what has it. @param {string} what @param {any} run */
export const absent = (what, run) => new Error(`this file does not have ${what}; ${run.again} shows it where the traces are`);

/** @type {Record<string, (call: any) => number | string>} */
const ORDERS = {
  function: (call) => call.function,
  process: (call) => call.process,
  took: (call) => call.took_ns ?? Infinity,
  result: (call) => call.result ?? '~',
};

/** Whether a call has a text, as `view/search.rs` decides it. @param {any} run @param {any} call @param {string} text */
function fits(run, call, text) {
  const { pid, rank, executable } = run.processes[call.process];
  const number = /^\d+$/.test(text) ? Number(text) : null;
  const has = (/** @type {string} */ name) => name.toLowerCase().includes(text);
  return (
    has(call.function) ||
    has(call.result ?? 'never returned') ||
    has(call.site ?? '') ||
    has(executable.split('/').pop()) ||
    text === String(pid) ||
    text === `rank ${rank}` ||
    (number !== null && [call.tid, call.call, call.size].includes(number)) ||
    [call.value, call.fingerprint].some(
      (value) => value && (text.startsWith('0x') ? value.startsWith(text) : value.slice(2).includes(text)),
    )
  );
}

/**
 * A page of the table of calls, as the server answers it.
 * @param {any} all
 * @param {Record<string, any>} asked
 */
export function search(all, asked) {
  const { run, ipc } = all;
  const rows = all.calls.flatMap((/** @type {any} */ page) => page.rows);
  const limit = Number(asked.limit) || 200;
  const page = (/** @type {any[]} */ found, /** @type {number} */ offset) => ({
    total: run.calls,
    matching: found.length,
    offset,
    rows: found.slice(offset, offset + limit),
  });
  if (asked.around) {
    const [process, number] = asked.around.split(':').map(Number);
    const found = rows.filter((/** @type {any} */ call) => call.process === process);
    const at = found.findIndex((/** @type {any} */ call) => call.call === number);
    if (at < 0) throw absent(`call ${number} of ${run.processes[process]?.pid}`, run);
    return page(found, Math.max(0, Math.min(at - Math.floor(limit / 2), found.length - limit)));
  }
  const text = String(asked.q ?? '')
    .trim()
    .toLowerCase();
  const is = (/** @type {any} */ given) => given && String(given) !== '0';
  const found = rows.filter(
    (/** @type {any} */ call) =>
      (!is(asked.ipc) || ipc.includes(call.function)) &&
      (!asked.function || call.function === asked.function) &&
      (asked.process === '' || asked.process === undefined || call.process === Number(asked.process)) &&
      (!is(asked.errors) || !/^\w*SUCCESS\b/.test(call.result ?? '')) &&
      (!asked.fingerprint || call.fingerprint === asked.fingerprint) &&
      (!asked.from_ns || call.took_ns === null || call.from_ns + call.took_ns >= Number(asked.from_ns)) &&
      (!asked.to_ns || call.from_ns <= Number(asked.to_ns)) &&
      (!text || fits(run, call, text)),
  );
  const turn = is(asked.desc) ? -1 : 1;
  const by = ORDERS[asked.sort];
  if (!by && turn < 0) found.reverse();
  if (by) {
    found.sort((/** @type {any} */ a, /** @type {any} */ b) => {
      const [x, y] = [by(a), by(b)];
      return x < y ? -turn : x > y ? turn : 0;
    });
  }
  return page(found, Math.min(Number(asked.offset) || 0, found.length));
}
