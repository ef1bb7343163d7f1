//! How hard the machine finds it to get memory, as Linux tells it. No evaluation depends on it, so nobody is asked through the
//! door and nothing is observed; what is remembered reacts to it.

/// The share of the last ten seconds, in per cent, in which someone waited for memory. None where the system does not tell.
pub fn memory_pressure() -> Option<f64> {
    // The group that this process is in knows more of it than the whole machine does.
    #[allow(clippy::disallowed_methods)]
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let own = read("/proc/self/cgroup").and_then(|text| {
        let group = text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        read(&format!("/sys/fs/cgroup{}/memory.pressure", group.trim_end_matches('/')))
    });
    parse(&own.or_else(|| read("/proc/pressure/memory"))?)
}

fn parse(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_average_of_ten_seconds_is_read() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.00 total=12\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=4\n";
        assert_eq!(parse(text), Some(12.5));
        assert_eq!((parse(""), parse("some total=3")), (None, None));
    }
}
