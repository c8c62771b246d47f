"""`python -I -S forked_client.py SOCKET MODULE ARGUMENTS…` represents the process of `python -m MODULE ARGUMENTS…` that
is forked by the interpreter at SOCKET: it passes on its standard streams, environment, folder and signals, and returns
the exit status.

It has few imports, so it starts in some hundredths of a second.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _answer(control: socket.socket, asked: object, descriptors: tuple[int, ...] = ()) -> int:
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    control.sendmsg([json.dumps(asked).encode()], passed)
    return int(control.recv(64))


def _main() -> int:
    address, module, *arguments = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    # The interpreter kills processes whose connection closes, so none outlives this process.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.connect(address)
        asked = {
            "module": module,
            "arguments": arguments,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": os.umask(0),
        }
        pid = _answer(control, asked, (0, 1, 2))
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        select.select([os.pidfd_open(pid)], [], [])
        return _answer(control, {"ended": pid})


if __name__ == "__main__":
    status = _main()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
