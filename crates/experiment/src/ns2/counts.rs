//! The counts of a script where metrics are compared instead of events: at the start and at the end of the measured window, the
//! bytes that each receiver has in order and the packets that the measured queue has seen.
//!
//! ```text
//! span 100                                the window in seconds
//! flow 1300040 2600040 1000 40 1          bytes in order at both ends; segment and header; whether it passes the measured queue
//! packets 1040 1234 567 0 8               the size of a full packet; green, yellow and red ones that came, packets dropped: at one end
//! packets 1040 2345 678 0 9               and at the other
//! bytes 1283360 0 0 8                     where ns-2 counts bytes, these instead
//! ```

use inprofile_sim::network::{Network, Transport};

use super::Script;
use crate::model::{Model, packet};

/// A queue that is a dsRED in ns-2 counts by colour; of any other a monitor counts bytes.
const COLOURED: [&str; 4] = ["drop_tail", "dsred", "rio", "wred"];

impl Script {
    /// The commands that count, and end the run with the window.
    pub(super) fn counts(&mut self, model: &Model, network: &Network) {
        let at = &network.links[model.at];
        if network.flows.iter().any(|f| f.back.contains(&(model.at as u32))) {
            self.lacks(format!(
                "measure.at: acknowledgements pass {}, and ns-2 counts packets of any size",
                at.name
            ));
        }
        let (from, to) = (network.window.0.secs(), network.window.1.secs());
        let mut sizes = Vec::new();
        let mut full = Vec::new();
        for flow in &network.flows {
            // Any other traffic has been named.
            let Transport::Tcp(c) = &flow.transport else { continue };
            let passes = flow.path.contains(&(model.at as u32));
            if passes && !full.contains(&packet(c).0) {
                full.push(packet(c).0);
            }
            sizes.push(format!("{{{} {} {}}}", c.segment, c.header(), u8::from(passes)));
        }
        let (link_from, link_to) = (at.from, at.to);
        let counts = if model.direction(model.at).queue.one().is_some_and(|q| !COLOURED.contains(&q.aqm.name))
        {
            self.line(format_args!("set monitor [$ns monitor-queue $n({link_from}) $n({link_to}) {{}}]"));
            "bytes [$monitor set barrivals_] 0 0 [$monitor set pdrops_]".to_owned()
        } else {
            if full.len() > 1 {
                let of = full.iter().map(|size| format!("{size} B")).collect::<Vec<_>>().join(" and ");
                let text = "measure.at: packets of ";
                self.lacks(format!("{text}{of} pass {}, and dsRED counts packets of any size", at.name));
            }
            self.line(format_args!("set queue [[$ns link $n({link_from}) $n({link_to})] queue]"));
            // Where no flow passes, nothing is counted.
            format!(
                "packets {} [expr [$queue getStat pkts 0] + [$queue getStat pkts 10]] [$queue getStat pkts 11] \
                 [$queue getStat pkts 12] [expr [$queue getStat drops] + [$queue getStat edrops]]",
                full.first().copied().unwrap_or(0)
            )
        };
        self.line(format_args!("proc seen {{}} {{\n    global queue monitor\n    return \"{counts}\"\n}}"));
        self.text.push_str(BYTES);
        let (sizes, span) = (sizes.join(" "), to - from);
        self.line(format_args!("$ns at {from} {{ set before [bytes]; set first [seen] }}"));
        self.line(format_args!("$ns at {to} {{ write {span} {{{sizes}}}; exit 0 }}"));
    }
}

const BYTES: &str = "\
proc bytes {} {
    global agents
    set all {}
    foreach {sender receiver} $agents { lappend all [$receiver set bytes_] }
    return $all
}

proc write {span sizes} {
    global out before first
    puts $out \"span $span\"
    foreach b $before a [bytes] s $sizes { puts $out \"flow $b $a $s\" }
    puts $out $first
    puts $out [seen]
    close $out
}
";
