//! The machine: force, call, select, operators, coercion, equality, import, errors.
//!
//! A tree-walking machine over lowered code. `eval` takes code in strict position and a frame (local slots and
//! captures) and gives a value in weak head normal form; `delay` takes code in delayed position and gives a cell
//! without evaluating anything. The machine knows no builtin by name: they come as a table.

mod ahead;
mod attr_path;
mod attrs;
mod auto_call;
mod call;
mod code;
mod coerce;
mod cycle;
mod context;
mod dispatch;
mod equality;
mod errors;
mod eval;
mod expect;
mod follow;
mod force;
mod frame;
mod import;
mod interrupt;
mod learn;
mod machine;
mod names;
mod operators;
mod packages;
mod path_select;
mod places;
mod print;
mod profile;
mod remember;
mod running;
mod select;
mod settings;
mod shadow;
mod stack;
mod stats;
mod store_path;
pub mod times;
mod transport;
mod twins;

pub use ahead::{Ahead, Walk};
pub use attr_path::parse as parse_attr_path;
pub use call::own_cell;
pub use coerce::{Coercion, Pieces};
pub use context::{context_elements, context_of, store_error};
pub use errors::{color_bytes, colored, colored_name, missing_feature, show_type};
pub use firn_ir::let_functions_wait;
pub use firn_value::{Error, ErrorKind, Result};
pub use force::place_of;
pub use import::Bindings;
pub use interrupt::{interrupt, interrupted, is_interrupted, resume};
pub use learn::Watch;
pub use machine::{Builtin, Machine, Manner, PrimopFn, Shared};
pub use names::Names;
pub use packages::Package;
pub use print::{OnError, PrintOptions, evaluated_value, print_ambiguous, print_value, show_location, try_print_value};
pub use profile::{Callee, Cost, Grain, Node, Profiler, Tree as CallTree, describe as describe_callee};
pub use settings::{Features, Settings};
pub use stats::{Stats, measure_times};
pub use store_path::{Copier, SourceCopier};
