//! What was read and listed for answers, each once: what it was then is kept beside them, so that nobody need read it again.

use super::{SetId, Sets, Tables};
use firn_host::{Question, Seen};

impl Sets {
    /// What was read or listed for a set, for itself or as a place that names were looked up in, and was not told of before. Nothing if
    /// something in the set must not be stored.
    pub fn fresh_reads(&self, set: SetId) -> Vec<Seen> {
        let mut tables = self.tables();
        let Tables { trees, told, told_groups, .. } = &mut *tables;
        let mut ids = trees.beyond(set, *told);
        if self.observed().unstorable(&ids).is_some() {
            return Vec::new();
        }
        *told = trees.union(*told, set);
        for group in self.groups_among(&ids) {
            if told_groups.insert(group) {
                let places = trees.of(&self.places_of(group));
                ids.extend(trees.beyond(places, *told));
                *told = trees.union(*told, places);
            }
        }
        drop(tables);
        // Not outlines: that the text around is of the language too is not known before it is asked again.
        let is_read = |seen: &&Seen| matches!(seen.question, Question::File(_) | Question::Code(_) | Question::Directory(_));
        let observed = self.observed();
        ids.iter().map(|&id| observed.seen(id)).filter(is_read).cloned().collect()
    }
}
