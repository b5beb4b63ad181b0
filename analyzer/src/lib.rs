//! The judge of urscope: reads the traces of many processes as one story.
