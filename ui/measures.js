/**
 * The measures of the timeline, in pixels.
 */

/** The height of a row. */
export const ROW = 20;
/** The height of the minimap. */
export const STRIP = 28;
/** The height of the row of marks, which is below it. */
export const MARKS = 16;
/** Where the ruler begins. */
export const AXIS = STRIP + MARKS;
/** Where the rows begin. */
export const TOP = AXIS + 24;
/** The width of the scrollbar. */
export const BAR = 10;
/** How far from a mark a click may be to mean it. */
export const NEAR = 8;

export const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
