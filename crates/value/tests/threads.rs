//! Thunks through their life, in one thread and in several; values read by threads that did not make them.

use firn_ir::{Globals, lower};
use firn_source::{Origin, SourceFile, Symbol};
use firn_value::{AttrsBuilder, Body, Closure, Constants, Each, Error, ErrorKind, Expr, Function, ListBuilder, Primop, Production, Stamp, Thunk, ThunkState, Value, Work};
use std::sync::atomic::{AtomicUsize, Ordering};

static ID: Primop = Primop { name: "id", arity: 1, strict: 0, index: 0, trace: true };

struct NoGlobals;

impl Globals<Value> for NoGlobals {
    fn global(&self, _: Symbol) -> Option<Value> {
        None
    }
}

fn compile(text: &str) -> &'static Body {
    let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
    let ast = firn_syntax::parse(file, b"/", firn_syntax::Home::Pure, firn_syntax::Features::default()).expect("it parses");
    &lower(&ast.into(), &[], &NoGlobals, &mut Constants).expect("it lowers").body
}

/// The code of the thunk that is the only element of the list which the function `text` gives.
fn suspended(text: &str) -> &'static Body {
    let Expr::Lambda(lambda) = compile(text).expr else { panic!("{text} is no function") };
    let Expr::List(items) = lambda.body.expr else { panic!("{text} gives no list") };
    let [Expr::Suspend(node)] = items[..] else { panic!("{text} gives no suspended element") };
    &node.body
}

#[test]
fn a_thunk_is_claimed_once_and_then_holds_its_result() {
    let body = suspended("x: y: [ (x + y) ]");
    let thunk = Thunk::suspend(body);
    let slots = thunk.slots_of(body);
    assert_eq!(slots.len(), body.captures.len());
    slots.iter().zip(1..).for_each(|(slot, n)| slot.set(Value::int(n)));
    assert!(!thunk.value().is_whnf() && thunk.forced().is_none() && thunk.suspended_body().is_some());
    assert!(matches!(thunk.state(), ThunkState::Suspended));

    let claim = thunk.claim().expect("a suspended thunk can be claimed");
    let Work::Run(code, captures) = claim.work() else { panic!("it is a body") };
    assert!(std::ptr::eq(code, body));
    assert_eq!(captures.iter().map(|slot| slot.get().as_int()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(matches!(thunk.state(), ThunkState::Claimed(owner) if owner == Thunk::this_thread()));
    assert!(thunk.claim().is_none() && thunk.slots_of(body).is_empty() && thunk.suspended_body().is_none());

    claim.publish(Value::int(3));
    assert_eq!(thunk.forced(), Some(Value::int(3)));
    assert!(matches!(thunk.state(), ThunkState::Forced(v) if v == Value::int(3)));
    assert!(thunk.claim().is_none());
}

#[test]
fn a_thunk_given_back_is_as_before() {
    let body = suspended("x: [ (x x) ]");
    let thunk = Thunk::suspend(body);
    thunk.slots_of(body)[0].set(Value::TRUE);
    thunk.claim().expect("a suspended thunk can be claimed").restore();
    let claim = thunk.claim().expect("it can be claimed again");
    let Work::Run(code, captures) = claim.work() else { panic!("it is a body") };
    assert!(std::ptr::eq(code, body) && captures[0].get() == Value::TRUE);

    let application = Thunk::apply(Value::primop(&ID), &[Value::int(1), Value::int(2)]).as_thunk().expect("a thunk");
    assert!(application.is_application());
    application.claim().expect("an application can be claimed").restore();
    let claim = application.claim().expect("it can be claimed again");
    let Work::Apply(application) = claim.work() else { panic!("it is an application") };
    assert!(matches!(application.function().and_then(Value::as_function), Some(Function::Primop(_))));
    assert_eq!(application.parts().skip(1).map(Value::as_int).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn items_are_the_applications_that_they_stand_for() {
    let function = Value::primop(&ID);
    let cells = ListBuilder::of(&[Value::int(7), Value::TRUE, Thunk::apply(function, &[Value::NULL])]).as_list().expect("a list");
    let names: &'static [Symbol] = Vec::leak(["c", "a", "b"].map(Symbol::from).to_vec());
    let name = |at: usize| Value::name(names[at]);
    let expected: [Vec<Vec<Value>>; 4] = [
        cells.iter().map(|cell| vec![function, cell]).collect(),
        cells.iter().enumerate().map(|(at, cell)| vec![function, name(at), cell]).collect(),
        (0..3).map(|at| vec![function, Value::int(at)]).collect(),
        vec![],
    ];
    let each = [Each::Cells(cells.slots()), Each::Named(names, cells.slots()), Each::Numbers(3), Each::Numbers(0)];
    let parts = |work: Option<Work>| match work {
        Some(Work::Apply(application)) => application.parts().collect::<Vec<Value>>(),
        other => panic!("it is an application, not {other:?}"),
    };
    for (to, expected) in each.into_iter().zip(expected) {
        for stamp in [Stamp::NONE, Stamp::new(3)] {
            let outer = Production::begin(stamp);
            let items: Vec<&'static Thunk> = Thunk::apply_to_each(function, to).map(|item| item.as_thunk().expect("a thunk")).collect();
            Production::end(outer);
            assert_eq!(items.len(), expected.len());
            // The last first, so that a result would show in one that is looked at later.
            for (&item, expected) in items.iter().zip(&expected).rev() {
                assert!(item.is_application() && item.stamp() == stamp && !item.is_ready());
                assert_eq!((parts(item.suspended_work()), item.applied_function()), (expected.clone(), Some(function)));
                let claim = item.claim().expect("it can be claimed");
                assert_eq!(parts(Some(claim.work())), *expected);
                claim.restore();
                item.claim().expect("it can be claimed again").publish(Value::int(42));
                assert_eq!((item.forced(), item.is_application()), (Some(Value::int(42)), false));
                assert!(item.retained().is_none(), "whose value is anyone's to take");
            }
        }
    }
}

/// What a thunk of an instance had to do is kept where others must do it for themselves, and only there (L1.6).
#[test]
fn what_others_do_not_take_can_be_done_again() {
    let body = suspended("x: [ (x x) ]");
    let function = Value::primop(&ID);
    let cells = ListBuilder::of(&[Value::TRUE, Value::int(7)]).as_list().expect("a list");
    let made = |kind: usize| -> &'static Thunk {
        let value = match kind {
            0 => {
                let thunk = Thunk::suspend(body);
                thunk.slots_of(body)[0].set(Value::TRUE);
                thunk.value()
            }
            1 => Thunk::apply(function, &[Value::TRUE]),
            2 => Thunk::apply_to_each(function, Each::Cells(cells.slots())).next().expect("there are two"),
            _ => Thunk::transport(5, Value::TRUE),
        };
        value.as_thunk().expect("a thunk")
    };
    let same = |kind: usize, work: Option<Work>| match (kind, work) {
        (0, Some(Work::Run(code, captures))) => std::ptr::eq(code, body) && captures[0].get() == Value::TRUE,
        (1 | 2, Some(Work::Apply(application))) => application.parts().eq([function, Value::TRUE]),
        (3, Some(Work::Transport(map, original))) => map == 5 && original == Value::TRUE,
        _ => false,
    };
    let stamp = Stamp::new(3);
    let outer = Production::begin(stamp);
    for kind in 0..4 {
        for label in [0, 9] {
            let thunk = made(kind);
            assert!(same(kind, thunk.retained()));
            thunk.claim().expect("it can be claimed").publish_noisy(Value::int(1), label);
            assert!(matches!(thunk.state(), ThunkState::Noisy(value, seen) if value == Value::int(1) && seen == label));
            assert!(same(kind, thunk.retained()) && thunk.forced().is_none() && thunk.claim().is_none() && thunk.stamp() == stamp);

            let thunk = made(kind);
            thunk.claim().expect("it can be claimed").fail(Error::new(ErrorKind::Thrown, "no"), label);
            assert!(matches!(thunk.state(), ThunkState::Failed(error, seen) if error.message() == b"no" && seen == label));
            assert!(same(kind, thunk.retained()) && thunk.stamp() == stamp);

            let thunk = made(kind);
            thunk.claim().expect("it can be claimed").publish_ahead(Value::int(2), label);
            assert!(matches!(thunk.state(), ThunkState::Ahead(value, seen) if value == Value::int(2) && seen == label));
            assert!(thunk.retained().is_none() && !thunk.is_evaluated());
            thunk.settle();
            assert_eq!((thunk.forced(), thunk.labelled()), if label == 0 { (Some(Value::int(2)), None) } else { (None, Some((Value::int(2), 9))) });
            assert!(!thunk.is_ready() && thunk.stamp() == stamp);

            let thunk = made(kind);
            thunk.claim().expect("it can be claimed").publish_labelled(Value::int(3), 9);
            assert_eq!((thunk.labelled(), thunk.stamp()), (Some((Value::int(3), 9)), stamp));
            assert!(thunk.retained().is_none());
            thunk.forget_label();
            assert_eq!((thunk.forced(), thunk.labelled()), (Some(Value::int(3)), None));
            assert!(!thunk.is_ready() && thunk.retained().is_none() && thunk.stamp() == stamp);
        }
    }
    Production::end(outer);
}

/// Whoever looks at what a thunk has to do sees that, or that it is no longer to be done, whatever another thread makes of it.
#[test]
fn work_is_seen_whole_while_another_thread_ends_it() {
    firn_value::single_threaded(false);
    let function = Value::primop(&ID);
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    let outer = Production::begin(Stamp::new(3));
    let thunks: Vec<&'static Thunk> =
        (0..rounds).map(|n| Thunk::apply(function, &[Value::int(n)]).as_thunk().expect("a thunk")).collect();
    Production::end(outer);
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (n, thunk) in thunks.iter().enumerate() {
                while begun.load(Ordering::Acquire) < n {
                    std::hint::spin_loop();
                }
                thunk.claim().expect("nobody else claims it").publish_noisy(Value::TRUE, 9);
            }
        });
        for (n, thunk) in thunks.iter().enumerate() {
            begun.store(n, Ordering::Release);
            loop {
                // A noisy one still says what it had to do.
                let Some(Work::Apply(application)) = thunk.retained() else { continue };
                assert!(application.parts().eq([function, Value::int(n as i64)]));
                if thunk.suspended_work().is_none() && matches!(thunk.state(), ThunkState::Noisy(..)) {
                    break;
                }
            }
        }
    });
}

#[test]
fn a_failure_stays() {
    let error = || Error::new(ErrorKind::Thrown, "no");
    let thunk = Thunk::apply(Value::primop(&ID), &[Value::NULL]).as_thunk().expect("a thunk");
    let claim = thunk.claim().expect("an application can be claimed");
    claim.fail(error(), 0);
    for cell in [thunk, Thunk::failed(error()).as_thunk().expect("a thunk")] {
        let ThunkState::Failed(kept, _) = cell.state() else { panic!("it failed") };
        assert_eq!((kept.kind(), kept.message()), (ErrorKind::Thrown, &b"no"[..]));
        assert!(cell.claim().is_none() && cell.forced().is_none());
    }
    let ready = Thunk::ready(Value::int(4)).as_thunk().expect("a thunk");
    assert_eq!(ready.forced(), Some(Value::int(4)));
}

#[test]
fn a_closure_keeps_code_captures_and_its_mark() {
    let Expr::Lambda(outer) = compile("x: { f = y: x; }").expr else { panic!("a function") };
    let Expr::Attrs(set) = outer.body.expr else { panic!("a set") };
    let Expr::Lambda(lambda) = set.values[0] else { panic!("a function") };
    for delayed in [false, true] {
        let closure = Closure::new(lambda, delayed);
        closure.captures()[0].set(Value::int(9));
        let Some(Function::Closure(same)) = closure.value().as_function() else { panic!("a closure") };
        assert!(std::ptr::eq(same.lambda(), lambda) && same.is_delayed() == delayed);
        assert_eq!(same.captures().iter().map(|slot| slot.get()).collect::<Vec<_>>(), [Value::int(9)]);
    }
}

#[test]
fn threads_share_thunks_and_each_is_forced_once() {
    firn_value::single_threaded(false);
    assert!(!firn_value::single_threaded(true));
    let count = if cfg!(miri) { 8 } else { 5_000 };
    let numbers = Thunk::apply_to_each(Value::primop(&ID), Each::Numbers(count / 2));
    let cells: Vec<Value> = numbers.chain((count / 2..count).map(|n| Thunk::apply(Value::primop(&ID), &[Value::int(n as i64)]))).collect();
    let forced = AtomicUsize::new(0);
    let force = |cell: Value| {
        let thunk = cell.as_thunk().expect("a thunk");
        loop {
            if let Some(claim) = thunk.claim()
                && let Work::Apply(application) = claim.work()
            {
                forced.fetch_add(1, Ordering::Relaxed);
                // The result is an object made by this thread and read by all.
                let mut set = AttrsBuilder::with_capacity(1);
                set.insert("n", application.parts().next_back().expect("an argument"));
                claim.publish(set.finish());
            }
            match thunk.state() {
                ThunkState::Forced(value) => break value,
                ThunkState::Claimed(owner) => assert!(thunk.wait(owner, false), "nobody waits in a circle here"),
                other => panic!("{other:?}"),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (n, &cell) in cells.iter().enumerate() {
                    let set = force(cell).as_attrs().expect("a set");
                    assert_eq!(set.get(Symbol::from("n")).and_then(Value::as_int), Some(n as i64));
                }
            });
        }
    });
    assert_eq!(forced.load(Ordering::Relaxed), count);
}
