//! Pages of the web: several connections each, which fetch the page's objects one after the other, each the next that
//! nobody has asked for (RFC 7928 §7.2: six connections, at least 50 objects). When the last object has arrived, the client
//! thinks, and asks for its next page over new connections.
//!
//! A request costs no bytes of its own: see [`requests`](crate::traffic::requests).

use inprofile_core::units::{Bytes, Duration, Time};

use crate::clock::Clock;
use crate::outcome::Download;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
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
        self.downloads.push(download);
        let Some(next) = next else { return };
        for flow in self.pages[next as usize].connections() {
            self.flows[flow as usize].start = start;
            self.request_later(flow, start);
        }
    }
}
