// Starts the Chromium of target/browser (scripts/setup --browser puts it there) and opens windows. Each window records its faults:
// errors on the console, uncaught exceptions, and requests to any server but urscope view.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

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

/** Starts Chromium with a temporary profile. */
export async function launch() {
  const { chromium } = require('playwright-core');
  const options = {
    executablePath: path.join(CHROMIUM, 'chromium'),
    args: FLAGS,
    env: {
      ...process.env,
      LD_LIBRARY_PATH: `${CHROMIUM}/lib:${CHROMIUM}`,
      FONTCONFIG_FILE: path.join(CHROMIUM, 'fonts.conf'),
      XDG_CACHE_HOME: path.join(CHROMIUM, '../cache'),
      HOME: os.tmpdir(),
    },
  };
  // Chromium may crash while it starts, before it has opened any page.
  return chromium.launch(options).catch(() => chromium.launch(options));
}

/** The source of axe, to inject into a page. */
export const axe = () => fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Opens a page in a browser context of its own. `faults` collects what went wrong and must stay empty. */
export async function visit(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const faults = [];
  const foreign = (request) => {
    const { protocol, hostname } = new URL(request.url());
    return ['http:', 'https:', 'ws:', 'wss:'].includes(protocol) && !['127.0.0.1', 'localhost'].includes(hostname);
  };
  // The Perfetto UI tries to reach other servers; its content security policy blocks that, so nothing leaves the browser.
  const away = (request) => {
    if (foreign(request) && request.failure()?.errorText !== 'csp')
      faults.push(`a request to ${request.url()}: ${request.failure()?.errorText}`);
  };
  context.on('requestfinished', away);
  context.on('requestfailed', away);
  const page = await context.newPage();
  // Errors of the Perfetto UI do not count.
  const ours = () => !page.url().startsWith('http://localhost:');
  page.on('request', (request) => {
    if (foreign(request) && ours()) faults.push(`a request to ${request.url()}`);
  });
  page.on('pageerror', (error) => {
    if (ours()) faults.push(`a script threw: ${error.stack ?? error}`);
  });
  page.on('console', (message) => {
    // A scenario that ends the server says so: then requests may fail.
    if (page.outage && /net::ERR_/.test(message.text())) return;
    if (['error', 'warning'].includes(message.type()) && ours()) faults.push(`on the console: ${message.text()}`);
  });
  return { context, page, faults };
}

/** Waits until the view is loaded. */
export async function settled(page) {
  await page.locator('main[aria-busy="false"]').waitFor();
}

/** Opens the page, or goes to another view. */
export async function go(page, base, hash = '') {
  await page.goto(`${base}${hash}`);
  await settled(page);
}

/** Fails with the recorded faults, if there are any. */
export function nothingWentWrong(faults) {
  assert.deepEqual(faults, [], 'the page made no error and no request to another server');
}

/** The answers inside of a page that is a file. */
export function savedAnswers(base) {
  const packed = /id="answers">([^<]*)</.exec(fs.readFileSync(new URL(base), 'utf8'))[1];
  return JSON.parse(gunzipSync(Buffer.from(packed, 'base64')).toString());
}

/** What the scenarios ask for, from a page that is a file. */
function saved(base, name) {
  const all = savedAnswers(base);
  const [path, query] = name.split('?');
  const { run, check, handles } = all;
  if (path === 'calls') return { total: run.calls };
  if (path === 'lives') return { total: run.lives, columns: { fingerprint: [check.findings[0]?.fingerprint] } };
  if (path === 'handle') return handles.find((history) => query === `name=${history.name}`);
  return all[path];
}

/** Fetches an answer of the server, as the page does. */
export async function ask(base, name) {
  if (base.startsWith('file:')) return saved(base, name);
  const response = await fetch(`${base}api/${name}`);
  assert.equal(response.status, 200, `api/${name}`);
  return response.json();
}

/** The query of the address. */
export const words = (page) => new URLSearchParams(page.url().split('?')[1] ?? '');

/** The name of the selected lifetime, from the panel beside the timeline; empty if none is selected. */
export const selected = (page) => page.locator('.detail').getAttribute('data-lifetime');

/** Waits until the lifetimes are loaded. */
export const timeline = (page) => page.locator('.canvas-area[data-ready]').waitFor();
