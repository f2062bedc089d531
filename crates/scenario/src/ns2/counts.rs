//! What a script counts where figures are compared and not events: at both ends of the measured window, what each receiver has
//! in order and what the measured queue has seen.
//!
//! ```text
//! span 100 size 1040                      the window in seconds, a full packet in bytes
//! flow 1300040 2600040 1000 40            bytes in order at both ends; segment and header
//! queue 1234 567 0 8                      green, yellow and red packets that came, packets dropped: at one end
//! queue 2345 678 0 9                      and at the other
//! ```

use inprofile_sim::network::{Network, Transport};

use super::Script;
use crate::model::{Model, packet};

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
        for flow in &network.flows {
            // Any other traffic has been named.
            let Transport::Tcp(c) = &flow.transport else { continue };
            sizes.push(format!("{{{} {}}}", c.segment, c.header));
        }
        let (link_from, link_to) = (at.from, at.to);
        let counts = if model.way(model.at).queue.one().is_some_and(|q| q.aqm.name == "red") {
            self.line(format_args!("set monitor [$ns monitor-queue $n({link_from}) $n({link_to}) {{}}]"));
            "[$monitor set parrivals_] 0 0 [$monitor set pdrops_]"
        } else {
            self.line(format_args!("set queue [[$ns link $n({link_from}) $n({link_to})] queue]"));
            "[expr [$queue getStat pkts 0] + [$queue getStat pkts 10]] [$queue getStat pkts 11] [$queue getStat pkts 12] \
             [expr [$queue getStat drops] + [$queue getStat edrops]]"
        };
        self.line(format_args!(
            "proc seen {{}} {{\n    global queue monitor\n    return \"queue {counts}\"\n}}"
        ));
        self.text.push_str(BYTES);
        let (sizes, size) = (sizes.join(" "), packet(&model.tcp).0);
        let span = to - from;
        self.line(format_args!("$ns at {from} {{ set before [bytes]; set first [seen] }}"));
        self.line(format_args!("$ns at {to} {{ write {span} {size} {{{sizes}}}; exit 0 }}"));
    }
}

const BYTES: &str = "\
proc bytes {} {
    global agents
    set all {}
    foreach {sender receiver} $agents { lappend all [$receiver set bytes_] }
    return $all
}

proc write {span size sizes} {
    global out before first
    puts $out \"span $span size $size\"
    foreach b $before a [bytes] s $sizes { puts $out \"flow $b $a $s\" }
    puts $out $first
    puts $out [seen]
    close $out
}
";
