/**
 * The answers of a page that is one file: they are in the element `answers`, as JSON in gzip in base64. `view/saved.rs` writes them.
 *
 * The file also holds the report without scripts, which stays if this browser cannot unpack the answers, and is what is printed.
 */

import { absent, search } from './call_search.js';

const PACKED = /** @type {HTMLElement} */ (document.getElementById('answers')).textContent ?? '';

/** @param {string} text  base64 */
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

async function unpack() {
  const unpacked = new Blob([bytesOf(PACKED)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(unpacked).json();
}

/** All answers. @type {Promise<any>} */
export const answers = unpack();

/** The history of a handle. @param {any} all @param {string} name */
function history(all, name) {
  const known = all.handles.find((/** @type {any} */ history) => history.name === name);
  if (!known) throw absent(`the history of ${name}, which no finding is about`, all.run);
  return { ...known, findings: all.check.findings.filter((/** @type {any} */ found) => found.fingerprint === name) };
}

/**
 * One answer.
 * @param {string} path  as of the server, below api/
 * @param {Record<string, any>} query
 */
export async function answer(path, query) {
  const all = await answers;
  switch (path) {
    case 'calls':
      return search(all, query);
    case 'handle':
      return history(all, query.name);
    case 'rule':
      return { text: all.rules[query.name] ?? null };
    case 'source':
      return (
        all.excerpts[all.sources[`${query.finding}.${query.there}.${query.frame ?? ''}`]] ?? {
          none: 'this file does not have it',
        }
      );
    default:
      return all[path];
  }
}

/** A part of the lifetimes, in columns. @param {number} offset */
export async function lifetimes(offset) {
  const { lives } = await answers;
  return bytesOf(lives[offset === 0 ? 0 : 1]).buffer;
}
