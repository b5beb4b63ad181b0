/**
 * Hands and keys on the timeline: what a pointer, a wheel and a keyboard do there. Knows places and keys, and of lives only what
 * it is told.
 */
import { plain } from './dom.js';
import { BAR, Painter, ROW, STRIP, TOP } from './painter.js';

/** A zoom by a key or a button. */
export const STEP = 1.5;

/** The keys, for who reads what they do. */
export const KEYS = [
  ['+ −', 'zoom'],
  ['← →', 'pan'],
  ['↑ ↓', 'scroll the lanes'],
  ['N P', 'next and previous life'],
  ['Shift + ← → ↑ ↓', 'the life beside, in this lane or the next'],
  ['F', 'zoom to the selected life'],
  ['0', 'the whole run'],
  ['Enter', 'to the details'],
  ['Esc', 'deselect'],
];

/**
 * What can be done with a timeline.
 * @typedef {{see: (from: number, to: number) => void, zoom: (factor: number, at?: number) => void, pan: (part: number) => void,
 *   scroll: (top: number) => void, hit: (x: number, y: number) => {row: import('./lanes.js').Row | null, life: number},
 *   closeUp: (life: number) => void, beside: (by: number) => void, across: (by: number) => void, fold: (process: number) => void,
 *   select: (life: number) => void, closer: () => void, whole: () => number, rows: () => number, details: () => void,
 *   spoken: (life: number) => string}} Acts
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} tip  what says what is under the pointer
 * @param {import('./painter.js').Sight} sight
 * @param {Acts} acts
 */
export function handle(canvas, tip, sight, acts) {
  const { see, zoom, pan, scroll, hit, closeUp, beside, across, fold, select, whole } = acts;
  /** @param {MouseEvent} event @returns {[number, number]} */
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  /** @type {{x: number, y: number, from: number, top: number, moved: boolean, what: string} | null} */
  let drag = null;
  const centre = (/** @type {number} */ x) => {
    const middle = ((x - sight.gutter) / (sight.width - sight.gutter - BAR)) * whole();
    const half = (sight.to - sight.from) / 2;
    see(middle - half, middle + half);
  };
  canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    canvas.setPointerCapture(event.pointerId);
    drag = {
      x,
      y,
      from: sight.from,
      top: sight.top,
      moved: false,
      what: y < STRIP ? 'strip' : x > sight.width - BAR ? 'bar' : 'lanes',
    };
    if (drag.what === 'strip' && x > sight.gutter) centre(x);
  });
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const [x, y] = where(event);
    if (!drag) return point(x, y);
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    tip.hidden = true;
    canvas.classList.add('dragged');
    if (drag.what === 'strip') return centre(x);
    if (drag.what === 'bar') {
      const thumb = Painter.thumb(acts.rows(), sight);
      if (thumb) scroll(drag.top + ((y - drag.y) / thumb.room) * thumb.whole);
      return;
    }
    const scale = (sight.to - sight.from) / (sight.width - sight.gutter - BAR);
    const from = drag.from - (x - drag.x) * scale;
    see(from, from + (sight.to - sight.from));
    scroll(drag.top - (y - drag.y));
  });
  canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    const was = drag;
    drag = null;
    canvas.classList.remove('dragged');
    if (!was || was.moved || was.what !== 'lanes') return;
    const { row, life } = hit(...where(event));
    if (row?.head) fold(row.group);
    else select(life);
  });
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
  });
  /** Says what is under the pointer. @param {number} x @param {number} y */
  function point(x, y) {
    const { life } = hit(x, y);
    tip.hidden = life < 0;
    if (life < 0) return;
    tip.textContent = plain(acts.spoken(life));
    tip.style.left = `${Math.max(0, Math.min(x + 12, sight.width - 300))}px`;
    tip.style.top = `${y + 60 > sight.height ? y - 44 : y + 16}px`;
  }
  canvas.addEventListener(
    'wheel',
    (/** @type {WheelEvent} */ event) => {
      const [x, y] = where(event);
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [dx, dy] =
        event.shiftKey && event.deltaX === 0 ? [event.deltaY * lines, 0] : [event.deltaX * lines, event.deltaY * lines];
      event.preventDefault();
      if (Math.abs(dx) > Math.abs(dy)) return pan(dx / sight.width);
      if (x < sight.gutter && y > TOP && !event.ctrlKey) return scroll(sight.top + dy);
      const at = (x - sight.gutter) / (sight.width - sight.gutter - BAR);
      zoom(Math.exp(Math.min(Math.max(dy, -200), 200) / 400), Math.min(Math.max(at, 0), 1));
    },
    { passive: false },
  );
  canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ event) => closeUp(hit(...where(event)).life));

  /** @type {Record<string, () => void>} */
  const keys = {
    '+': () => zoom(1 / STEP),
    '=': () => zoom(1 / STEP),
    '-': () => zoom(STEP),
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    ArrowUp: () => scroll(sight.top - 3 * ROW),
    ArrowDown: () => scroll(sight.top + 3 * ROW),
    PageUp: () => scroll(sight.top - sight.height + TOP),
    PageDown: () => scroll(sight.top + sight.height - TOP),
    Home: () => scroll(0),
    End: () => scroll(Infinity),
    n: () => beside(1),
    p: () => beside(-1),
    f: acts.closer,
    0: () => see(0, whole()),
    Escape: () => select(-1),
    Enter: acts.details,
    'Shift+ArrowRight': () => beside(1),
    'Shift+ArrowLeft': () => beside(-1),
    'Shift+ArrowDown': () => across(1),
    'Shift+ArrowUp': () => across(-1),
  };
  canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow =
      event.shiftKey && event.key.startsWith('Arrow')
        ? `Shift+${event.key}`
        : event.key.length === 1
          ? event.key.toLowerCase()
          : event.key;
    const act = keys[arrow];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
