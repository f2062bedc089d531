//! A page of the web in a run: which of its objects have been asked for, and how many are on their way.

use std::ops::Range;

use crate::network::Page;

/// A page in a run.
#[derive(Debug)]
pub struct PageLoad {
    page: Page,
    /// Objects that have been asked for.
    asked: usize,
    /// Connections that are waiting for an object.
    waiting: u32,
}

impl PageLoad {
    /// Not begun.
    #[must_use]
    pub fn new(page: Page) -> PageLoad {
        PageLoad { page, asked: 0, waiting: 0 }
    }

    /// The flows that fetch it.
    #[must_use]
    pub fn connections(&self) -> Range<u32> {
        self.page.connections.clone()
    }

    /// A connection asks for an object: how many segments it has. `None`: there are no more.
    pub fn ask(&mut self) -> Option<u32> {
        let size = self.page.objects.get(self.asked).copied()?;
        self.asked += 1;
        self.waiting += 1;
        Some(size)
    }

    /// A connection has received its object.
    pub fn object_arrived(&mut self) {
        self.waiting -= 1;
    }

    /// The page, if all of it has arrived.
    #[must_use]
    pub fn complete(&self) -> Option<&Page> {
        (self.waiting == 0 && self.asked == self.page.objects.len()).then_some(&self.page)
    }
}
