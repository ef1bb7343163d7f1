//! The allocator gives what was asked for and to nobody else: this program runs on it, and fills pieces of all sizes, grows, shrinks,
//! hands on and frees them in random order. Each must hold what its owner wrote.

#![allow(clippy::disallowed_methods, reason = "a test looks at its own memory")]

use firn_value::Allocator;
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::sync::{Mutex, PoisonError, mpsc};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The tests look at one memory, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Around each place where the allocator does something else, and anything between.
fn sizes() -> impl Strategy<Value = usize> {
    let edges = [16, 1 << 10, 1280, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20];
    prop_oneof![
        6 => 0usize..2_000,
        3 => 0usize..80_000,
        1 => 0usize..6_000_000,
        2 => (proptest::sample::select(edges.to_vec()), 0usize..3).prop_map(|(edge, more)| edge + more - 1),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Resize(usize, usize),
    Free(usize),
    Send(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => sizes().prop_map(Step::Make),
        2 => (any::<usize>(), sizes()).prop_map(|(which, size)| Step::Resize(which, size)),
        2 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::Send),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A piece with a mark all over it.
struct Piece {
    bytes: Vec<u8>,
    mark: u8,
}

impl Piece {
    fn new(size: usize, mark: u8) -> Piece {
        // The allocator is asked for zeros.
        let mut bytes = vec![0; size];
        assert_eq!(bytes.iter().position(|&byte| byte != 0), None, "of {size} bytes");
        bytes.fill(mark);
        Piece { bytes, mark }
    }

    /// Exactly that large: the allocator hears of each change.
    fn resize(&mut self, size: usize) {
        self.bytes.truncate(size);
        self.bytes.shrink_to_fit();
        self.bytes.reserve_exact(size - self.bytes.len());
        self.bytes.resize(size, self.mark);
    }

    fn check(&self) {
        let wrong = self.bytes.iter().position(|&byte| byte != self.mark);
        assert_eq!(wrong, None, "of {} bytes of {}", self.bytes.len(), self.mark);
    }
}

fn run(steps: &[Step], first_mark: u8, others: &mpsc::Sender<Piece>) {
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match *step {
            Step::Make(size) => pieces.push(Piece::new(size, first_mark.wrapping_add(index as u8) | 1)),
            Step::Resize(which, size) if !pieces.is_empty() => {
                let which = which % pieces.len();
                pieces[which].resize(size);
            }
            Step::Free(which) if !pieces.is_empty() => pieces.swap_remove(which % pieces.len()).check(),
            Step::Send(which) if !pieces.is_empty() => {
                let sent = pieces.swap_remove(which % pieces.len());
                others.send(sent).expect("the other thread listens");
            }
            _ => {}
        }
    }
    pieces.iter().for_each(Piece::check);
}

proptest! {
    #![proptest_config(Config { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..Config::default() })]

    #[test]
    fn pieces_hold_what_their_owners_wrote(programs in proptest::collection::vec(steps(), 1..4)) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads that end leave their pieces to those of the next case.
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<Piece>();
            scope.spawn(move || {
                let kept: Vec<Piece> = receiver.into_iter().inspect(Piece::check).collect();
                kept.iter().for_each(Piece::check);
            });
            for (index, steps) in programs.iter().enumerate() {
                let sender = sender.clone();
                scope.spawn(move || run(steps, 40 * index as u8, &sender));
            }
        });
    }
}

#[test]
fn memory_that_comes_back_is_used_again() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = resident();
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let pieces: Vec<Piece> = (0..1_000).map(|index| Piece::new(64 + index * 37 % 20_000, 7)).collect();
        // Made here, freed there: the worst case of lists that belong to threads.
        std::thread::spawn(move || pieces.iter().for_each(Piece::check)).join().expect("it ends well");
        let large = vec![round as u8 | 1; 300_000];
        drop(large);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MB for 10 MB at a time", grown >> 20);
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
