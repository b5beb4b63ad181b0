/**
 * The lines of source around a place, and the explanation of a rule. Both come as text from the server.
 */
import { ask } from './api.js';
import { el } from './dom.js';
import { file } from './format.js';

/**
 * The lines around a frame of a side, or around its call site, or why there are none.
 * @param {number} index  of the finding
 * @param {boolean} there  which side
 * @param {number} [frame]  the position of the frame in the stack
 * @returns {Promise<HTMLElement>}
 */
export async function excerpt(index, there, frame) {
  const asked = { finding: index, there: there ? 1 : 0, ...(frame === undefined ? {} : { frame }) };
  /** @type {import('./api.js').Excerpt & {none?: string}} */
  const found = await ask('source', asked).catch((error) => ({ none: error.message }));
  if (found.none) return el('p', { class: 'empty' }, `No source: ${found.none}.`);
  return el(
    'figure',
    { class: 'source' },
    el('figcaption', { title: found.file }, `${file(found.file)}:${found.line}`),
    el(
      'pre',
      { tabindex: '0', role: 'region', 'aria-label': `Source, ${file(found.file)}:${found.line}` },
      found.lines.map((line, at) =>
        el(
          'span',
          { class: found.first + at === found.line ? 'line meant' : 'line' },
          el('span', { class: 'no' }, String(found.first + at)),
          el('code', {}, line || ' '),
        ),
      ),
    ),
    found.changed && el('p', { class: 'empty' }, 'This file was changed after the run: lines may have moved.'),
  );
}

/** The words of a line: what is between backquotes is code. @param {string} text */
const words = (text) => text.split('`').map((part, at) => (at % 2 ? el('code', {}, part) : part));

/**
 * The elements of a rule's page, which is Markdown with headings, paragraphs, lists, tables and code.
 * @param {string} text
 */
export function page(text) {
  const shown = [];
  let at = 0;
  const lines = text.split('\n');
  const block = (/** @type {RegExp} */ kind) => {
    const first = at;
    while (at < lines.length && kind.test(lines[at])) at++;
    return lines.slice(first, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    if (/^```/.test(line)) {
      at++;
      const first = at;
      while (at < lines.length && !/^```/.test(lines[at])) at++;
      shown.push(
        el(
          'pre',
          { class: 'code' },
          lines.slice(first, at).map((one) => el('span', { class: 'line' }, one || ' ')),
        ),
      );
      at++;
    } else if (/^#+ /.test(line)) {
      shown.push(el('h3', {}, line.replace(/^#+ /, '')));
      at++;
    } else if (/^[*-] /.test(line)) {
      const items = block(/^([*-] | {2,})/)
        .join('\n')
        .split(/\n(?=[*-] )/);
      shown.push(
        el(
          'ul',
          { class: 'points' },
          items.map((item) => el('li', {}, words(item.replace(/^[*-] /, '')))),
        ),
      );
    } else if (/^(\||\s{4})/.test(line)) {
      shown.push(
        el(
          'pre',
          { class: 'code' },
          block(/^(\||\s{4})/).map((one) => el('span', { class: 'line' }, one)),
        ),
      );
    } else if (line.trim() === '') {
      at++;
    } else {
      shown.push(el('p', {}, words(block(/^(?![*-] |#+ |```|\||\s{4}|\s*$)/).join(' '))));
    }
  }
  return shown;
}

/**
 * The explanation of a rule, behind its name.
 * @param {string} rule
 * @param {Promise<any>} answered  an answer to api/rule
 */
export async function explanation(rule, answered) {
  const text = await answered.then(
    ({ text }) => text,
    () => null,
  );
  if (text === null) return null;
  const [, ...rest] = text.split('\n');
  return el(
    'details',
    { 'data-key': `rule-${rule}`, class: 'explanation' },
    el('summary', {}, `Why ${rule} is reported`),
    page(rest.join('\n')),
  );
}
