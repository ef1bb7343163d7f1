//! The machine a run was made on: processor, memory, load, kernel and the Nix beside which firn ran. No names.

use crate::measure::Tool;

/// One line for the page.
pub fn describe(nix: &Tool) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
    };
    let processor = after(&read("/proc/cpuinfo"), "model name");
    let memory = after(&read("/proc/meminfo"), "MemTotal");
    let load = read("/proc/loadavg").split(' ').next().unwrap_or("unknown").to_owned();
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let version = nix.command(&[], &["--version".to_owned()]).output();
    let version = version.map_or("unknown".to_owned(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    format!("{processor}, {cores} cores, {memory}, Linux {kernel}, load {load} at the end; {version}.")
}
