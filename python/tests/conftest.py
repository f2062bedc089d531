"""What all tests need."""

import signal


def pytest_configure() -> None:
    """Programs that tests interrupt hear SIGINT, also where it was ignored from the start.

    A shell ignores it for what it starts in the background, and whoever is started after that inherits it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
