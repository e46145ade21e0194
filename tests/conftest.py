"""Fixtures for all tests: the data folder where there is one, and no network."""

from __future__ import annotations

import os
import socket
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
# Recorded traffic and schemas to test with. They are not part of the repository.
SHARED = ROOT.parent / "shared"

# How many examples a property is tried on. The gate tries the same ones each time, so
# that what passed once passes again; with a count given there are new ones each time.
EXAMPLES = os.environ.get("AEYE_EXAMPLES")
settings.register_profile(
    "aeye",
    max_examples=int(EXAMPLES or 50),
    derandomize=EXAMPLES is None,
    # A busy machine must not fail a test.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("aeye")

# Endings of environment variables that say whose models are asked, and with which key.
_OF_VENDORS = (
    "_ACCOUNT_ID",
    "_API_KEY",
    "_API_TOKEN",
    "_API_VERSION",
    "_BASE_URL",
    "_ENDPOINT",
)

_connect = socket.socket.connect


def _guarded(sock: socket.socket, address: object) -> object:
    host = address[0] if isinstance(address, tuple) else address
    if sock.family != getattr(socket, "AF_UNIX", None) and host not in (
        "127.0.0.1",
        "::1",
        "localhost",
    ):
        raise AssertionError(f"a test wants to talk to {host!r}")
    return _connect(sock, address)


@pytest.fixture(autouse=True, scope="session")
def _only_loopback():
    """No test talks to anything but this machine."""
    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", _guarded)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _no_keys():
    """No test sees the keys and model names of whoever runs it."""
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.endswith(_OF_VENDORS) or name in ("AEYE_MODEL", "HF_TOKEN"):
            patch.delenv(name)
    yield
    patch.undo()


@pytest.fixture
def program():
    """Give a module to run code in, as a script of its own would be run."""
    module = types.ModuleType("a_program")
    sys.modules[module.__name__] = module

    def run(code: str, name: str = "a_program", **given: Any) -> dict[str, Any]:
        module.__dict__.update(given)
        exec(compile(code, name, "exec", dont_inherit=True), module.__dict__)
        return module.__dict__

    yield run
    del sys.modules[module.__name__]
