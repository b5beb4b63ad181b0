/**
 * The table of calls. The server searches and sorts, so that a million calls cost no more than one page.
 */
import { ask } from './api.js';
import { el, announce, swap } from './dom.js';
import { count, figure, moment } from './format.js';
import { byProcess, check, choice, search } from './filters.js';
import { grid, pages } from './grid.js';
import { choose, href } from './router.js';
import { callColumns } from './finding_sides.js';

const PAGE = 200;

const FILTERS = ['q', 'function', 'process', 'ipc', 'errors', 'fingerprint', 'from_ns', 'to_ns', 'around', 'offset'];

/**
 * The page of calls that an address asks for.
 * @param {URLSearchParams} query
 */
export function load(query) {
  const asked = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? '']));
  return ask('calls', { ...asked, sort: query.get('sort') || 'time', desc: query.get('desc') === '1' ? 1 : 0, limit: PAGE });
}

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} first
 * @param {import('./router.js').Route} route
 */
export function open(container, first, route) {
  let data = first;
  let query = route.query;
  let turn = 0;
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which calls' });
  const head = el('p', { class: 'faint' });
  const table = el('div', {});
  swap(container, el('h1', {}, 'Calls'), el('section', { class: 'card', 'aria-label': 'Calls' }, form, head, table));

  const value = (/** @type {string} */ name) => query.get(name) ?? '';
  /** @param {Record<string, string | number | boolean | null>} changes */
  function want(changes) {
    choose(query, { offset: null, around: null, ...changes });
    draw();
  }

  function filters() {
    const functions = Object.keys(data.check.calls);
    const between = value('from_ns') || value('to_ns');
    swap(
      form,
      search('Search', value('q'), (q) => want({ q }), 'any column'),
      choice('Function', value('function'), functions, (name) => want({ function: name })),
      byProcess(data, value('process'), want),
      check('IPC only', value('ipc') === '1', (ipc) => want({ ipc })),
      check('Errors only', value('errors') === '1', (errors) => want({ errors })),
      value('fingerprint') &&
        el('button', { type: 'button', onclick: () => want({ fingerprint: null }) }, `handle data ${value('fingerprint')} ✕`),
      between &&
        el(
          'button',
          { type: 'button', onclick: () => want({ from_ns: null, to_ns: null }) },
          `${moment(Number(value('from_ns') || 0))} to ${value('to_ns') ? moment(Number(value('to_ns'))) : 'the end'} ✕`,
        ),
      value('around') &&
        el('button', { type: 'button', onclick: () => want({}) }, `around call ${value('around').split(':')[1]} ✕`),
    );
  }

  async function draw() {
    const mine = ++turn;
    filters();
    const sort = value('sort') || 'time';
    const desc = value('desc') === '1';
    let answered;
    try {
      answered = await load(query);
    } catch (error) {
      if (mine === turn) swap(table, el('p', { class: 'empty' }, /** @type {Error} */ (error).message));
      return;
    }
    if (mine !== turn) return;
    const [process, call] = value('around').split(':').map(Number);
    const text = `${count(answered.matching, 'call')}${answered.matching < answered.total ? ` of ${figure(answered.total)}` : ''}`;
    head.textContent = text;
    announce(text);
    swap(
      table,
      answered.rows.length === 0
        ? el('p', { class: 'empty' }, 'No call matches. ', el('a', { href: href('calls') }, 'All calls'))
        : grid('Calls', callColumns(data.run), answered.rows, {
            sort: value('around') ? undefined : sort,
            desc,
            order: (sort, desc) => want({ sort, desc }),
            current: (row) => row.process === process && row.call === call,
          }),
      pages({
        offset: answered.offset,
        size: PAGE,
        total: answered.matching,
        turn: (offset) => want({ offset, process: value('around') ? process : value('process') }),
      }),
    );
    table.querySelector('[aria-current]')?.scrollIntoView({ block: 'center' });
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
      query = route.query;
      draw();
    },
  };
}
