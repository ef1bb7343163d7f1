//! Settings that change what evaluation means.

/// Experimental features that evaluation knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Flakes: `getFlake` and friends.
    pub flakes: bool,
    /// `fetchTree`.
    pub fetch_tree: bool,
    /// `fetchClosure`.
    pub fetch_closure: bool,
    /// `outputOf` and what it needs.
    pub dynamic_derivations: bool,
    /// Floating content-addressed derivations.
    pub ca_derivations: bool,
    /// Impure derivations.
    pub impure_derivations: bool,
    /// TOML dates in `fromTOML`.
    pub parse_toml_timestamps: bool,
    /// The blake3 hash.
    pub blake3_hashes: bool,
    /// Git hashing.
    pub git_hashing: bool,
    /// `memoise`.
    pub memoise: bool,
}

/// Settings of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most nested calls.
    pub max_call_depth: u32,
    /// Pure evaluation.
    pub pure_eval: bool,
    /// Restricted evaluation.
    pub restrict_eval: bool,
    /// `currentSystem`.
    pub system: String,
    /// The store directory.
    pub store_dir: String,
    /// Add "while calling" frames to traces.
    pub show_trace: bool,
    /// `traceVerbose` prints.
    pub trace_verbose: bool,
    /// `warn` throws.
    pub abort_on_warn: bool,
    /// Import from derivation is allowed.
    pub allow_import_from_derivation: bool,
    /// Import from derivation is told.
    pub trace_import_from_derivation: bool,
    /// Entries of the search path as given (`-I`, `NIX_PATH`).
    pub nix_path: Vec<Vec<u8>>,
    /// Experimental features.
    pub features: Features,
    /// What the parser accepts (pipe operators, lints).
    pub syntax: firn_syntax::Features,
    /// What is remembered.
    pub memo: firn_memo::Mode,
    /// URIs allowed in restricted mode.
    pub allowed_uris: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_call_depth: 10_000,
            pure_eval: false,
            restrict_eval: false,
            system: "x86_64-linux".to_owned(),
            store_dir: "/nix/store".to_owned(),
            show_trace: false,
            trace_verbose: false,
            abort_on_warn: false,
            allow_import_from_derivation: true,
            trace_import_from_derivation: false,
            nix_path: Vec::new(),
            features: Features::default(),
            syntax: firn_syntax::Features::default(),
            memo: firn_memo::Mode::Off,
            allowed_uris: Vec::new(),
        }
    }
}
