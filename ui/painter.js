/**
 * Paints the timeline: the rows of processes with their densities, and the lanes of lifetimes. Lifetimes that fall on the same pixel are
 * painted once, so a lane needs no more rectangles than it has pixels. ruler.js paints what is above the rows.
 */
import { Density } from './density.js';
import { after, FOUND, OPEN } from './lanes.js';
import { kindClass } from './lifetimes.js';
import { bytes, figure } from './format.js';
import { mark, visible } from './marks.js';
import { BAR, FONT, MARKS, ROW, STRIP, TOP } from './measures.js';
import { minimap, ruler, strip } from './ruler.js';
import { colours } from './theme.js';
import { paintUnordered } from './unordered.js';

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
/** A lifetime narrower than this, in pixels, has no label. */
const LABEL_MIN_WIDTH = 70;
/** At most this many labels are painted. */
const LABELS_UP_TO = 200;
/** With more mistakes in view than this, only the selected one has a line through all rows. */
const LINES_UP_TO = 12;

/**
 * @typedef {{from: number, to: number, top: number, width: number, height: number, gutter: number, last: number}} Viewport
 *   the visible time in nanoseconds, the scroll position in pixels, the size of the canvas, and the end of the run
 * @typedef {{lifetimes: import('./lifetimes.js').Lifetimes, chosen: Uint32Array, layout: import('./lanes.js').Layout, viewport: Viewport,
 *   selected: number, instant: import('./marks.js').Instant | null, instants: import('./marks.js').Instant[],
 *   of: Map<number, import('./marks.js').Instant[]>, called: (process: number) => string, short: (process: number) => string,
 *   mode: (group: import('./lanes.js').Group) => number, band: [number, number] | null}} Frame
 * @typedef {{x: number, y: number, instant: import('./marks.js').Instant}} Drawn  a mark, as it was painted
 */

/** The colour blended with the background: painting an opaque colour is cheaper than painting with alpha. */
function pale(/** @type {string} */ colour, /** @type {string} */ ground, part = 0.55) {
  const parts = (/** @type {string} */ text) => (text.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [over, under] = [parts(colour), parts(ground)];
  return `rgb(${over.map((one, index) => Math.round(one * part + under[index] * (1 - part))).join(' ')})`;
}

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { alpha: false }));
    /** @type {{chosen: any, width: number, last: number, dots: number, picture: HTMLCanvasElement} | null} */
    this.cachedMinimap = null;
    /** The densities of groups. @type {WeakMap<any, Density>} */
    this.densities = new WeakMap();
    /** The marks of the latest frame, for clicks. @type {Drawn[]} */
    this.drawn = [];
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
    this.drawn = [];
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.textBaseline = 'middle';
    context.fillStyle = ink.card;
    context.fillRect(0, 0, width, height);
    this.rows(frame);
    this.scrollbar(frame);
    context.fillStyle = ink.card;
    context.fillRect(0, 0, width, TOP);
    strip(context, ink, frame, this.minimap(frame, dots), this.drawn);
    ruler(context, ink, frame.viewport);
    this.lines(frame);
    if (frame.band) {
      const [left, right] = [...frame.band].sort((a, b) => a - b);
      context.fillStyle = ink.link;
      context.globalAlpha = 0.2;
      context.fillRect(left, STRIP, right - left, height - STRIP);
      context.globalAlpha = 1;
      context.fillRect(left, STRIP, 1, height - STRIP);
      context.fillRect(right, STRIP, 1, height - STRIP);
    }
    context.fillStyle = ink.line;
    context.fillRect(gutter - 1, 0, 1, height);
    context.fillRect(0, TOP - 1, width, 1);
  }

  /** @param {Frame} frame @param {number} dots */
  minimap(frame, dots) {
    const { chosen, viewport } = frame;
    const width = Math.max(1, Math.floor(viewport.width - viewport.gutter - BAR));
    const { last } = viewport;
    const kept = this.cachedMinimap;
    if (kept?.chosen === chosen && kept.width === width && kept.last === last && kept.dots === dots) return kept.picture;
    const picture = minimap(frame, width, dots, this.ink);
    this.cachedMinimap = { chosen, width, last, dots, picture };
    return picture;
  }

  /** @param {Frame} frame */
  rows(frame) {
    const { context } = this;
    const { layout, viewport, selected } = frame;
    const { from, to, top, width, height, gutter } = viewport;
    const scale = (width - gutter - BAR) / (to - from);
    const edge = width - BAR;
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(layout.rows.length, Math.ceil((top + height - TOP) / ROW));
    context.save();
    context.beginPath();
    context.rect(0, TOP, width, height - TOP);
    context.clip();
    this.densityRows(frame, first, last);
    this.lanes(frame, first, last, scale);
    const chosen = layout.rowOf[selected] ?? -1;
    if (selected >= 0 && chosen >= first && chosen < last) {
      const { lifetimes } = frame;
      const left = Math.max(gutter, gutter + (lifetimes.from[selected] - from) * scale);
      const right = Math.min(edge, gutter + (Math.min(lifetimes.to[selected], viewport.last) - from) * scale);
      context.strokeStyle = this.ink.ink;
      context.lineWidth = 2;
      if (right >= gutter && left <= edge)
        context.strokeRect(left - 1, TOP + chosen * ROW - top + 1, Math.max(right - left, 2) + 2, ROW - 2);
    }
    this.marks(frame, first, last, scale);
    this.labels(frame, first, last);
    context.restore();
  }

  /** Paints the rows of processes: how many lifetimes each has at each moment. */
  densityRows(/** @type {Frame} */ frame, /** @type {number} */ first, /** @type {number} */ last) {
    const { context, ink } = this;
    const { lifetimes, layout, viewport } = frame;
    const { from, to, top, width, gutter } = viewport;
    const wide = Math.max(1, Math.floor(width - gutter - BAR));
    /** @type {{y: number, overlaps: Float64Array}[]} */
    const rows = [];
    let most = 1;
    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      if (!row.head) continue;
      const group = layout.groups[row.group];
      let density = this.densities.get(group);
      if (!density) {
        density = new Density(lifetimes, group.members);
        this.densities.set(group, density);
      }
      const overlaps = density.overlaps(from, to, wide);
      for (const count of overlaps) most = Math.max(most, count);
      rows.push({ y: TOP + index * ROW - top, overlaps });
    }
    for (const { y, overlaps } of rows) {
      context.fillStyle = ink.sunk;
      context.fillRect(0, y, width - BAR, ROW);
      context.fillStyle = ink.line;
      context.fillRect(0, y, width - BAR, 1);
      context.fillStyle = pale(ink.memory, ink.card, 0.75);
      for (let x = 0; x < wide; ) {
        const count = overlaps[x];
        let end = x + 1;
        while (end < wide && overlaps[end] === count) end++;
        const tall = count > 0 ? Math.max(2, Math.round((count / most) * (ROW - 4))) : 0;
        if (tall > 0) context.fillRect(gutter + x, y + ROW - 1 - tall, end - x, tall);
        x = end;
      }
    }
  }

  /** Paints the lanes. */
  lanes(/** @type {Frame} */ frame, /** @type {number} */ first, /** @type {number} */ last, /** @type {number} */ scale) {
    const { context, ink } = this;
    const { lifetimes, layout, viewport } = frame;
    const { from, to, top, width, gutter } = viewport;
    const edge = width - BAR;
    const fills = lifetimes.kinds.map((kind) => ink[kindClass(kind)]);
    const pales = fills.map((fill) => pale(fill, ink.card));
    const labels = [];
    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      if (row.head) continue;
      const y = TOP + index * ROW - top;
      if (!row.opening) this.memory(frame, row, y, scale, pales);
      const [up, tall] = row.opening ? [y + 6, ROW - 10] : [y + 3, ROW - 8];
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
    }
    context.font = FONT;
    const letter = context.measureText('0').width;
    for (const { lifetime, left, right, y, opening } of labels.slice(0, LABELS_UP_TO)) {
      context.fillStyle = opening ? ink.ink : ink.card;
      const what = opening ? `open in ${frame.short(lifetimes.process[lifetime])}` : lifetimes.site(lifetime);
      const size = lifetimes.bytes[lifetime] > 0 ? bytes(lifetimes.bytes[lifetime]) : null;
      const text = [size, what ?? lifetimes.address(lifetime)].filter(Boolean).join(' · ');
      // Cutting text by characters is cheaper than clipping. The ellipsis shows that it is cut.
      const room = Math.floor((right - left - 8) / letter);
      context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + 5, y + 0.5);
    }
  }

  /** Paints the memory of the handles in a lane: a line from its allocation to its free, with an end at each that is known. */
  memory(
    /** @type {Frame} */ { lifetimes, viewport },
    /** @type {import('./lanes.js').Row} */ row,
    /** @type {number} */ y,
    /** @type {number} */ scale,
    /** @type {string[]} */ pales,
  ) {
    const { context } = this;
    const { gutter, from, last } = viewport;
    const edge = viewport.width - BAR;
    const x = (/** @type {number} */ ns) => Math.round(gutter + (ns - from) * scale);
    let before = -1;
    for (const lifetime of row.lifetimes) {
      const allocated = lifetimes.allocated[lifetime];
      if (allocated === Infinity || allocated === before || allocated > viewport.to) continue;
      before = allocated;
      const freed = lifetimes.freed[lifetime];
      const [left, right] = [x(allocated), x(Math.min(freed, last))];
      if (right < gutter) continue;
      context.fillStyle = pales[lifetimes.kind[lifetime]];
      context.fillRect(
        Math.max(left, gutter),
        y + ROW - 4,
        Math.min(Math.max(right, left + 1), edge) - Math.max(left, gutter),
        2,
      );
      context.fillStyle = this.ink.ink;
      if (left >= gutter) context.fillRect(left, y + 4, 1.5, ROW - 6);
      if (freed !== Infinity && right <= edge) context.fillRect(right - 1, y + 4, 1.5, ROW - 6);
    }
  }

  /** Marks the instants of mistakes, in the rows of their processes and in the lanes that they concern. */
  marks(/** @type {Frame} */ frame, /** @type {number} */ first, /** @type {number} */ last, /** @type {number} */ scale) {
    const { layout, viewport, instants, of } = frame;
    const { from, to, top, gutter } = viewport;
    const at = (/** @type {import('./marks.js').Instant} */ instant) => gutter + (instant.time - from) * scale;
    /** The instants of each row. @type {Map<number, Set<import('./marks.js').Instant>>} */
    const rows = new Map();
    const put = (/** @type {number} */ row, /** @type {import('./marks.js').Instant} */ instant) => {
      if (row < first || row >= last || instant.time < from || instant.time > to) return;
      const known = rows.get(row);
      if (known) known.add(instant);
      else rows.set(row, new Set([instant]));
    };
    for (const instant of instants) put(layout.headOf[instant.process] ?? -1, instant);
    for (let index = first; index < last; index++)
      for (const lifetime of layout.rows[index].marks) for (const instant of of.get(lifetime) ?? []) put(index, instant);
    paintUnordered(this.context, this.ink, frame);
    this.arrow(frame, scale);
    for (const [row, found] of rows) {
      const y = TOP + row * ROW - top + ROW / 2;
      for (const instant of visible(found, at, 3)) {
        mark(this.context, this.ink, at(instant), y, instant.severity, instant === frame.instant ? 7 : 5);
        this.drawn.push({ x: at(instant), y, instant });
      }
    }
  }

  /** Paints an arrow from the other side of the selected mistake to it. @param {Frame} frame @param {number} scale */
  arrow({ layout, viewport, instant }, scale) {
    const rows = [instant?.other?.process ?? -1, instant?.process ?? -1].map((process) => layout.headOf[process] ?? -1);
    if (!instant?.other || rows.includes(-1)) return;
    const [ax, bx] = [instant.other.time, instant.time].map((time) => viewport.gutter + (time - viewport.from) * scale);
    const [ay, by] = rows.map((row) => TOP + row * ROW - viewport.top + ROW / 2);
    const { context, ink } = this;
    // It ends in front of the mark.
    const long = Math.hypot(bx - ax, by - ay);
    if (long < 20) return;
    const [dx, dy] = [(bx - ax) / long, (by - ay) / long];
    const [tx, ty] = [bx - dx * 9, by - dy * 9];
    context.strokeStyle = ink[instant.severity];
    context.fillStyle = ink[instant.severity];
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(ax, ay, 4, 0, 2 * Math.PI);
    context.moveTo(ax + dx * 4, ay + dy * 4);
    context.lineTo(tx, ty);
    context.stroke();
    context.beginPath();
    context.moveTo(tx, ty);
    context.lineTo(tx - dx * 8 - dy * 4, ty - dy * 8 + dx * 4);
    context.lineTo(tx - dx * 8 + dy * 4, ty - dy * 8 - dx * 4);
    context.closePath();
    context.fill();
  }

  /** Paints a line through all rows at each mistake in view, or only at the selected one if there are many. @param {Frame} frame */
  lines({ viewport, instants, instant: selected }) {
    const { context, ink } = this;
    const { from, to, gutter, width, height } = viewport;
    const scale = (width - gutter - BAR) / (to - from);
    const seen = instants.filter(({ time }) => time >= from && time <= to);
    const at = (/** @type {import('./marks.js').Instant} */ instant) => gutter + (instant.time - from) * scale;
    const marked = visible(seen, at, 2);
    context.font = FONT;
    context.fillStyle = ink.faint;
    if (instants.length > 0) context.fillText('findings', 6, STRIP + MARKS / 2);
    for (const instant of selected && seen.includes(selected) && !marked.includes(selected) ? [...marked, selected] : marked) {
      const x = at(instant);
      const is = instant === selected;
      if (is || (seen.length <= LINES_UP_TO && instant.severity !== 'note')) {
        context.strokeStyle = ink[instant.severity];
        context.lineWidth = is ? 1.5 : 1;
        context.setLineDash(is ? [] : [3, 3]);
        context.beginPath();
        context.moveTo(x, STRIP + MARKS / 2);
        context.lineTo(x, height);
        context.stroke();
        context.setLineDash([]);
      }
      mark(context, ink, x, STRIP + MARKS / 2, instant.severity, is ? 6 : 4);
      this.drawn.push({ x, y: STRIP + MARKS / 2, instant });
    }
  }

  /** Paints the labels left of the lanes. */
  labels(/** @type {Frame} */ frame, /** @type {number} */ first, /** @type {number} */ last) {
    const { context, ink } = this;
    const { lifetimes, layout, viewport, selected } = frame;
    const { gutter } = viewport;
    const narrow = gutter < 150;
    context.fillStyle = ink.card;
    context.fillRect(0, TOP, gutter, viewport.height);
    context.save();
    context.beginPath();
    context.rect(0, TOP, gutter - 6, viewport.height);
    context.clip();
    context.font = FONT;
    const letter = context.measureText('n').width;
    /** Writes a text, with an ellipsis if it is cut. @param {string} text @param {number} x @param {number} y @param {number} [less] */
    const write = (text, x, y, less = 0) => {
      const room = gutter - 8 - x - less;
      if (text.length * letter <= room) return context.fillText(text, x, y);
      const { width } = context.measureText(text);
      const fits = Math.max(1, Math.floor((text.length * room) / width) - 1);
      context.fillText(width <= room ? text : `${text.slice(0, fits)}…`, x, y);
    };
    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      const y = TOP + index * ROW - viewport.top;
      const middle = y + ROW / 2 + 0.5;
      if (row.head) {
        const group = layout.groups[row.group];
        const how = frame.mode(group);
        context.fillStyle = ink.sunk;
        context.fillRect(0, y, gutter, ROW);
        context.fillStyle = ink.line;
        context.fillRect(0, y, gutter, 1);
        context.fillStyle = ink.ink;
        const name = narrow ? frame.short(group.process) : frame.called(group.process);
        write(`${how === OPEN ? '▾' : how === FOUND ? '▿' : '▸'} ${name}`, 6, middle, narrow ? 0 : 50);
        if (!narrow) {
          context.fillStyle = ink.faint;
          context.textAlign = 'right';
          context.fillText(figure(group.members.length), gutter - 10, middle);
          context.textAlign = 'left';
        }
        continue;
      }
      const [lifetime] = row.lifetimes;
      if (layout.rowOf[selected] === index && selected >= 0) {
        context.fillStyle = ink.select;
        context.fillRect(0, y, gutter, ROW);
      }
      context.fillStyle = row.opening ? ink.faint : ink.ink;
      const site = row.one ? lifetimes.site(lifetime) : null;
      const many = figure(row.lifetimes.length);
      const text = row.opening
        ? `↳ ${row.one ? [frame.short(lifetimes.process[lifetime]), site].filter(Boolean).join(' · ') : `${many} openings`}`
        : row.one
          ? (site ?? lifetimes.address(lifetime))
          : `${many} handles`;
      write(text, row.opening ? 26 : 18, middle);
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
}
