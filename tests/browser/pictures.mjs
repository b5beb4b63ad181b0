// Compares pictures of all views with those that are kept: node tests/browser/pictures.mjs URL
//
// URL is that of urscope view for tests/browser/run. With BLESS=1 the pictures replace the kept ones.

import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';

import { ask, go, launch, nothingWentWrong, visit } from './browser.mjs';

const [url] = process.argv.slice(2);
if (!url) {
  console.error('usage: node tests/browser/pictures.mjs URL');
  process.exit(3);
}
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const [kept, failed] = [path.join(root, 'tests/browser/pictures'), path.join(root, 'target/pictures')];

/** How many pixels may differ visibly: text may be antialiased in another way. */
const PIXELS = 20;

const base = new URL('./', url).href;
const { findings } = await ask(base, 'check');
const [found] = findings;
const VIEWS = [
  ['overview', '#/'],
  ['finding', `#/finding/${found.identity}`],
  ['timeline', `#/timeline?at=${found.fingerprint}`],
  ['handles', '#/handles'],
  ['handle', `#/handle/${found.fingerprint}`],
  ['calls', '#/calls'],
];
const SIZES = [
  [1440, 900],
  [1024, 768],
  [390, 844],
];

/** How many pixels of two pictures differ visibly, or why they cannot be compared; counted in a browser, which can read them. */
async function difference(page, one, other) {
  return page.evaluate(
    async (files) => {
      const bitmaps = files.map(async (file) => createImageBitmap(await (await fetch(`data:image/*;base64,${file}`)).blob()));
      const [[a, width, height], [b, ...size]] = (await Promise.all(bitmaps)).map((bitmap) => {
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
        canvas.drawImage(bitmap, 0, 0);
        return [canvas.getImageData(0, 0, bitmap.width, bitmap.height).data, bitmap.width, bitmap.height];
      });
      if (size[0] !== width || size[1] !== height) return `it is ${size.join(' by ')} pixels, not ${width} by ${height}`;
      let pixels = 0;
      for (let at = 0; at < a.length; at += 4) {
        if ([0, 1, 2].some((channel) => Math.abs(a[at + channel] - b[at + channel]) > 40)) pixels++;
      }
      return pixels;
    },
    [one, other].map((bytes) => bytes.toString('base64')),
  );
}

/** A chunk of a PNG file: https://www.w3.org/TR/png-3/#5Chunk-layout */
function chunk(name, data) {
  const content = Buffer.concat([Buffer.from(name), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(content));
  return Buffer.concat([length, content, sum]);
}

/** A picture as a PNG file with 256 colours, which is a third of the size. */
async function packed(page, picture) {
  const { width, height, palette, rows } = await page.evaluate(async (file) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${file}`)).blob());
    const { width, height } = bitmap;
    const canvas = new OffscreenCanvas(width, height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const { data } = canvas.getImageData(0, 0, width, height);
    const colours = new Map();
    const colourAt = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    for (let at = 0; at < data.length; at += 4) colours.set(colourAt(at), (colours.get(colourAt(at)) ?? 0) + 1);
    const frequent = [...colours].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
    const apart = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + Math.abs(((a >> shift) & 255) - ((b >> shift) & 255)), 0);
    const palette = frequent.slice(0, 192);
    /** For each colour, the place of the nearest one in the palette, and how far it is. */
    const nearest = new Map(frequent.map((colour) => [colour, [0, Infinity]]));
    const take = (chosen, place) => {
      for (const [colour, known] of nearest)
        if (apart(chosen, colour) < known[1]) nearest.set(colour, [place, apart(chosen, colour)]);
    };
    palette.forEach(take);
    // The others are those that nothing is near to.
    while (palette.length < Math.min(256, frequent.length)) {
      const [[farthest]] = [...nearest].sort(([, a], [, b]) => b[1] - a[1]);
      take(farthest, palette.push(farthest) - 1);
    }
    // Each row begins with the number of its filter, which is 0.
    const rows = new Uint8Array((width + 1) * height);
    for (let pixel = 0; pixel < width * height; pixel++)
      rows[pixel + Math.floor(pixel / width) + 1] = nearest.get(colourAt(4 * pixel))[0];
    return { width, height, palette, rows: btoa(Array.from(rows, (byte) => String.fromCharCode(byte)).join('')) };
  }, picture.toString('base64'));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(Buffer.from(rows, 'base64'), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const browser = await launch();
const wrong = [];
try {
  const { page: comparer } = await visit(browser);
  for (const colorScheme of ['light', 'dark']) {
    for (const [width, height] of SIZES) {
      const { context, page, faults } = await visit(browser, {
        colorScheme,
        viewport: { width, height },
        reducedMotion: 'reduce',
      });
      for (const [view, address] of VIEWS) {
        await go(page, base, address);
        await page.waitForFunction(() => ![...document.querySelectorAll('.empty')].some((one) => one.textContent === 'Reading…'));
        if (view === 'timeline') await page.locator('.canvas-area[data-ready]').waitFor();
        await page.evaluate(() =>
          document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))),
        );
        const name = `${view}-${width}-${colorScheme}`;
        const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
        const file = path.join(kept, `${name}.png`);
        const known = fs.existsSync(file) ? fs.readFileSync(file) : null;
        const differs = known === null ? 'it is not kept' : await difference(comparer, known, picture);
        if (typeof differs === 'number' && differs <= PIXELS) continue;
        const keeps = process.env.BLESS === '1';
        fs.mkdirSync(keeps ? kept : failed, { recursive: true });
        if (keeps) fs.writeFileSync(file, await packed(comparer, picture));
        else fs.writeFileSync(path.join(failed, `${name}.png`), picture);
        if (!keeps) wrong.push(`${name}: ${typeof differs === 'number' ? `${differs} pixels differ` : differs}`);
      }
      nothingWentWrong(faults);
      await context.close();
    }
  }
} finally {
  await browser.close();
}
if (wrong.length > 0) {
  console.error(`${wrong.join('\n')}\nThe new pictures are in target/pictures. If they are right, keep them: scripts/pictures`);
  process.exit(1);
}
