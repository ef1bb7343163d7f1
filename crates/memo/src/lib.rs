//! What is remembered of values: lazy digests and equality, keys of calls, instances and the maps between them, the table of
//! calls. Nothing here runs code. Decision 0011 tells the design, `docs/memo-soundness.md` why it is sound.

mod closed;
mod digest;
pub mod doubt;
mod equality;
mod instance;
pub mod kept;
mod key;
mod map;
mod pairs;
mod profit;
mod state;
mod stats;
mod table;

pub use closed::Closed as ClosedTerms;
pub use digest::{Digest, Digests};
pub use equality::{Sameness, same};
pub use instance::{Closed, Instances};
pub use key::{Build, INNERMOST, Key, Outside, Refusal};
pub use map::{Map, Maps};
pub use pairs::Pairs;
pub use profit::{Profit, Profits};
pub use state::{Memo, Mode, expensive_from};
pub use stats::Stats;
pub use table::{Entry, Table};
