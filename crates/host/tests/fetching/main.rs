//! Fetchers against a server on the loopback and repositories made by `git`: nothing here needs a network.
#![allow(clippy::disallowed_methods, reason = "a test makes files and servers itself; the door is for the evaluator")]

mod archives;
mod git;
mod lfs;
mod mercurial;
mod server;
mod signed;
mod transfers;
mod zips;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firn_host::fetch::{Attr, Attrs, FetchError, FetchSettings, Fetcher, Input, Placed, Tree, Url};
use firn_host::{EvalOnly, Host, RealHost, RealWorld};
use firn_store::store_dir::StoreDir;

/// A fetcher with a cache of its own, and what it told the user.
struct Bench {
    fetcher: Fetcher,
    store: EvalOnly,
    dir: StoreDir,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new(cache: &Path, change: impl FnOnce(&mut FetchSettings)) -> Bench {
        let mut settings = FetchSettings {
            cache_dir: cache.to_owned(),
            flakes: true,
            attempts: 2,
            retry_delay: Duration::from_millis(1),
            connect_timeout: Duration::from_secs(5),
            stalled_timeout: Duration::from_secs(20),
            ..FetchSettings::default()
        };
        change(&mut settings);
        let host: Arc<dyn Host> = Arc::new(RealHost::new(RealWorld));
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let told = warnings.clone();
        let renew = || -> Arc<dyn Host> { Arc::new(RealHost::new(RealWorld)) };
        let warn = move |text: &str| told.lock().expect("no test panicked here").push(text.to_owned());
        let fetcher = Fetcher::new(settings, host.clone(), renew, warn);
        Bench { fetcher, store: EvalOnly::new(StoreDir::default(), host), dir: StoreDir::default(), warnings }
    }

    fn url(&self, url: &str) -> Result<Arc<Tree>, FetchError> {
        let input = Input::from_url(&self.fetcher.settings, &Url::parse(url, true)?, true)?;
        self.fetcher.fetch(&input, &self.store, &self.dir)
    }

    fn attrs<const N: usize>(&self, attrs: [(&str, Attr); N]) -> Result<Arc<Tree>, FetchError> {
        let attrs: Attrs = attrs.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect();
        self.fetcher.fetch(&Input::from_attrs(&self.fetcher.settings, attrs)?, &self.store, &self.dir)
    }
}

/// Names and contents of a fetched tree.
fn listing(tree: &Tree) -> Vec<String> {
    let Placed::Elsewhere(mount) = &tree.placed else { return vec!["in store".to_owned()] };
    let mut all = Vec::new();
    let mut todo = vec![mount.root.clone()];
    while let Some(dir) = todo.pop() {
        for (name, _) in mount.host.read_dir(&dir).expect("lists").entries() {
            let path = dir.beneath(name).expect("no NUL");
            if mount.excluded.contains(&path) {
                continue;
            }
            let relative = path.as_bytes()[mount.root.as_bytes().len() + 1..].to_vec();
            let relative = String::from_utf8_lossy(&relative).into_owned();
            match mount.host.existing_type(&path).expect("a type").nix_name() {
                "directory" => todo.push(path),
                "symlink" => {
                    let target = mount.host.read_link(&path).expect("a link");
                    all.push(format!("{relative} -> {}", String::from_utf8_lossy(&target)));
                }
                _ => {
                    let text = mount.host.read_file(&path).expect("reads");
                    all.push(format!("{relative}: {}", String::from_utf8_lossy(text.bytes())));
                }
            }
        }
    }
    all.sort();
    all
}
