//! Release builds are shown the profile of firn at work, and all others are built as they were asked for (decision 0020).

use std::process::Command;

use crate::tree::root;

/// How cargo asks for a library of the release profile.
const RELEASE: &str =
    "--crate-type lib --emit=dep-info,metadata,link -C opt-level=3 -C panic=abort -C linker-plugin-lto";

/// What the compiler is asked when cargo asks so much; `version` is a file below the root.
fn asked(request: &str, profile: &str, version: &str) -> String {
    let told = Command::new(root().join("bench/profile/rustc"))
        .arg(root().join("crates/tidy/tests/fixtures/compiler"))
        .args(request.split(' '))
        .env("FIRN_PROFILE", profile)
        .env("VERSION", root().join(version))
        .output()
        .expect("the wrapper runs");
    assert!(told.status.success() && told.stderr.is_empty(), "{told:?}");
    String::from_utf8(told.stdout).expect("text").trim_end().to_owned()
}

#[test]
fn release_builds_learn_from_the_profile() {
    let kept = root().join("bench/profile/firn.profdata");
    let learning = format!(" -Cprofile-use={} -Cllvm-args=-no-pgo-warn-mismatch", kept.display());
    let learning = if kept.exists() { learning } else { String::new() };
    let program = RELEASE.replace("linker-plugin-lto", "lto").replace("type lib", "type bin");
    for request in [RELEASE, &program] {
        assert_eq!(asked(request, "", "bench/profile/compiler"), format!("{request}{learning}"));
        assert_eq!(asked(request, "gather:a b", "bench/profile/compiler"), format!("{request} -Cprofile-generate=a b"));
    }
}

#[test]
fn other_builds_do_not() {
    assert_eq!(asked(RELEASE, "off", "bench/profile/compiler"), RELEASE, "switched off");
    assert_eq!(asked(RELEASE, "", "Cargo.toml"), RELEASE, "another compiler");
    assert_eq!(asked(RELEASE, "", "no/such/file"), RELEASE, "a compiler that does not say");
    for (reason, request) in [
        ("the profile quick", RELEASE.replace("level=3", "level=2")),
        ("a build script", RELEASE.replace("level=3", "level=0").replace("-C panic=abort ", "")),
        ("a test", RELEASE.replace("-C panic=abort ", "")),
        ("a check", RELEASE.replace(",link", "")),
        ("a fuzz target", RELEASE.replace(" -C linker-plugin-lto", "")),
        ("a named target", format!("{RELEASE} --target x86_64-unknown-linux-musl")),
        ("a profile of somebody else", format!("{RELEASE} -Cprofile-use=theirs")),
        ("a question", "--print cfg".to_owned()),
    ] {
        for profile in ["", "gather:counts"] {
            assert_eq!(asked(&request, profile, "bench/profile/compiler"), request, "{reason}");
        }
    }
}
