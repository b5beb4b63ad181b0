// Takes the pictures of the README: node tests/browser/screenshots.mjs URL FOLDER

import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { ask, go, launch, nothingWentWrong, visit } from './browser.mjs';

const [url, folder] = process.argv.slice(2);
if (!url || !folder) {
  console.error('usage: node tests/browser/screenshots.mjs URL FOLDER');
  process.exit(3);
}
const base = new URL('./', url).href;
const { findings } = await ask(base, 'check');
// The first finding with two sides.
const shown = findings.find((found) => found.other && found.fingerprint) ?? findings[0];

/** Source files are shown by their path in the repository, without this machine's path to it. */
const root = fileURLToPath(new URL('../..', import.meta.url));
function shorten(root) {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(root, '');
}

const PICTURES = [
  { name: 'overview', view: '#/' },
  { name: 'finding', view: `#/finding/${shown.identity}` },
  { name: 'timeline', view: `#/timeline?at=${shown.fingerprint}` },
  { name: 'overview-dark', view: '#/', colorScheme: 'dark' },
];

const browser = await launch();
try {
  for (const { name, view, colorScheme = 'light' } of PICTURES) {
    const { context, page, faults } = await visit(browser, { colorScheme, viewport: { width: 1160, height: 740 } });
    await go(page, base, view);
    await page.waitForFunction(() => ![...document.querySelectorAll('.empty')].some((one) => one.textContent === 'Reading…'));
    if (view.startsWith('#/timeline')) await page.locator('.canvas-area[data-ready]').waitFor();
    await page.waitForTimeout(500);
    await page.evaluate(shorten, root);
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
    nothingWentWrong(faults);
    await context.close();
  }
} finally {
  await browser.close();
}
