"""The compiled part: the simulator, its experiment files and its mechanisms.

Nothing here is for direct use; `inprofile` wraps every name. JSON travels as text.
"""

from collections.abc import Callable
from typing import final

class ScenarioError(ValueError):
    """An experiment that cannot be run.

    `args[0]` is the text a person reads, with every problem; `args[1]` the same as a JSON list.
    """

@final
class Scenario:
    """A checked experiment."""

    @staticmethod
    def parse(
        text: str, file: str, bases: list[tuple[str, str]], set: list[tuple[str, str]], own: list[Own]
    ) -> Scenario:
        """Read and check TOML.

        `file` is what messages call it, `bases` what it extends, `set` overrides keys, `own` it may name.
        """
    @property
    def own(self) -> list[str]:
        """The names of the Python classes among its mechanisms."""
    @property
    def added(self) -> list[str]:
        """The names of the mechanisms among its own that another crate has added."""
    @property
    def title(self) -> str:
        """Its title."""
    @property
    def seeds(self) -> int:
        """How many seeds it asks for."""
    @property
    def file(self) -> str:
        """What messages call it."""
    def expected_packets(self) -> float:
        """Data packets that one run is expected to send."""
    def flows(self) -> int:
        """How many flows it has."""
    def in_parts(self, seed: int, threads: int, trace: bool) -> tuple[int, float, float, float, str | None]:
        """The parts in which a run is simulated on so many threads, or why it is in one piece.

        How many, their lookahead in seconds, the share of the work in the largest, how many times as fast it
        should be, why it is in one piece.
        """
    def expected_memory(self) -> tuple[float, float, float]:
        """The least memory in bytes: of a run in one piece, of each part more, and of its result."""
    def warnings(self) -> str:
        """JSON list of problems that do not prevent a run."""
    def describe(self) -> str:
        """JSON of the effective values, defaults included."""
    def canonical(self) -> str:
        """JSON that is the same text for the same experiment."""

@final
class Table:
    """An Arrow table, for any library that reads the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """PyCapsule of an ArrowArrayStream."""

@final
class Results:
    """What one experiment's runs left, one or more seeds in one table each."""

    def table(self, name: str) -> Table:
        """The table of this name, made now: see `inprofile.run.storage.TABLES`. KeyError for another."""
    def take(self, names: list[str]) -> list[Table]:
        """The tables of these names; what they are made of is given up. RuntimeError if it was before."""

    @property
    def conservation(self) -> bool:
        """Whether every packet was accounted for, in every run."""

def tables_together(results: list[tuple[int, Results]], names: list[str]) -> list[Table]:
    """Tables of these names, each with the rows of all results.

    The number beside a result stands in the first column, `setting`, of its rows.
    """

def run(
    jobs: list[tuple[Scenario, list[int]]],
    side_by_side: int,
    trace: bool,
    done: Callable[[int, Results], None],
    progress: Callable[[int, int, float], None],
    per_run: int = 1,
) -> None:
    """Run every seed of every job, so many at a time, each in up to `per_run` parts on as many threads.

    `done(index, results)` is called on this thread as soon as a job's last seed has finished,
    `progress(finished, all, under_way)` a few times a second; `under_way` is what the runs that have not
    finished are worth, by the share of their time that is simulated. Ctrl-C raises KeyboardInterrupt.
    """

class NotLive(ValueError):
    """An experiment that real hosts cannot run; `args[0]` has flow, key, problem, remedy. Linux only."""

def place_of(
    text: str, file: str, bases: list[tuple[str, str]], set: list[tuple[str, str]], key: str
) -> tuple[str, bool]:
    """Where the value under a key is written, `file:line` or `--set KEY=VALUE`, and whether it is.

    If it is not, the place is that of the nearest table around it.
    """

def bases(text: str, file: str) -> list[tuple[str, str]]:
    """The files that an experiment in `file` extends, from the nearest to the last: name and text."""

def whole(text: str, file: str, bases: list[tuple[str, str]]) -> str:
    """The experiment in one text, with what it extends."""

def live_hindrance() -> str | None:
    """Why this process can't make network namespaces, and what to do; None if it can. Linux only."""

def live(
    scenario: Scenario, seeds: list[int], trace: bool, progress: Callable[[float, float], None]
) -> tuple[Results, str]:
    """Run every seed of an experiment with real hosts: namespaces, and the kernel's TCP. Linux only.

    `progress(seconds done, seconds in all)` is called a few times a second. Gives the results, and a JSON
    list of how each run kept time. Ctrl-C raises KeyboardInterrupt; `NotLive` comes before anything is made.
    """

class Inexpressible(ValueError):
    """An experiment that ns-2 has no words for; `args[0]` lists what it lacks."""

def ns2_script(scenario: Scenario, seed: int) -> str:
    """The Tcl script by which ns-2 2.35 runs this seed of an experiment.

    `Inexpressible` with a list of texts, one for each thing that ns-2 doesn't have.
    """

def ns2_counting_script(scenario: Scenario, seed: int) -> str:
    """The Tcl script by which ns-2 runs an experiment like this one, whatever its profile, and counts.

    It writes what it counted at both ends of the measured window. `Inexpressible` as `ns2_script`.
    """

def ns2_log(scenario: Scenario, seed: int, path: str) -> int:
    """Run this seed and write every event at every link to a file, in the format of ns-2's trace.

    Gives the number of data packets that arrived at receivers. OSError with the path if the file
    can't be written.
    """

def capture_packets(scenario: Scenario, seed: int, path: str, at: list[str], snaplen: int) -> tuple[int, int]:
    """Run this seed and write what passes these links, and what their queues drop, as pcapng.

    At most `snaplen` bytes of a packet, 0 for all. Gives the numbers of packets passed and dropped.
    ValueError for what can't be captured, OSError with the path if the file can't be written.
    """

def queue_log(
    scenario: Scenario, seed: int, link: str, start: int, end: int
) -> list[tuple[int, str, int, int, str, int, str | None]]:
    """What happens to packets at the queue of a link between two times (ps); the run ends there.

    Time (ps), `+` it arrives, `-` it leaves for the link or `d` it is dropped, the packet's number, its
    flow's, its colour and bytes, and of a drop the cause. The arrivals of those that wait at first come
    first, at their own times. KeyError for a link that is not there.
    """

class MechanismError(RuntimeError):
    """A mechanism written in Python has failed."""

@final
class Own:
    """A Python class that experiments may name."""

    def __new__(
        cls,
        name: str,
        kind: str,
        summary: str,
        source: str,
        fields: list[tuple[str, str, str, object, float | None, float | None, list[str]]],
        hooks: list[str],
        oracle: str | None,
        make: Callable[[dict[str, object], dict[str, object]], object],
    ) -> Own:
        """`kind` is `marker` or `aqm`; `hooks`: its methods; `make(parameters, place)` gives an instance."""
    def decisions(self) -> int:
        """Decisions of all runs so far."""

@final
class Packet:
    """A packet, as a mechanism sees it."""

    @property
    def flow(self) -> int:
        """The number of its flow: 0, 1, … in the order of the experiment."""
    @property
    def size(self) -> int:
        """Bytes on the wire."""
    @property
    def payload(self) -> int:
        """Bytes of payload."""
    @property
    def seq(self) -> int:
        """TCP: number of the first payload byte, modulo 2³²."""
    @property
    def ack(self) -> int:
        """TCP: the next byte that the receiver expects, modulo 2³²."""
    @property
    def colour(self) -> str:
        """Drop precedence: `in`, `out` or `red`."""
    @property
    def kind(self) -> str:
        """`data`, `ack`, `syn` or `datagram`."""
    @property
    def ecn(self) -> str:
        """`not_ect`, `ect0`, `ect1` or `ce`."""
    @property
    def class_(self) -> int:
        """The class that a scheduler serves it in, by its number."""

@final
class Queue:
    """A queue as it was when its discipline was asked."""

    @property
    def packets(self) -> int:
        """Packets waiting."""
    @property
    def bytes(self) -> int:
        """Bytes waiting."""
    @property
    def idle_since(self) -> float | None:
        """Since when the link has had nothing to send, in seconds; None while it sends."""
    @property
    def fits(self) -> bool:
        """Whether the packet in question fits within the limit."""
    def packets_of(self, colour: str) -> int:
        """Packets of this colour waiting."""
    def bytes_of(self, colour: str) -> int:
        """Bytes of this colour waiting."""

@final
class Random:
    """The mechanism's stream of random numbers, which follows from the run's seed."""

    def random(self) -> float:
        """Uniform in [0, 1)."""
    def below(self, n: int) -> int:
        """Uniform among 0 … n − 1."""

def mechanisms(own: list[Own]) -> str:
    """JSON catalogue of every marker and queue discipline, these classes among them."""

def schema(own: list[Own]) -> str:
    """JSON Schema of the experiment file, which may name these classes."""

def added_names() -> list[str]:
    """Names of the mechanisms that another crate has added to this engine."""

def version() -> str:
    """The version of this binding."""
