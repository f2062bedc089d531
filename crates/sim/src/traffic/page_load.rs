//! A page of the web in a run: which of its objects have been asked for, and how many are on their way.

use std::ops::Range;

use inprofile_core::units::{Bytes, Duration, Time};

use crate::clock::Clock;
use crate::network::Page;
use crate::outcome::Download;
use crate::world::World;

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

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A page or a chunk of video has been received whole, as is known now.
    pub(crate) fn note_download(&mut self, download: Download) {
        self.downloads.push(((self.now, self.order), download));
    }

    /// A connection of a page asks for an object: how many segments it has. `None`: there are no more.
    pub fn ask_for_object(&mut self, page: u32) -> Option<u32> {
        self.pages[page as usize].ask()
    }

    /// A connection has received its object.
    pub fn object_arrived(&mut self, page: u32) {
        self.pages[page as usize].object_arrived();
    }

    /// A connection finds no more objects. If it was the last to wait, the page is complete, and the next one is due.
    pub fn page_may_be_complete(&mut self, page: u32) {
        let Some(page) = self.pages[page as usize].complete() else { return };
        let flows = &self.flows[page.connections.start as usize..page.connections.end as usize];
        let payload = |f: &crate::flow::FlowState<C>| f.counts.in_order_payload_bytes;
        let download = Download {
            flow: page.connections.start,
            number: page.number,
            size: Bytes(flows.iter().map(payload).sum()),
            asked: flows[0].start,
            completed: flows.iter().filter_map(|f| f.completed).max().unwrap_or(Time::ZERO),
            stalled: Duration::ZERO,
        };
        let (next, think) = (page.next, page.think);
        let start = download.completed + think;
        self.note_download(download);
        let Some(next) = next else { return };
        for flow in self.pages[next as usize].connections() {
            self.flows[flow as usize].start = start;
            self.request_later(flow, start);
        }
    }
}
