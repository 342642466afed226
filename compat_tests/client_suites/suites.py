"""The suites of clients that are run on RabbitMQ and on the broker: one row for each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["INSIDE", "SUITES", "Suite"]

INSIDE = Path(__file__).with_name("inside")
"""What the interpreter of a suite loads."""

_PYTEST = ("pytest==9.2.0", "pytest-timeout==2.4.0")
_RERUNS = "pytest-rerunfailures==16.7"
_TYPING_EXTENSIONS = "typing-extensions==4.16.0"
_AIOMISC = ("aiomisc==18.0.37", "aiomisc-pytest==2.0.0")


@dataclass(frozen=True, eq=False)
class Suite:
    """A suite, where it comes from, and what of it is run.

    `package` is the client on PyPI, whose source distribution has the suite unless `debian` is the path of a
    source archive below Debian's pool. `requirements` are installed beside the client, in a virtual
    environment of the suite. `plugins` are loaded by pytest and no others.

    With `git`, the suite is in a repository, of which a tag is fetched.

    With `npm`, the package is one of npm that has the suite and needs no others. Node.js runs it.
    """

    name: str
    package: str
    version: str
    tests: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """`{host}` and `{port}` stand for the address of the broker."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons by what is not run: a file, or the id of a test or of a class of tests."""
    not_matching: tuple[str, str] | None = None
    """A part of ids that are not run either, and the reason."""
    debian: str | None = None
    git: tuple[str, str] | None = None
    """The address of a repository, and a tag."""
    npm: bool = False
    least_python: tuple[int, int] = (3, 10)
    slow: tuple[str, ...] = ()
    """What the long tests leave to the command, as the keys of `left_out`."""
    services: bool = False
    """Whether it needs the HTTP API and TLS, too. Its certificates are in `.ci/certs`; see `sources`."""
    in_loops: bool = False
    """Whether each test has an event loop of aiomisc, where the broker can run, too."""
    short: bool = True
    """Whether the long tests run it at all; the command runs every one."""
    seconds: float = 900
    """The limit for one run."""

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> str:
        """The name of its folder in the cache."""
        return f"{self.name}-{self.version}"

    @property
    def origin(self) -> str:
        """Where the source comes from."""
        if self.git is not None:
            return "GitHub"
        return "npm" if self.npm else "PyPI" if self.debian is None else "Debian's archive"

    def all_requirements(self) -> list[str]:
        of_the_broker = (_TYPING_EXTENSIONS,) if self.in_loops else ()
        return [f"{self.package}=={self.version}", *_PYTEST, *self.requirements, *of_the_broker]

    def arguments(self, only: Sequence[str] = (), *, whole: bool = True, in_loops: bool = False) -> list[str]:
        """Those of Python or Node.js, to run some tests, the whole suite, or the suite without what is slow.

        Node.js runs the whole files of the tests.
        """
        if self.npm:
            options = ("--require", f"{INSIDE / 'redirect.cjs'}", "--test")
            reporter = f"--test-reporter={INSIDE / 'suite_outcomes.mjs'}"
            return [
                *options,
                reporter,
                *dict.fromkeys(test.partition("::")[0] for test in only or self.tests),
            ]
        plugins = ["suite_outcomes", "pytest_timeout", *self.plugins, *(["suite_broker"] if in_loops else ())]
        chosen = [] if self.not_matching is None else ["-k", f"not {self.not_matching[0]}"]
        for each in (*self.left_out, *(() if whole else self.slow)):
            chosen += ["--deselect" if "::" in each else "--ignore", each]
        return [
            *("-m", "pytest", "-p", "no:cacheprovider"),
            *(part for each in plugins for part in ("-p", each)),
            *("-q", "--no-header", "--timeout=60", "-o", "log_cli=false"),
            *self.options,
            *chosen,
            *(only or self.tests),
        ]

    def obstacle(self) -> str | None:
        """Why this machine cannot run it."""
        if self.npm and shutil.which("npm") is None:
            return f"the suite of {self} needs npm"
        if sys.version_info[:2] < self.least_python:
            return f"{self.package} {self.version} needs Python {'.'.join(map(str, self.least_python))}"
        return None


_NO_TLS = "over TLS: neither target listens for it here, and the AMQP in it is that of the other tests"
_ADDRESS = {"RABBITMQ_HOST": "{host}", "RABBITMQ_5672_TCP": "{port}"}

SUITES = {
    each.name: each
    for each in (
        # First those that wait more than they work: the others run meanwhile.
        Suite(
            "py-amqp",
            "amqp",
            "5.4.2",
            ("t/integration/test_rmq.py",),
            requirements=(_RERUNS,),
            plugins=("pytest_rerunfailures",),
            environment=_ADDRESS,
            not_matching=("tls", "the certificates are not in the source distribution"),
        ),
        Suite(
            "kombu",
            "kombu",
            "5.7.0",
            ("t/integration/test_py_amqp.py",),
            requirements=("amqp==5.4.2", _RERUNS),
            plugins=("pytest_rerunfailures",),
            environment=_ADDRESS,
        ),
        Suite(
            "amqplib",
            "amqplib",
            "2.1.0",
            ("test/callback_api.test.js", "test/channel_api.test.js", "test/connect.test.js"),
            npm=True,
            left_out={
                "test/{bitset,channel,codec,connection,data,frame,mux,recovery,uri_spec}.test.js": "no broker"
            },
        ),
        Suite(
            "pika",
            "pika",
            "1.3.2",
            ("tests/acceptance",),
            # Its source distributions have no tests.
            debian="python-pika/python-pika_1.3.2.orig.tar.gz",
            requirements=("tornado==6.6.1", "gevent==26.9.0"),
            options=("-o", "python_files=*test*.py"),
            left_out={
                "tests/acceptance/io_services_tests.py": "has no broker, and looks up names of the internet",
                "tests/acceptance/twisted_adapter_tests.py": "needs nose, which Python 3.10 cannot run",
            },
        ),
        Suite(
            "aiormq",
            "aiormq",
            "7.2.4",
            ("tests",),
            requirements=_AIOMISC,
            plugins=("suite_docker", "aiomisc_pytest"),
            left_out={
                "tests/test_connection.py::test_ssl_context": _NO_TLS,
                "tests/test_connection.py::test_ssl_verification_fails_without_trusted_ca": _NO_TLS,
            },
            slow=(
                "tests/test_connection.py::test_no_free_channels",
                "tests/test_connection.py::test_connection_close_stairway",
                "tests/test_connection.py::test_closing_waiter_cancelled_before_connection_loss",
            ),
            not_matching=(
                "(amqps or named)",
                "the same over TLS, which neither target has here, and with a name of the connection",
            ),
            least_python=(3, 11),
            in_loops=True,
        ),
        Suite(
            "aio-pika",
            "aio-pika",
            "10.2.1",
            ("tests",),
            requirements=("shortuuid==1.0.13", "aiormq==7.2.4", *_AIOMISC),
            plugins=("suite_docker", "aiomisc_pytest"),
            left_out={
                "tests/test_amqps.py": _NO_TLS,
                "tests/test_robust_recovery.py": "restarts containers of Docker",
            },
            least_python=(3, 11),
            in_loops=True,
            # A thousand tests, each with a connection or two: a minute of processor time on each target.
            short=False,
            seconds=1800,
        ),
        Suite(
            "rabbitmq-amqp-python-client",
            "rabbitmq-amqp-python-client",
            "0.6.0",
            ("tests",),
            # Its source distributions have no tests.
            git=("https://github.com/rabbitmq/rabbitmq-amqp-python-client", "v0.6.0"),
            requirements=(
                "python-qpid-proton==0.40.0",
                "pytest-asyncio==1.5.0",
                "pytest-xdist==3.8.0",
                "pika==1.4.4",
                "PyJWT==2.15.1",
                "cryptography==50.0.2",
                "requests==2.34.2",
            ),
            plugins=("pytest_asyncio.plugin", "xdist.plugin"),
            # Two tests publish 10 000 messages and wait for each outcome. A crash of Proton ends one test.
            options=("--timeout=120", "-n", "1", "--max-worker-restart", "100"),
            not_matching=(
                "(oauth or requeue_with_invalid_annotations)",
                "tokens need an OAuth plugin; and in a handler that raises, it depends on the speed of the "
                "broker whether the client is of use to the tests that follow",
            ),
            services=True,
            short=False,
            seconds=1800,
        ),
        Suite(
            "celery",
            "celery",
            "5.7.0",
            ("t/integration/test_tasks.py", "t/integration/test_worker.py", "t/integration/test_inspect.py"),
            requirements=(
                "kombu==5.7.0",
                "amqp==5.4.2",
                "Django==5.2",
                "pydantic==2.14.3",
                "redis==8.1.0",
                "pytest-order==1.5.0",
                "pytest-subtests==0.15.0",
                _RERUNS,
            ),
            plugins=("celery.contrib.pytest", "pytest_rerunfailures", "pytest_order"),
            # Results come over AMQP, not from a Redis.
            environment={"TEST_BROKER": "pyamqp://guest:guest@{host}:{port}//", "TEST_BACKEND": "rpc://"},
            left_out={
                "t/smoke": "starts its brokers and workers in containers of Docker",
                "t/integration/test_canvas.py": "chords, which results over AMQP do not support",
            },
            short=False,
        ),
    )
}
