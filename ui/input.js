/**
 * Input on the timeline: maps pointer, wheel and keyboard events to the timeline's controls. Knows positions and keys, and passes
 * lifetimes through by their index.
 */
import { plain } from './dom.js';
import { BAR, Painter, ROW, STRIP, TOP } from './painter.js';

/** The zoom factor of a key or a button. */
export const STEP = 1.5;

/** The keys and what they do, for the help text. */
export const KEYS = [
  ['+ −', 'zoom'],
  ['← →', 'pan'],
  ['↑ ↓', 'scroll the lanes'],
  ['N P', 'next and previous lifetime'],
  ['Shift + ← → ↑ ↓', 'the neighbouring lifetime, in this lane or the next'],
  ['F', 'zoom to the selected lifetime'],
  ['0', 'the whole run'],
  ['Enter', 'to the details'],
  ['Esc', 'deselect'],
];

/**
 * What input can do to a timeline.
 * @typedef {{showRange: (from: number, to: number) => void, zoom: (factor: number, at?: number) => void, pan: (part: number) => void,
 *   scroll: (top: number) => void, hitTest: (x: number, y: number) => {row: import('./lanes.js').Row | null, lifetime: number},
 *   zoomTo: (lifetime: number) => void, selectNext: (by: number) => void, selectInOtherLane: (by: number) => void, toggleGroup: (process: number) => void,
 *   select: (lifetime: number) => void, zoomToSelected: () => void, runLength: () => number, rows: () => number, details: () => void,
 *   describe: (lifetime: number) => string}} Controls
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} tooltip  describes what is under the pointer
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 */
export function listen(canvas, tooltip, viewport, controls) {
  const { showRange, zoom, pan, scroll, hitTest, zoomTo, selectNext, selectInOtherLane, toggleGroup, select, runLength } =
    controls;
  /** @param {MouseEvent} event @returns {[number, number]} */
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  /** @type {{x: number, y: number, from: number, top: number, moved: boolean, what: string} | null} */
  let drag = null;
  const centre = (/** @type {number} */ x) => {
    const middle = ((x - viewport.gutter) / (viewport.width - viewport.gutter - BAR)) * runLength();
    const half = (viewport.to - viewport.from) / 2;
    showRange(middle - half, middle + half);
  };
  canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    canvas.setPointerCapture(event.pointerId);
    drag = {
      x,
      y,
      from: viewport.from,
      top: viewport.top,
      moved: false,
      what: y < STRIP ? 'strip' : x > viewport.width - BAR ? 'bar' : 'lanes',
    };
    if (drag.what === 'strip' && x > viewport.gutter) centre(x);
  });
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const [x, y] = where(event);
    if (!drag) return point(x, y);
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    tooltip.hidden = true;
    canvas.classList.add('dragged');
    if (drag.what === 'strip') return centre(x);
    if (drag.what === 'bar') {
      const thumb = Painter.thumb(controls.rows(), viewport);
      if (thumb) scroll(drag.top + ((y - drag.y) / thumb.room) * thumb.runLength);
      return;
    }
    const scale = (viewport.to - viewport.from) / (viewport.width - viewport.gutter - BAR);
    const from = drag.from - (x - drag.x) * scale;
    showRange(from, from + (viewport.to - viewport.from));
    scroll(drag.top - (y - drag.y));
  });
  canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    const was = drag;
    drag = null;
    canvas.classList.remove('dragged');
    if (!was || was.moved || was.what !== 'lanes') return;
    const { row, lifetime } = hitTest(...where(event));
    if (row?.head) toggleGroup(row.group);
    else select(lifetime);
  });
  canvas.addEventListener('pointerleave', () => {
    tooltip.hidden = true;
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
  });
  /** Describes what is under the pointer. @param {number} x @param {number} y */
  function point(x, y) {
    const { lifetime } = hitTest(x, y);
    tooltip.hidden = lifetime < 0;
    if (lifetime < 0) return;
    tooltip.textContent = plain(controls.describe(lifetime));
    tooltip.style.left = `${Math.max(0, Math.min(x + 12, viewport.width - 300))}px`;
    tooltip.style.top = `${y + 60 > viewport.height ? y - 44 : y + 16}px`;
  }
  canvas.addEventListener(
    'wheel',
    (/** @type {WheelEvent} */ event) => {
      const [x, y] = where(event);
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [dx, dy] =
        event.shiftKey && event.deltaX === 0 ? [event.deltaY * lines, 0] : [event.deltaX * lines, event.deltaY * lines];
      event.preventDefault();
      if (Math.abs(dx) > Math.abs(dy)) return pan(dx / viewport.width);
      if (x < viewport.gutter && y > TOP && !event.ctrlKey) return scroll(viewport.top + dy);
      const at = (x - viewport.gutter) / (viewport.width - viewport.gutter - BAR);
      zoom(Math.exp(Math.min(Math.max(dy, -200), 200) / 400), Math.min(Math.max(at, 0), 1));
    },
    { passive: false },
  );
  canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ event) => zoomTo(hitTest(...where(event)).lifetime));

  /** @type {Record<string, () => void>} */
  const keys = {
    '+': () => zoom(1 / STEP),
    '=': () => zoom(1 / STEP),
    '-': () => zoom(STEP),
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    ArrowUp: () => scroll(viewport.top - 3 * ROW),
    ArrowDown: () => scroll(viewport.top + 3 * ROW),
    PageUp: () => scroll(viewport.top - viewport.height + TOP),
    PageDown: () => scroll(viewport.top + viewport.height - TOP),
    Home: () => scroll(0),
    End: () => scroll(Infinity),
    n: () => selectNext(1),
    p: () => selectNext(-1),
    f: controls.zoomToSelected,
    0: () => showRange(0, runLength()),
    Escape: () => select(-1),
    Enter: controls.details,
    'Shift+ArrowRight': () => selectNext(1),
    'Shift+ArrowLeft': () => selectNext(-1),
    'Shift+ArrowDown': () => selectInOtherLane(1),
    'Shift+ArrowUp': () => selectInOtherLane(-1),
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
