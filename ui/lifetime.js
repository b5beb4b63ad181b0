/**
 * One life in words, beside the timeline: what it is, how it ended, what was found, and its story.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { answer, badge, count, moment, size, span, when, who } from './format.js';
import { grid, pages } from './grid.js';
import { href } from './router.js';
import { called, nameOf, processOf } from './run.js';

/** So many moments stand beside the timeline; the handle's own view has more. */
const MOMENTS = 40;
/** So many rows has a page of the table. */
export const PAGE = 50;

/**
 * What a life is called.
 * @param {import('./lifetimes.js').Lives} lives
 * @param {number} life
 * @param {import('./api.js').Run} run
 */
export function spoken(lives, life, run) {
  const ended = lives.to[life] === Infinity ? 'still there' : `for ${span(lives.to[life] - lives.from[life])}`;
  const found = lives.findings.has(life) ? ', with findings' : '';
  return `${lives.kinds[lives.kind[life]]} ${lives.address[life]} of ${called(run, lives.process[life])}, from ${moment(lives.from[life])}, ${ended}${found}`;
}

/** @param {import('./lifetimes.js').Lives} lives @param {number} life */
const ending = (lives, life) => (lives.to[life] === Infinity ? 'still there' : (lives.hows[lives.how[life]] ?? ''));

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} world
 * @param {import('./lifetimes.js').Lives} lives
 * @param {number} life
 * @param {{zoom: () => void, drop: () => void, select: (life: number) => void, perfetto: (at: number) => void}} acts
 */
export function detail(place, { run, check }, lives, life, acts) {
  const fingerprint = lives.fingerprint[life];
  const [from, to] = [lives.from[life], lives.to[life]];
  const alive = to === Infinity;
  const story = el('div', {}, el('p', { class: 'empty' }, 'Reading…'));
  swap(
    place,
    el('h2', {}, lives.kinds[lives.kind[life]], ' ', el('span', { class: 'code' }, lives.address[life])),
    el(
      'dl',
      { class: 'facts' },
      el('dt', {}, lives.opening[life] ? 'open in' : 'got by'),
      el('dd', {}, called(run, lives.process[life])),
      lives.bytes[life] > 0 && [el('dt', {}, 'size'), el('dd', {}, size(lives.bytes[life]))],
      el('dt', {}, 'from'),
      el('dd', {}, when(from)),
      el('dt', {}, 'to'),
      el('dd', {}, alive ? 'still there' : [when(to), ` (${ending(lives, life)})`]),
      !alive && [el('dt', {}, 'lasted'), el('dd', { class: 'figure', title: `${to - from} ns` }, span(to - from))],
      fingerprint && [
        el('dt', {}, 'handle data'),
        el('dd', {}, el('a', { class: 'code', href: href('handle', fingerprint), 'data-key': 'life-handle' }, fingerprint)),
      ],
    ),
    (lives.findings.get(life) ?? []).map(
      (index) =>
        check.findings[index] &&
        el(
          'p',
          {},
          badge(check.findings[index].severity),
          ' ',
          el(
            'a',
            { href: href('finding', nameOf(check.findings, index)), 'data-key': `life-finding-${index}` },
            check.findings[index].rule,
          ),
        ),
    ),
    el(
      'p',
      { class: 'links' },
      el('button', { type: 'button', onclick: acts.zoom, 'data-key': 'life-zoom' }, 'Zoom to it'),
      el('button', { type: 'button', onclick: () => acts.perfetto(from), 'data-key': 'life-perfetto' }, 'In Perfetto'),
      el('button', { type: 'button', onclick: acts.drop, 'data-key': 'life-drop' }, 'Deselect'),
      fingerprint && el('a', { href: href('calls', '', { fingerprint }) }, 'Its calls'),
    ),
    el('h3', {}, 'Its story'),
    story,
  );
  if (!fingerprint) {
    swap(story, el('p', { class: 'empty' }, 'Its handle data was not seen.'));
    return;
  }
  ask('handle', { name: fingerprint }).then(
    (told) => {
      // Data that was handed out often has a long story: what is nearest is told.
      const at = told.moments.findIndex((/** @type {any} */ one) => one.place.time_ns >= from);
      const first = Math.max(0, Math.min(at - 3, told.moments.length - MOMENTS));
      const shown = told.moments.slice(first, first + MOMENTS);
      swap(
        story,
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
              el('span', { class: 'faint' }, process ? called(run, process.index) : who(one.place), ', '),
              answer(one.result),
            );
          }),
        ),
        shown.length < told.moments.length &&
          el(
            'p',
            { class: 'faint' },
            `${count(shown.length, 'moment')} of ${told.moments.length}; `,
            el('a', { href: href('handle', fingerprint) }, 'all'),
          ),
      );
    },
    (error) => swap(story, el('p', { class: 'empty' }, error.message)),
  );
}

/**
 * Lives as rows: what the timeline shows, for who does not see it, and the table of handles.
 * @param {string} label
 * @param {import('./run.js').World} world
 * @param {import('./lifetimes.js').Lives} lives
 * @param {ArrayLike<number>} shown
 * @param {{offset: number, turn: (offset: number) => void, select?: (life: number) => void, selected?: number, size?: number,
 *   sort?: string, desc?: boolean, order?: (sort: string, desc: boolean) => void}} how
 */
export function lifeTable(
  label,
  { run, check },
  lives,
  shown,
  { offset, turn, select, selected = -1, size: page = PAGE, sort, desc, order },
) {
  const rows = Array.from({ length: Math.max(0, Math.min(page, shown.length - offset)) }, (_, index) => shown[offset + index]);
  const worst = (/** @type {number} */ life) => (lives.findings.get(life) ?? []).flatMap((index) => check.findings[index] ?? []);
  return [
    grid(
      label,
      [
        { name: 'from', sort: 'from', cell: (life) => when(lives.from[life]) },
        {
          name: 'lasted',
          number: true,
          sort: 'lasted',
          cell: (life) =>
            lives.to[life] === Infinity
              ? 'still there'
              : el('span', { title: `${lives.to[life] - lives.from[life]} ns` }, span(lives.to[life] - lives.from[life])),
        },
        { name: 'what', sort: 'kind', cell: (life) => lives.kinds[lives.kind[life]] },
        {
          name: 'address',
          cell: (life) =>
            select
              ? el(
                  'button',
                  { type: 'button', class: 'code', 'data-key': `${label} ${lives.name(life)}`, onclick: () => select(life) },
                  lives.address[life],
                )
              : el(
                  'a',
                  { class: 'code', href: href('timeline', '', { sel: lives.name(life) }), title: 'on the timeline' },
                  lives.address[life],
                ),
        },
        { name: 'size', number: true, sort: 'size', cell: (life) => (lives.bytes[life] > 0 ? size(lives.bytes[life]) : null) },
        { name: 'process', sort: 'process', cell: (life) => called(run, lives.process[life]) },
        { name: 'ended by', sort: 'ended', cell: (life) => ending(lives, life) },
        {
          name: 'handle data',
          cell: (life) =>
            lives.fingerprint[life] &&
            el(
              'a',
              { class: 'code', href: href('handle', /** @type {string} */ (lives.fingerprint[life])) },
              lives.fingerprint[life],
            ),
        },
        {
          name: 'findings',
          sort: 'findings',
          cell: (life) =>
            worst(life).map((found) =>
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
      { current: (life) => life === selected, key: label, sort, desc, order },
    ),
    pages({ offset, size: page, total: shown.length, turn }),
  ];
}
