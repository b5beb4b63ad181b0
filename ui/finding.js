/**
 * One finding: what happened, both sides of it next to each other, the life of the handle, the calls around, and what to do.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { badge, figure, size, when, who } from './format.js';
import { href } from './router.js';
import { called, finding, nameOf, processOf } from './run.js';
import { moments, neighbours, side } from './finding_sides.js';

/** A moment is shown on the timeline with so much around it, in nanoseconds, or a tenth of the run if that is more. */
const AROUND = 100_000;

/** @param {import('./run.js').World} world @param {import('./run.js').Finding} found */
function sight({ run }, found) {
  const times = [found.process, found.other].flatMap((side) => (side ? [side.time_ns] : []));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const around = Math.max((last - first) / 4, AROUND, run.last_ns / 20);
  return { from: Math.max(0, Math.round(first - around)), to: Math.round(last + around), at: found.fingerprint };
}

/** @param {any} excuse */
const excused = (excuse) =>
  excuse.by === 'suppression' ? 'It is excused by a suppression.' : 'It is excused: it was known before.';

/** @param {import('./run.js').World} world @param {number} index @param {any} actions */
function head(world, index, actions) {
  const { check } = world;
  /** @type {import('./run.js').Finding} */
  const found = check.findings[index];
  const step = (/** @type {string} */ label, /** @type {number} */ to) =>
    check.findings[to] && el('a', { href: href('finding', nameOf(check.findings, to)), 'data-key': label }, label);
  return [
    el(
      'nav',
      { class: 'crumbs', 'aria-label': 'Findings' },
      el('a', { href: href('overview') }, 'Overview'),
      el('span', { class: 'faint' }, `finding ${index + 1} of ${check.findings.length}`),
      step('Previous', index - 1),
      step('Next', index + 1),
    ),
    el('h1', {}, badge(found.severity), ' ', found.rule),
    el('p', { class: 'what' }, found.message),
    found.count > 1 &&
      el(
        'p',
        {},
        `It happened ${figure(found.count)} times`,
        Object.keys(found.hosts).length > 0 && ` on ${Object.keys(found.hosts).join(', ')}`,
        '; this is the first.',
      ),
    el('p', { class: 'advice' }, el('strong', {}, 'What to do: '), found.advice),
    found.excuse && el('p', { class: 'faint' }, excused(found.excuse)),
    el(
      'dl',
      { class: 'facts' },
      found.kind && found.subject && [el('dt', {}, found.kind), el('dd', { class: 'code' }, found.subject)],
      found.size !== null && [el('dt', {}, 'size'), el('dd', {}, size(found.size))],
      found.fingerprint && [
        el('dt', {}, 'handle data'),
        el('dd', {}, el('a', { class: 'code', href: href('handle', found.fingerprint) }, found.fingerprint)),
      ],
      el('dt', {}, 'known again by'),
      el('dd', { class: 'code' }, found.identity),
    ),
    el(
      'p',
      { class: 'links' },
      el('a', { href: href('timeline', '', sight(world, found)) }, 'This moment on the timeline'),
      el(
        'button',
        { type: 'button', 'data-key': 'perfetto-here', onclick: () => actions.perfetto(found.time_ns) },
        'This moment in Perfetto',
      ),
      found.fingerprint &&
        el('a', { href: href('calls', '', { fingerprint: found.fingerprint }) }, 'All calls with this handle data'),
    ),
  ];
}

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(place, first, route, actions) {
  let name = route.name;
  let world = first;
  const life = el('section', { class: 'card', 'aria-labelledby': 'life' });
  const around = el('section', { class: 'card', 'aria-labelledby': 'around' });
  let turn = 0;

  async function tell(/** @type {import('./run.js').Finding} */ found) {
    const mine = ++turn;
    const { run } = world;
    const sides = [found.process, ...(found.other ? [found.other] : [])];
    const [story, ...calls] = await Promise.allSettled([
      found.fingerprint ? ask('handle', { name: found.fingerprint }) : Promise.resolve(null),
      ...sides.map((side) => neighbours(run, side)),
    ]);
    if (mine !== turn) return;
    life.hidden = story.status === 'fulfilled' && story.value === null;
    swap(
      life,
      el('h2', { id: 'life' }, 'The life of the handle'),
      story.status === 'rejected'
        ? el('p', { class: 'empty' }, story.reason.message)
        : story.value && moments(run, story.value, { sides }),
    );
    swap(
      around,
      el('h2', { id: 'around' }, 'The calls around'),
      calls.map((told, index) => {
        const process = processOf(run, sides[index]);
        return [
          el(
            'h3',
            {},
            `${index === 0 ? 'here' : 'there'}: ${process ? called(run, process.index) : who(sides[index])}, `,
            when(sides[index].time_ns),
          ),
          told.status === 'rejected'
            ? el('p', { class: 'empty' }, told.reason.message)
            : (told.value ?? el('p', { class: 'empty' }, 'It is not about one call.')),
        ];
      }),
    );
  }

  function draw() {
    const index = finding(world.check.findings, name);
    const found = world.check.findings[index];
    if (!found) {
      swap(
        place,
        el('h1', {}, 'No such finding'),
        el(
          'p',
          { class: 'empty' },
          `This run has no finding that is known by '${name}'. `,
          el('a', { href: href('overview') }, 'All findings'),
        ),
      );
      return;
    }
    swap(
      place,
      head(world, index, actions),
      el('div', { class: 'sides' }, side(world.run, 'here', found.process), found.other && side(world.run, 'there', found.other)),
      life,
      around,
    );
    tell(found);
  }
  draw();
  return {
    /** @param {import('./run.js').World} next */
    refresh(next) {
      world = next;
      draw();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      if (route.name === name) return;
      name = route.name;
      swap(life);
      swap(around);
      draw();
      scrollTo(0, 0);
    },
  };
}
