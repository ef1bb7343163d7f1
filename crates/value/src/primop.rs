//! What a value knows of a builtin function: its name, arity and strictness. The code is in the machine's table.

/// A builtin function's description.
#[derive(Debug)]
#[repr(align(16))]
pub struct Primop {
    /// Name as in `builtins.name`.
    pub name: &'static str,
    /// Number of arguments.
    pub arity: u8,
    /// Bit `i` is set when argument `i` is forced before anything else can be observed, arguments in ascending order.
    /// The machine may then evaluate the argument before the call instead of suspending it.
    pub strict: u8,
    /// Index into the machine's table of implementations.
    pub index: u32,
    /// Whether errors get a "while calling the 'x' builtin" frame.
    pub trace: bool,
}
