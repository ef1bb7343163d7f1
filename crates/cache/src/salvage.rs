//! What can be saved from a damaged database: every entry that is still reachable and whose seal is whole.

use crate::environment::{Environment, TABLES};
use crate::pages;
use crate::sealed_kind;
use firn_memo::kept::record::unseal;
use std::collections::BTreeMap;
use std::fs::File;

/// Copies what is whole into a new database; how many entries that are.
pub(crate) fn into(environment: &Environment, file: &File) -> usize {
    let mut saved: BTreeMap<(usize, Vec<u8>), Vec<u8>> = BTreeMap::new();
    pages::salvage(file, &mut |name, key, sealed| {
        let Some(table) = TABLES.iter().position(|known| known.as_bytes() == name) else { return };
        if unseal(sealed_kind(table), key, sealed).is_some() {
            saved.entry((table, key.to_vec())).or_insert_with(|| sealed.to_vec());
        }
    });
    let write = || -> Result<usize, heed::Error> {
        let mut writing = environment.env.write_txn()?;
        for ((table, key), sealed) in &saved {
            environment.tables()[*table].put(&mut writing, key, sealed)?;
        }
        writing.commit()?;
        Ok(saved.keys().filter(|(table, _)| *table == 0).count())
    };
    write().unwrap_or(0)
}
