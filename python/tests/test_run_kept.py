"""`run --out`: an interrupted run keeps its finished seeds and goes on from there."""

from pathlib import Path

import pytest

from inprofile import FolderInUse
from inprofile.run.ledger import InterruptedRun, run_kept
from test_sweeps import BASE, checksums


def test_a_run_that_was_interrupted_keeps_its_runs_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitored = BASE.with_({"monitors": [{"queue": "bottleneck", "every": "100 ms"}]})
    monitored.run(seeds=40, trace=True).write(tmp_path / "whole")
    for most in (15, 30):

        def stop(finished: int, runs: int, most: int = most) -> None:
            if finished >= most:
                raise KeyboardInterrupt

        with pytest.raises(InterruptedRun, match=r"after \d+ of 40 runs. They are kept in .*r\.unfinished"):
            run_kept(monitored, 40, tmp_path / "r", trace=True, progress=stop)
    assert not (tmp_path / "r").exists()
    with pytest.raises(FolderInUse, match="another experiment"):
        run_kept(BASE, 40, tmp_path / "r", trace=True)
    told: list[int] = []
    result = run_kept(
        monitored, 40, tmp_path / "r", trace=True, progress=lambda finished, _: told.append(finished)
    )
    assert told[0] >= 30
    assert result.seeds == tuple(range(1, 41))
    assert checksums(tmp_path / "r") == checksums(tmp_path / "whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "whole"]


def test_what_is_kept_serves_other_seeds_too(tmp_path: Path) -> None:
    def stop(finished: int, runs: int) -> None:
        if finished >= 4:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRun):
        run_kept(BASE, 8, tmp_path / "r", progress=stop, jobs=1)
    run_kept(BASE, range(2, 4), tmp_path / "r")
    BASE.run(seeds=range(2, 4)).write(tmp_path / "whole")
    assert checksums(tmp_path / "r") == checksums(tmp_path / "whole")
