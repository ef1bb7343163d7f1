//! The picture of a profile: a flame graph in one SVG file that needs nothing else. Width is cost, callers stand below what
//! they call; a browser shows the name of what the pointer is on, and a click fills the width with that part.

use super::label;
use firn_eval::CallTree;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
/// Narrower parts are not drawn.
const LEAST: f64 = 0.3;
/// Deeper parts are not drawn.
const DEEPEST: usize = 200;
/// A letter's width, about.
const LETTER: f64 = 6.6;

const SCRIPT: &str = "\
var all = Array.from(document.querySelectorAll('g.f'));\
function fit(g, x, w) {\
  var r = g.querySelector('rect'), t = g.querySelector('text');\
  if (w < 0.3 || x + w < 0 || x > 1200) { g.style.display = 'none'; return; }\
  g.style.display = ''; r.setAttribute('x', x); r.setAttribute('width', w);\
  var room = Math.floor((Math.min(w, 1200) - 6) / 6.6), full = g.dataset.n;\
  t.setAttribute('x', Math.max(x, 0) + 3);\
  t.textContent = room < 3 ? '' : full.length > room ? full.slice(0, room - 1) + '…' : full;\
}\
all.forEach(function (g) {\
  g.addEventListener('click', function () {\
    var x = +g.dataset.x, w = +g.dataset.w, k = 1200 / w;\
    all.forEach(function (o) { fit(o, (+o.dataset.x - x) * k, +o.dataset.w * k); });\
  });\
});";

/// The picture.
pub(super) fn picture(tree: &CallTree) -> String {
    let totals = totals(tree);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        children[node.parent].push(at);
    }
    let labels: Vec<String> = tree.costs.iter().map(|cost| label(cost.callee)).collect();
    let scale = WIDTH / totals.first().copied().unwrap_or(1).max(1) as f64;
    let (mut boxes, mut deepest) = (Vec::new(), 0);
    // Node, where it begins, how deep it is.
    let mut todo = vec![(0usize, 0.0f64, 0usize)];
    while let Some((at, x, depth)) = todo.pop() {
        let width = totals[at] as f64 * scale;
        if width < LEAST || depth > DEEPEST {
            continue;
        }
        deepest = deepest.max(depth);
        boxes.push((at, x, width, depth));
        let mut next = x;
        children[at].sort_by(|&a, &b| name(tree, &labels, a).cmp(name(tree, &labels, b)));
        for &child in &children[at] {
            todo.push((child, next, depth + 1));
            next += totals[child] as f64 * scale;
        }
    }
    let height = (deepest + 1) as f64 * ROW + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fffef8\"/>\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"15\">where evaluation spent its time</text>\n",
        WIDTH / 2.0
    );
    for (at, x, width, depth) in boxes {
        let shown = name(tree, &labels, at);
        let share = 100.0 * totals[at] as f64 / totals[0].max(1) as f64;
        draw(&mut svg, shown, share, (x, height - 8.0 - (depth + 1) as f64 * ROW, width));
    }
    let _ = write!(svg, "<script>{SCRIPT}</script>\n</svg>\n");
    svg
}

/// The cost of each node with all below it.
fn totals(tree: &CallTree) -> Vec<u64> {
    let mut totals: Vec<u64> = tree.nodes.iter().map(|node| node.own).collect();
    // A node comes after its caller.
    for at in (1..totals.len()).rev() {
        totals[tree.nodes[at].parent] += totals[at];
    }
    totals
}

fn name<'a>(tree: &CallTree, labels: &'a [String], at: usize) -> &'a str {
    tree.nodes[at].callee.map_or("evaluation", |callee| labels[callee].as_str())
}

fn draw(svg: &mut String, name: &str, share: f64, (x, y, width): (f64, f64, f64)) {
    let escaped = escape(name);
    // A warm colour that depends on the name only, so that two pictures can be compared.
    let digest = name.bytes().fold(0xcbf2_9ce4_u32, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let (red, green, blue) = (205 + digest % 50, 90 + digest / 50 % 120, 40 + digest / 6000 % 40);
    let room = ((width - 6.0) / LETTER) as usize;
    let shown: String = match name.chars().count() {
        _ if room < 3 => String::new(),
        length if length > room => escape(&name.chars().take(room - 1).chain(['…']).collect::<String>()),
        _ => escaped.clone(),
    };
    let _ = writeln!(
        svg,
        "<g class=\"f\" data-x=\"{x:.3}\" data-w=\"{width:.3}\" data-n=\"{escaped}\"><title>{escaped} ({share:.2} %)</title>\
         <rect x=\"{x:.3}\" y=\"{y:.1}\" width=\"{width:.3}\" height=\"{:.1}\" rx=\"1\" fill=\"rgb({red},{green},{blue})\"/>\
         <text x=\"{:.3}\" y=\"{:.1}\">{shown}</text></g>",
        ROW - 1.0,
        x + 3.0,
        y + ROW - 5.0,
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_eval::Node;

    #[test]
    fn an_empty_profile_is_a_picture_too() {
        let mut tree = CallTree::default();
        tree.nodes.push(Node { callee: None, parent: 0, own: 5 });
        let svg = picture(&tree);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("evaluation (100.00 %)"), "{svg}");
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
