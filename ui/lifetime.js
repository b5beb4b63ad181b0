/**
 * Shows lifetimes as text: one with its details beside the timeline, and many as rows of a table.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { answer, badge, bytes, count, figure, moment, size, span, when, who } from './format.js';
import { grid, pages } from './grid.js';
import { href } from './router.js';
import { called, nameOf, processOf, sentence } from './run.js';
import { legend } from './unordered.js';

/** How many entries of a history are beside the timeline; the handle's own view has more. */
const MOMENTS = 40;
/** The rows of one page of the table. */
export const PAGE = 50;

/**
 * A lifetime in one line, for the tooltip and for screen readers.
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {number} lifetime
 * @param {import('./api.js').Run} run
 */
export function describe(lifetimes, lifetime, run) {
  const found = lifetimes.findings.has(lifetime) ? ', with findings' : '';
  const sized = lifetimes.bytes[lifetime] > 0 ? `, ${bytes(lifetimes.bytes[lifetime])}` : '';
  const site = lifetimes.site(lifetime);
  return `${lifetimes.kinds[lifetimes.kind[lifetime]]} ${lifetimes.address(lifetime)} of ${called(run, lifetimes.process[lifetime])}${sized}${site ? `, ${lifetimes.opening[lifetime] ? 'opened' : 'got'} in ${site}` : ''}, from ${moment(lifetimes.from[lifetime])}, ${lasted(lifetimes, lifetime)}${found}`;
}

/**
 * Writes what is under the pointer into the tooltip; false if there is nothing.
 * @param {HTMLElement} tooltip
 * @param {import('./run.js').RunData} data
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {import('./lanes.js').Group | null} group
 * @param {import('./input.js').Hit} hit
 */
export function tell(tooltip, { run, check }, lifetimes, group, { lifetime, instant }) {
  if (instant) {
    const found = check.findings[instant.finding];
    swap(
      tooltip,
      el('div', {}, badge(found.severity), ' ', sentence(run, check, instant.finding)),
      el('div', { class: 'faint' }, `${found.rule} · ${moment(instant.time)} · a click goes there`),
    );
    return true;
  }
  if (lifetime >= 0) {
    const site = lifetimes.site(lifetime);
    const [name, sized] = [lifetimes.kinds[lifetimes.kind[lifetime]], lifetimes.bytes[lifetime]];
    swap(
      tooltip,
      el('div', {}, `${name} of ${called(run, lifetimes.process[lifetime])}${sized > 0 ? `, ${bytes(sized)}` : ''}`),
      site && el('div', {}, el('code', {}, site)),
      el(
        'div',
        { class: 'faint' },
        `${lifetimes.address(lifetime)} · from ${moment(lifetimes.from[lifetime])}, ${lasted(lifetimes, lifetime)}`,
      ),
      (lifetimes.findings.get(lifetime) ?? [])
        .slice(0, 3)
        .map((index) => el('div', {}, badge(check.findings[index].severity), ' ', sentence(run, check, index))),
    );
    return true;
  }
  if (!group) return false;
  swap(
    tooltip,
    el('div', {}, called(run, group.process)),
    el(
      'div',
      { class: 'faint' },
      `${count(group.members.length, 'lifetime')} of ${count(group.exports, 'export')}${group.found > 0 ? `, ${figure(group.found)} with findings` : ''} · a click opens or shuts its lanes`,
    ),
  );
  return true;
}

/** How long it lasted. @param {import('./lifetimes.js').Lifetimes} lifetimes @param {number} lifetime */
const lasted = (lifetimes, lifetime) =>
  lifetimes.to[lifetime] === Infinity ? 'still alive' : `for ${span(lifetimes.to[lifetime] - lifetimes.from[lifetime])}`;

/**
 * A mistake that concerns no lifetime that is known.
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} data
 * @param {import('./marks.js').Instant} instant
 * @param {{drop: () => void, perfetto: (at: number) => void}} controls
 */
export function aboutInstant(container, { run, check }, instant, controls) {
  const found = check.findings[instant.finding];
  swap(
    container,
    el('h2', {}, sentence(run, check, instant.finding)),
    el(
      'p',
      {},
      badge(found.severity),
      ' ',
      el('a', { href: href('finding', nameOf(check.findings, instant.finding)) }, found.rule),
    ),
    el('p', {}, when(instant.time), ' ', instant.process >= 0 && called(run, instant.process)),
    instant.unordered && el('p', { class: 'faint' }, legend(instant.unordered)),
    el(
      'p',
      { class: 'links' },
      run.perfetto && el('button', { type: 'button', onclick: () => controls.perfetto(instant.time) }, 'In Perfetto'),
      el('button', { type: 'button', onclick: controls.drop }, 'Deselect'),
    ),
  );
}

/** @param {import('./lifetimes.js').Lifetimes} lifetimes @param {number} lifetime */
const ending = (lifetimes, lifetime) =>
  lifetimes.to[lifetime] === Infinity ? 'still alive' : (lifetimes.endings[lifetimes.ending[lifetime]] ?? '');

/**
 * Fills the history of handle data, around a moment.
 * @param {HTMLElement} history
 * @param {import('./run.js').Run} run
 * @param {string | null} fingerprint
 * @param {number} from  nanoseconds of the run
 */
function showHistory(history, run, fingerprint, from) {
  if (!fingerprint) {
    swap(history, el('p', { class: 'empty' }, 'Its handle data was not recorded.'));
    return;
  }
  ask('handle', { name: fingerprint }).then(
    (answered) => {
      // Handle data that was exported often has a long history: show the part around this lifetime.
      const at = answered.moments.findIndex((/** @type {any} */ one) => one.place.time_ns >= from);
      const first = Math.max(0, Math.min(at - 3, answered.moments.length - MOMENTS));
      const shown = answered.moments.slice(first, first + MOMENTS);
      swap(
        history,
        el(
          'ol',
          { class: 'moments' },
          shown.map((/** @type {any} */ one) => {
            const process = processOf(run, one.place);
            return el(
              'li',
              {},
              when(one.place.time_ns),
              ' ',
              el('code', {}, one.place.function),
              el('br'),
              one.place.site && [one.place.site, el('br')],
              el('span', { class: 'faint' }, process ? called(run, process.index) : who(one.place), ', '),
              answer(one.result),
            );
          }),
        ),
        shown.length < answered.moments.length &&
          el(
            'p',
            { class: 'faint' },
            `${count(shown.length, 'entry', 'entries')} of ${answered.moments.length}; `,
            el('a', { href: href('handle', fingerprint) }, 'all'),
          ),
      );
    },
    (error) => swap(history, el('p', { class: 'empty' }, error.message)),
  );
}

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} data
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {number} lifetime
 * @param {{zoom: () => void, drop: () => void, select: (lifetime: number) => void, perfetto: (at: number) => void}} controls
 */
export function detail(container, { run, check }, lifetimes, lifetime, controls) {
  const fingerprint = lifetimes.fingerprint(lifetime);
  const [from, to] = [lifetimes.from[lifetime], lifetimes.to[lifetime]];
  const alive = to === Infinity;
  const history = el('div', {}, el('p', { class: 'empty' }, 'Reading…'));
  swap(
    container,
    el('h2', {}, lifetimes.kinds[lifetimes.kind[lifetime]], ' ', el('span', { class: 'code' }, lifetimes.address(lifetime))),
    el(
      'dl',
      { class: 'facts' },
      el('dt', {}, lifetimes.opening[lifetime] ? 'open in' : 'got by'),
      el('dd', {}, called(run, lifetimes.process[lifetime])),
      lifetimes.site(lifetime) && [el('dt', {}, 'at'), el('dd', {}, el('code', {}, lifetimes.site(lifetime)))],
      lifetimes.bytes[lifetime] > 0 && [el('dt', {}, 'size'), el('dd', {}, size(lifetimes.bytes[lifetime]))],
      lifetimes.allocated[lifetime] !== Infinity && [
        el('dt', {}, 'memory'),
        el(
          'dd',
          {},
          'allocated ',
          when(lifetimes.allocated[lifetime]),
          lifetimes.freed[lifetime] === Infinity ? ', never freed' : [', freed ', when(lifetimes.freed[lifetime])],
        ),
      ],
      el('dt', {}, 'from'),
      el('dd', {}, when(from)),
      el('dt', {}, 'to'),
      el('dd', {}, alive ? 'still alive' : [when(to), ` (${ending(lifetimes, lifetime)})`]),
      !alive && [el('dt', {}, 'lasted'), el('dd', { class: 'figure', title: `${to - from} ns` }, span(to - from))],
      fingerprint && [
        el('dt', {}, 'handle data'),
        el('dd', {}, el('a', { class: 'code', href: href('handle', fingerprint), 'data-key': 'lifetime-handle' }, fingerprint)),
      ],
    ),
    (lifetimes.findings.get(lifetime) ?? []).map(
      (index) =>
        check.findings[index] &&
        el(
          'p',
          {},
          badge(check.findings[index].severity),
          ' ',
          el(
            'a',
            { href: href('finding', nameOf(check.findings, index)), 'data-key': `lifetime-finding-${index}` },
            sentence(run, check, index),
          ),
        ),
    ),
    el(
      'p',
      { class: 'links' },
      el('button', { type: 'button', onclick: controls.zoom, 'data-key': 'lifetime-zoom' }, 'Zoom in on it'),
      run.perfetto &&
        el('button', { type: 'button', onclick: () => controls.perfetto(from), 'data-key': 'lifetime-perfetto' }, 'In Perfetto'),
      el('button', { type: 'button', onclick: controls.drop, 'data-key': 'lifetime-drop' }, 'Deselect'),
      fingerprint && el('a', { href: href('calls', '', { fingerprint }) }, 'Its calls'),
    ),
    el('h3', {}, 'History'),
    history,
  );
  showHistory(history, run, fingerprint, from);
}

/**
 * Lifetimes as rows of a table: for the handles view, and for readers of the timeline who do not see the canvas.
 * @param {string} label
 * @param {import('./run.js').RunData} data
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {ArrayLike<number>} shown
 * @param {{offset: number, turn: (offset: number) => void, select?: (lifetime: number) => void, selected?: number, size?: number,
 *   sort?: string, desc?: boolean, order?: (sort: string, desc: boolean) => void}} how
 */
export function lifetimeTable(
  label,
  { run, check },
  lifetimes,
  shown,
  { offset, turn, select, selected = -1, size: page = PAGE, sort, desc, order },
) {
  const rows = Array.from({ length: Math.max(0, Math.min(page, shown.length - offset)) }, (_, index) => shown[offset + index]);
  const worst = (/** @type {number} */ lifetime) =>
    (lifetimes.findings.get(lifetime) ?? []).flatMap((index) => check.findings[index] ?? []);
  return [
    grid(
      label,
      [
        { name: 'from', sort: 'from', cell: (lifetime) => when(lifetimes.from[lifetime]) },
        {
          name: 'lasted',
          number: true,
          sort: 'lasted',
          cell: (lifetime) =>
            lifetimes.to[lifetime] === Infinity
              ? 'still alive'
              : el(
                  'span',
                  { title: `${lifetimes.to[lifetime] - lifetimes.from[lifetime]} ns` },
                  span(lifetimes.to[lifetime] - lifetimes.from[lifetime]),
                ),
        },
        { name: 'what', sort: 'kind', cell: (lifetime) => lifetimes.kinds[lifetimes.kind[lifetime]] },
        {
          name: 'address',
          cell: (lifetime) =>
            select
              ? el(
                  'button',
                  {
                    type: 'button',
                    class: 'code',
                    'data-key': `${label} ${lifetimes.name(lifetime)}`,
                    onclick: () => select(lifetime),
                  },
                  lifetimes.address(lifetime),
                )
              : el(
                  'a',
                  { class: 'code', href: href('timeline', '', { sel: lifetimes.name(lifetime) }), title: 'on the timeline' },
                  lifetimes.address(lifetime),
                ),
        },
        {
          name: 'at',
          sort: 'site',
          cell: (lifetime) => el('span', { class: 'site', title: lifetimes.site(lifetime) }, lifetimes.site(lifetime)),
        },
        {
          name: 'size',
          number: true,
          sort: 'size',
          cell: (lifetime) => (lifetimes.bytes[lifetime] > 0 ? size(lifetimes.bytes[lifetime]) : null),
        },
        { name: 'process', sort: 'process', cell: (lifetime) => called(run, lifetimes.process[lifetime]) },
        { name: 'ended by', sort: 'ended', cell: (lifetime) => ending(lifetimes, lifetime) },
        {
          name: 'handle data',
          cell: (lifetime) =>
            lifetimes.fingerprint(lifetime) &&
            el(
              'a',
              { class: 'code', href: href('handle', /** @type {string} */ (lifetimes.fingerprint(lifetime))) },
              lifetimes.fingerprint(lifetime),
            ),
        },
        {
          name: 'findings',
          sort: 'findings',
          cell: (lifetime) =>
            worst(lifetime).map((found) =>
              el(
                'a',
                { href: href('finding', nameOf(check.findings, check.findings.indexOf(found))) },
                badge(found.severity),
                ' ',
                found.rule,
                ' ',
              ),
            ),
        },
      ],
      rows,
      { current: (lifetime) => lifetime === selected, key: label, sort, desc, order },
    ),
    pages({ offset, size: page, total: shown.length, turn }),
  ];
}
