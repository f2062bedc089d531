"""Plans for customers from a CSV file, and plans of fast links, made on a smaller network."""

from __future__ import annotations

import random
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inprofile import Scenario, parse
from inprofile.cli import app
from inprofile.metrics.quantity import bits_per_second
from inprofile.run.pool import Local
from inprofile.studies.plan import Question, contracts, plan
from inprofile.studies.plan.contracts import CHOSEN, expected_runs
from inprofile.studies.plan.customers import CustomerError, parse_customers, read_customers
from inprofile.studies.plan.files import router_text
from inprofile.studies.plan.question import question_of
from inprofile.studies.plan.search import (
    LEVEL,
    SAFEST,
    Confirmed,
    Judged,
    Tried,
    confirmation,
    measured,
    runs_of,
)
from inprofile.studies.plan.store import Bench, RunFigures
from inprofile.studies.plan.variants import scale_of, smaller
from inprofile.studies.plan.words import as_text
from made import customers, uplink

FILE = uplink(
    "Two plans",
    (4, 12),
    "40 Mbit/s",
    "drop_tail 400 packets",
    customers("gold", 5, "15..60 ms", contract="1 Mbit/s"),
    customers("home", 5, "15..60 ms", contract="200 kbit/s"),
    customers("free", 3, "15..60 ms"),
    '[plan]\nschemes = ["rio", "srtcm-wred"]\n',
    tcp='{ profile = "linux" }',
)
CUSTOMERS = """\
name,prefix,vlan,session,contract,plan
alice,10.0.1.0/24 2001:db8:1::/48,,,2 Mbit/s,gold
bob,10.0.2.0/24,100 100.7,,2 Mbit/s,gold
carol,,,7,,home
"""


def test_the_experiment_has_the_customers_of_the_file() -> None:
    found = parse_customers(CUSTOMERS.encode())
    question = question_of(parse(FILE), None, found)
    groups = {g["name"]: g for g in question.scenario.check().effective["flows"]}
    assert {name: g["count"] for name, g in groups.items()} == {"gold": 2, "home": 1, "free": 3}
    assert (groups["gold"]["contract"], groups["home"]["contract"]) == ("2 Mbit/s", "200 kbit/s")
    assert question.bought == 4.2e6


@pytest.mark.parametrize("scheme", [0, 1])
def test_the_routers_file_names_them_and_has_their_plans(scheme: int) -> None:
    question = question_of(parse(FILE), None, parse_customers(CUSTOMERS.encode()))
    tried = Tried(question.schemes[scheme], {"T": 0.02}, RunFigures((), {}, ()), Judged(0, 0, 0, 0, 0))
    text = router_text(question, tried)
    rest = ', { name = "everybody-else", prefix = ["0.0.0.0/0", "::/0"], marker = '
    assert (f'customers = ["customers.csv"{rest}' in text) == (scheme == 1)
    assert ('customers = "customers.csv"' in text) == (scheme == 0)
    assert "[[upstream.customers]]" not in text
    assert [line for line in text.splitlines() if line.startswith("name = ")] == [
        'name = "gold"',
        'name = "home"',
    ]


def test_a_virtual_queue_is_written_for_the_datapath_in_the_kernel() -> None:
    """Which refuses a shaper's rate and a limit of what waits."""
    asked = parse(FILE).with_({"plan.schemes": ["kernel"]})
    question = question_of(asked, None, parse_customers(CUSTOMERS.encode()))
    [scheme] = question.schemes
    tried = Tried(scheme, {"T": 0.02}, RunFigures((), {}, ()), Judged(0, 0, 0, 0, 0))
    router = tomllib.loads(router_text(question, tried))
    assert router["datapath"] == "kernel"
    way = router["upstream"]
    assert "rate" not in way
    assert way["queue"]["aqm"] == "virtual_queue"
    assert "limit" not in way["queue"]
    assert way["queue"]["virtual_rate"] == f"{0.95 * bits_per_second(question.place.rate):.0f} bit/s"


def test_drawn_files_are_written_as_they_were_read(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311
    for _ in range(200):
        columns = [
            "name",
            "plan",
            *(c for c in ("prefix", "vlan", "session", "contract") if chance.random() < 0.8),
        ]
        if not {"prefix", "vlan", "session"} & set(columns):
            columns.append("vlan")
        chance.shuffle(columns)
        lines = [",".join(columns)]
        for i in range(chance.randrange(1, 30)):
            row = {
                "name": f"customer-{i}",
                "plan": chance.choice(["gold", "home"]),
                "prefix": f"10.{i}.0.0/16" + (f" 2001:db8:{i:x}::/48" if i % 3 else ""),
                "vlan": f"{i + 1}" + (f" {i + 1}.{i + 7}" if i % 2 else ""),
                "session": chance.choice(["", "1", "65535 2"])
                if "vlan" in columns or "prefix" in columns
                else f"{i + 1}",
                "contract": chance.choice(["", "4 Mbit/s", "500 kbit/s"]),
            }
            lines.append(",".join(row[c] for c in columns))
        data = "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / "c.csv").write_bytes(data)
        found = read_customers(tmp_path / "c.csv")
        assert found.text().encode() == data
        assert len(found.rows) == len(lines) - 1


BAD = [
    ("dave,10.0.1.0/24,,,,gold", 'prefix = "10.0.1.0/24": it is alice\'s already, line 2'),
    ("dave,10.0.2.0/24,100,,,gold", 'prefix = "10.0.2.0/24": it is bob\'s already, line 3'),
    ("dave,,,7,,home", 'session = "7": it is carol\'s already, line 4'),
    ("alice,10.0.9.0/24,,,,gold", 'name = "alice": line 2 has this name'),
    ("dave,10.0.9.0/24,,,4 Mbits,gold", 'contract = "4 Mbits": this is no rate'),
    ("dave,10.0.9.0/24,,,0 Mbit/s,gold", 'contract = "0 Mbit/s": this is no rate'),
    ("dave,10.0.9.7/24,,,,gold", "write 10.0.9.0/24"),
    ("dave,10.0.9/24,,,,gold", "not an address or prefix"),
    ("dave,,5000,,,gold", 'vlan = "5000": no such VLAN'),
    ("dave,,,0,,gold", 'session = "0": no such session'),
    ("dave,,,,,gold", "nothing says whose packets are dave's"),
    ("da ve,10.0.9.0/24,,,,gold", "this is no name"),
    ("dave,10.0.9.0/24,,gold", "4 fields, and the header has 6"),
    ("dave, 10.0.9.0/24,,,,gold", "spaces around it"),
    ('dave,"10.0.9.0/24",,,,gold', "a quotation mark"),
    ("", "the line is empty"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_every_bad_line_is_told_with_its_place(line: str, said: str) -> None:
    with pytest.raises(CustomerError) as told:
        parse_customers(f"{CUSTOMERS}{line}\n".encode(), "mine.csv")
    first, remedy = str(told.value).splitlines()[:2]
    assert first.startswith("mine.csv:5: ")
    assert said in f"{first} {remedy}"
    assert remedy.startswith("  ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (CUSTOMERS.replace("\n", "\r\n").encode(), "mine.csv:1: the line ends in CR LF"),
        (CUSTOMERS.encode("utf-8-sig"), "mine.csv:1: the file begins with a byte order mark"),
        (CUSTOMERS.replace(",", ";").encode(), "semicolons between the fields"),
        (CUSTOMERS.rstrip().encode(), "mine.csv:4:"),
        (CUSTOMERS.encode("utf-16"), "not UTF-8"),
        (CUSTOMERS.replace("session,", "sesion,").encode(), '"sesion": there is no such column'),
        (CUSTOMERS.replace("session,", "vlan,").encode(), '"vlan": the column is there twice'),
        (b"name,plan\na,gold\n", "nothing says whose packets are meant"),
        (b"", "the file is empty"),
    ],
)
def test_what_spreadsheets_add_and_disks_cut_off_is_told(data: bytes, said: str) -> None:
    with pytest.raises(CustomerError, match=said):
        parse_customers(data, "mine.csv")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",home", ",homes", ':4: plan = "homes": the experiment has no such group with a contract'),
        ("100.7,,2 Mbit/s", "100.7,,3 Mbit/s", ':3: contract = "3 Mbit/s": line 2 has 2 Mbit/s'),
    ],
)
def test_what_the_experiment_does_not_have_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(FILE, "utf-8")
    (tmp_path / "customers.csv").write_text(CUSTOMERS.replace(old, new), "utf-8")
    command = ["plan", str(tmp_path / "mine.toml"), "--customers", str(tmp_path / "customers.csv")]
    answer = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert answer.exit_code == 2, answer.output
    assert said in answer.stderr
    assert not (tmp_path / "out").exists()


LINES = Path(__file__).parents[2] / "crates/router/src/config/tests/customer_lines.txt"


@pytest.mark.parametrize(
    "line", [line for line in LINES.read_text("utf-8").splitlines() if not line.startswith("#")]
)
def test_lines_are_taken_and_refused_as_the_router_does(line: str) -> None:
    outcome, rows = line.split(" ", 1)
    data = "name,prefix,vlan,session,port,contract,plan\n" + rows.replace(" ; ", "\n") + "\n"
    if outcome == "ok":
        assert parse_customers(data.encode()).text() == data
    else:
        with pytest.raises(CustomerError, match=r"^customers\.csv:[23]: "):
            parse_customers(data.encode())


def test_a_number_of_five_thousand_digits_is_no_vlan() -> None:
    with pytest.raises(CustomerError, match="no such VLAN"):
        parse_customers(f"name,vlan,plan\na,{'9' * 5000},gold\n".encode())


def test_groups_of_customers_are_the_routers_alone() -> None:
    with pytest.raises(CustomerError, match="plan knows no groups of customers"):
        parse_customers(b"name,prefix,plan,group\na,10.0.0.0/24,gold,x\n")


def test_everybody_else_takes_neither_a_customers_name_nor_his_addresses() -> None:
    def rest(lines: str) -> str:
        customers = parse_customers(f"name,prefix,vlan,plan\n{lines}".encode())
        question = question_of(parse(FILE), None, customers)
        tried = Tried(question.schemes[1], {"T": 0.02}, RunFigures((), {}, ()), Judged(0, 0, 0, 0, 0))
        text = router_text(question, tried)
        return next(line for line in text.splitlines() if line.startswith("customers = "))

    assert 'name = "everybody-else", prefix = ["0.0.0.0/0", "::/0"]' in rest("a,0.0.0.0/0,7,gold\n")
    assert 'name = "everybody-else-2", prefix = ["::/0"]' in rest("everybody-else,0.0.0.0/0,,gold\n")
    assert rest("a,0.0.0.0/0 ::/0,,gold\n") == 'customers = "customers.csv"'


FAST = uplink(
    "Many customers",
    (4, 12),
    "40 Mbit/s",
    "drop_tail 400 packets",
    customers("gold", 16, "15..60 ms", start="uniform 0..1 s", contract="1 Mbit/s"),
    customers("free", 16, "20..40 ms", start="uniform 0..1 s"),
    '[plan]\nkept = "80 %"\nbest_effort = "5 %"\nschemes = ["drop-tail", "rio"]\n',
    tcp='{ profile = "linux" }',
)
SETTINGS = {
    "T": 0.03,
    "flows.depth": 0.3,
    "flows.rate": 1.05,
    "queue.out.*_th": 0.4,
    "queue.out.max_p": 0.1,
    "queue.w_q": 0.002,
}


@pytest.fixture(scope="module")
def question() -> Question:
    return question_of(parse(FAST))


def test_the_smaller_network_is_the_networks_with_fewer_flows(question: Question) -> None:
    small = smaller(question, 4)
    effective = small.scenario.check().effective
    assert [g["count"] for g in effective["flows"]] == [4, 4]
    assert small.scale == 4
    assert small.bought / small.link_rate == question.bought / question.link_rate
    link = next(one for one in effective["links"] if one["name"] == "uplink")
    assert (link["rate"], link["queue"]["limit"]["packets"]) == ("10 Mbit/s", 100)
    assert link["queue"]["limit"]["ms"] == 120, "the buffer in time"
    rtts = [float(x.split()[0]) for x in effective["flows"][0]["rtt"]]
    assert rtts == pytest.approx([21, 33, 45, 57]), "from all of the range"
    rio = next(s for s in question.schemes if s.id == "rio")
    queues = [
        next(one for one in q.put(rio, SETTINGS).check().effective["links"] if one["name"] == "uplink")[
            "queue"
        ]
        for q in (question, small)
    ]
    assert queues[0]["in"]["min_th"]["ms"] == pytest.approx(queues[1]["in"]["min_th"]["ms"]), "T is a time"
    assert queues[1]["w_q"] == pytest.approx(1 - (1 - 0.002) ** 4)


def test_the_smaller_network_says_what_the_network_says(question: Question) -> None:
    bench = Bench(question.scenario, None, Local(), lambda _: None)
    rio = next(s for s in question.schemes if s.id == "rio")
    seen = {}
    for name, changed in (("kept", {}), ("lower", {"flows.rate": 0.8}), ("long", {"T": 0.06})):
        settings = {**SETTINGS, **changed}
        pair = [
            runs_of(q, bench, [(q.put(rio, settings), range(1, 9))])[0]
            for q in (question, smaller(question, 4))
        ]
        whole, small = ({n: float(np.mean(r[n])) for n in r.values} for r in pair)
        assert small["best_effort"] == pytest.approx(whole["best_effort"], rel=0.12), name
        assert small["delay_mean"] == pytest.approx(whole["delay_mean"], rel=0.15), name
        # The least of four is above the least of sixteen: what is found is tested on the network itself.
        assert (
            whole["assurance_worst"] - 0.05 <= small["assurance_worst"] <= whole["assurance_worst"] + 0.2
        ), name
        seen[name] = (pair[0].kept, pair[1].kept)
    assert seen["kept"] == (8, 8)


def test_the_promise_is_shown_on_the_network_itself(question: Question) -> None:
    told: list[str] = []
    answer = plan(question, trials=6, scale=4, progress=told.append)
    chosen = answer.chosen
    assert chosen is not None
    assert chosen.level == SAFEST[len(answer.tested) - 1], "the safest has most of the level"
    assert sum(SAFEST) == pytest.approx(LEVEL)
    assert len(chosen.runs.seeds) == confirmation(0.8, chosen.level)[0]
    again = answer.experiment().run(seeds=chosen.runs.seeds[:2])
    assert again.contracts.by_run()["best_effort"].tolist() == chosen.runs["best_effort"].tolist()[:2]
    assert answer.experiment().check().effective["flows"][0]["count"] == 16
    assert len(chosen.tried.runs.seeds) == len(CHOSEN), "chosen by runs of the network"
    assert "settings are looked for on a network with one in 4 flows" in told
    assert [r.more for r in answer.room][:1] == [4]
    text = as_text(answer)
    assert "4 more in gold" in text
    assert "Runs of a network with one in 4 flows" in text
    assert answer.question.scenario.flows == 32


def test_only_long_runs_are_made_smaller_and_only_what_can_be(question: Question) -> None:
    assert scale_of(question) == 1, "a run is short"
    fast = {"links.uplink.rate": "1 Gbit/s"}

    def of(**values: object) -> int:
        named = {key.replace("__", "."): x for key, x in values.items()}
        return scale_of(question_of(Scenario(FAST).with_({**fast, **named})))

    assert of() == 4
    assert of(flows__gold__count=60, flows__free__count=20) == 5
    assert of(flows__free__count=3) == 1, "three flows have no quarter"
    assert of(links__uplink__capacity={"steps": [{"at": "2 s", "rate": "10 Mbit/s"}]}) == 1
    runs, packets = expected_runs(question_of(Scenario(FAST).with_(fast)))
    whole, all_packets = expected_runs(question_of(Scenario(FAST).with_(fast)), scale=1)
    assert packets < all_packets / 2
    assert runs > 0
    assert whole == 2 * 24 * 6 + 8 * 40 + 300 + 400


def test_what_fails_on_fresh_seeds_is_held_against_it_and_the_search_goes_on(
    question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first candidate fails whatever its runs say; there is another one that meets the goal."""
    rio = next(s for s in question.schemes if s.id == "rio")
    seen: list[Tried] = []

    def test(q: Question, bench: Bench, one: Tried, number: int, level: float, tell: object) -> Confirmed:
        seen.append(one)
        fresh = bench.run([(q.put(one.scheme, one.settings), range(1, 4))])[0]
        kept = fresh["all_contracts_kept"] * (number > 0)
        return Confirmed(
            one, replace(fresh, values={**fresh.values, "all_contracts_kept": kept}), 3, 0, number > 0
        )

    monkeypatch.setattr(contracts, "confirmed", test)
    bench = Bench(question.scenario, None, Local(), lambda _: None)
    small = smaller(question, 4)
    found = measured(small, bench, [(rio, SETTINGS)])
    told: list[str] = []
    tested, made = contracts._on_the_network(question, bench, found, told.append)
    assert [one.met for one in tested] == [False, True]
    assert seen[0].settings == SETTINGS
    assert seen[1].settings != SETTINGS
    assert any("steps from it" in line for line in told)
    failed = next(t for t in made if t.settings == SETTINGS)
    assert failed.runs.seeds == (*CHOSEN, 1, 2, 3), "the runs of the test are held against it"
