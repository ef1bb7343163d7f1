//! The page that shows how a server is doing, and the same as JSON. The page needs nothing but itself, tells its numbers
//! without scripts, and with them stays current.

use super::Config;
use super::tally::{Counted, Push};
use crate::object::Kind;
use std::fmt::Write;

const PAGE: &str = include_str!("page.html");

/// The numbers as people read them, by the place in the page.
fn shown(config: &Config, counted: &Counted) -> Vec<(&'static str, String)> {
    let count = |kind: Kind| counted.survey.objects[kind as usize].to_string();
    let mode = match (config.read_only, config.token.is_some(), config.keys.is_empty()) {
        (true, ..) => "giving only",
        (false, true, _) => "giving to all, taking from those who have the token",
        (false, false, false) => "giving to all, taking what is signed by known keys",
        (false, false, true) => "giving to all, taking from all",
    };
    vec![
        ("started", moment(counted.started)),
        ("mode", mode.to_owned()),
        ("questions", count(Kind::Index)),
        ("answers", count(Kind::Answer)),
        ("nodes", count(Kind::Node)),
        ("size", bytes(counted.survey.bytes.iter().sum())),
        ("given", bytes(counted.given)),
        ("taken", bytes(counted.taken)),
        ("rate", percent(counted).map_or_else(|| "–".to_owned(), |percent| format!("{percent} %"))),
        ("found", counted.found.to_string()),
        ("asked", (counted.found + counted.missed).to_string()),
        ("pushed", counted.pushed.to_string()),
        ("refused", counted.refused.to_string()),
    ]
}

/// The part of the questions asked that had answers.
fn percent(counted: &Counted) -> Option<u64> {
    (counted.found * 100).checked_div(counted.found + counted.missed)
}

/// The page.
pub(super) fn html(config: &Config, now: i64, counted: &Counted) -> String {
    let mut page = PAGE.replace("@meter@", &percent(counted).unwrap_or(0).to_string());
    for (name, text) in shown(config, counted) {
        page = page.replace(&format!("@{name}@"), &escape(&text));
    }
    let mut rows = String::new();
    for push in &counted.recent {
        let Push { at, question, attribute, signer, new } = push;
        let attribute = if attribute.is_empty() { "(all)" } else { attribute };
        // Writing to a string does not fail.
        let _ = write!(
            rows,
            "<tr><td>{}</td><td class=\"attribute\">{}</td><td><code title=\"{question}\">{}</code></td><td>{}</td><td class=\"number\">{new}</td></tr>",
            escape(&ago(now, *at)),
            escape(attribute),
            question.get(..12).unwrap_or(question),
            escape(signer),
        );
    }
    if rows.is_empty() {
        rows.push_str("<tr><td colspan=\"5\">Nothing was pushed since the start.</td></tr>");
    }
    // Last: what others wrote is in it, and is not looked through for places.
    page.replacen("@recent@", &rows, 1)
}

/// The same for programs.
pub(super) fn json(config: &Config, now: i64, counted: &Counted) -> String {
    let Counted { started, survey, found, missed, given, taken, pushed, refused, recent } = counted;
    let [questions, nodes, answers] = survey.objects;
    let numbers = [
        ("questions", questions),
        ("nodes", nodes),
        ("answers", answers),
        ("bytes", survey.bytes.iter().sum()),
        ("found", *found),
        ("missed", *missed),
        ("hitPercent", percent(counted).unwrap_or(0)),
        ("bytesGiven", *given),
        ("bytesTaken", *taken),
        ("pushed", *pushed),
        ("refused", *refused),
    ];
    let mut text = format!("{{\"started\":{started},\"readOnly\":{}", config.read_only);
    for (name, number) in numbers {
        let _ = write!(text, ",\"{name}\":{number}");
    }
    text.push_str(",\"shown\":{");
    for (index, (name, value)) in shown(config, counted).iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(text, "{comma}\"{name}\":{}", quote(value));
    }
    text.push_str("},\"recent\":[");
    for (index, Push { at, question, attribute, signer, new }) in recent.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let (when, attribute, signer) = (quote(&ago(now, *at)), quote(attribute), quote(signer));
        let _ = write!(
            text,
            "{comma}{{\"at\":{at},\"when\":{when},\"question\":\"{question}\",\"attribute\":{attribute},\"signer\":{signer},\"answers\":{new}}}"
        );
    }
    text.push_str("]}\n");
    text
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn bytes(number: u64) -> String {
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => format!("{:.1} KB", number as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", number as f64 / 1_048_576.0),
        _ => format!("{:.2} GB", number as f64 / 1_073_741_824.0),
    }
}

fn ago(now: i64, at: i64) -> String {
    match now.saturating_sub(at).max(0) {
        0..60 => "just now".to_owned(),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..86400 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86400),
    }
}

/// A moment in universal time, by the civil calendar.
fn moment(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
    // Days are counted from 1 March of the year 0, so that the leap day ends a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + late;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_794_700_800 + 3661), "2026-11-15 01:01 UTC");
    }

    #[test]
    fn what_others_wrote_is_text_in_the_page() {
        let config = Config {
            dir: String::new(),
            listen: ([127, 0, 0, 1], 0).into(),
            read_only: false,
            token: None,
            keys: Default::default(),
        };
        let mut counted = Counted::default();
        let attribute = "<script>\"@size@'".to_owned();
        counted.recent.push_front(Push { at: 0, question: "ab".repeat(32), attribute, signer: "k\\\"".to_owned(), new: 1 });
        let page = html(&config, 0, &counted);
        assert!(page.contains("&lt;script&gt;&quot;@size@&#39;") && !page.contains("<script>\""));
        assert!(!page.contains("@questions@") && !page.contains("@recent@"));
        let json = json(&config, 0, &counted);
        assert!(json.contains(r#""attribute":"<script>\"@size@'""#) && json.contains(r#""signer":"k\\\"""#), "{json}");
    }
}
