//! Shrinking: shorter and smaller choices that still show the same fault.

/// Variations tried before the best one so far is reported; each costs a few processes.
const TRIALS: usize = 400;

/// The smallest variation of `choices` found for which `fails` still holds.
pub fn shrink(choices: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut best = choices;
    let mut trials = 0;
    loop {
        let mut better = None;
        for candidate in candidates(&best) {
            trials += 1;
            if trials > TRIALS {
                return best;
            }
            if fails(&candidate) {
                better = Some(candidate);
                break;
            }
        }
        match better {
            Some(candidate) => best = candidate,
            None => return best,
        }
    }
}

/// Simpler variations, boldest first: cut the tail, drop a block, set one choice to zero.
fn candidates(choices: &[u32]) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    let mut size = choices.len() / 2;
    while size > 0 {
        found.push(choices[..choices.len() - size].to_vec());
        for start in (0..=choices.len() - size).step_by(size) {
            found.push([&choices[..start], &choices[start + size..]].concat());
        }
        size /= 2;
    }
    for (index, choice) in choices.iter().enumerate().filter(|(_, choice)| **choice != 0) {
        let mut zeroed = choices.to_vec();
        zeroed[index] = 0;
        found.push(zeroed);
        if *choice > 1 {
            let mut halved = choices.to_vec();
            halved[index] = choice / 2;
            found.push(halved);
        }
    }
    found
}
