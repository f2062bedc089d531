//! A link's queue as monitors and books see it.

use inprofile_core::queue::fifo::Counts;
use inprofile_core::registry::AnyAqm;

use crate::clock::Clock;
use crate::link::Link;
use crate::waiting::Book;

/// A queue as monitors and books see it: a link's only one, one of its classes, or all of them together.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its discipline; none of all classes together, or where nothing has waited yet.
    pub aqm: Option<&'a AnyAqm>,
    /// Counts since the start of the run.
    pub counts: Counts,
    /// Packets waiting by colour.
    pub waiting: [u32; 3],
    /// The books at the beginning and at the end of the measured window, as far as they have passed.
    /// Only a listed link keeps them.
    pub books: &'a [Book],
}

impl<C: Clock> Link<C> {
    /// How many classes it has; 0 if there is one queue for all.
    pub fn classes(&self) -> usize {
        let classes = self.before.queue().and_then(|q| q.classes.as_ref());
        classes.map_or(0, |c| c.queue.classes().len())
    }

    /// Counts of the queue since the start of the run.
    fn counts(&self) -> Counts {
        let mut counts = self.before.queue().map_or_else(Counts::default, |q| *q.fifo.counts());
        for (i, (packets, bytes)) in self.passed().into_iter().enumerate() {
            counts.arrived[i] += packets;
            counts.arrived_bytes[i] += bytes;
            counts.sent[i] += packets;
            counts.sent_bytes[i] += bytes;
        }
        counts
    }

    /// The queue, or all classes together; with a number that class.
    pub fn seen(&self, class: Option<usize>) -> Seen<'_> {
        let Some(q) = self.before.queue() else {
            return Seen { aqm: None, counts: self.counts(), waiting: [0; 3], books: &[] };
        };
        let books = &q.books;
        match (&q.classes, class) {
            (Some(classes), Some(i)) => {
                let c = &classes.queue.classes()[i];
                let (counts, waiting) = (*c.queue.counts(), c.queue.waiting());
                Seen { aqm: Some(&c.aqm), counts, waiting, books: classes.books(i) }
            }
            (Some(all), None) => Seen { aqm: None, counts: all.counts(), waiting: all.waiting(), books },
            (None, _) => Seen { aqm: Some(&q.aqm), counts: self.counts(), waiting: q.fifo.waiting(), books },
        }
    }
}
