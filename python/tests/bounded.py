"""Run a command with bounds on time and address space: `bounded.py SECONDS ADDRESSES RESULT COMMAND…`.

Writes exit code and peak memory (KiB) into RESULT as JSON. A small process of its own: the kernel counts to
a child's peak what its parent held when it was made, and a bound on addresses would hold there already.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path


def main(seconds: int, addresses: int, result: Path, command: list[str]) -> None:
    """Run `command` and tell how it ended."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=bounded)
    alarm = threading.Timer(seconds, process.kill)
    alarm.start()
    _, status, used = os.wait4(process.pid, 0)
    alarm.cancel()
    result.write_text(json.dumps({"code": os.waitstatus_to_exitcode(status), "peak": used.ru_maxrss}))
    process.returncode = 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
