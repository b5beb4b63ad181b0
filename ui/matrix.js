/**
 * Sharing between many processes as a matrix: a row for each process whose memory was opened, a column for each that opened it, both in
 * the order of ranks. More processes than there is room for are drawn several to a cell. The same data is also in a table.
 */
import { drawingWidth, el } from './dom.js';
import { count, figure } from './format.js';
import { describe, edges, legend, table, weigher } from './graph.js';
import { href } from './router.js';
import { SEVERITIES, called, inOrder, short } from './run.js';
import { colours } from './theme.js';

const LEFT = 74;
const TOP = 40;
const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
/** The sizes of a cell, in pixels. */
const CELL = { least: 3, most: 28 };

/** What the caption says while no cell is meant. */
const HINT =
  'A row for each process whose memory was opened, a column for each that opened it. A click on a cell, or Enter, goes to the timeline; the arrow keys move.';

/** Where the arrow keys go: down and right. */
const STEPS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/** How many processes there are between two labels. @param {number} cells @param {number} room @param {number} letters */
const every = (cells, room, letters) =>
  [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((step) => (step / cells) * room >= letters * 8 + 6) ?? 10_000;

/** @typedef {ReturnType<typeof layout>} Layout */

/**
 * The cells of the matrix, and their size. A cell stands for as many processes as it must.
 * @param {import('./run.js').RunData} data
 */
function layout(data) {
  const order = inOrder(data.run);
  /** The place of each process in the order. @type {Map<number, number>} */
  const places = new Map(order.map(({ index }, place) => [index, place]));
  const drawn = edges(data).filter(({ from, to }) => places.has(from) && places.has(to));
  const width = drawingWidth();
  const room = width - LEFT - 8;
  const together = Math.ceil(order.length / Math.floor(room / CELL.least));
  const cells = Math.ceil(order.length / together);
  const cell = Math.min(CELL.most, room / cells);
  /** The edges of each cell, by row and column. @type {Map<number, import('./graph.js').Edge[]>} */
  const at = new Map();
  for (const edge of drawn) {
    const row = Math.floor(Number(places.get(edge.from)) / together);
    const column = Math.floor(Number(places.get(edge.to)) / together);
    const known = at.get(row * cells + column);
    if (known) known.push(edge);
    else at.set(row * cells + column, [edge]);
  }
  return { order, drawn, width, height: TOP + cell * cells + 8, together, cells, cell, size: cell * cells, at };
}

/** The colour of a cell: that of its worst edge. @param {import('./graph.js').Edge[]} some */
function colour(some) {
  if (some.some((edge) => edge.worst === 'error')) return 'error';
  return some.some((edge) => edge.worst === 'warning' || edge.still > 0) ? 'warning' : 'memory';
}

/** @param {CanvasRenderingContext2D} context @param {Record<string, string>} ink @param {Layout} layout */
function paintCells(context, ink, { drawn, cells, cell, size, at }) {
  const weight = weigher(drawn);
  context.fillStyle = ink.sunk;
  context.fillRect(LEFT, TOP, size, size);
  // The diagonal: what a process opened of its own.
  context.fillStyle = ink.line;
  for (let place = 0; place < cells; place++) context.fillRect(LEFT + place * cell, TOP + place * cell, cell, cell);
  for (const [key, some] of at) {
    const [row, column] = [Math.floor(key / cells), key % cells];
    const gap = cell >= 6 ? 1 : 0;
    context.globalAlpha = 0.25 + 0.75 * Math.max(...some.map(weight));
    context.fillStyle = ink[colour(some)];
    if (some.some((edge) => edge.worst === 'error')) context.globalAlpha = 1;
    context.fillRect(LEFT + column * cell + gap, TOP + row * cell + gap, cell - 2 * gap, cell - 2 * gap);
    context.globalAlpha = 1;
  }
}

/** @param {CanvasRenderingContext2D} context @param {Record<string, string>} ink @param {Layout} layout */
function paintLabels(context, ink, { order, together, cell, size }) {
  context.fillStyle = ink.faint;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.fillText('memory of ↓   opened by →', 0, 8);
  const name = (/** @type {number} */ place) => String(order[place].rank ?? order[place].pid);
  const step = every(order.length, size, Math.max(...order.map((_, place) => name(place).length)));
  for (let place = 0; place < order.length; place += step) {
    const middle = (Math.floor(place / together) + 0.5) * cell;
    context.textAlign = 'right';
    context.fillText(name(place), LEFT - 6, TOP + middle);
    context.textAlign = 'center';
    context.fillText(name(place), LEFT + middle, TOP - 9);
  }
  context.textAlign = 'right';
  context.fillText(order.some(({ rank }) => rank !== null) ? 'rank' : 'pid', LEFT - 6, TOP - 9);
}

/** @param {HTMLCanvasElement} canvas @param {Layout} layout @param {{row: number, column: number}} cursor */
function paint(canvas, layout, cursor) {
  const { width, height, cell, size } = layout;
  const ink = colours(['card', 'sunk', 'ink', 'faint', 'line', 'link', 'memory', 'warning', 'error']);
  const dots = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * dots), Math.round(height * dots)];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.scale(dots, dots);
  context.font = FONT;
  paintCells(context, ink, layout);
  if (document.activeElement === canvas) {
    context.strokeStyle = ink.link;
    context.lineWidth = 2;
    context.strokeRect(LEFT + cursor.column * cell, TOP + cursor.row * cell, cell, cell);
    context.lineWidth = 1;
  }
  context.strokeStyle = ink.line;
  context.strokeRect(LEFT - 0.5, TOP - 0.5, size + 1, size + 1);
  paintLabels(context, ink, layout);
}

/** What a cell says in words. @param {import('./run.js').Run} run @param {Layout} layout @param {number} row @param {number} column */
function told(run, { order, together, cells, at }, row, column) {
  const names = (/** @type {number} */ place) => {
    const [first, last] = [order[place * together], order[Math.min((place + 1) * together, order.length) - 1]];
    return first === last ? called(run, first.index) : `${short(run, first.index)} to ${short(run, last.index)}`;
  };
  const some = at.get(row * cells + column) ?? [];
  const sum = some.reduce(
    (all, edge) => ({ ...all, opens: all.opens + edge.opens, bytes: all.bytes + edge.bytes, still: all.still + edge.still }),
    { from: 0, to: 0, shares: [], handles: 0, opens: 0, bytes: 0, still: 0, worst: null },
  );
  const worst = SEVERITIES.find((severity) => some.some((edge) => edge.worst === severity));
  const found = worst ? `, with ${worst === 'error' ? 'an error' : `a ${worst}`}` : '';
  return `memory of ${names(row)}, opened by ${names(column)}: ${some.length > 0 ? describe(sum) : 'nothing'}${found}`;
}

/** The cell under the pointer. @param {HTMLCanvasElement} canvas @param {Layout} layout @param {MouseEvent} event */
function under(canvas, { width, cells, cell, at }, event) {
  const box = canvas.getBoundingClientRect();
  const scale = width / box.width;
  const [column, row] = [
    Math.floor(((event.clientX - box.left) * scale - LEFT) / cell),
    Math.floor(((event.clientY - box.top) * scale - TOP) / cell),
  ];
  return row >= 0 && column >= 0 && row < cells && column < cells ? { row, column, some: at.get(row * cells + column) } : null;
}

/**
 * Lets a pointer and the arrow keys move over the cells.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} caption  says what the cell is
 * @param {import('./run.js').Run} run
 * @param {Layout} layout
 */
function listen(canvas, caption, run, layout) {
  const { cells, at } = layout;
  /** The cell that the keyboard is at. */
  const cursor = { row: 0, column: 0 };
  const repaint = () => paint(canvas, layout, cursor);
  const goTo = (/** @type {import('./graph.js').Edge | undefined} */ edge) => {
    if (edge) location.hash = href('timeline', '', { process: edge.from });
  };
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const found = under(canvas, layout, event);
    canvas.style.cursor = found?.some ? 'pointer' : '';
    caption.textContent = found ? told(run, layout, found.row, found.column) : HINT;
  });
  canvas.addEventListener('pointerleave', () => {
    caption.textContent = HINT;
  });
  canvas.addEventListener('click', (/** @type {MouseEvent} */ event) => goTo(under(canvas, layout, event)?.some?.[0]));
  canvas.addEventListener('focus', repaint);
  canvas.addEventListener('blur', repaint);
  canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const [down, right] = /** @type {Record<string, number[]>} */ (STEPS)[event.key] ?? [0, 0];
    if (event.key === 'Enter') goTo(at.get(cursor.row * cells + cursor.column)?.[0]);
    if (down === 0 && right === 0) return;
    event.preventDefault();
    event.stopPropagation();
    cursor.row = Math.min(Math.max(cursor.row + down, 0), cells - 1);
    cursor.column = Math.min(Math.max(cursor.column + right, 0), cells - 1);
    caption.textContent = told(run, layout, cursor.row, cursor.column);
    repaint();
  });
  requestAnimationFrame(repaint);
}

/**
 * @param {import('./run.js').RunData} data
 * @returns {HTMLElement}
 */
export function matrix(data) {
  const planned = layout(data);
  const { order, drawn, width } = planned;
  const processes = count(order.length, 'process', 'processes');
  const canvas = el('canvas', {
    class: 'matrix',
    role: 'application',
    tabindex: '0',
    'data-key': 'matrix',
    'aria-label': `Who opened whose memory: a row for each of ${processes} whose memory was opened, a column for each that opened it`,
  });
  canvas.style.width = `${width}px`;
  const caption = el('p', { class: 'caption faint', 'aria-live': 'polite' }, HINT);
  listen(canvas, caption, data.run, planned);
  const sharing = new Set(drawn.flatMap(({ from, to }) => [from, to])).size;
  const silent = `${figure(order.length - sharing)} of ${processes} shared nothing.`;
  return el(
    'figure',
    {},
    canvas,
    caption,
    legend('dark: many bytes', 'diagonal: opened by the producer itself'),
    sharing < order.length && el('p', { class: 'caption faint' }, silent),
    table(data),
  );
}
