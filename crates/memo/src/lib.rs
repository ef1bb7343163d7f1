//! What is remembered of values: lazy digests and equality, keys, instances, the table of calls. Nothing here runs code.
