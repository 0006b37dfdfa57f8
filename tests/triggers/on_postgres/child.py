"""Run the trigger loop in a process of its own, for tests that kill it.

python -m tests.triggers.on_postgres.child DSN
"""

from __future__ import annotations

import signal
import sys

from tests.triggers.on_postgres.support import TableLauncher, host_of

from penstock.triggers.host.loop import TriggerLoop
from penstock.triggers.wake.on_postgres import Wake


def main(dsn: str) -> None:
    loop = TriggerLoop(host_of(dsn, TableLauncher()), Wake(dsn))
    signal.signal(signal.SIGTERM, lambda *_: loop.stop())
    loop.run()


if __name__ == "__main__":
    main(sys.argv[1])
