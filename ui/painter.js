/**
 * Paints the timeline: the whole run in little, the ruler, and the lanes that are in sight. What cannot be told apart is
 * painted once: in a lane, no more rectangles than there are pixels.
 */
import { after } from './lanes.js';
import { family } from './lifetimes.js';
import { bytes, count, span } from './format.js';
import { colours } from './theme.js';

export const ROW = 17;
/** The strip with the whole run, and the ruler under it. */
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
/** A life narrower than this has no room for words. */
const WORDS = 70;
/** No more words than this at a time. */
const WORDS_UP_TO = 200;

/**
 * @typedef {{from: number, to: number, top: number, width: number, height: number, gutter: number, last: number}} Sight
 *   the time in sight, how far it is scrolled down in pixels, and how big the canvas is
 * @typedef {{lives: import('./lifetimes.js').Lives, layout: import('./lanes.js').Layout, sight: Sight, selected: number,
 *   worst: (life: number) => string, called: (process: number) => string, short: (process: number) => string,
 *   closed: Set<number>, findings: {time: number, severity: string}[]}} Scene
 */

/** The colour half covered by the ground: painting it opaque is cheaper than painting it through. */
function pale(/** @type {string} */ colour, /** @type {string} */ ground) {
  const parts = (/** @type {string} */ text) => (text.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [over, under] = [parts(colour), parts(ground)];
  return `rgb(${over.map((part, index) => Math.round(part * 0.55 + under[index] * 0.45)).join(' ')})`;
}

/** A round step of time of which about `count` fit. */
function stride(/** @type {number} */ length, /** @type {number} */ count) {
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
    this.little = null;
    /** @type {Record<string, string>} */
    this.ink = {};
    this.repaint();
  }

  /** Takes the colours anew. */
  repaint() {
    this.ink = colours(NAMES);
    this.little = null;
  }

  /** @param {Scene} scene */
  paint(scene) {
    const { context, canvas, ink } = this;
    const { width, height, gutter } = scene.sight;
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
    this.lanes(scene);
    this.scrollbar(scene);
    context.fillStyle = ink.card;
    context.fillRect(0, 0, width, TOP);
    this.strip(scene);
    this.ruler(scene);
    context.fillStyle = ink.line;
    context.fillRect(gutter - 1, 0, 1, height);
    context.fillRect(0, TOP - 1, width, 1);
  }

  /** @param {Scene} scene */
  lanes(scene) {
    const { context, ink } = this;
    const { lives, layout, sight, selected } = scene;
    const { from, to, top, width, height, gutter } = sight;
    const scale = (width - gutter - BAR) / (to - from);
    const edge = width - BAR;
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(layout.rows.length, Math.ceil((top + height - TOP) / ROW));
    const fills = lives.kinds.map((kind) => ink[family(kind)]);
    const pales = fills.map((fill) => pale(fill, ink.card));
    const words = [];
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
      // Neighbours of one colour that touch become one rectangle.
      let [begun, ended, colour] = [-1, -1, ''];
      const flush = () => {
        if (ended <= begun) return;
        context.fillStyle = colour;
        context.fillRect(begun, up, ended - begun, tall);
      };
      const lane = row.lives;
      for (let i = after(lives.to, lane, from); i < lane.length; ) {
        const life = lane[i];
        if (lives.from[life] >= to) break;
        const left = Math.max(gutter, Math.floor(gutter + (lives.from[life] - from) * scale));
        const right = Math.min(
          edge,
          Math.max(left + 1, Math.floor(gutter + (Math.min(lives.to[life], sight.last) - from) * scale)),
        );
        const fill = (row.opening ? pales : fills)[lives.kind[life]];
        if (left > ended || fill !== colour || right - left > 3) {
          flush();
          // Between two wide ones a gap of a pixel shows that they are two.
          [begun, ended, colour] = [left === ended && right - left > 3 ? left + 1 : left, right, fill];
        } else {
          ended = Math.max(ended, right);
        }
        if (right - left > WORDS) words.push({ life, left, right, y: up + tall / 2, opening: row.opening });
        // All that end within this pixel are painted already.
        i = right - left <= 1 ? Math.max(i + 1, after(lives.to, lane, from + (left + 1 - gutter) / scale, i)) : i + 1;
      }
      flush();
      this.marks(scene, row, up, tall, scale);
    }

    context.font = FONT;
    const letter = context.measureText('0').width;
    for (const { life, left, right, y, opening } of words.slice(0, WORDS_UP_TO)) {
      context.fillStyle = opening ? ink.ink : ink.card;
      const indent = lives.findings.has(life) ? 10 : 4;
      const size = lives.bytes[life] > 0 ? ` ${bytes(lives.bytes[life])}` : '';
      const text = opening
        ? `open in ${scene.short(lives.process[life])}${size}`
        : `${lives.fingerprint[life] ?? lives.address[life]}${size}`;
      // Cutting text by its letters is cheaper than clipping it. A number that is cut must not look like another one.
      const room = Math.floor((right - left - indent - 3) / letter);
      context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + indent, y + 0.5);
    }
    const chosen = layout.rowOf[selected] ?? -1;
    if (selected >= 0 && chosen >= first && chosen < last) {
      const left = Math.max(gutter, gutter + (lives.from[selected] - from) * scale);
      const right = Math.min(edge, gutter + (Math.min(lives.to[selected], sight.last) - from) * scale);
      context.strokeStyle = ink.ink;
      context.lineWidth = 2;
      if (right >= gutter && left <= edge)
        context.strokeRect(left - 1, TOP + chosen * ROW - top + 1, Math.max(right - left, 2) + 2, ROW - 2);
    }
    this.labels(scene, first, last);
    context.restore();
  }

  /** Findings stand on the lives that they are about: a triangle, a diamond or a dot. */
  marks(
    /** @type {Scene} */ { lives, sight, worst },
    /** @type {any} */ row,
    /** @type {number} */ up,
    /** @type {number} */ tall,
    /** @type {number} */ scale,
  ) {
    let before = -Infinity;
    for (let i = after(lives.to, row.marks, sight.from); i < row.marks.length; i++) {
      const life = row.marks[i];
      if (lives.from[life] >= sight.to) break;
      const x = Math.max(sight.gutter, sight.gutter + (lives.from[life] - sight.from) * scale);
      if (x - before < 3) continue;
      before = x;
      this.mark(x, up + tall / 2, worst(life), 5);
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

  /** What stands left of the lanes. */
  labels(/** @type {Scene} */ scene, /** @type {number} */ first, /** @type {number} */ last) {
    const { context, ink } = this;
    const { lives, layout, sight, selected } = scene;
    context.fillStyle = ink.card;
    context.fillRect(0, TOP, sight.gutter, sight.height);
    context.save();
    context.beginPath();
    context.rect(0, TOP, sight.gutter - 6, sight.height);
    context.clip();
    for (let index = first; index < last; index++) {
      const row = layout.rows[index];
      const y = TOP + index * ROW - sight.top;
      if (row.head) {
        context.fillStyle = ink.sunk;
        context.fillRect(0, y, sight.gutter, ROW);
        context.font = `bold ${FONT}`;
        context.fillStyle = ink.ink;
        context.fillText(`${scene.closed.has(row.group) ? '▸' : '▾'} ${scene.called(row.group)}`, 6, y + ROW / 2 + 0.5);
        continue;
      }
      const [life] = row.lives;
      if (layout.rowOf[selected] === index && selected >= 0) {
        context.fillStyle = ink.select;
        context.fillRect(0, y, sight.gutter, ROW);
      }
      context.fillStyle = row.opening ? ink.faint : ink.ink;
      context.font = row.opening || !row.one ? FONT : MONO;
      const handles = row.one ? lives.address[life] : count(row.lives.length, 'handle');
      const openings = row.one ? scene.called(lives.process[life]) : count(row.lives.length, 'opening');
      context.fillText(row.opening ? `↳ ${openings}` : handles, row.opening ? 24 : 16, y + ROW / 2 + 0.5);
    }
    context.restore();
  }

  /** How far down one has scrolled; it can be dragged. */
  scrollbar(/** @type {Scene} */ { layout, sight }) {
    const { context, ink } = this;
    const thumb = Painter.thumb(layout.rows.length, sight);
    context.fillStyle = ink.sunk;
    context.fillRect(sight.width - BAR, TOP, BAR, sight.height - TOP);
    if (!thumb) return;
    context.fillStyle = ink.faint;
    context.fillRect(sight.width - BAR + 2, thumb.y, BAR - 4, thumb.tall);
  }

  /** @param {number} rows @param {Sight} sight */
  static thumb(rows, sight) {
    const [whole, seen] = [rows * ROW, sight.height - TOP];
    if (whole <= seen) return null;
    const tall = Math.max(24, (seen * seen) / whole);
    return { tall, y: TOP + (sight.top / (whole - seen)) * (seen - tall), room: seen - tall, whole: whole - seen };
  }

  /** The whole run in little: how many lived at each moment, and what of it is in sight. */
  strip(/** @type {Scene} */ scene) {
    const { context, ink } = this;
    const { layout, sight, findings } = scene;
    const wide = Math.max(1, Math.floor(sight.width - sight.gutter - BAR));
    const dots = devicePixelRatio || 1;
    if (
      this.little?.layout !== layout ||
      this.little.width !== wide ||
      this.little.last !== sight.last ||
      this.little.dots !== dots
    ) {
      this.little = { layout, width: wide, last: sight.last, dots, picture: this.inLittle(scene, wide, dots) };
    }
    context.drawImage(this.little.picture, sight.gutter, 0, wide, STRIP);
    const [left, right] = [sight.from, sight.to].map((ns) => sight.gutter + (ns / sight.last) * wide);
    context.fillStyle = ink.link;
    context.globalAlpha = 0.18;
    context.fillRect(left, 0, Math.max(right - left, 2), STRIP);
    context.globalAlpha = 1;
    context.strokeStyle = ink.link;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), STRIP - 1);
    for (const { time, severity } of findings) this.mark(sight.gutter + (time / sight.last) * wide, 5, severity, 4);
    context.fillStyle = ink.faint;
    context.font = FONT;
    context.fillText('whole run', 6, STRIP / 2);
  }

  /** It is painted once, and again when something has changed. @param {Scene} scene @param {number} wide @param {number} dots */
  inLittle({ lives, layout, sight }, wide, dots) {
    const levels = new Float32Array(wide + 1);
    for (const row of layout.rows) {
      for (const life of row.lives) {
        levels[Math.min(wide - 1, Math.floor((lives.from[life] / sight.last) * wide))]++;
        const end = Math.floor((Math.min(lives.to[life], sight.last) / sight.last) * wide) + 1;
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

  /** @param {Scene} scene */
  ruler({ sight, findings }) {
    const { context, ink } = this;
    const wide = sight.width - sight.gutter - BAR;
    const step = stride(sight.to - sight.from, wide / 110);
    const scale = wide / (sight.to - sight.from);
    context.font = FONT;
    context.fillStyle = ink.faint;
    context.fillText(`${span(sight.to - sight.from)} in sight`, 6, STRIP + 11);
    context.save();
    context.beginPath();
    context.rect(sight.gutter, STRIP, wide, sight.height);
    context.clip();
    const digits = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(step))));
    for (let ns = Math.ceil(sight.from / step) * step; ns <= sight.to; ns += step) {
      const x = sight.gutter + (ns - sight.from) * scale;
      context.fillStyle = ink.line;
      context.fillRect(Math.round(x), STRIP, 1, TOP - STRIP);
      context.globalAlpha = 0.35;
      context.fillRect(Math.round(x), TOP, 1, sight.height);
      context.globalAlpha = 1;
      context.fillStyle = ink.faint;
      context.fillText(`+${(ns / 1e9).toFixed(digits)} s`, x + 4, STRIP + 11);
    }
    for (const { time, severity } of findings) {
      if (time >= sight.from && time <= sight.to) this.mark(sight.gutter + (time - sight.from) * scale, TOP - 5, severity, 4);
    }
    context.restore();
  }
}
