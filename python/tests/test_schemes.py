"""Schemes of one's own: their file, their ranges, and how they are put on an experiment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

import inprofile
from inprofile import load, parse
from inprofile.cli import app
from inprofile.experiment.mechanisms import Mechanism, Parameter
from inprofile.metrics.measures import Measures
from inprofile.studies.compare import schemes as entries
from inprofile.studies.compare.comparison import Comparison
from inprofile.studies.compare.own import TuneError, own_scheme
from inprofile.studies.compare.page import in_short
from inprofile.studies.compare.run import outcome, plan
from inprofile.studies.compare.schemes import Place, SchemeFileError, choose, lengths, read_schemes
from inprofile.studies.compare.settings import SettingError, setting_of
from made import customers, uplink

CASES = Path(__file__).parents[2] / "docs" / "guides" / "plan"
OWN = uplink(
    "Two customers",
    (2, 6),
    "5 Mbit/s",
    "drop_tail 80 packets",
    customers("gold", 2, "20..40 ms", "10 Mbit/s", contract="600 kbit/s"),
    customers("free", 3, "20..40 ms", "10 Mbit/s"),
    seeds=2,
)
SCHEME = """\
[[schemes]]
id = "deep"
queue = { aqm = "drop_tail", limit = "1 T" }
flows = { kind = "token_bucket", depth = "500 ms of contract", rate = "1.2 of contract" }
[schemes.plan]
"flows.depth" = "0.1..1 s of contract log"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(OWN, "utf-8")
    (tmp_path / "mine.toml").write_text(SCHEME, "utf-8")
    return tmp_path


def test_a_limit_is_a_whole_number_of_packets_on_any_link() -> None:
    scenario = parse(OWN)
    place = Place.of(scenario)
    for scheme in choose():
        # 7 ms are 2.92 packets of 2.4 ms.
        scenario.with_(scheme.values(place, 0.007)).check()


def test_amounts_of_the_contract_become_rates_and_sizes(folder: Path) -> None:
    (scheme,) = read_schemes("mine.toml")
    place = Place.of(load("own.toml"))
    marker = scheme.values(place, 0.02)["flows.gold.marker"]
    # 600 kbit/s for half a second are 37,500 B.
    assert marker == {"kind": "token_bucket", "depth": "37500 B", "rate": "720000 bit/s"}
    changed = scheme.set({"flows.depth": 0.1}).values(place, 0.02)["flows.gold.marker"]
    assert changed == {"kind": "token_bucket", "depth": "7500 B", "rate": "720000 bit/s"}
    several = load("own.toml").with_({"flows.gold.contract": ["600 kbit/s", "700 kbit/s"]})
    with pytest.raises(SchemeFileError, match="one contract a group"):
        scheme.values(Place.of(several), 0.02)


def test_thresholds_are_scaled_together_and_cannot_cross() -> None:
    (rio,) = choose(["rio"])
    out = rio.set({"queue.out.*_th": 0.5}).queue["out"]
    assert (out["min_th"], out["max_th"], out["max_p"]) == ("0.1665 T", "0.5 T", 0.05)
    assert rio.queue["out"]["max_th"] == "1 T", "the entry itself is as it was"


@pytest.mark.parametrize("scheme", choose(), ids=lambda s: s.id)
def test_every_end_of_every_range_runs(scheme: object) -> None:
    scenario = parse(OWN)
    place = Place.of(scenario)
    for setting in scheme.settings:  # type: ignore[attr-defined]
        for x in (setting.low, setting.high):
            scenario.with_(scheme.set({setting.key: x}).values(place, 0.03)).check()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "deep"', 'id = "de ep"', "letters, digits and hyphens"),
        ('id = "deep"', "", "id is missing"),
        ('id = "deep"', 'id = "deep"\ncolor = "red"', "color is no key of a scheme"),
        ('aqm = "drop_tail", ', "", "queue has no aqm"),
        ("log", "logarithmic", "write a range"),
        ("0.1..1", "1..0.1", "has to go up"),
        ('"flows.depth"', '"depth"', "write its path"),
        ('"flows.depth"', '"edge.depth"', "the scheme has no edge"),
        ('"flows.depth"', '"flows.*pth*s"', "nothing of that name"),
        ("[[schemes]]", "[schemes]", "write a table \\[\\[schemes\\]\\]"),
        ("[[schemes]]", "[[schemes]", "this is no TOML"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "mine.toml").write_text(SCHEME.replace(old, new), "utf-8")
    with pytest.raises(SchemeFileError, match=said):
        read_schemes("mine.toml")
    answer = CliRunner().invoke(app, ["compare", "own.toml", "--schemes", "rio,mine.toml", "--plan"])
    assert (answer.exit_code, "mine.toml" in answer.stderr) == (2, True)


def test_shares_of_the_contract_are_for_flows_that_have_one() -> None:
    with pytest.raises(SettingError, match="for markers of flows that have one"):
        setting_of("queue.limit", "0.1..1 s of contract", {"queue": {"limit": "1 T"}})


def made(kind: str, tune: object, *parameters: tuple[str, str, str | None]) -> entries.Scheme:
    """The scheme of a class that has these parameters: name, kind, default."""
    base = inprofile.Marker if kind == "marker" else inprofile.Aqm
    cls = type("Mine", (base,), {"tune": tune})
    entry = Mechanism(
        "mine", kind, "Mine.", "", tuple(Parameter(n, k, None, None, d, "") for n, k, d in parameters)
    )
    return own_scheme(entry, cls)


def test_a_mechanism_of_ones_own_takes_part_by_its_name() -> None:
    marker, queue = made("marker", None), made("aqm", None)
    assert (marker.flows, marker.queue["aqm"], marker.needs) == ({"kind": "mine"}, "rio", "contracts")
    assert queue.queue == {"aqm": "mine", "limit": "1 T"}
    assert queue.tuned == ["queue, mine: limit = 1 T"]


def test_what_a_class_says_is_tuned_is_what_its_settings_differ_in(folder: Path) -> None:
    place = Place.of(load("own.toml"))
    tried = entries.lengths(place)
    scheme = made(
        "aqm", {"most": "10..320 ms log", "n": "2..12"}, ("most", "duration", None), ("n", "count", None)
    )
    queues = [scheme.values(place, t)[f"links.{place.link}.queue"] for t in tried]
    assert [q["most"] for q in queues] == ["10 ms", "20 ms", "40 ms", "80 ms", "160 ms", "320 ms"]  # type: ignore[index]
    assert [q["n"] for q in queues] == [2, 4, 6, 8, 10, 12]  # type: ignore[index]
    assert len({q["limit"] for q in queues}) == 1, "the limit is not tuned"  # type: ignore[index]
    assert scheme.tuned == [
        "queue, mine: most from 10 to 320 ms, in equal ratios, n from 2 to 12, in equal steps"
    ]
    along = made("marker", {"depth": "1/2 T as time"}, ("depth", "duration", None))
    assert along.filled(along.flows, place, 0.1) == {"kind": "mine", "depth": "50 ms"}
    assert along.tuned[0] == "marker of flows with a contract, mine: depth = 1/2 T as time"
    assert along.tuned[1].startswith("queue, rio: limit = 4 T, in.min_th = 0.667 T")


@pytest.mark.parametrize(
    ("kind", "tune", "said"),
    [
        ("aqm", None, 'write in the class: tune = {"most": "31.6..316 ms log"} or, where only its limit'),
        ("marker", None, 'write in the class: tune = {"most": "31.6..316 ms log"} or tune = {} where'),
        ("aqm", {}, "tune is empty, and every scheme is tuned"),
        (
            "aqm",
            {"mots": "1..2"},
            'tune names "mots", which is nothing that could be tuned: choose from most, limit',
        ),
        ("marker", {"limit": "1 T"}, 'tune names "limit"'),
        ("aqm", {"most": "much"}, "is no range: write one such as"),
        ("aqm", {"most": "0..2 log"}, "is no range"),
        ("aqm", "most", "tune is no dictionary"),
    ],
)
def test_a_class_that_does_not_say_what_is_tuned_is_asked(kind: str, tune: object, said: str) -> None:
    with pytest.raises(TuneError, match=re.escape(said)):
        made(kind, tune, ("most", "duration", '"100 ms"'))


def test_compare_asks_what_is_tuned_and_names_it_in_its_method(folder: Path) -> None:
    text = """import inprofile
from inprofile.own import Duration
class Slow(inprofile.Aqm):
    "Drops what has waited for too long."
    most: Duration = inprofile.parameter(0.1, least=0.001)
    def depart(self, now, packet, waited, queue, rng):
        return "drop" if waited > self.most else "send"
"""
    (folder / "slow.py").write_text(text)
    command = ["compare", "own.toml", "--quick", "--schemes", "drop-tail", "--mechanism", "slow.py"]
    asked = CliRunner().invoke(app, [*command, "--plan"])
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "slow.py:3: Slow: it does not say which of its parameters (most) is tuned" in asked.stderr
    assert 'tune = {"most": "31.6..316 ms log"}' in asked.stderr
    (folder / "slow.py").write_text(
        text.replace("    most:", '    tune = {"most": "1 T as time"}\n    most:')
    )
    assert CliRunner().invoke(app, [*command, "--set", "duration=8 s", "--jobs", "1"]).exit_code == 0
    page = (folder / "reports/compare/index.html").read_text("utf-8")
    assert "<li><b>Drop-tail</b>: queue, drop_tail: limit = 1 T</li>" in page
    assert "<li><b>slow</b>: queue, slow: most = 1 T as time</li>" in page


def test_compare_gives_the_setting_that_keeps_contracts_best_and_leaves_most(folder: Path) -> None:
    made = plan(["own.toml"], quick=True, schemes=["drop-tail", "mine.toml"])
    (study,) = made.studies
    seeds = tuple(range(1, study.seeds + 1))
    points = {}
    for scheme, kept in (("drop-tail", (0.5, 0.6, 0.7)), ("deep", (0.9, 1.0, 1.0))):
        for t, k, left in zip(study.lengths, kept, (0.3, 0.2, 0.25), strict=True):
            figures = {
                "delay": t,
                "kept": k,
                "met": k,
                "fairness": 0.9,
                "utilisation": 1.0,
                "best_effort": left,
            }
            points[scheme, t] = Measures(seeds, {n: np.full(len(seeds), x) for n, x in figures.items()}, {})
    digests = dict.fromkeys(points, "")
    one = outcome(study, [s.id for s in made.schemes], points, digests)
    found = Comparison(made, [one])
    best, other = found.tuned(one)
    assert (best.scheme.id, best.length) == ("deep", study.lengths[2]), "as much kept, and more left"
    assert other.length == study.lengths[2]
    assert 'marker = { kind = "token_bucket", depth = "37500 B"' in best.toml
    scenario = load("own.toml")
    expected = scenario.with_(best.scheme.values(Place.of(scenario), best.length))
    assert parse(best.experiment).canonical == expected.canonical
    told = found.to_json()["studies"][0]
    assert [s["scheme"] for s in told["settings"]] == ["deep", "drop-tail"]
    assert set(told["price"]["order"]) == {"drop-tail", "deep"}
    assert "best_effort" not in told["winners"], "the price has a ranking of its own"


def test_the_worked_cases_can_be_asked() -> None:
    from inprofile.studies.plan import read_question

    for name, sold in (("isp", 30), ("university", 6), ("pppoe", 200)):
        question = read_question(CASES / f"{name}.toml")
        groups = [g for g in question.scenario.check().effective["flows"] if g["contract"]]
        assert sum(g["count"] for g in groups) == sold
    assert tomllib.loads((CASES / "policers.toml").read_text("utf-8"))["schemes"]


@pytest.mark.parametrize("rate", ["64 kbit/s", "1 Mbit/s", "3 Mbit/s", "1 Gbit/s"])
def test_every_scheme_fits_a_link_of_any_rate_at_every_t(rate: str) -> None:
    scenario = inprofile.parse(inprofile.STARTER).with_({"links.bottleneck.rate": rate})
    place = Place.of(scenario)
    for scheme in choose():
        for length in lengths(place):
            scenario.with_(scheme.values(place, length)).check()


def test_codel_keeps_its_interval_where_the_target_is_far_below() -> None:
    place = Place.of(inprofile.parse(inprofile.STARTER).with_({"links.bottleneck.rate": "10 Mbit/s"}))
    for scheme in choose(["codel", "fq-codel"]):
        intervals = [scheme.filled(scheme.queue, place, t)["interval"] for t in (0.006, 0.192, 0.64)]
        assert intervals == ["100 ms", "100 ms", "213.333 ms"], scheme.id


def test_the_short_answer_counts_for_every_scheme_that_it_names() -> None:
    class Told:
        outcomes = ()

        def tally(self) -> list[tuple[str, int, int, int]]:
            return [(name, 4, 4, 3) for name in "abcde"] + [("f", 4, 4, 1)]

        def title(self, scheme: str) -> str:
            return scheme.upper()

    (line,) = in_short(cast(Comparison, Told()))
    assert line.startswith("A, B, C, D and E are most often at the top")
    assert line.endswith("A 3 of 4; B 3 of 4; C 3 of 4; D 3 of 4; E 3 of 4.")
