/**
 * The instants of mistakes: when each occurrence of a finding happened, in which process, and with which lifetimes.
 *
 * @typedef {{time: number, process: number, severity: string, finding: number, fingerprint: string | null, lifetimes: number[],
 *   other: {time: number, process: number} | null, others: number[], unordered: ReturnType<typeof unordered>}} Instant  `other` is the
 *   other side, if it is known, `others` are the further processes there, and `unordered` are two commands that nothing orders
 */
import { SEVERITIES, processOf } from './run.js';
import { unordered } from './unordered.js';

/** At most this many are marked. */
const MOST = 5000;

/**
 * The instants of all findings that count, in order of time.
 * @param {import('./run.js').RunData} data
 * @param {import('./lifetimes.js').Lifetimes} lifetimes
 * @param {string} rule  only findings of this rule, unless it is empty or "any"
 * @returns {Instant[]}
 */
export function instantsOf({ run, check }, lifetimes, rule) {
  /** @type {Instant[]} */
  const found = [];
  check.findings.forEach((/** @type {import('./api.js').Finding} */ finding, /** @type {number} */ index) => {
    if (finding.excuse || (rule && rule !== 'any' && finding.rule !== rule)) return;
    const places =
      finding.occurrences?.length > 0 ? finding.occurrences : [{ ...finding.process, fingerprint: finding.fingerprint }];
    for (const place of places) {
      if (found.length >= MOST) return;
      const process = processOf(run, /** @type {any} */ (place))?.index ?? -1;
      const { fingerprint } = place;
      // The other side is known of the first occurrence.
      const first = place.time_ns === finding.process.time_ns && place.pid === finding.process.pid;
      const other =
        finding.other && first ? { time: finding.other.time_ns, process: processOf(run, finding.other)?.index ?? -1 } : null;
      const others = first ? (finding.others ?? []).map((side) => processOf(run, side)?.index ?? -1) : [];
      const { severity } = finding;
      const about = { severity, finding: index, fingerprint, lifetimes: [], other, others };
      found.push({ time: place.time_ns, process, ...about, unordered: first ? unordered(run, finding) : null });
    }
  });
  /** The instants of a finding by the handle data. @type {Map<string, Instant[]>} */
  const by = new Map();
  for (const instant of found) {
    const key = `${instant.finding} ${instant.fingerprint}`;
    const known = by.get(key);
    if (known) known.push(instant);
    else by.set(key, [instant]);
  }
  for (const [lifetime, findings] of lifetimes.findings) {
    const fingerprint = lifetimes.fingerprint(lifetime);
    for (const finding of findings)
      for (const instant of by.get(`${finding} ${fingerprint}`) ?? [])
        if ([instant.process, instant.other?.process, ...instant.others].includes(lifetimes.process[lifetime]))
          instant.lifetimes.push(lifetime);
  }
  return found.sort((a, b) => a.time - b.time);
}

/**
 * The instants of each lifetime.
 * @param {Instant[]} instants
 * @returns {Map<number, Instant[]>}
 */
export function byLifetime(instants) {
  const found = new Map();
  for (const instant of instants)
    for (const lifetime of instant.lifetimes) {
      const known = found.get(lifetime);
      if (known) known.push(instant);
      else found.set(lifetime, [instant]);
    }
  return found;
}

/**
 * The instants that are marked where not all have room: the most severe ones, which are last, so that they are painted over the others.
 * @param {Iterable<Instant>} instants
 * @param {(instant: Instant) => number} x  where an instant is, in pixels
 * @param {number} apart  how many pixels a mark takes
 */
export function visible(instants, x, apart) {
  const all = [...instants];
  const taken = new Set();
  const shown = [];
  for (const severity of SEVERITIES)
    for (const instant of all) {
      const place = Math.round(x(instant) / apart);
      if (instant.severity !== severity || taken.has(place)) continue;
      taken.add(place);
      shown.push(instant);
    }
  return shown.reverse();
}

/**
 * Paints a mark: a triangle, a diamond or a dot.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} ink
 * @param {number} x
 * @param {number} y
 * @param {string} severity
 * @param {number} r
 */
export function mark(context, ink, x, y, severity, r) {
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
