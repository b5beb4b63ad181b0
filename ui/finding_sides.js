/**
 * Parts of a finding: a side with its call stack, the history of the handle, and the calls around a call.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { excerpt } from './explanation.js';
import { answer, count, figure, file, size, took, when, who } from './format.js';
import { grid } from './grid.js';
import { href } from './router.js';
import { called, processOf } from './run.js';

/** How many frames are shown before "whole stack". */
const FRAMES = 8;
/** How many entries of a history are listed. */
const MOMENTS = 400;
/** How many calls are shown before and after the one in question. */
const AROUND = 7;

/**
 * A frame, which shows its source when it is opened.
 * @param {import('./api.js').Frame} frame
 * @param {string} key
 * @param {() => Promise<HTMLElement>} lines  its source
 */
const frame = ({ function: name, file: source, line, module, offset }, key, lines) => {
  const location = source ? `${source}${line === null ? '' : `:${line}`}` : `${file(module)} ${offset}`;
  const shown = [
    el('code', { class: source ? null : 'runtime', title: `${module} ${offset}` }, name ?? offset),
    el('span', { class: 'location' }, location),
  ];
  if (!source || line === null) return el('li', {}, shown);
  const place = el('div', {});
  const details = /** @type {HTMLDetailsElement} */ (
    el('details', { class: 'frame', 'data-key': key, ontoggle: open }, el('summary', {}, shown), place)
  );
  async function open() {
    if (details.open && !place.hasChildNodes()) swap(place, await lines());
  }
  return el('li', {}, details);
};

/**
 * A call stack: the frames that matter, and all of them on demand.
 * @param {import('./api.js').Frame[]} frames
 * @param {number[]} shown  the positions of those that matter
 * @param {string} key
 * @param {(at: number) => Promise<HTMLElement>} lines  the source of a frame
 */
export function stack(frames, shown, key, lines) {
  if (frames.length === 0) return el('p', { class: 'empty' }, 'No call stack was recorded.');
  const all = [...frames.keys()];
  const own = shown.filter((at) => at < frames.length);
  const first = own.length > 0 ? own : all.slice(0, FRAMES);
  const list = (/** @type {number[]} */ positions, /** @type {string} */ part) =>
    el(
      'ol',
      { class: 'frames' },
      positions.map((at) => frame(frames[at], `frame-${key}-${part}-${at}`, () => lines(at))),
    );
  return [
    list(first, 'own'),
    first.length < frames.length &&
      el(
        'details',
        { 'data-key': `stack-${key}` },
        el('summary', {}, `Whole stack (${count(frames.length, 'frame')})`),
        list(all, 'all'),
      ),
  ];
}

/**
 * One side of a finding.
 * @param {import('./run.js').RunData} data
 * @param {number} index  of the finding
 * @param {'here' | 'there'} name
 * @param {HTMLElement} source  where the lines of source are shown
 */
export function side({ run, check }, index, name, source) {
  const there = name === 'there';
  /** @type {import('./api.js').Side} */
  const side = there ? check.findings[index].other : check.findings[index].process;
  const brief = run.sentences[index];
  const site = there ? brief?.there : brief?.here;
  const process = processOf(run, side);
  const around = process && side.call !== null ? `${process.index}:${side.call}` : null;
  return el(
    'section',
    { class: 'card', 'aria-label': `Side: ${name}` },
    el('h2', {}, el('span', { class: 'faint' }, `${name}: `), process ? called(run, process.index) : who(side)),
    site && el('p', { class: 'site' }, el('code', {}, site)),
    source,
    el(
      'dl',
      { class: 'facts' },
      el('dt', {}, 'when'),
      el('dd', {}, when(side.time_ns)),
      side.known_ns && [el('dt', {}, 'known to be over'), el('dd', {}, when(side.known_ns))],
      side.function && [el('dt', {}, 'function'), el('dd', {}, el('code', {}, side.function))],
      side.call !== null && [
        el('dt', {}, 'call'),
        el('dd', {}, around ? el('a', { href: href('calls', '', { around }) }, `call ${side.call}`) : String(side.call)),
      ],
      side.tid !== 0 && [el('dt', {}, 'thread'), el('dd', {}, String(side.tid))],
      side.host && [el('dt', {}, 'host'), el('dd', {}, side.host)],
    ),
    el('h3', {}, 'Call stack, innermost first'),
    stack(side.stack, brief?.shown[there ? 1 : 0] ?? [], name, (at) => excerpt(index, there, at)),
  );
}

/** How many occurrences are listed. */
const LISTED = 1000;

/**
 * All occurrences of a finding, if there are several.
 * @param {import('./run.js').RunData} data
 * @param {number} index
 */
export function occurrences({ run, check }, index) {
  const found = check.findings[index];
  /** @type {import('./api.js').Occurrence[]} */
  const all = found.occurrences ?? [];
  if (found.count <= 1 || all.length === 0) return null;
  const known = all.reduce((sum, one) => sum + one.count, 0);
  const shown = all.slice(0, LISTED);
  return el(
    'section',
    { class: 'card', 'aria-labelledby': 'occurrences' },
    el('h2', { id: 'occurrences' }, `All ${figure(found.count)} occurrences`),
    run.sentences[index]?.here && el('p', { class: 'site' }, 'All at ', el('code', {}, run.sentences[index].here)),
    grid(
      'Occurrences',
      [
        { name: 'process', cell: (one) => processName(run, one) },
        {
          name: 'time',
          cell: (one) =>
            el(
              'a',
              { href: href('timeline', '', { ...moments(run, one), finding: found.identity }), title: 'on the timeline' },
              when(one.time_ns),
            ),
        },
        { name: 'thread', number: true, cell: (one) => one.tid || null },
        { name: 'call', number: true, cell: (one) => callLink(run, one) },
        { name: 'about', cell: (one) => one.subject && el('span', { class: 'code' }, one.subject) },
        { name: 'size', number: true, cell: (one) => size(one.size) },
        {
          name: 'handle data',
          cell: (one) => one.fingerprint && el('a', { class: 'code', href: href('handle', one.fingerprint) }, one.fingerprint),
        },
        all.some((one) => one.count > 1) && { name: 'times', number: true, cell: (one) => figure(one.count) },
      ],
      shown,
    ),
    known < found.count && el('p', { class: 'faint' }, `${figure(found.count - known)} more were counted only.`),
    shown.length < all.length &&
      el('p', { class: 'faint' }, `The first ${figure(LISTED)} of ${figure(all.length)}; urscope check --all lists all.`),
  );
}

/** @param {import('./api.js').Run} run @param {any} place */
function processName(run, place) {
  const process = processOf(run, place);
  return process ? called(run, process.index) : who(place);
}

/** @param {import('./api.js').Run} run @param {any} place */
function callLink(run, place) {
  const process = processOf(run, place);
  return process && place.call !== null
    ? el('a', { href: href('calls', '', { around: `${process.index}:${place.call}` }) }, place.call)
    : place.call;
}

/** The part of the timeline around a place. @param {import('./api.js').Run} run @param {import('./api.js').Occurrence} place */
function moments(run, place) {
  const around = Math.max(100_000, run.last_ns / 200);
  return {
    from: Math.max(0, Math.round(place.time_ns - around)),
    to: Math.round(Math.min(run.last_ns, place.time_ns + around)),
    at: place.fingerprint,
  };
}

/**
 * The history of a handle: the calls that concern it, in order of time.
 * @param {import('./api.js').Run} run
 * @param {any} history  an answer to api/handle
 * @param {{sides: import('./api.js').Side[]}} [meant]  the sides of the finding, which are marked
 */
export function historyTable(run, history, { sides } = { sides: [] }) {
  const meant = (/** @type {any} */ { place }) =>
    sides.some((side) => side.pid === place.pid && side.host === place.host && side.call === place.call);
  const shown = history.moments.slice(0, MOMENTS);
  return [
    grid(
      'History of the handle',
      [
        { name: 'time', cell: ({ place }) => when(place.time_ns) },
        { name: 'process', cell: ({ place }) => processName(run, place) },
        { name: 'call', number: true, cell: ({ place }) => callLink(run, place) },
        { name: 'function', cell: ({ place }) => el('code', {}, place.function) },
        { name: 'called at', cell: ({ place }) => el('span', { class: 'site', title: place.site }, place.site) },
        { name: 'about', cell: ({ value }) => value && el('span', { class: 'code' }, value) },
        { name: 'result', cell: ({ result }) => answer(result) },
        {
          name: 'took',
          number: true,
          cell: ({ took_ns, result }) => (took_ns === null && result !== null ? null : took(took_ns)),
        },
      ],
      shown,
      { current: meant },
    ),
    history.moments.length > shown.length &&
      el(
        'p',
        { class: 'faint' },
        `The first ${MOMENTS} of ${history.moments.length} entries; urscope handle ${history.name} prints all.`,
      ),
  ];
}

/**
 * The columns of a table of calls.
 * @param {import('./api.js').Run} run
 * @returns {import('./grid.js').Column<import('./api.js').Call>[]}
 */
export const callColumns = (run) => [
  { name: 'time', sort: 'time', cell: (call) => when(call.from_ns) },
  { name: 'process', sort: 'process', cell: (call) => called(run, call.process) },
  { name: 'thread', number: true, cell: (call) => call.tid },
  {
    name: 'call',
    number: true,
    cell: (call) =>
      el(
        'a',
        { href: href('calls', '', { around: `${call.process}:${call.call}` }), title: 'the calls around this one' },
        call.call,
      ),
  },
  { name: 'function', sort: 'function', cell: (call) => el('code', {}, call.function) },
  { name: 'called at', cell: (call) => call.site && el('span', { class: 'site', title: call.site }, call.site) },
  { name: 'about', cell: (call) => call.value && el('span', { class: 'code' }, call.value) },
  { name: 'size', number: true, cell: (call) => size(call.size) },
  {
    name: 'handle data',
    cell: (call) => call.fingerprint && el('a', { class: 'code', href: href('handle', call.fingerprint) }, call.fingerprint),
  },
  { name: 'result', sort: 'result', cell: (call) => answer(call.result) },
  { name: 'took', number: true, sort: 'took', cell: (call) => took(call.took_ns) },
];

/**
 * The calls before and after the call of a side, in its process; null if the side is not about a call.
 * @param {import('./api.js').Run} run
 * @param {import('./api.js').Side} side
 * @returns {Promise<HTMLElement | null>}
 */
export async function callsAround(run, side) {
  const process = processOf(run, side);
  if (!process || side.call === null) return null;
  const page = await ask('calls', { around: `${process.index}:${side.call}`, limit: 2 * AROUND + 1 });
  const columns = callColumns(run)
    .filter(({ name }) => !['process', 'handle data', 'size'].includes(name))
    .map((column) => ({ ...column, sort: undefined }));
  return grid(`Calls of ${called(run, process.index)} around call ${side.call}`, columns, page.rows, {
    current: (call) => call.call === side.call,
  });
}
