/**
 * Creates elements. All text of a run enters the page here: as text, never as markup, and without control characters.
 */

/** Control characters, bidirectional controls (UAX #9), line ends and noncharacters: the set of the library's `plain` module. */
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g;

/**
 * The text with each control character replaced by U+FFFD.
 * @param {unknown} text
 * @returns {string}
 */
export const plain = (text) => String(text).replace(CONTROL_CHARACTERS, '\ufffd');

/** @typedef {Node | string | number | null | undefined | false | any[]} Child  a list stands for its items */

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
 * @param {Record<string, any>} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : plain(value));
  }
  return element;
}

/**
 * Creates an HTML element. An attribute that is null or false is omitted; one that begins with "on" is an event listener.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  const element = setAttributes(document.createElement(tag), attributes);
  fill(element, children);
  return element;
}

/**
 * Creates an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {any}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = setAttributes(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes);
  fill(element, children);
  return element;
}

/** Wider windows have two columns: as in page.css. */
const TWO_COLUMNS = 840;

/** How wide a drawing may be, in pixels. Drawn at this width, its text is not scaled. */
export const drawingWidth = () => Math.max(300, Math.min(640, innerWidth > TWO_COLUMNS ? innerWidth / 2 - 55 : innerWidth - 50));

/**
 * Replaces the children of an element. Elements with the same `data-key` before and after keep their focus, their open state
 * and their scroll position.
 * @param {Element} container
 * @param {...Child} children
 */
export function swap(container, ...children) {
  const active = document.activeElement;
  const focused = active && container.contains(active) ? active.getAttribute('data-key') : null;
  const before = new Map();
  for (const kept of container.querySelectorAll('[data-key]')) {
    before.set(kept.getAttribute('data-key'), { open: kept.hasAttribute('open'), top: kept.scrollTop, left: kept.scrollLeft });
  }
  container.replaceChildren();
  fill(container, children);
  for (const fresh of container.querySelectorAll('[data-key]')) {
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

/** What contains the page: a part of the body, if the page is a file. */
export const root = () => document.getElementById('page') ?? document.body;

let announced = '';
/**
 * Announces a text to screen readers, unless it was the last one announced.
 * @param {string} text
 */
export function announce(text) {
  /** @type {HTMLElement} */
  const region =
    document.getElementById('announcer') ?? root().appendChild(el('p', { id: 'announcer', class: 'unseen', role: 'status' }));
  if (text !== announced) region.textContent = plain(text);
  announced = text;
}
