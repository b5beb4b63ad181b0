/**
 * Paints the timeline: the minimap of the whole run, the ruler, and the visible lanes. Lifetimes that fall on the same pixel are
 * painted once, so a lane needs no more rectangles than it has pixels.
 */
import { after } from './lanes.js';
import { kindClass } from './lifetimes.js';
import { bytes, count, span } from './format.js';
import { colours } from './theme.js';

export const ROW = 17;
/** The height of the minimap; the ruler is below it. */
export const STRIP = 26;
export const TOP = STRIP + 22;
export const BAR = 10;

const NAMES = [
  'card',
  'sunk',
  'ink',
  'faint',
  'line',
  'link',
  'select',
  'error',
  'warning',
  'note',
  'memory',
  'physical',
  'event',
];
const FONT = '11px system-ui, "DejaVu Sans", sans-serif';
const MONO = '11px ui-monospace, "DejaVu Sans Mono", monospace';
/** A lifetime narrower than this, in pixels, has no label. */
const LABEL_MIN_WIDTH = 70;
/** At most this many labels are painted. */
const LABELS_UP_TO = 200;

/**
 * @typedef {{from: number, to: number, top: number, width: number, height: number, gutter: number, last: number}} Viewport
 *   the visible time in nanoseconds, the scroll position in pixels, the size of the canvas, and the end of the run
 * @typedef {{lifetimes: import('./lifetimes.js').Lifetimes, layout: import('./lanes.js').Layout, viewport: Viewport, selected: number,
 *   worst: (lifetime: number) => string, called: (process: number) => string, short: (process: number) => string,
 *   closed: Set<number>, findings: {time: number, severity: string}[]}} Frame
 */

/** The colour blended with the background: painting an opaque colour is cheaper than painting with alpha. */
function pale(/** @type {string} */ colour, /** @type {string} */ ground) {
  const parts = (/** @type {string} */ text) => (text.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [over, under] = [parts(colour), parts(ground)];
  return `rgb(${over.map((part, index) => Math.round(part * 0.55 + under[index] * 0.45)).join(' ')})`;
}

/** A round step, in nanoseconds, of which about `count` fit into `length`. */
function tickStep(/** @type {number} */ length, /** @type {number} */ count) {
  const raw = Math.max(length / Math.max(count, 1), 1);
  const ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((lead) => lead * ten).find((step) => step >= raw) ?? 10 * ten;
}

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { alpha: false }));
    /** @type {{layout: any, width: number, last: number, dots: number, picture: HTMLCanvasElement} | null} */
    this.cachedMinimap = null;
    /** @type {Record<string, string>} */
    this.ink = {};
    this.repaint();
  }

  /** Reads the colours again, after the theme has changed. */
  repaint() {
    this.ink = colours(NAMES);
    this.cachedMinimap = null;
  }

  /** @param {Frame} frame */
  paint(frame) {
    const { context, canvas, ink } = this;
    const { width, height, gutter } = frame.viewport;
    const dots = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
      canvas.width = Math.round(width * dots);
      canvas.height = Math.round(height * dots);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.textBaseline = 'middle';
    context.fillStyle = ink.card;
    context.fillRect(0, 0, width, height);
    this.lanes(frame);
    this.scrollbar(frame);
    context.fillStyle = ink.card;
    context.fillRect(0, 0, width, TOP);
    this.strip(frame);
    this.ruler(frame);
    context.fillStyle = ink.line;
    context.fillRect(gutter - 1, 0, 1, height);
    context.fillRect(0, TOP - 1, width, 1);
  }

  /** @param {Frame} frame */
  lanes(frame) {
    const { context, ink } = this;
    const { lifetimes, layout, viewport, selected } = frame;
    const { from, to, top, width, height, gutter } = viewport;
    const scale = (width - gutter - BAR) / (to - from);
    const edge = width - BAR;
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(layout.rows.length, Math.ceil((top + height - TOP) / ROW));
    const fills = lifetimes.kinds.map((kind) => ink[kindClass(kind)]);
    const pales = fills.map((fill) => pale(fill, ink.card));
    const labels = [];
    context.save();
    context.beginPath();
    context.rect(0, TOP, width, height - TOP);
    context.clip();

    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      const y = TOP + index * ROW - top;
      if (row.head) {
        context.fillStyle = ink.sunk;
        context.fillRect(0, y, edge, ROW);
        context.fillStyle = ink.line;
        context.fillRect(0, y, edge, 1);
        continue;
      }
      const [up, tall] = row.opening ? [y + 5, ROW - 8] : [y + 2, ROW - 4];
      // Adjacent lifetimes of the same colour become one rectangle.
      let [begun, ended, colour] = [-1, -1, ''];
      const flush = () => {
        if (ended <= begun) return;
        context.fillStyle = colour;
        context.fillRect(begun, up, ended - begun, tall);
      };
      const lane = row.lifetimes;
      for (let i = after(lifetimes.to, lane, from); i < lane.length; ) {
        const lifetime = lane[i];
        if (lifetimes.from[lifetime] >= to) break;
        const left = Math.max(gutter, Math.floor(gutter + (lifetimes.from[lifetime] - from) * scale));
        const right = Math.min(
          edge,
          Math.max(left + 1, Math.floor(gutter + (Math.min(lifetimes.to[lifetime], viewport.last) - from) * scale)),
        );
        const fill = (row.opening ? pales : fills)[lifetimes.kind[lifetime]];
        if (left > ended || fill !== colour || right - left > 3) {
          flush();
          // A gap of one pixel separates two wide ones.
          [begun, ended, colour] = [left === ended && right - left > 3 ? left + 1 : left, right, fill];
        } else {
          ended = Math.max(ended, right);
        }
        if (right - left > LABEL_MIN_WIDTH) labels.push({ lifetime, left, right, y: up + tall / 2, opening: row.opening });
        // All lifetimes that end within this pixel are already painted.
        i = right - left <= 1 ? Math.max(i + 1, after(lifetimes.to, lane, from + (left + 1 - gutter) / scale, i)) : i + 1;
      }
      flush();
      this.marks(frame, row, up, tall, scale);
    }

    context.font = FONT;
    const letter = context.measureText('0').width;
    for (const { lifetime, left, right, y, opening } of labels.slice(0, LABELS_UP_TO)) {
      context.fillStyle = opening ? ink.ink : ink.card;
      const indent = lifetimes.findings.has(lifetime) ? 10 : 4;
      const size = lifetimes.bytes[lifetime] > 0 ? ` ${bytes(lifetimes.bytes[lifetime])}` : '';
      const text = opening
        ? `open in ${frame.short(lifetimes.process[lifetime])}${size}`
        : `${lifetimes.fingerprint[lifetime] ?? lifetimes.address[lifetime]}${size}`;
      // Cutting text by characters is cheaper than clipping. The ellipsis shows that a number is cut.
      const room = Math.floor((right - left - indent - 3) / letter);
      context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + indent, y + 0.5);
    }
    const chosen = layout.rowOf[selected] ?? -1;
    if (selected >= 0 && chosen >= first && chosen < last) {
      const left = Math.max(gutter, gutter + (lifetimes.from[selected] - from) * scale);
      const right = Math.min(edge, gutter + (Math.min(lifetimes.to[selected], viewport.last) - from) * scale);
      context.strokeStyle = ink.ink;
      context.lineWidth = 2;
      if (right >= gutter && left <= edge)
        context.strokeRect(left - 1, TOP + chosen * ROW - top + 1, Math.max(right - left, 2) + 2, ROW - 2);
    }
    this.labels(frame, first, last);
    context.restore();
  }

  /** Marks the lifetimes with findings: a triangle, a diamond or a dot. */
  marks(
    /** @type {Frame} */ { lifetimes, viewport, worst },
    /** @type {any} */ row,
    /** @type {number} */ up,
    /** @type {number} */ tall,
    /** @type {number} */ scale,
  ) {
    let before = -Infinity;
    for (let i = after(lifetimes.to, row.marks, viewport.from); i < row.marks.length; i++) {
      const lifetime = row.marks[i];
      if (lifetimes.from[lifetime] >= viewport.to) break;
      const x = Math.max(viewport.gutter, viewport.gutter + (lifetimes.from[lifetime] - viewport.from) * scale);
      if (x - before < 3) continue;
      before = x;
      this.mark(x, up + tall / 2, worst(lifetime), 5);
    }
  }

  /** @param {number} x @param {number} y @param {string} severity @param {number} r */
  mark(x, y, severity, r) {
    const { context, ink } = this;
    context.beginPath();
    if (severity === 'error') {
      context.moveTo(x, y - r);
      context.lineTo(x + r, y + r);
      context.lineTo(x - r, y + r);
    } else if (severity === 'warning') {
      context.moveTo(x, y - r);
      context.lineTo(x + r, y);
      context.lineTo(x, y + r);
      context.lineTo(x - r, y);
    } else {
      context.arc(x, y, r * 0.8, 0, 2 * Math.PI);
    }
    context.closePath();
    context.fillStyle = ink[severity] ?? ink.note;
    context.strokeStyle = ink.card;
    context.lineWidth = 1.5;
    context.stroke();
    context.fill();
  }

  /** Paints the labels left of the lanes. */
  labels(/** @type {Frame} */ frame, /** @type {number} */ first, /** @type {number} */ last) {
    const { context, ink } = this;
    const { lifetimes, layout, viewport, selected } = frame;
    context.fillStyle = ink.card;
    context.fillRect(0, TOP, viewport.gutter, viewport.height);
    context.save();
    context.beginPath();
    context.rect(0, TOP, viewport.gutter - 6, viewport.height);
    context.clip();
    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      const y = TOP + index * ROW - viewport.top;
      if (row.head) {
        context.fillStyle = ink.sunk;
        context.fillRect(0, y, viewport.gutter, ROW);
        context.font = `bold ${FONT}`;
        context.fillStyle = ink.ink;
        context.fillText(`${frame.closed.has(row.group) ? '▸' : '▾'} ${frame.called(row.group)}`, 6, y + ROW / 2 + 0.5);
        continue;
      }
      const [lifetime] = row.lifetimes;
      if (layout.rowOf[selected] === index && selected >= 0) {
        context.fillStyle = ink.select;
        context.fillRect(0, y, viewport.gutter, ROW);
      }
      context.fillStyle = row.opening ? ink.faint : ink.ink;
      context.font = row.opening || !row.one ? FONT : MONO;
      const handles = row.one ? lifetimes.address[lifetime] : count(row.lifetimes.length, 'handle');
      const openings = row.one ? frame.called(lifetimes.process[lifetime]) : count(row.lifetimes.length, 'opening');
      context.fillText(row.opening ? `↳ ${openings}` : handles, row.opening ? 24 : 16, y + ROW / 2 + 0.5);
    }
    context.restore();
  }

  /** Paints the scrollbar. */
  scrollbar(/** @type {Frame} */ { layout, viewport }) {
    const { context, ink } = this;
    const thumb = Painter.thumb(layout.rows.length, viewport);
    context.fillStyle = ink.sunk;
    context.fillRect(viewport.width - BAR, TOP, BAR, viewport.height - TOP);
    if (!thumb) return;
    context.fillStyle = ink.faint;
    context.fillRect(viewport.width - BAR + 2, thumb.y, BAR - 4, thumb.tall);
  }

  /** @param {number} rows @param {Viewport} viewport */
  static thumb(rows, viewport) {
    const [whole, seen] = [rows * ROW, viewport.height - TOP];
    if (whole <= seen) return null;
    const tall = Math.max(24, (seen * seen) / whole);
    return { tall, y: TOP + (viewport.top / (whole - seen)) * (seen - tall), room: seen - tall, whole: whole - seen };
  }

  /** Paints the minimap: how many lifetimes each moment has, and which part is visible. */
  strip(/** @type {Frame} */ frame) {
    const { context, ink } = this;
    const { layout, viewport, findings } = frame;
    const wide = Math.max(1, Math.floor(viewport.width - viewport.gutter - BAR));
    const dots = devicePixelRatio || 1;
    if (
      this.cachedMinimap?.layout !== layout ||
      this.cachedMinimap.width !== wide ||
      this.cachedMinimap.last !== viewport.last ||
      this.cachedMinimap.dots !== dots
    ) {
      this.cachedMinimap = { layout, width: wide, last: viewport.last, dots, picture: this.minimapPicture(frame, wide, dots) };
    }
    context.drawImage(this.cachedMinimap.picture, viewport.gutter, 0, wide, STRIP);
    const [left, right] = [viewport.from, viewport.to].map((ns) => viewport.gutter + (ns / viewport.last) * wide);
    context.fillStyle = ink.link;
    context.globalAlpha = 0.18;
    context.fillRect(left, 0, Math.max(right - left, 2), STRIP);
    context.globalAlpha = 1;
    context.strokeStyle = ink.link;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), STRIP - 1);
    for (const { time, severity } of findings) this.mark(viewport.gutter + (time / viewport.last) * wide, 5, severity, 4);
    context.fillStyle = ink.faint;
    context.font = FONT;
    context.fillText('whole run', 6, STRIP / 2);
  }

  /** The picture of the minimap; it is kept until the layout changes. @param {Frame} frame @param {number} wide @param {number} dots */
  minimapPicture({ lifetimes, layout, viewport }, wide, dots) {
    const levels = new Float32Array(wide + 1);
    for (const row of layout.rows) {
      for (const lifetime of row.lifetimes) {
        levels[Math.min(wide - 1, Math.floor((lifetimes.from[lifetime] / viewport.last) * wide))]++;
        const end = Math.floor((Math.min(lifetimes.to[lifetime], viewport.last) / viewport.last) * wide) + 1;
        if (end < wide) levels[end]--;
      }
    }
    let most = 1;
    for (let x = 0; x < wide; x++) {
      if (x > 0) levels[x] += levels[x - 1];
      most = Math.max(most, levels[x]);
    }
    const picture = document.createElement('canvas');
    [picture.width, picture.height] = [Math.round(wide * dots), Math.round(STRIP * dots)];
    const context = /** @type {CanvasRenderingContext2D} */ (picture.getContext('2d'));
    context.scale(dots, dots);
    context.fillStyle = this.ink.sunk;
    context.fillRect(0, 0, wide, STRIP);
    context.fillStyle = this.ink.faint;
    for (let x = 0; x < wide; x++) {
      const tall = levels[x] > 0 ? Math.max(1, (levels[x] / most) * (STRIP - 4)) : 0;
      if (tall > 0) context.fillRect(x, STRIP - tall, 1, tall);
    }
    return picture;
  }

  /** @param {Frame} frame */
  ruler({ viewport, findings }) {
    const { context, ink } = this;
    const wide = viewport.width - viewport.gutter - BAR;
    const step = tickStep(viewport.to - viewport.from, wide / 110);
    const scale = wide / (viewport.to - viewport.from);
    context.font = FONT;
    context.fillStyle = ink.faint;
    context.fillText(`${span(viewport.to - viewport.from)} in view`, 6, STRIP + 11);
    context.save();
    context.beginPath();
    context.rect(viewport.gutter, STRIP, wide, viewport.height);
    context.clip();
    const digits = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(step))));
    for (let ns = Math.ceil(viewport.from / step) * step; ns <= viewport.to; ns += step) {
      const x = viewport.gutter + (ns - viewport.from) * scale;
      context.fillStyle = ink.line;
      context.fillRect(Math.round(x), STRIP, 1, TOP - STRIP);
      context.globalAlpha = 0.35;
      context.fillRect(Math.round(x), TOP, 1, viewport.height);
      context.globalAlpha = 1;
      context.fillStyle = ink.faint;
      context.fillText(`+${(ns / 1e9).toFixed(digits)} s`, x + 4, STRIP + 11);
    }
    for (const { time, severity } of findings) {
      if (time >= viewport.from && time <= viewport.to)
        this.mark(viewport.gutter + (time - viewport.from) * scale, TOP - 5, severity, 4);
    }
    context.restore();
  }
}
