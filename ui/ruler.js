/**
 * Paints what is above the lanes of the timeline: the minimap of the whole run, and the ruler of the visible part.
 */
import { roundStep, span, tickLabel, ticks } from './format.js';
import { mark, visible } from './marks.js';
import { AXIS, BAR, FONT, STRIP, TOP } from './measures.js';

/** How far apart labels are, in pixels. */
const APART = 110;

/**
 * The picture of the minimap: how many lifetimes each moment has.
 * @param {import('./painter.js').Frame} frame
 * @param {number} wide
 * @param {number} dots
 * @param {Record<string, string>} ink
 */
export function minimap({ lifetimes, chosen, viewport }, wide, dots, ink) {
  const levels = new Float64Array(wide + 1);
  for (const lifetime of chosen) {
    levels[Math.min(wide - 1, Math.floor((lifetimes.from[lifetime] / viewport.last) * wide))]++;
    const end = Math.floor((Math.min(lifetimes.to[lifetime], viewport.last) / viewport.last) * wide) + 1;
    if (end < wide) levels[end]--;
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
  context.fillStyle = ink.sunk;
  context.fillRect(0, 0, wide, STRIP);
  context.fillStyle = ink.faint;
  for (let x = 0; x < wide; x++) {
    const tall = levels[x] > 0 ? Math.max(1, (levels[x] / most) * (STRIP - 4)) : 0;
    if (tall > 0) context.fillRect(x, STRIP - tall, 1, tall);
  }
  return picture;
}

/**
 * Paints the minimap with the visible part.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} ink
 * @param {import('./painter.js').Frame} frame
 * @param {HTMLCanvasElement} picture
 * @param {import('./painter.js').Drawn[]} drawn  gets the marks
 */
export function strip(context, ink, { viewport, instants }, picture, drawn) {
  const wide = Math.max(1, Math.floor(viewport.width - viewport.gutter - BAR));
  context.drawImage(picture, viewport.gutter, 0, wide, STRIP);
  const [left, right] = [viewport.from, viewport.to].map((ns) => viewport.gutter + (ns / viewport.last) * wide);
  context.fillStyle = ink.link;
  context.globalAlpha = 0.18;
  context.fillRect(left, 0, Math.max(right - left, 2), STRIP);
  context.globalAlpha = 1;
  context.strokeStyle = ink.link;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), STRIP - 1);
  const at = (/** @type {import('./marks.js').Instant} */ instant) => viewport.gutter + (instant.time / viewport.last) * wide;
  for (const instant of visible(instants, at, 2)) {
    const x = at(instant);
    mark(context, ink, x, 6, instant.severity, 4);
    drawn.push({ x, y: 6, instant });
  }
  context.fillStyle = ink.faint;
  context.font = FONT;
  context.fillText('whole run', 6, STRIP / 2);
}

/**
 * Paints the ruler, and the lines of its ticks.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} ink
 * @param {import('./painter.js').Viewport} viewport
 */
export function ruler(context, ink, viewport) {
  const wide = viewport.width - viewport.gutter - BAR;
  const [length, count] = [viewport.to - viewport.from, wide / APART];
  const scale = wide / length;
  const step = roundStep(length, count);
  context.font = FONT;
  context.fillStyle = ink.faint;
  context.fillText(viewport.gutter < 150 ? span(length) : `${span(length)} in view`, 6, AXIS + 12);
  context.save();
  context.beginPath();
  context.rect(viewport.gutter, AXIS, wide, viewport.height);
  context.clip();
  for (const ns of ticks(viewport.from, viewport.to, count)) {
    const x = Math.round(viewport.gutter + (ns - viewport.from) * scale);
    context.fillStyle = ink.line;
    context.fillRect(x, AXIS, 1, TOP - AXIS);
    context.globalAlpha = 0.35;
    context.fillRect(x, TOP, 1, viewport.height);
    context.globalAlpha = 1;
    context.fillStyle = ink.faint;
    const label = tickLabel(ns, step);
    // A label that would be cut is left out.
    if (x + 4 + context.measureText(label).width <= viewport.width - BAR) context.fillText(label, x + 4, AXIS + 12);
  }
  context.restore();
}
