//! The pages of a database file, read with every bound checked.
//!
//! LMDB trusts its file: a flipped bit in a page could make it read outside its map or stop the process. So each run
//! first walks the pages that lead to the data ([`check`]), without LMDB and without unsafe code, and hands LMDB only
//! what it can digest. Where the walk finds damage, [`salvage`] collects what still hangs together. Contents are not
//! judged here: every stored thing has a seal of its own.
//!
//! ```text
//! page    number (8) · pad (2) · flags (2) · lower (2) · upper (2) · offsets of nodes (2 each) … nodes
//! node    low (2) · high (2) · flags (2) · key length (2) · key · data
//! tree    pad (4) · flags (2) · depth (2) · branches (8) · leaves (8) · overflows (8) · entries (8) · root (8)
//! meta    magic (4) · version (4) · address (8) · size (8) · free tree · main tree · last page (8) · transaction (8)
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;

const HEADER: usize = 16;
const NODE: usize = 8;
const TREE: usize = 48;
const META: usize = HEADER + 24 + 2 * TREE + 16;
const MAGIC: u32 = 0xBEEF_C0DE;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META_FLAG: u16 = 8;
const BIG_DATA: u16 = 1;
const SUB_DATA: u16 = 2;
const INTEGER_KEY: u16 = 8;
const NO_PAGE: u64 = u64::MAX;
/// LMDB's own bound on the depth of a tree.
const MAX_DEPTH: u16 = 32;

/// Something in the file is not as LMDB would have written it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage(pub &'static str);

type Checked<T> = Result<T, Damage>;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Checked<[u8; N]> {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end)).ok_or(Damage("a page ends too early"))?;
    part.try_into().map_err(|_| Damage("a page ends too early"))
}

fn u16_at(bytes: &[u8], at: usize) -> Checked<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Checked<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Checked<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

/// A tree as its owner describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tree {
    flags: u16,
    depth: u16,
    branches: u64,
    leaves: u64,
    overflows: u64,
    entries: u64,
    root: u64,
}

impl Tree {
    fn read(bytes: &[u8]) -> Checked<Tree> {
        Ok(Tree {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branches: u64_at(bytes, 8)?,
            leaves: u64_at(bytes, 16)?,
            overflows: u64_at(bytes, 24)?,
            entries: u64_at(bytes, 32)?,
            root: u64_at(bytes, 40)?,
        })
    }
}

/// One of the two states that a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    page_size: usize,
    free: Tree,
    main: Tree,
    last_page: u64,
    /// The transaction that wrote it.
    pub transaction: u64,
}

/// The two states of a file; an error for one that cannot be read.
pub fn metas(file: &File) -> Checked<[Checked<Meta>; 2]> {
    let page_size = match meta_at(file, 0) {
        Ok(meta) => meta.page_size,
        // The second page begins where the first one's size says; without that, where it does on this machine.
        Err(_) => 4096,
    };
    let both = [meta_at(file, 0), meta_at(file, page_size as u64)];
    if both.iter().all(Result::is_err) {
        return Err(Damage("neither state of the database can be read"));
    }
    Ok(both)
}

fn meta_at(file: &File, offset: u64) -> Checked<Meta> {
    let mut page = [0; META];
    file.read_exact_at(&mut page, offset).map_err(|_| Damage("the file ends too early"))?;
    let (magic, version) = (u32_at(&page, HEADER)?, u32_at(&page, HEADER + 4)?);
    if u16_at(&page, 10)? & META_FLAG == 0 || magic != MAGIC || version != 1 {
        return Err(Damage("no state of a database"));
    }
    let trees = HEADER + 24;
    let page_size = u32_at(&page, trees)? as usize;
    if !page_size.is_power_of_two() || !(4096..=65536).contains(&page_size) {
        return Err(Damage("an impossible page size"));
    }
    let free = Tree::read(&page[trees..])?;
    let main = Tree::read(&page[trees + TREE..])?;
    let last_page = u64_at(&page, trees + 2 * TREE)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if last_page > length / page_size as u64 + (1 << 20) {
        return Err(Damage("more pages than the file could have"));
    }
    if free.flags != INTEGER_KEY || main.flags != 0 {
        return Err(Damage("trees of an unknown kind"));
    }
    Ok(Meta { page_size, free, main, last_page, transaction: u64_at(&page, trees + 2 * TREE + 8)? })
}

/// Takes each entry of each named tree: the name, the key, the data.
type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8], &[u8]);

struct Walk<'a> {
    file: &'a File,
    meta: Meta,
    used: Vec<u64>,
    /// Damage is passed over; contents are handed to the visitor.
    salvage: Option<Visit<'a>>,
}

/// What was counted in a tree.
#[derive(Default)]
struct Counted {
    branches: u64,
    leaves: u64,
    overflows: u64,
    entries: u64,
    last_key: Option<Vec<u8>>,
    /// What the next key must not be below: the branch that led here says so, and searching relies on it.
    floor: Vec<u8>,
}

/// A page yet to be visited: its number, its height, and the key in the branch above it.
type Step = (u64, u16, Vec<u8>);

/// Looks at a node of a leaf: the walk, what was counted, the page, where the node begins.
type Each<'a, 'e> = &'e mut dyn FnMut(&mut Walk<'a>, &mut Counted, &[u8], usize) -> Checked<()>;

/// An entry of a leaf.
struct Entry<'p> {
    flags: u16,
    key: &'p [u8],
    /// The data itself, or the page number where it lies.
    data: &'p [u8],
    size: usize,
}

/// Fails if LMDB would stumble over the state that `transaction` wrote. False: two have written since, and it is no longer there.
pub fn check(file: &File, transaction: u64) -> Checked<bool> {
    let [one, other] = metas(file)?;
    let Some(meta) = [one, other].into_iter().flatten().find(|meta| meta.transaction == transaction) else {
        let is_overtaken = [one, other].iter().all(|meta| meta.is_ok_and(|meta| meta.transaction > transaction));
        return if is_overtaken { Ok(false) } else { Err(Damage("the state in use cannot be read")) };
    };
    Walk::new(file, meta, None).whole().map(|()| true)
}

/// Hands on every entry that can still be reached, from both states, the newer one first.
pub fn salvage(file: &File, visit: Visit<'_>) {
    let Ok(metas) = metas(file) else { return };
    let mut metas: Vec<Meta> = metas.into_iter().flatten().collect();
    metas.sort_by_key(|meta| std::cmp::Reverse(meta.transaction));
    for meta in metas {
        let mut walk = Walk::new(file, meta, Some(&mut *visit));
        // Nothing is strict here: what cannot be followed is left out.
        let _ = walk.named(meta.main);
    }
}

impl<'a> Walk<'a> {
    fn new(file: &'a File, meta: Meta, salvage: Option<Visit<'a>>) -> Walk<'a> {
        let words = usize::try_from(meta.last_page / 64 + 1).unwrap_or(0);
        let mut walk = Walk { file, meta, used: vec![0; words], salvage };
        // The two states themselves.
        let _ = walk.claim(0, 2);
        walk
    }

    fn whole(&mut self) -> Checked<()> {
        self.free()?;
        self.named(self.meta.main)
    }

    /// Notes that pages are in use; each may be once.
    fn claim(&mut self, first: u64, count: u64) -> Checked<()> {
        let end = first.checked_add(count).filter(|end| *end <= self.meta.last_page + 1);
        let Some(end) = end else { return Err(Damage("a page beyond the last")) };
        for page in first..end {
            let (word, bit) = ((page / 64) as usize, 1u64 << (page % 64));
            if self.used[word] & bit != 0 {
                return Err(Damage("a page that is used twice"));
            }
            self.used[word] |= bit;
        }
        Ok(())
    }

    fn read(&self, page: u64, pages: u64) -> Checked<Vec<u8>> {
        let size = self.meta.page_size as u64;
        let mut bytes = vec![0; usize::try_from(pages * size).map_err(|_| Damage("an impossible size"))?];
        let offset = page.checked_mul(size).ok_or(Damage("an impossible page"))?;
        self.file.read_exact_at(&mut bytes, offset).map_err(|_| Damage("the file ends too early"))?;
        if u64_at(&bytes, 0)? != page {
            return Err(Damage("a page that says it is another"));
        }
        Ok(bytes)
    }

    /// The offsets of a page's nodes.
    fn nodes(&self, page: &[u8]) -> Checked<Vec<usize>> {
        let (lower, upper) = (u16_at(page, 12)? as usize, u16_at(page, 14)? as usize);
        if lower < HEADER || lower > upper || upper > self.meta.page_size || lower % 2 != 0 {
            return Err(Damage("a page whose bounds cross"));
        }
        let offsets = (HEADER..lower).step_by(2).map(|at| u16_at(page, at).map(usize::from));
        let offsets = offsets.collect::<Checked<Vec<usize>>>()?;
        if offsets.iter().any(|&at| at < upper || at % 2 != 0 || at + NODE > self.meta.page_size) {
            return Err(Damage("a node outside its page"));
        }
        self.tiles(page, upper, &offsets)?;
        Ok(offsets)
    }

    /// Nodes lie side by side from the upper bound to the end of the page: LMDB moves them about by their lengths.
    fn tiles(&self, page: &[u8], upper: usize, offsets: &[usize]) -> Checked<()> {
        let is_leaf = u16_at(page, 10)? & LEAF != 0;
        let mut sorted = offsets.to_vec();
        sorted.sort_unstable();
        let mut end = upper;
        for node in sorted {
            if node != end {
                return Err(Damage("nodes that overlap or leave gaps"));
            }
            let held = match (is_leaf, u16_at(page, node + 4)? & BIG_DATA) {
                (false, _) => 0,
                (true, 0) => u16_at(page, node)? as usize | (u16_at(page, node + 2)? as usize) << 16,
                (true, _) => 8,
            };
            end = (node + NODE + u16_at(page, node + 6)? as usize + held).next_multiple_of(2);
        }
        if end == self.meta.page_size { Ok(()) } else { Err(Damage("nodes that overlap or leave gaps")) }
    }

    fn key<'p>(&self, page: &'p [u8], node: usize) -> Checked<&'p [u8]> {
        let len = u16_at(page, node + 6)? as usize;
        if len > 511 {
            return Err(Damage("a key that is too long"));
        }
        page.get(node + NODE..node + NODE + len).ok_or(Damage("a key outside its page"))
    }

    fn entry<'p>(&self, page: &'p [u8], node: usize) -> Checked<Entry<'p>> {
        let key = self.key(page, node)?;
        let size = u16_at(page, node)? as usize | (u16_at(page, node + 2)? as usize) << 16;
        let flags = u16_at(page, node + 4)?;
        if flags & !(BIG_DATA | SUB_DATA) != 0 {
            return Err(Damage("an entry of an unknown kind"));
        }
        let start = node + NODE + key.len();
        let held = if flags & BIG_DATA != 0 { 8 } else { size };
        let end = start.checked_add(held).ok_or(Damage("data outside its page"))?;
        let data = page.get(start..end).ok_or(Damage("data outside its page"))?;
        Ok(Entry { flags, key, data, size })
    }

    /// Visits the leaves of a tree from left to right.
    fn tree(&mut self, tree: Tree, each: Each<'a, '_>) -> Checked<()> {
        if tree.root == NO_PAGE {
            let empty = Tree { flags: tree.flags, depth: 0, branches: 0, leaves: 0, overflows: 0, entries: 0, root: NO_PAGE };
            return if tree == empty { Ok(()) } else { Err(Damage("an empty tree with pages")) };
        }
        if tree.depth == 0 || tree.depth > MAX_DEPTH {
            return Err(Damage("an impossible depth"));
        }
        let mut counted = Counted::default();
        let mut todo = vec![(tree.root, tree.depth, Vec::new())];
        while let Some(step) = todo.pop() {
            let visited = self.page(step, &mut counted, &mut todo, each);
            if visited.is_err() && self.salvage.is_none() {
                return visited;
            }
        }
        let same = counted.branches == tree.branches
            && counted.leaves == tree.leaves
            && counted.overflows == tree.overflows
            && counted.entries == tree.entries;
        if same || self.salvage.is_some() { Ok(()) } else { Err(Damage("a tree that was miscounted")) }
    }

    fn page(
        &mut self,
        (number, height, floor): Step,
        counted: &mut Counted,
        todo: &mut Vec<Step>,
        each: Each<'a, '_>,
    ) -> Checked<()> {
        self.claim(number, 1)?;
        if !floor.is_empty() {
            if counted.last_key.as_ref().is_some_and(|last| *last >= floor) && self.salvage.is_none() {
                return Err(Damage("keys out of order"));
            }
            counted.floor = floor;
        }
        let page = self.read(number, 1)?;
        let flags = u16_at(&page, 10)?;
        let nodes = self.nodes(&page)?;
        if height > 1 {
            if flags != BRANCH || nodes.len() < 2 {
                return Err(Damage("a branch was expected"));
            }
            counted.branches += 1;
            for (index, &node) in nodes.iter().enumerate().rev() {
                let key = self.key(&page, node)?;
                // The first key of a branch is never looked at.
                let floor = if index == 0 { Vec::new() } else { key.to_vec() };
                let low = u64::from(u16_at(&page, node)?) | u64::from(u16_at(&page, node + 2)?) << 16;
                todo.push((low | u64::from(u16_at(&page, node + 4)?) << 32, height - 1, floor));
            }
            return Ok(());
        }
        if flags != LEAF || nodes.is_empty() {
            return Err(Damage("a leaf was expected"));
        }
        counted.leaves += 1;
        for &node in &nodes {
            counted.entries += 1;
            each(self, counted, &page, node)?;
        }
        Ok(())
    }

    /// The pages that hold an entry's data outside its leaf.
    fn overflow(&mut self, entry: &Entry<'_>, counted: &mut Counted) -> Checked<(u64, u64)> {
        let first = u64_at(entry.data, 0)?;
        let count = ((HEADER - 1 + entry.size) / self.meta.page_size + 1) as u64;
        self.claim(first, count)?;
        counted.overflows += count;
        let mut header = [0; HEADER];
        let offset = first.checked_mul(self.meta.page_size as u64).ok_or(Damage("an impossible page"))?;
        self.file.read_exact_at(&mut header, offset).map_err(|_| Damage("the file ends too early"))?;
        let said = u64::from(u32_at(&header, 12)?);
        if u64_at(&header, 0)? != first || u16_at(&header, 10)? != OVERFLOW || said != count {
            return Err(Damage("data is not where an entry says"));
        }
        let end = offset + count * self.meta.page_size as u64;
        if self.file.metadata().map_or(0, |metadata| metadata.len()) < end {
            return Err(Damage("the file ends too early"));
        }
        Ok((first, count))
    }

    /// The tree of pages that are free: none of them may be in use, or a writer would overwrite what others read.
    fn free(&mut self) -> Checked<()> {
        self.tree(self.meta.free, &mut |walk, counted, page, node| {
            let entry = walk.entry(page, node)?;
            if entry.key.len() != 8 || entry.flags & SUB_DATA != 0 {
                return Err(Damage("a list of free pages under a strange key"));
            }
            let list = if entry.flags & BIG_DATA != 0 {
                let (first, count) = walk.overflow(&entry, counted)?;
                let bytes = walk.read(first, count)?;
                bytes.get(HEADER..HEADER + entry.size).ok_or(Damage("data outside its pages"))?.to_vec()
            } else {
                entry.data.to_vec()
            };
            let count = u64_at(&list, 0)?;
            if count.checked_add(1).and_then(|words| words.checked_mul(8)) != Some(list.len() as u64) {
                return Err(Damage("a list of free pages with a false length"));
            }
            let mut before = NO_PAGE;
            for at in (8..list.len()).step_by(8) {
                let page = u64_at(&list, at)?;
                if page >= before {
                    return Err(Damage("a list of free pages out of order"));
                }
                before = page;
                walk.claim(page, 1)?;
            }
            Ok(())
        })
    }

    /// The main tree, whose entries are trees with names.
    fn named(&mut self, main: Tree) -> Checked<()> {
        let mut trees = Vec::new();
        self.tree(main, &mut |walk, counted, page, node| {
            let entry = walk.entry(page, node)?;
            walk.in_order(counted, entry.key)?;
            if entry.flags != SUB_DATA || entry.data.len() != TREE {
                return Err(Damage("something that is no table"));
            }
            let tree = Tree::read(entry.data)?;
            if tree.flags != 0 {
                return Err(Damage("a table of an unknown kind"));
            }
            trees.push((entry.key.to_vec(), tree));
            Ok(())
        })?;
        for (name, tree) in trees {
            self.tree(tree, &mut |walk, counted, page, node| {
                let entry = walk.entry(page, node)?;
                walk.in_order(counted, entry.key)?;
                if entry.flags & SUB_DATA != 0 {
                    return Err(Damage("a table in a table"));
                }
                if entry.flags & BIG_DATA == 0 {
                    walk.hand_on(&name, entry.key, entry.data);
                    return Ok(());
                }
                let (first, count) = walk.overflow(&entry, counted)?;
                if walk.salvage.is_some() {
                    let bytes = walk.read(first, count)?;
                    let data = bytes.get(HEADER..HEADER + entry.size).ok_or(Damage("data outside its pages"))?;
                    walk.hand_on(&name, entry.key, data);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn hand_on(&mut self, name: &[u8], key: &[u8], data: &[u8]) {
        if let Some(visit) = &mut self.salvage {
            visit(name, key, data);
        }
    }

    fn in_order(&self, counted: &mut Counted, key: &[u8]) -> Checked<()> {
        let ascends = counted.last_key.as_deref().is_none_or(|before| before < key) && key >= &counted.floor[..];
        counted.last_key = Some(key.to_vec());
        if ascends || self.salvage.is_some() { Ok(()) } else { Err(Damage("keys out of order")) }
    }
}
