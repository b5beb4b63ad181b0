// Measures the page: how long the first view takes, and how the timeline pans.
//
//   node tests/browser/measure.mjs paint URL    milliseconds from the navigation to the first paint and to the filled first view, and bytes
//   node tests/browser/measure.mjs pan URL      frames a second while the timeline is panned, at several zoom levels
//   node tests/browser/measure.mjs load URL     milliseconds from the navigation to the timeline with all lifetimes, and frames a second
//                                               while its rows are scrolled
//
// The browser renders in software. The script sets no limits for the figures.

import { ask, go, launch, nothingWentWrong, settled, visit } from './browser.mjs';

const VISITS = 7;
const PAN_MS = 4000;

const [what, url] = process.argv.slice(2);
const base = new URL('./', url ?? 'http://127.0.0.1').href;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const figures = (values) =>
  `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)})`;

async function paint(browser) {
  const run = await ask(base, 'run');
  const [painted, filled] = [[], []];
  /** What came over the wire, and what a second visit of the same browser fetched again, in bytes. */
  const [first, again] = [[], []];
  const fetched = (page) =>
    page.evaluate(() => performance.getEntries().reduce((sum, { transferSize = 0 }) => sum + transferSize, 0));
  for (let i = 0; i < VISITS; i++) {
    const { context, page, faults } = await visit(browser);
    await go(page, base);
    const times = await page.evaluate(async () => {
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      const at = (name) => performance.getEntriesByName(name)[0].startTime;
      return [at('first-contentful-paint'), at('urscope-filled')];
    });
    painted.push(times[0]);
    filled.push(times[1]);
    first.push(await fetched(page));
    await page.reload();
    await settled(page);
    again.push(await fetched(page));
    nothingWentWrong(faults);
    await context.close();
  }
  console.log(`${run.calls} calls, ms from the navigation, medians of ${VISITS} visits (least to most)`);
  console.log(`first paint:       ${figures(painted)}`);
  console.log(`first view filled: ${figures(filled)}`);
  console.log(`bytes until then:  ${figures(first)}; after a reload ${figures(again)}`);
}

/** Turns the wheel, one step per frame, back and forth, and measures the frame times. */
function panned(page, length, step = { deltaX: 25, deltaY: 0 }) {
  return page.evaluate(
    async ({ length, step }) => {
      const canvas = document.querySelector('canvas.lanes');
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
      const frames = [];
      const began = performance.now();
      let before = began;
      for (let way = 1; before - began < length; ) {
        canvas.dispatchEvent(new WheelEvent('wheel', { ...at, deltaX: step.deltaX * way, deltaY: step.deltaY * way }));
        const now = await new Promise((resolve) => requestAnimationFrame(resolve));
        frames.push(now - before);
        before = now;
        if (frames.length % 40 === 0) way = -way;
      }
      return { frames: frames.slice(1), rows: canvas.height };
    },
    { length, step },
  );
}

async function pan(browser) {
  const run = await ask(base, 'run');
  const { page, faults } = await visit(browser, { viewport: { width: 1440, height: 900 } });
  console.log(`${run.lives} lifetimes, panned for ${PAN_MS / 1000} s at each zoom level, software rendering, 1440 x 900`);
  for (const part of [0.9, 0.3, 0.03, 0.003]) {
    const from = Math.round(run.last_ns * (0.5 - part / 2));
    const to = Math.round(run.last_ns * (0.5 + part / 2));
    await go(page, base, '#/');
    await go(page, base, `#/timeline?from=${from}&to=${to}`);
    await page.locator('.canvas-area[data-ready]').waitFor();
    await page.waitForTimeout(500);
    const { frames } = await panned(page, PAN_MS);
    console.log(`${(part * 100).toFixed(1).padStart(5)} % of the run in view: ${rate(frames)}`);
  }
  nothingWentWrong(faults);
}

/** How fluid these frames are. */
function rate(frames) {
  const total = frames.reduce((sum, frame) => sum + frame, 0);
  const slow = [...frames].sort((a, b) => a - b)[Math.floor(frames.length * 0.95)];
  return `${((frames.length / total) * 1000).toFixed(0)} frames/s, median ${median(frames).toFixed(1)} ms, 95 of 100 within ${slow.toFixed(1)} ms`;
}

async function load(browser) {
  const run = await ask(base, 'run');
  const { page, faults } = await visit(browser, { viewport: { width: 1440, height: 900 } });
  const began = performance.now();
  await go(page, base, '#/timeline');
  await page.locator('.canvas-area[data-ready]').waitFor({ timeout: 120_000 });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  console.log(
    `${run.processes.length} processes, ${run.lives} lifetimes: the timeline is complete after ${(performance.now() - began).toFixed(0)} ms`,
  );
  const { frames } = await panned(page, PAN_MS, { deltaX: 0, deltaY: 30 });
  console.log(`rows scrolled: ${rate(frames)}`);
  nothingWentWrong(faults);
}

const measures = { paint, pan, load };
if (!measures[what] || !url) {
  console.error('usage: node tests/browser/measure.mjs paint|pan|load URL');
  process.exit(3);
}
const browser = await launch();
try {
  await measures[what](browser);
} finally {
  await browser.close();
}
