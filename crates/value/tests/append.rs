//! Appending shares room between lists; no list ever sees another's elements.

use firn_value::{List, ListBuilder, Value};

fn numbers(list: List) -> Vec<i64> {
    list.iter().map(|v| v.as_int().expect("only integers were put in")).collect()
}

fn list_of(items: &[i64]) -> List {
    ListBuilder::of(&items.iter().map(|&n| Value::int(n)).collect::<Vec<_>>()).as_list().expect("a list")
}

#[test]
fn appending_agrees_with_copying_whatever_is_appended_to_what() {
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut lists: Vec<(List, Vec<i64>)> = vec![(list_of(&[]), vec![])];
    for step in 0..3_000 {
        // Mostly the newest list grows, as in a loop; now and then an old one branches off.
        let at = if random(4) == 0 { random(lists.len()) } else { lists.len() - 1 };
        let more: Vec<i64> = (0..random(4)).map(|i| step * 10 + i as i64).collect();
        let (list, model) = &lists[at];
        if model.len() > 400 {
            lists.push((list_of(&[]), vec![]));
            continue;
        }
        let appended = if random(8) == 0 && !model.is_empty() {
            let tail = list.suffix(1).as_list().expect("a list");
            (tail.append(list_of(&more)), [&model[1..], &more].concat())
        } else {
            (list.append(list_of(&more)), [&model[..], &more].concat())
        };
        lists.push((appended.0.as_list().expect("a list"), appended.1));
    }
    for (list, model) in &lists {
        assert_eq!(&numbers(*list), model);
    }
}

#[test]
fn two_threads_appending_to_one_list_get_their_own() {
    let mut base = list_of(&(0..32).collect::<Vec<_>>());
    for n in 32..40 {
        base = base.append(list_of(&[n])).as_list().expect("a list");
    }
    let results: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|t| scope.spawn(move || numbers(base.append(list_of(&[1000 + t])).as_list().expect("a list"))))
            .collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    for (t, result) in results.iter().enumerate() {
        assert_eq!(result[..40], (0..40).collect::<Vec<i64>>());
        assert_eq!(result[40..], [1000 + t as i64]);
    }
}
