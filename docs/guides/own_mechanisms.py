"""Two mechanisms in Python: the examples of docs/guides/mechanism-in-python.md."""

import inprofile
from inprofile.own import Duration


# [marker]
class NthOut(inprofile.Marker):
    """Every n-th data packet of a flow OUT (Neglia et al. 2003, footnote 1)."""

    tune = {"n": "10..1000 log"}  # what inprofile compare tunes
    n: int = inprofile.parameter(100, least=1, doc="One packet in so many is OUT.")

    def setup(self):
        self.count = {}  # packets since the last OUT, by flow

    def mark(self, now, packet, rng):
        if packet.kind in ("ack", "syn"):
            return "in"
        count = self.count.get(packet.flow, 0) + 1
        self.count[packet.flow] = count % self.n
        return "out" if count == self.n else "in"


# [/marker]


# [aqm]
class StaleOut(inprofile.Aqm):
    """Drops what has waited for too long; OUT packets sooner."""

    tune = {"most": "1 T as time"}  # what inprofile compare tunes
    most: Duration = inprofile.parameter(0.1, least=0.001, doc="The longest that IN packets may wait.")
    out: float = inprofile.parameter(0.5, least=0.0, most=1.0, doc="The share of it for the others.")

    def depart(self, now, packet, waited, queue, rng):
        most = self.most if packet.colour == "in" else self.out * self.most
        return "drop" if waited > most else "send", {"sojourn": waited, "most": most}


# [/aqm]
