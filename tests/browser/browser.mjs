// A Chromium of our own, and visits to the page in which nothing may go wrong unseen: an error on the console, a script that
// throws, a request to anybody else than urscope view. scripts/setup --browser puts it under target/browser.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../target/browser');
const CHROMIUM = path.join(FOLDER, 'chromium');
const require = createRequire(path.join(FOLDER, 'package.json'));

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--font-render-hinting=none',
];

/** Chromium, with a profile that is new and goes away again. */
export async function launch() {
  const { chromium } = require('playwright-core');
  return chromium.launch({
    executablePath: path.join(CHROMIUM, 'chromium'),
    args: FLAGS,
    env: {
      ...process.env,
      LD_LIBRARY_PATH: `${CHROMIUM}/lib:${CHROMIUM}`,
      FONTCONFIG_FILE: path.join(CHROMIUM, 'fonts.conf'),
      HOME: os.tmpdir(),
    },
  });
}

/** The source of axe, to be put into a page. */
export const axe = () => fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** A page in a browser that knows nothing of any other; `faults` is what must stay empty. */
export async function visit(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const faults = [];
  const foreign = (request) => {
    const { protocol, hostname } = new URL(request.url());
    return ['http:', 'https:', 'ws:', 'wss:'].includes(protocol) && !['127.0.0.1', 'localhost'].includes(hostname);
  };
  // The copy of Perfetto's UI would like to ask others, and its policy forbids it: nothing leaves the browser.
  const away = (request) => {
    if (foreign(request) && request.failure()?.errorText !== 'csp')
      faults.push(`a request to ${request.url()}: ${request.failure()?.errorText}`);
  };
  context.on('requestfinished', away);
  context.on('requestfailed', away);
  const page = await context.newPage();
  // What is strange in the copy of Perfetto's UI is not ours.
  const ours = () => !page.url().startsWith('http://localhost:');
  page.on('request', (request) => {
    if (foreign(request) && ours()) faults.push(`a request to ${request.url()}`);
  });
  page.on('pageerror', (error) => {
    if (ours()) faults.push(`a script threw: ${error.stack ?? error}`);
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && ours()) faults.push(`on the console: ${message.text()}`);
  });
  return { context, page, faults };
}

/** Waits until the view is there. */
export async function settled(page) {
  await page.locator('main[aria-busy="false"]').waitFor();
}

/** Opens the page, or goes to another of its views. */
export async function go(page, base, hash = '') {
  await page.goto(`${base}${hash}`);
  await settled(page);
}

/** Fails with all that went wrong in a visit. */
export function nothingWentWrong(faults) {
  assert.deepEqual(faults, [], 'the page made no error and asked nobody else');
}

/** An answer of the server, as the page gets it. */
export async function ask(base, name) {
  const response = await fetch(`${base}api/${name}`);
  assert.equal(response.status, 200, `api/${name}`);
  return response.json();
}
