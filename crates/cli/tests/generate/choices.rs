//! The choices a program is made from: drawn from a seeded generator and remembered, or replayed from memory.

/// A stream of choices. A replayed stream that runs out answers 0, the simplest alternative.
#[derive(Clone, Debug)]
pub struct Choices {
    made: Vec<u32>,
    next: usize,
    state: Option<u64>,
}

impl Choices {
    /// Fresh choices from `seed`.
    pub fn seeded(seed: u64) -> Choices {
        Choices { made: Vec::new(), next: 0, state: Some(seed) }
    }

    /// The choices of an earlier stream, or a variation of them.
    pub fn replayed(made: Vec<u32>) -> Choices {
        Choices { made, next: 0, state: None }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        if self.next == self.made.len() {
            let Some(state) = &mut self.state else { return 0 };
            let drawn = split_mix(state) >> 40;
            self.made.push(u32::try_from(drawn).expect("24 bits fit"));
        }
        let choice = self.made[self.next];
        self.next += 1;
        choice as usize % bound
    }

    /// True once in `n` times; the simplest answer is no.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// The choices that were used.
    pub fn used(self) -> Vec<u32> {
        let mut made = self.made;
        made.truncate(self.next);
        made
    }
}

/// One step of SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
