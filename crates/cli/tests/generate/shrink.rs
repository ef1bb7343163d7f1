//! Shrinking: shorter and smaller choices that still show the same fault.

/// Variations tried before the best one so far is reported; each costs two processes.
const TRIALS: usize = 300;

/// The smallest variation of `choices` found for which `fails` still holds: blocks are dropped, large ones first, then
/// single choices are set to zero, until neither helps.
pub fn shrink(choices: Vec<u32>, fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut search = Search { best: choices, fails, trials: 0 };
    while search.drop_blocks() | search.zero_choices() {}
    search.best
}

struct Search<F> {
    best: Vec<u32>,
    fails: F,
    trials: usize,
}

impl<F: FnMut(&[u32]) -> bool> Search<F> {
    /// Takes `candidate` if it still fails and trials are left.
    fn take(&mut self, candidate: Vec<u32>) -> bool {
        self.trials += 1;
        let better = self.trials <= TRIALS && (self.fails)(&candidate);
        if better {
            self.best = candidate;
        }
        better
    }

    fn drop_blocks(&mut self) -> bool {
        let mut any = false;
        let mut size = self.best.len().div_ceil(2);
        while size > 0 {
            let mut start = 0;
            while start + size <= self.best.len() {
                let without = [&self.best[..start], &self.best[start + size..]].concat();
                if self.take(without) {
                    any = true;
                } else {
                    start += size;
                }
            }
            size /= 2;
        }
        any
    }

    fn zero_choices(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.best.len() {
            if self.best.get(index).is_some_and(|choice| *choice != 0) {
                let mut zeroed = self.best.clone();
                zeroed[index] = 0;
                any |= self.take(zeroed);
            }
        }
        any
    }
}
