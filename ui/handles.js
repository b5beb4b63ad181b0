/**
 * The table of handles and openings, searched and sorted here.
 */
import { el, say, swap } from './dom.js';
import { count, figure } from './format.js';
import { byProcess, byRule, choice, search } from './filters.js';
import { lifeTable } from './lifetime.js';
import { fetchLives } from './lifetimes.js';
import { choose, href } from './router.js';

const PAGE = 200;

/** By what rows are sorted. @type {Record<string, (lives: import('./lifetimes.js').Lives) => (life: number) => number | string>} */
const ORDERS = {
  from: (lives) => (life) => lives.from[life],
  lasted: (lives) => (life) => lives.to[life] - lives.from[life],
  kind: (lives) => (life) => lives.kinds[lives.kind[life]],
  size: (lives) => (life) => lives.bytes[life],
  process: (lives) => (life) => lives.process[life],
  ended: (lives) => (life) => (lives.to[life] === Infinity ? '~' : lives.hows[lives.how[life]]),
  findings: (lives) => (life) => lives.findings.get(life)?.length ?? 0,
};

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(place, first, route, actions) {
  let world = first;
  let query = route.query;
  /** @type {import('./lifetimes.js').Lives | null} */
  let lives = null;
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which handles' });
  const head = el('p', { class: 'faint' });
  const table = el('div', {}, el('p', { class: 'empty' }, 'Reading…'));
  swap(place, el('h1', {}, 'Handles'), el('section', { class: 'card', 'aria-label': 'Handles' }, form, head, table));
  const value = (/** @type {string} */ name) => query.get(name) ?? '';

  /** @param {Record<string, string | number | boolean | null>} changes */
  function want(changes) {
    choose(query, { offset: null, ...changes });
    draw();
  }

  function draw() {
    swap(
      form,
      search('Search', value('q'), (q) => want({ q }), 'address, fingerprint'),
      choice('Kind', value('kind'), lives?.kinds ?? [], (kind) => want({ kind })),
      byProcess(world, value('process'), want),
      byRule(world, value('rule'), want),
    );
    if (!lives) return;
    const shown = lives.chosen(
      { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') },
      world.check.findings,
    );
    const [sort, desc] = [value('sort') || 'from', value('desc') === '1'];
    if (sort !== 'from' || desc) {
      const by = (ORDERS[sort] ?? ORDERS.from)(lives);
      const turn = desc ? -1 : 1;
      shown.sort((a, b) => {
        const [x, y] = [by(a), by(b)];
        return x < y ? -turn : x > y ? turn : a - b;
      });
    }
    const offset = Math.min(Number(value('offset')) || 0, Math.max(0, shown.length - 1));
    const text = `${count(shown.length, 'handle and opening', 'handles and openings')}${shown.length < lives.total ? ` of ${figure(lives.total)}` : ''}${lives.size < lives.total ? `; the first ${figure(lives.size)} are here` : ''}`;
    head.textContent = text;
    say(text);
    swap(
      table,
      shown.length === 0
        ? el(
            'p',
            { class: 'empty' },
            lives.total === 0
              ? 'No process got a handle.'
              : ['None is like that. ', el('a', { href: href('handles') }, 'All handles')],
          )
        : lifeTable('Handles and openings', world, lives, shown, {
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
      lives = await fetchLives(world.run.lives, (some) => {
        if (lives) return;
        lives = some;
        draw();
      });
      draw();
    } catch (error) {
      if (!lives) swap(table, el('p', { class: 'empty' }, 'The handles cannot be shown.'));
      actions.complain(error);
    }
  }
  draw();
  load();
  return {
    /** @param {import('./run.js').World} next */
    refresh(next) {
      world = next;
      load();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      query = route.query;
      draw();
    },
  };
}
