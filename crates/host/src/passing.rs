//! `Passing`: a host for whoever looks at contents once and wants them kept by nobody.

use crate::host::hand_on;
use crate::{AbsPath, FileContent, Host, HostError};

/// As the host behind it; what is read is not kept.
// PERF: the contents of 3,100 files took an eighth of the time of verifying a NixOS, in pages that nobody read twice.
pub struct Passing<'h>(pub &'h dyn Host);

impl Host for Passing<'_> {
    hand_on!(self => self.0; lstat read_once read_code read_bindings seen_text read_dir read_names read_link env current_time home current_dir
        check_access allow seen_at related notes_places mount file_type existing_type dir_entry resolve_symlinks resolve_expr_path
        find_code path_exists find_file);

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.0.read_once(path)
    }
}
