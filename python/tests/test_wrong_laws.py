"""The list of wrong laws: each is of a law that is in the code, and told from the others of its round."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def wrong_laws() -> ModuleType:
    path = Path(__file__).parents[2] / "validation" / "wrong_laws.py"
    spec = importlib.util.spec_from_file_location("wrong_laws", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wrong_laws"] = module
    spec.loader.exec_module(module)
    return module


def test_every_one_has_its_place_and_every_paper_has_some(wrong_laws: ModuleType) -> None:
    found = wrong_laws.laws()
    ids = [law.id for law in found]
    assert len(ids) == len(set(ids))
    assert {law.id[0] for law in found} == set("ABCDE")


def test_one_that_has_no_place_is_refused(
    wrong_laws: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = wrong_laws.LAWS.read_text("utf-8").replace("tpr_max * (lambda_in / all)", "tpr_max * lambda", 1)
    (tmp_path / "laws.toml").write_text(text, "utf-8")
    monkeypatch.setattr(wrong_laws, "LAWS", tmp_path / "laws.toml")
    with pytest.raises(
        ValueError, match=r"A6: its right law occurs 0 times in crates/core/src/marker/ard\.rs"
    ):
        wrong_laws.laws()


def test_those_of_a_round_are_of_different_files_and_tests(wrong_laws: ModuleType) -> None:
    found = wrong_laws.laws()
    made = wrong_laws.rounds(found)
    assert sorted(law.id for turn in made for law in turn) == sorted(law.id for law in found)
    for turn in made:
        assert len({law.file for law in turn}) == len(turn)
        for law in turn:
            assert not any(other.tests.startswith(law.tests) for other in turn if other is not law)


def test_an_unknown_one_is_refused(wrong_laws: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wrong_laws.main(["--only", "A1,Z9"])
    assert "no such wrong law: Z9; there are A1, A2" in capsys.readouterr().err
