/**
 * Input on the timeline: maps pointer, wheel and keyboard events to the timeline's controls. Knows positions and keys, and passes
 * lifetimes and marks through.
 */
import { BAR, ROW, STRIP, TOP } from './measures.js';

/** The zoom factor of a key or a button. */
export const STEP = 1.5;

/** The keys and what they do, for the help text. */
export const KEYS = [
  ['W S', 'zoom in and out'],
  ['A D', 'move left and right'],
  ['↑ ↓', 'scroll the rows'],
  ['J K', 'next and previous finding'],
  ['N P', 'next and previous lifetime'],
  ['Shift + ← → ↑ ↓', 'the neighbouring lifetime, in this lane or the next'],
  ['F', 'zoom to the selected lifetime'],
  ['O', 'open or shut all processes'],
  ['0', 'the whole run'],
  ['H', 'where something is shared'],
  ['Enter', 'to the details'],
  ['Esc', 'deselect'],
];

/**
 * What is under a position: a row, a lifetime or a mark.
 * @typedef {{row: import('./lanes.js').Row | null, lifetime: number, instant: import('./marks.js').Instant | null}} Hit
 *
 * What input can do to a timeline.
 * @typedef {{showRange: (from: number, to: number) => void, zoom: (factor: number, at?: number) => void, pan: (part: number) => void,
 *   scroll: (top: number) => boolean, hitTest: (x: number, y: number) => Hit, zoomTo: (lifetime: number) => void,
 *   selectNext: (by: number) => void, selectInOtherLane: (by: number) => void, toggleGroup: (group: number) => void,
 *   toggleAll: () => void, select: (lifetime: number) => void, goTo: (instant: import('./marks.js').Instant) => void,
 *   nextInstant: (by: number) => void, zoomToSelected: () => void, goHome: () => void, runLength: () => number,
 *   thumb: () => {tall: number, y: number, room: number, whole: number} | null, details: () => void,
 *   band: (band: [number, number] | null) => void, describe: (hit: Hit, tooltip: HTMLElement) => boolean}} Controls
 */

/** A marked range that is narrower than this, in pixels, is a click. */
const DRAGGED = 4;

/** Positions on a canvas. @param {HTMLCanvasElement} canvas @param {import('./painter.js').Viewport} viewport */
function positions(canvas, viewport) {
  /** Where the pointer is. @param {MouseEvent} event @returns {[number, number]} */
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const edge = () => viewport.width - BAR;
  /** The part of the width of the lanes, from 0 to 1. @param {number} x */
  const part = (x) => (x - viewport.gutter) / (edge() - viewport.gutter);
  const timeAt = (/** @type {number} */ x) => viewport.from + part(x) * (viewport.to - viewport.from);
  return { where, edge, timeAt, part };
}

/**
 * Describes what is under the pointer.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} tooltip
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 * @param {[number, number]} at
 */
function point(canvas, tooltip, viewport, controls, [x, y]) {
  const hit = controls.hitTest(x, y);
  canvas.style.cursor = hit.instant || hit.row?.head || hit.lifetime >= 0 ? 'pointer' : x > viewport.gutter ? 'crosshair' : '';
  tooltip.hidden = !controls.describe(hit, tooltip);
  if (tooltip.hidden) return;
  const { offsetWidth, offsetHeight } = tooltip;
  tooltip.style.left = `${Math.max(0, Math.min(x + 12, viewport.width - offsetWidth - 4))}px`;
  tooltip.style.top = `${Math.max(0, y + 16 + offsetHeight > viewport.height ? y - offsetHeight - 8 : y + 16)}px`;
}

/**
 * Listens to clicks and drags.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} tooltip
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 */
function listenToPointer(canvas, tooltip, viewport, controls) {
  const { showRange, scroll, hitTest, toggleGroup, select, runLength } = controls;
  const { where, edge, timeAt, part } = positions(canvas, viewport);
  /** @type {{x: number, y: number, from: number, top: number, moved: boolean, what: 'strip' | 'bar' | 'pan' | 'zoom'} | null} */
  let drag = null;
  const centre = (/** @type {number} */ x) => {
    const middle = part(x) * runLength();
    const half = (viewport.to - viewport.from) / 2;
    showRange(middle - half, middle + half);
  };
  const inside = (/** @type {number} */ x) => Math.min(Math.max(x, viewport.gutter), edge());
  canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (event.button > 1) return;
    const [x, y] = where(event);
    canvas.setPointerCapture(event.pointerId);
    // A finger moves what it touches.
    const pans = event.shiftKey || event.button === 1 || event.pointerType === 'touch' || x < viewport.gutter;
    const what = y < STRIP ? 'strip' : x > edge() ? 'bar' : pans ? 'pan' : 'zoom';
    drag = { x, y, from: viewport.from, top: viewport.top, moved: false, what };
  });
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const [x, y] = where(event);
    if (!drag) return point(canvas, tooltip, viewport, controls, [x, y]);
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > DRAGGED) drag.moved = true;
    if (!drag.moved) return;
    tooltip.hidden = true;
    if (drag.what === 'strip') return centre(x);
    if (drag.what === 'zoom') return controls.band([inside(drag.x), inside(x)]);
    if (drag.what === 'bar') {
      const thumb = controls.thumb();
      if (thumb) scroll(drag.top + ((y - drag.y) / thumb.room) * thumb.whole);
      return;
    }
    canvas.classList.add('dragged');
    const scale = (viewport.to - viewport.from) / (edge() - viewport.gutter);
    const from = drag.from - (x - drag.x) * scale;
    if (drag.x >= viewport.gutter) showRange(from, from + (viewport.to - viewport.from));
    scroll(drag.top - (y - drag.y));
  });
  canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    const was = drag;
    drag = null;
    canvas.classList.remove('dragged');
    controls.band(null);
    if (!was) return;
    const [x, y] = where(event);
    if (was.moved) {
      const [left, right] = [inside(was.x), inside(x)].sort((a, b) => a - b);
      if (was.what === 'zoom' && right - left > DRAGGED) showRange(timeAt(left), timeAt(right));
      return;
    }
    const hit = hitTest(x, y);
    if (hit.instant) controls.goTo(hit.instant);
    else if (was.what === 'strip') centre(x);
    else if (hit.row?.head) toggleGroup(hit.row.group);
    else if (was.what !== 'bar') select(hit.lifetime);
  });
  canvas.addEventListener('pointerleave', () => {
    tooltip.hidden = true;
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
    controls.band(null);
  });
  canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ event) => controls.zoomTo(hitTest(...where(event)).lifetime));
}

/**
 * Listens to the wheel, which zooms, pans and scrolls.
 * @param {HTMLCanvasElement} canvas
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 */
function listenToWheel(canvas, viewport, { zoom, pan, scroll }) {
  const { where, part } = positions(canvas, viewport);
  canvas.addEventListener(
    'wheel',
    (/** @type {WheelEvent} */ event) => {
      const [x] = where(event);
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [dx, dy] =
        event.shiftKey && event.deltaX === 0 ? [event.deltaY * lines, 0] : [event.deltaX * lines, event.deltaY * lines];
      // A pinch comes as a wheel with Ctrl.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        return zoom(Math.exp(Math.min(Math.max(dy, -200), 200) / 400), Math.min(Math.max(part(x), 0), 1));
      }
      if (Math.abs(dx) > Math.abs(dy)) {
        event.preventDefault();
        return pan(dx / viewport.width);
      }
      // At the last row the page scrolls on.
      if (scroll(viewport.top + dy)) event.preventDefault();
    },
    { passive: false },
  );
}

/**
 * What each key does.
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 * @returns {Record<string, () => void>}
 */
function actsOf(viewport, controls) {
  const { showRange, zoom, pan, scroll, selectNext, selectInOtherLane, select, runLength } = controls;
  const zoomIn = () => zoom(1 / STEP);
  const zoomOut = () => zoom(STEP);
  return {
    '+': zoomIn,
    '=': zoomIn,
    '-': zoomOut,
    w: zoomIn,
    s: zoomOut,
    a: () => pan(-0.2),
    d: () => pan(0.2),
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
    j: () => controls.nextInstant(1),
    k: () => controls.nextInstant(-1),
    f: controls.zoomToSelected,
    o: controls.toggleAll,
    h: controls.goHome,
    0: () => showRange(0, runLength()),
    Escape: () => select(-1),
    Enter: controls.details,
    'Shift+ArrowRight': () => selectNext(1),
    'Shift+ArrowLeft': () => selectNext(-1),
    'Shift+ArrowDown': () => selectInOtherLane(1),
    'Shift+ArrowUp': () => selectInOtherLane(-1),
  };
}

/**
 * Listens until the function that it returns is called.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} tooltip  describes what is under the pointer
 * @param {import('./painter.js').Viewport} viewport
 * @param {Controls} controls
 */
export function listen(canvas, tooltip, viewport, controls) {
  listenToPointer(canvas, tooltip, viewport, controls);
  listenToWheel(canvas, viewport, controls);
  const keys = actsOf(viewport, controls);
  const press = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // Letters work anywhere on the page; the keys that also scroll a page or press a button only here.
    if (target !== canvas && (event.key.length > 1 || target.closest('input, select, textarea, dialog'))) return;
    const name =
      event.shiftKey && event.key.startsWith('Arrow')
        ? `Shift+${event.key}`
        : event.key.length === 1
          ? event.key.toLowerCase()
          : event.key;
    const act = keys[name];
    if (!act || document.querySelector('dialog[open]')) return;
    event.preventDefault();
    act();
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}
