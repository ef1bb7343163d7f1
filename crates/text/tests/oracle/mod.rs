//! Asking real Nix. Without `nix-instantiate` on PATH the differential tests say so and pass.

use std::process::{Command, Stdio};

/// Evaluates an expression strictly and gives its JSON; `None` (loudly) where there is no Nix.
pub fn eval_json(expression: &str) -> Option<String> {
    let directory = std::env::temp_dir().join(format!("firn-text-oracle-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a scratch directory");
    let file = directory.join(format!("{:?}.nix", std::thread::current().id()));
    std::fs::write(&file, expression).expect("the expression is written");
    #[expect(clippy::disallowed_methods, reason = "the oracle is a program; nothing of the crate runs one")]
    let output = Command::new("nix-instantiate")
        .args(["--store", "dummy://", "--eval", "--strict", "--json"])
        .arg(&file)
        .stderr(Stdio::piped())
        .output();
    // What cannot be removed is only litter.
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_dir(&directory);
    match output {
        Err(_) => {
            eprintln!("SKIPPED: nix-instantiate is not on PATH, nothing was compared with Nix");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        }
    }
}

/// Compares two long texts and shows where they part.
pub fn assert_same(ours: &str, nix: &str) {
    if ours == nix {
        return;
    }
    let at = ours.bytes().zip(nix.bytes()).take_while(|(left, right)| left == right).count();
    let window = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(200).min(text.len())..(at + 120).min(text.len())];
        String::from_utf8_lossy(bytes).into_owned()
    };
    panic!("differs at byte {at}\nours: {}\nnix:  {}", window(ours), window(nix));
}

/// A small deterministic generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }
    #[allow(dead_code)]
    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}
