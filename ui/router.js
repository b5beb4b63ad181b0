/**
 * The address of what is seen: `#/VIEW/NAME?what=how`. Everything that a person chose stands in it, so that it can be shared,
 * and the way back leads back.
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
    // Half an escape: somebody cut the address. It is looked for as it stands.
  }
  return { view: view || 'overview', name: whole, query: new URLSearchParams(query) };
}

/**
 * The address of a view. What is null, false or empty is left out.
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

/** Where we are. */
export const here = () => parse(location.hash);

/**
 * Says what is seen now in the address, without going anywhere.
 * @param {Record<string, string | number | boolean | null | undefined>} changes
 * @param {{step?: boolean}} [how]  whether the way back leads to what was before
 */
export function amend(changes, { step = false } = {}) {
  const { view, name, query } = here();
  const next = href(view, name, { ...Object.fromEntries(query), ...changes });
  if (next === location.hash) return;
  if (step) history.pushState(null, '', next);
  else history.replaceState(null, '', next);
}

/**
 * Takes what a person chose in a view into the address and into `query`; the way back leads to what was before.
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
