/**
 * The address of what is shown: `#/VIEW/NAME?KEY=VALUE`. It holds every choice a person made, so that an address can be shared
 * and the browser's back button works.
 *
 * @typedef {{view: string, name: string, query: URLSearchParams}} Route
 */

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [view, ...name] = path.split('/');
  let whole = name.join('/');
  try {
    whole = decodeURIComponent(whole);
  } catch {
    // Half an escape: the address was cut off. Look for it as it stands.
  }
  return { view: view || 'overview', name: whole, query: new URLSearchParams(query) };
}

/**
 * The address of a view. Values that are null, false or empty are omitted.
 * @param {string} view
 * @param {string} [name]
 * @param {Record<string, string | number | boolean | null | undefined>} [query]
 */
export function href(view, name = '', query = {}) {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '' && value !== false)
      words.set(key, value === true ? '1' : String(value));
  }
  const tail = words.toString();
  return `#/${view === 'overview' ? '' : view}${name && `/${encodeURIComponent(name)}`}${tail && `?${tail}`}`;
}

/** The current route. */
export const here = () => parse(location.hash);

/**
 * Changes the address without leaving the view.
 * @param {Record<string, string | number | boolean | null | undefined>} changes
 * @param {{step?: boolean}} [how]  whether the back button undoes it
 */
export function amend(changes, { step = false } = {}) {
  const { view, name, query } = here();
  const next = href(view, name, { ...Object.fromEntries(query), ...changes });
  if (next === location.hash) return;
  if (step) history.pushState(null, '', next);
  else history.replaceState(null, '', next);
}

/**
 * Stores what a person chose in the address and in `query`. The back button undoes it.
 * @param {URLSearchParams} query
 * @param {Record<string, string | number | boolean | null>} changes
 */
export function choose(query, changes) {
  amend(changes, { step: true });
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '' || value === false) query.delete(name);
    else query.set(name, value === true ? '1' : String(value));
  }
}
