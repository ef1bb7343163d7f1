//! The `firn` program.

fn main() -> std::process::ExitCode {
    firn::program::main()
}
