/**
 * The table of handles and openings. The browser searches and sorts it.
 */
import { el, announce, swap } from './dom.js';
import { count, figure } from './format.js';
import { byProcess, byRule, choice, search } from './filters.js';
import { lifetimeTable } from './lifetime.js';
import { fetchLifetimes } from './lifetimes.js';
import { choose, href } from './router.js';

const PAGE = 200;

/** The sort keys of the columns. @type {Record<string, (lifetimes: import('./lifetimes.js').Lifetimes) => (lifetime: number) => number | string>} */
const ORDERS = {
  from: (lifetimes) => (lifetime) => lifetimes.from[lifetime],
  lasted: (lifetimes) => (lifetime) => lifetimes.to[lifetime] - lifetimes.from[lifetime],
  kind: (lifetimes) => (lifetime) => lifetimes.kinds[lifetimes.kind[lifetime]],
  size: (lifetimes) => (lifetime) => lifetimes.bytes[lifetime],
  site: (lifetimes) => (lifetime) => lifetimes.site(lifetime) ?? '~',
  process: (lifetimes) => (lifetime) => lifetimes.process[lifetime],
  ended: (lifetimes) => (lifetime) => (lifetimes.to[lifetime] === Infinity ? '~' : lifetimes.endings[lifetimes.ending[lifetime]]),
  findings: (lifetimes) => (lifetime) => lifetimes.findings.get(lifetime)?.length ?? 0,
};

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(container, first, route, actions) {
  let data = first;
  let query = route.query;
  /** @type {import('./lifetimes.js').Lifetimes | null} */
  let lifetimes = null;
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which handles' });
  const head = el('p', { class: 'faint' });
  const table = el('div', {}, el('p', { class: 'empty' }, 'Reading…'));
  swap(container, el('h1', {}, 'Handles'), el('section', { class: 'card', 'aria-label': 'Handles' }, form, head, table));
  const value = (/** @type {string} */ name) => query.get(name) ?? '';

  /** @param {Record<string, string | number | boolean | null>} changes */
  function want(changes) {
    choose(query, { offset: null, ...changes });
    draw();
  }

  function draw() {
    swap(
      form,
      search('Search', value('q'), (q) => want({ q }), 'call site, address'),
      choice('Kind', value('kind'), lifetimes?.kinds ?? [], (kind) => want({ kind })),
      byProcess(data, value('process'), want),
      byRule(data, value('rule'), want),
    );
    if (!lifetimes) return;
    const shown = lifetimes.chosen(
      { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') },
      data.check.findings,
    );
    const [sort, desc] = [value('sort') || 'from', value('desc') === '1'];
    if (sort !== 'from' || desc) {
      const by = (ORDERS[sort] ?? ORDERS.from)(lifetimes);
      const turn = desc ? -1 : 1;
      shown.sort((a, b) => {
        const [x, y] = [by(a), by(b)];
        return x < y ? -turn : x > y ? turn : a - b;
      });
    }
    const offset = Math.min(Number(value('offset')) || 0, Math.max(0, shown.length - 1));
    const text = `${count(shown.length, 'handle and opening', 'handles and openings')}${shown.length < lifetimes.total ? ` of ${figure(lifetimes.total)}` : ''}${lifetimes.size < lifetimes.total ? `; only the first ${figure(lifetimes.size)} were loaded` : ''}`;
    head.textContent = text;
    announce(text);
    swap(
      table,
      shown.length === 0
        ? el(
            'p',
            { class: 'empty' },
            lifetimes.total === 0
              ? 'No process got a handle.'
              : ['No handle or opening matches. ', el('a', { href: href('handles') }, 'All handles')],
          )
        : lifetimeTable('Handles and openings', data, lifetimes, shown, {
            offset,
            turn: (offset) => want({ offset }),
            size: PAGE,
            sort,
            desc,
            order: (sort, desc) => want({ sort, desc }),
          }),
    );
  }

  async function load() {
    try {
      lifetimes = await fetchLifetimes(data.run, (some) => {
        if (lifetimes) return;
        lifetimes = some;
        draw();
      });
      draw();
    } catch (error) {
      if (!lifetimes) swap(table, el('p', { class: 'empty' }, 'The handles cannot be shown.'));
      actions.showError(error);
    }
  }
  draw();
  load();
  return {
    /** @param {import('./run.js').RunData} next */
    refresh(next) {
      data = next;
      load();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      query = route.query;
      draw();
    },
  };
}
