"""A running inprofiled between two veth pairs, in a network namespace of its own, with customers who send.

    [h0]══[lan0] inprofiled [wan0]══[h1]

    python street.py PROGRAM FOLDER

Started by itself in new namespaces (`unshare`). Packets of alice, bob and carol go in at h0 until standard
input ends; the control socket is FOLDER/control.sock. `kill` on standard input kills the router with
SIGKILL, `start` starts it again.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

PORT = 9617
SETTINGS = """inside = "lan0"
outside = "wan0"
fix_offloads = true
[metrics]
listen = "127.0.0.1:{port}"
[control]
socket = "{folder}/control.sock"
[upstream]
rate = "4 Mbit/s"
[upstream.queue]
aqm = "rio"
limit = "60 packets"
in = {{ min_th = "30 packets", max_th = "50 packets", max_p = 0.02 }}
out = {{ min_th = "5 packets", max_th = "30 packets", max_p = 0.1 }}
[[upstream.customers]]
name = "alice"
prefix = "10.0.1.0/24"
contract = "2 Mbit/s"
marker = {{ kind = "token_bucket", depth = "30 kB" }}
[[upstream.customers]]
name = "bob"
prefix = "10.0.2.0/24"
contract = "1 Mbit/s"
marker = {{ kind = "trtcm", cir = "1 Mbit/s", cbs = "15 kB", pir = "1.5 Mbit/s", pbs = "15 kB" }}
[[upstream.customers]]
name = "carol"
prefix = "10.0.3.0/24"
contract = "500 kbit/s"
marker = {{ kind = "token_bucket", depth = "30 kB" }}
"""
# What each customer sends, in bit/s; carol keeps within her contract.
SENT = {1: 2.6e6, 2: 2.0e6, 3: 0.4e6}
SIZE = 1000


def frame(customer: int) -> bytes:
    """An Ethernet frame with a UDP datagram of a customer's."""
    source, sink = bytes([10, 0, customer, 1]), bytes([192, 0, 2, 1])
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, SIZE, 0, 0, 64, 17, 0, source, sink)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    head = head[:10] + struct.pack("!H", total) + head[12:]
    udp = struct.pack("!HHHH", 1000 + customer, 9, SIZE - 20, 0)
    return bytes(12) + b"\x08\x00" + head + udp + bytes(SIZE - 28)


def started(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """The router, from when its control socket is there."""
    made = subprocess.Popen([program, "run", str(folder / "router.toml")], stderr=(folder / "log").open("ab"))
    for _ in range(1000):
        if made.poll() is not None:
            sys.exit(f"inprofiled ended: {(folder / 'log').read_text()[-600:]}")
        with socket.socket(socket.AF_UNIX) as asked:
            if asked.connect_ex(str(folder / "control.sock")) == 0:
                print("ready", flush=True)
                return made
        time.sleep(0.02)
    sys.exit("inprofiled does not answer")


def main(program: str, folder: Path) -> None:
    """Wire, router, traffic."""
    for line in (
        "link set lo up",
        "link add h0 type veth peer name lan0",
        "link add h1 type veth peer name wan0",
        *(f"link set {name} addrgenmode none up" for name in ("h0", "lan0", "h1", "wan0")),
    ):
        subprocess.run(["ip", *line.split()], check=True)
    (folder / "router.toml").write_text(SETTINGS.format(folder=folder, port=PORT))
    router: subprocess.Popen[bytes] | None = started(program, folder)
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind(("h0", 0))
    frames = {customer: frame(customer) for customer in SENT}
    began = time.monotonic()
    sent = dict.fromkeys(SENT, 0)
    while True:
        if select.select([0], [], [], 0.005)[0]:
            word = sys.stdin.readline().strip()
            if not word:
                break
            if word == "kill" and router is not None:
                router.send_signal(signal.SIGKILL)
                router.wait()
                router = None
                print("killed", flush=True)
            elif word == "start":
                router = started(program, folder)
        for customer, rate in SENT.items():
            due = int((time.monotonic() - began) * rate / 8 / SIZE)
            for _ in range(min(40, due - sent[customer])):
                out.send(frames[customer])
            sent[customer] = due
    if router is not None:
        router.terminate()
        router.wait(10)


if __name__ == "__main__":
    if sys.argv[1] != "--inside":
        rights = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        os.execvp(
            "unshare",
            ["unshare", *rights, "--net", "--mount", sys.executable, __file__, "--inside", *sys.argv[1:]],
        )
    main(sys.argv[2], Path(sys.argv[3]))
