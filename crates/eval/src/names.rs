//! Names that the machine itself looks for.

use firn_source::Symbol;

macro_rules! names {
    ($($field:ident = $text:literal),* $(,)?) => {
        /// Well-known attribute names, interned once.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs)]
        pub struct Names { $(pub $field: Symbol),* }

        impl Names {
            /// Interns them.
            pub fn new() -> Names {
                Names { $($field: Symbol::from($text)),* }
            }
        }
    };
}

names! {
    functor = "__functor",
    to_string = "__toString",
    overrides = "__overrides",
    out_path = "outPath",
    drv_path = "drvPath",
    type_ = "type",
    name = "name",
    value = "value",
    key = "key",
    file = "file",
    line = "line",
    column = "column",
    success = "success",
    right = "right",
    wrong = "wrong",
    start_set = "startSet",
    operator = "operator",
    path = "path",
    prefix = "prefix",
    version = "version",
    outputs = "outputs",
    all_outputs = "allOutputs",
}

impl Default for Names {
    fn default() -> Self {
        Names::new()
    }
}
