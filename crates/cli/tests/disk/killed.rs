//! Processes that are killed while they write, or before, or after.

use super::random::{Random, number};
use super::{answers, firn, shown};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn killed_processes_leave_a_whole_cache() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, dir) = (scratch.path().join("cache"), scratch.path().join("project"));
    std::fs::create_dir(&dir).expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    (0..40).for_each(|index| write(&format!("f{index}"), &format!("text {index}")));
    write(
        "default.nix",
        "{ seed }: builtins.listToAttrs (builtins.genList (i: {
          name = \"j${toString i}\";
          value = derivation { name = seed; system = \"x\"; builder = \"/b\"; text = builtins.readFile (./. + \"/f${toString i}\"); };
        }) 40)",
    );
    // Every round asks what nobody has asked, so that every run has something to write.
    let jobs = |memo: &str, round: usize| {
        let mut command = firn(&cache, memo);
        command.args(["jobs", "--no-instantiate", "--sorted", "--argstr", "seed", &format!("s{round}")]).arg(&dir);
        command
    };
    let whole = |memo: &str, round: usize| {
        let output = jobs(memo, round).output().expect("firn runs");
        assert!(output.status.success(), "{}", shown(&output));
        output.stdout
    };
    let rounds = number("FIRN_KILLS", 60);
    // How long a run takes changes while other tests come and go: who comes too late comes sooner the next time.
    let mut most = Duration::from_millis(20);
    let mut random = Random::new(number("FIRN_SEED", 77) as u64);
    let (mut known, mut killed) = (answers(&cache), 0);
    for round in 0..rounds {
        let mut child = jobs("disk", round).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("firn starts");
        std::thread::sleep(most.mul_f64(random.below(1_000) as f64 / 1_000.0));
        // It may be done already.
        let _ = child.kill();
        let is_killed = !child.wait().expect("firn ends").success();
        killed += usize::from(is_killed);
        most = most.mul_f64(if is_killed { 1.05 } else { 0.9 });
        if round % 10 == 9 {
            let now = answers(&cache);
            assert!(now >= known, "of {known} answers {now} are left");
            assert_eq!(whole("disk", round), whole("off", round));
            let verified = firn(&cache, "off").args(["cache", "verify"]).output().expect("firn runs");
            assert!(verified.status.success() && verified.stderr.is_empty(), "{}", shown(&verified));
            known = answers(&cache);
        }
    }
    println!("{killed} of {rounds} runs were killed, {known} answers are kept");
    assert!(killed * 5 >= rounds, "only {killed} of {rounds} runs were killed");
}
