//! The `firn` program.

#[global_allocator]
static ALLOCATOR: firn_value::Allocator = firn_value::Allocator;

fn main() -> std::process::ExitCode {
    ALLOCATOR.begin();
    firn::program::main()
}
