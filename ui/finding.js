/**
 * One finding: what happened, what to do, both sides next to each other, the history of the handle and the calls around.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { asMarkdown, asText, copyButton } from './clipboard.js';
import { excerpt, explanation } from './explanation.js';
import { badge, figure, size, when, who } from './format.js';
import { href } from './router.js';
import { called, finding, nameOf, processOf, sentence } from './run.js';
import { historyTable, callsAround, occurrences, side } from './finding_sides.js';
import { unorderedPicture } from './unordered.js';

/** How much the timeline shows at least on each side of a finding, in nanoseconds. */
const AROUND = 100_000;

/** @param {import('./run.js').RunData} data @param {import('./run.js').Finding} found */
function timelineRange({ run }, found) {
  const times = [found.process, found.other, found.later].flatMap((side) =>
    side ? [side.time_ns, side.known_ns ?? side.time_ns] : [],
  );
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const around = Math.max((last - first) / 4, AROUND);
  return {
    from: Math.max(0, Math.round(first - around)),
    to: Math.round(Math.min(last + around, run.last_ns)),
    at: found.fingerprint,
    finding: found.identity,
  };
}

/** Goes to the table of occurrences without a change of the address. @param {Event} event */
function toOccurrences(event) {
  event.preventDefault();
  document.getElementById('occurrences')?.scrollIntoView({ block: 'start' });
}

/** @param {any} excuse */
const excused = (excuse) =>
  excuse.by === 'suppression' ? 'Suppressed by a suppressions file.' : 'Unchanged: the baseline has it.';

/** @param {import('./run.js').RunData} data @param {number} index @param {any} actions */
function head(data, index, actions) {
  const { check } = data;
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
    el('h1', {}, badge(found.severity), ' ', sentence(data.run, check, index)),
    el('p', { class: 'what' }, el('code', {}, found.rule), ': ', found.message),
    found.count > 1 &&
      el(
        'p',
        {},
        `It happened ${figure(found.count)} times`,
        Object.keys(found.hosts).length > 0 && ` on ${Object.keys(found.hosts).join(', ')}`,
        '; this is the first time. All are ',
        el('a', { href: '#', class: 'to-occurrences', onclick: toOccurrences }, 'listed below'),
        '.',
      ),
    el('p', { class: 'advice' }, el('span', { class: 'faint' }, 'What to do: '), found.advice),
    found.excuse && el('p', { class: 'faint' }, excused(found.excuse)),
    el(
      'p',
      { class: 'links' },
      el('a', { class: 'button', href: href('timeline', '', timelineRange(data, found)) }, 'This moment on the timeline'),
      data.run.perfetto &&
        el(
          'button',
          { type: 'button', 'data-key': 'perfetto-here', onclick: () => actions.perfetto(found.time_ns) },
          'This moment in Perfetto',
        ),
      copyButton('Copy as text', () => asText(data, index)),
      copyButton('Copy as Markdown', () => asMarkdown(data, index)),
      found.fingerprint &&
        el('a', { href: href('calls', '', { fingerprint: found.fingerprint }) }, 'All calls with this handle data'),
    ),
  ];
}

/** What a second look needs. @param {import('./run.js').Finding} found */
const facts = (found) =>
  el(
    'dl',
    { class: 'facts' },
    found.kind && found.subject && [el('dt', {}, found.kind), el('dd', { class: 'code' }, found.subject)],
    found.size !== null && [el('dt', {}, 'size'), el('dd', {}, size(found.size))],
    found.fingerprint && [
      el('dt', {}, 'handle data'),
      el('dd', {}, el('a', { class: 'code', href: href('handle', found.fingerprint) }, found.fingerprint)),
    ],
    el('dt', {}, 'identity'),
    el('dd', { class: 'code' }, found.identity),
  );

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(container, first, route, actions) {
  let name = route.name;
  let data = first;
  const lifetime = el('section', { class: 'card', 'aria-labelledby': 'lifetime' });
  const around = el('section', { class: 'card', 'aria-labelledby': 'around' });
  const rule = el('div', {});
  const sources = [el('div', {}), el('div', {})];
  let turn = 0;

  async function loadDetails(/** @type {import('./run.js').Finding} */ found, /** @type {number} */ index) {
    const mine = ++turn;
    const { run } = data;
    if (!lifetime.hasChildNodes()) swap(lifetime, el('p', { class: 'empty' }, 'Reading…'));
    if (!around.hasChildNodes()) swap(around, el('p', { class: 'empty' }, 'Reading…'));
    explanation(found.rule, ask('rule', { name: found.rule })).then((shown) => mine === turn && swap(rule, shown));
    sources.forEach((place, there) => {
      if (!there || found.other) excerpt(index, there === 1).then((shown) => mine === turn && swap(place, shown));
    });
    const sides = [found.process, ...(found.other ? [found.other] : [])];
    const [history, ...calls] = await Promise.allSettled([
      found.fingerprint ? ask('handle', { name: found.fingerprint }) : Promise.resolve(null),
      ...sides.map((side) => callsAround(run, side)),
    ]);
    if (mine !== turn) return;
    lifetime.hidden = history.status === 'fulfilled' && history.value === null;
    swap(
      lifetime,
      el('h2', { id: 'lifetime' }, 'History of the handle'),
      history.status === 'rejected'
        ? el('p', { class: 'empty' }, history.reason.message)
        : history.value && historyTable(run, history.value, { sides }),
    );
    swap(
      around,
      el('h2', { id: 'around' }, 'Calls around it'),
      calls.map((answered, index) => {
        const process = processOf(run, sides[index]);
        return [
          el(
            'h3',
            {},
            `${index === 0 ? 'here' : 'there'}: ${process ? called(run, process.index) : who(sides[index])}, `,
            when(sides[index].time_ns),
          ),
          answered.status === 'rejected'
            ? el('p', { class: 'empty' }, answered.reason.message)
            : (answered.value ?? el('p', { class: 'empty' }, 'This side is not about a single call.')),
        ];
      }),
    );
  }

  function draw() {
    const index = finding(data.check.findings, name);
    const found = data.check.findings[index];
    if (!found) {
      swap(
        container,
        el('h1', {}, 'No such finding'),
        el('p', { class: 'empty' }, `This run has no finding '${name}'. `, el('a', { href: href('overview') }, 'All findings')),
      );
      return;
    }
    swap(
      container,
      head(data, index, actions),
      unorderedPicture(data.run, found),
      el('div', { class: 'sides' }, side(data, index, 'here', sources[0]), found.other && side(data, index, 'there', sources[1])),
      facts(found),
      rule,
      occurrences(data, index),
      lifetime,
      around,
    );
    loadDetails(found, index);
  }
  draw();
  return {
    /** @param {import('./run.js').RunData} next */
    refresh(next) {
      data = next;
      draw();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      if (route.name === name) return;
      name = route.name;
      for (const part of [lifetime, around, rule, ...sources]) swap(part);
      draw();
      scrollTo(0, 0);
    },
  };
}
