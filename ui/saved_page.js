/**
 * Begins the page that is one file: shows it instead of the report as soon as its answers are unpacked.
 */
import { answers } from './saved.js';

await answers;
/** @type {HTMLElement} */ (document.getElementById('page')).hidden = false;
/** @type {HTMLElement} */ (document.getElementById('report-style')).setAttribute('media', 'print');
for (const style of document.querySelectorAll('.page-style')) style.setAttribute('media', 'screen');
await import('./app.js');
