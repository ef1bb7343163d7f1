//! Where code is kept: bump regions that live as long as the process, one per thread.

use bumpalo::Bump;

thread_local! {
    static ARENA: &'static Bump = Box::leak(Box::new(Bump::new()));
}

/// Keeps a node.
pub(crate) fn keep<T>(node: T) -> &'static T {
    ARENA.with(|arena| &*arena.alloc(node))
}

/// Keeps a sequence of nodes.
pub(crate) fn keep_all<T>(nodes: Vec<T>) -> &'static [T] {
    if nodes.is_empty() {
        return &[];
    }
    ARENA.with(|arena| &*arena.alloc_slice_fill_iter(nodes))
}

/// Keeps what an iterator gives.
pub(crate) fn keep_each<T>(nodes: impl ExactSizeIterator<Item = T>) -> &'static [T] {
    if nodes.len() == 0 {
        return &[];
    }
    ARENA.with(|arena| &*arena.alloc_slice_fill_iter(nodes))
}

/// Keeps a text.
pub(crate) fn keep_bytes(bytes: &[u8]) -> &'static [u8] {
    ARENA.with(|arena| &*arena.alloc_slice_copy(bytes))
}
