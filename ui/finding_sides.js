/**
 * Parts of stories: a place with its call stack, the moments in the life of a handle, the calls around one.
 */
import { ask } from './api.js';
import { el } from './dom.js';
import { answer, count, file, size, took, when, who } from './format.js';
import { grid } from './grid.js';
import { href } from './router.js';
import { called, processOf } from './run.js';

/** So many frames are shown before one asks for the rest. */
const FRAMES = 8;
/** So many moments are listed. */
const MOMENTS = 400;
/** So many calls before and after the one that is meant. */
const AROUND = 7;

/** @param {import('./api.js').Frame} frame */
const frame = ({ function: name, file: source, line, module, offset }) => {
  const lies = source ? `${source}${line === null ? '' : `:${line}`}` : `${file(module)} ${offset}`;
  return el(
    'li',
    {},
    el('code', { class: source ? null : 'runtime', title: `${module} ${offset}` }, name ?? offset),
    el('span', { class: 'lies' }, lies),
  );
};

/** @param {import('./api.js').Frame[]} frames @param {string} key */
export function stack(frames, key) {
  if (frames.length === 0) return el('p', { class: 'empty' }, 'No call stack was taken.');
  const own = frames.filter((frame) => frame.file !== null && !frame.file.startsWith('/usr/'));
  const first = own.length > 0 ? own.slice(0, FRAMES) : frames.slice(0, FRAMES);
  return [
    el('ol', { class: 'frames' }, first.map(frame)),
    first.length < frames.length &&
      el(
        'details',
        { 'data-key': `stack-${key}` },
        el('summary', {}, `Whole stack (${count(frames.length, 'frame')})`),
        el('ol', { class: 'frames' }, frames.map(frame)),
      ),
  ];
}

/**
 * One side of a finding.
 * @param {import('./api.js').Run} run
 * @param {string} name  "here" or "there"
 * @param {import('./api.js').Side} side
 */
export function side(run, name, side) {
  const process = processOf(run, side);
  const around = process && side.call !== null ? `${process.index}:${side.call}` : null;
  return el(
    'section',
    { class: 'card', 'aria-label': `The story ${name}` },
    el('h2', {}, `${name}: `, process ? called(run, process.index) : who(side)),
    el(
      'dl',
      { class: 'facts' },
      el('dt', {}, 'when'),
      el('dd', {}, when(side.time_ns)),
      side.function && [el('dt', {}, 'function'), el('dd', {}, el('code', {}, side.function))],
      side.call !== null && [
        el('dt', {}, 'call'),
        el('dd', {}, around ? el('a', { href: href('calls', '', { around }) }, `call ${side.call}`) : String(side.call)),
      ],
      side.tid !== 0 && [el('dt', {}, 'thread'), el('dd', {}, String(side.tid))],
      side.host && [el('dt', {}, 'host'), el('dd', {}, side.host)],
    ),
    el('h3', {}, 'Call stack, innermost first'),
    stack(side.stack, name),
  );
}

/**
 * The life of a handle, in the order of time.
 * @param {import('./api.js').Run} run
 * @param {any} story  an answer of api/handle
 * @param {{sides: import('./api.js').Side[]}} [meant]  the places that are shown already
 */
export function moments(run, story, { sides } = { sides: [] }) {
  const meant = (/** @type {any} */ { place }) =>
    sides.some((side) => side.pid === place.pid && side.host === place.host && side.call === place.call);
  const shown = story.moments.slice(0, MOMENTS);
  return [
    grid(
      'The life of the handle',
      [
        { name: 'time', cell: ({ place }) => when(place.time_ns) },
        {
          name: 'process',
          cell: ({ place }) => {
            const process = processOf(run, place);
            return process ? called(run, process.index) : who(place);
          },
        },
        {
          name: 'call',
          number: true,
          cell: ({ place }) => {
            const process = processOf(run, place);
            return process && place.call !== null
              ? el('a', { href: href('calls', '', { around: `${process.index}:${place.call}` }) }, place.call)
              : place.call;
          },
        },
        { name: 'function', cell: ({ place }) => el('code', {}, place.function) },
        { name: 'about', cell: ({ value }) => value && el('span', { class: 'code' }, value) },
        { name: 'answer', cell: ({ result }) => answer(result) },
        {
          name: 'took',
          number: true,
          cell: ({ took_ns, result }) => (took_ns === null && result !== null ? null : took(took_ns)),
        },
      ],
      shown,
      { current: meant },
    ),
    story.moments.length > shown.length &&
      el(
        'p',
        { class: 'faint' },
        `The first ${MOMENTS} of ${story.moments.length} moments; urscope handle ${story.name} tells all.`,
      ),
  ];
}

/**
 * The columns in which calls are shown.
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
  { name: 'about', cell: (call) => call.value && el('span', { class: 'code' }, call.value) },
  { name: 'size', number: true, cell: (call) => size(call.size) },
  {
    name: 'handle data',
    cell: (call) => call.fingerprint && el('a', { class: 'code', href: href('handle', call.fingerprint) }, call.fingerprint),
  },
  { name: 'answer', sort: 'result', cell: (call) => answer(call.result) },
  { name: 'took', number: true, sort: 'took', cell: (call) => took(call.took_ns) },
];

/**
 * The calls before and after one of a process.
 * @param {import('./api.js').Run} run
 * @param {import('./api.js').Side} side
 * @returns {Promise<HTMLElement | null>}
 */
export async function neighbours(run, side) {
  const process = processOf(run, side);
  if (!process || side.call === null) return null;
  const answered = await ask('calls', { around: `${process.index}:${side.call}`, limit: 2 * AROUND + 1 });
  const columns = callColumns(run)
    .filter(({ name }) => !['process', 'handle data', 'size'].includes(name))
    .map((column) => ({ ...column, sort: undefined }));
  return grid(`Calls of ${called(run, process.index)} around call ${side.call}`, columns, answered.rows, {
    current: (call) => call.call === side.call,
  });
}
