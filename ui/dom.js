/**
 * Makes elements. All text of a run comes in here, as text and never as markup, and without characters that steer.
 */

/** Controls, turns of direction (UAX #9), ends of lines and what is no character, as analyzer/src/plain.rs has them. */
const STEERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g;

/**
 * The text, with a replacement for each character that steers.
 * @param {unknown} text
 * @returns {string}
 */
export const plain = (text) => String(text).replace(STEERS, '\ufffd');

/** @typedef {Node | string | number | null | undefined | false | any[]} Child  of a list, each in turn */

/**
 * @param {Element} parent
 * @param {Child[]} children
 */
function fill(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(parent, child);
    else parent.append(child instanceof Node ? child : plain(child));
  }
}

/**
 * @param {Element} element
 * @param {Record<string, any>} traits
 */
function dress(element, traits) {
  for (const [name, value] of Object.entries(traits)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : plain(value));
  }
  return element;
}

/**
 * An element of HTML. A trait that is null or false is left out; one that begins with "on" is a listener.
 * @param {string} tag
 * @param {Record<string, any>} [traits]
 * @param {...Child} children
 * @returns {any}
 */
export function el(tag, traits = {}, ...children) {
  const element = dress(document.createElement(tag), traits);
  fill(element, children);
  return element;
}

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Record<string, any>} [traits]
 * @param {...Child} children
 * @returns {any}
 */
export function svg(tag, traits = {}, ...children) {
  const element = dress(document.createElementNS('http://www.w3.org/2000/svg', tag), traits);
  fill(element, children);
  return element;
}

/** How wide a picture may be drawn, in pixels: text in it is then as big as it is meant to be. */
export const drawingRoom = () => Math.max(300, Math.min(640, innerWidth - 40));

/**
 * Puts something else into an element. Who reads is left where they were: what has the same `data-key` afterwards is
 * focused, open and scrolled as before.
 * @param {Element} place
 * @param {...Child} children
 */
export function swap(place, ...children) {
  const active = document.activeElement;
  const focused = active && place.contains(active) ? active.getAttribute('data-key') : null;
  const before = new Map();
  for (const kept of place.querySelectorAll('[data-key]')) {
    before.set(kept.getAttribute('data-key'), { open: kept.hasAttribute('open'), top: kept.scrollTop, left: kept.scrollLeft });
  }
  place.replaceChildren();
  fill(place, children);
  for (const fresh of place.querySelectorAll('[data-key]')) {
    const key = fresh.getAttribute('data-key');
    const was = before.get(key);
    if (was) {
      if (fresh instanceof HTMLDetailsElement) fresh.open = was.open;
      fresh.scrollTop = was.top;
      fresh.scrollLeft = was.left;
    }
    if (key === focused && fresh instanceof HTMLElement) fresh.focus({ preventScroll: true });
  }
}

let said = '';
/**
 * Says something to who does not see it, once.
 * @param {string} text
 */
export function say(text) {
  /** @type {HTMLElement} */
  const voice =
    document.getElementById('voice') ?? document.body.appendChild(el('p', { id: 'voice', class: 'unseen', role: 'status' }));
  if (text !== said) voice.textContent = plain(text);
  said = text;
}
