//! What was read and listed for answers, each once: what it was then is kept beside them, so that nobody need read it again.

use super::{ObservationId, SetId, Sets, Tables};
use firn_host::{Group, Question, Seen};

impl Sets {
    /// What was read or listed for a set, for itself or as a place that names were looked up in, and was not told of before. Nothing if
    /// something in the set must not be stored.
    pub fn fresh_reads(&self, set: SetId) -> Vec<Seen> {
        let mut tables = self.tables();
        let Tables { observations, trees, told, .. } = &mut *tables;
        let mut ids = trees.beyond(set, *told);
        if ids.iter().any(|id| !observations[id.0 as usize].storable) {
            return Vec::new();
        }
        let mut all = trees.union(*told, set);
        let group = |id: &ObservationId| match observations[id.0 as usize].seen.question {
            Question::Member(Group::Made(group), _) => Some(SetId(group)),
            _ => None,
        };
        let mut groups: Vec<SetId> = ids.iter().filter_map(group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            ids.extend(trees.beyond(group, all));
            all = trees.union(all, group);
        }
        *told = all;
        // Not outlines: that the text around is of the language too is not known before it is asked again.
        let is_read = |seen: &&Seen| matches!(seen.question, Question::File(_) | Question::Code(_) | Question::Directory(_));
        ids.iter().map(|id| &observations[id.0 as usize].seen).filter(is_read).cloned().collect()
    }
}
