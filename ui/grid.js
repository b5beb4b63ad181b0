/**
 * Tables: rows under columns in a scrolling region, with sorting and pages where they are needed.
 */
import { el } from './dom.js';
import { figure } from './format.js';

/**
 * @template R
 * @typedef {{name: string, number?: boolean, sort?: string, title?: string, cell: (row: R) => import('./dom.js').Child,
 *   hint?: (row: R) => string}} Column
 */

/**
 * @template R
 * @param {string} label  the name of the table for screen readers
 * @param {(Column<R> | false | null | undefined)[]} columns
 * @param {R[]} rows
 * @param {{sort?: string, desc?: boolean, order?: (sort: string, desc: boolean) => void, current?: (row: R) => boolean, key?: string}} [how]
 *   `order` is called when a person asks for another order; `current` marks a row
 * @returns {HTMLElement}
 */
export function grid(label, columns, rows, { sort, desc = false, order, current, key = label } = {}) {
  const shown = /** @type {Column<R>[]} */ (columns.filter(Boolean));
  const head = shown.map((column) => {
    const sorted = column.sort !== undefined && column.sort === sort;
    const wanted = column.sort !== undefined && order;
    const traits = {
      scope: 'col',
      class: column.number && 'number',
      title: column.title,
      'aria-sort': sorted && (desc ? 'descending' : 'ascending'),
    };
    if (!wanted) return el('th', traits, column.name);
    const button = el(
      'button',
      {
        type: 'button',
        'data-key': `${key} ${column.sort}`,
        onclick: () => order(/** @type {string} */ (column.sort), sorted && !desc),
      },
      column.name,
      el('span', { 'aria-hidden': 'true' }, sorted ? (desc ? ' ▼' : ' ▲') : ''),
    );
    return el('th', traits, button);
  });
  const body = rows.map((row) =>
    el(
      'tr',
      { 'aria-current': current?.(row) ? 'true' : null },
      shown.map((column) => el('td', { class: column.number && 'number', title: column.hint?.(row) }, column.cell(row))),
    ),
  );
  return el(
    'div',
    { class: 'wide', tabindex: '0', role: 'region', 'aria-label': label, 'data-key': key },
    el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)),
  );
}

/**
 * The buttons that turn the pages of a long table.
 * @param {{offset: number, size: number, total: number, turn: (offset: number) => void}} book
 */
export function pages({ offset, size, total, turn }) {
  if (total <= size && offset === 0) return null;
  const last = Math.floor(Math.max(total - 1, 0) / size) * size;
  const step = (/** @type {string} */ name, /** @type {number} */ to, /** @type {boolean} */ can) =>
    el('button', { type: 'button', 'data-key': `page ${name}`, disabled: !can, onclick: () => turn(to) }, name);
  return el(
    'nav',
    { class: 'pages', 'aria-label': 'Pages' },
    step('First', 0, offset > 0),
    step('Previous', Math.max(0, offset - size), offset > 0),
    el('span', {}, `${figure(Math.min(offset + 1, total))} to ${figure(Math.min(offset + size, total))} of ${figure(total)}`),
    step('Next', offset + size, offset + size < total),
    step('Last', last, offset + size < total),
  );
}
