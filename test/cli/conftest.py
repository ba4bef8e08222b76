"""Settings of pytest for the CLI tests. `pytest test/cli -n auto` runs all in parallel.

At the end: a line for each reason to skip, and `N passed, N failed, N skipped`.
"""

import collections
import os
import pathlib

import pytest

# Modules with the longest tests run first, so that all processes end at about the same time.
LONGEST_FIRST = ["test_workflows", "test_memory", "test_benches"]


def pytest_addoption(parser):
    parser.addoption("--build-dir", default=".", help="where samtools was built [.]")


def pytest_configure(config):
    """harness.py reads the directory when it is imported; workers inherit the environment."""
    build = pathlib.Path(config.getoption("--build-dir")).resolve()
    for program in ("samtools", "samtools-rocksort"):
        if not os.access(build / program, os.X_OK):
            raise pytest.UsageError(f"no {program} in {build}: build it first")
    os.environ["ROCKSORT_BUILD_DIR"] = str(build)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (LONGEST_FIRST + [item.path.stem]).index(item.path.stem))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """`-n auto` is one process more than there are cores: most tests wait for the disk."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    """Prints nothing for a passed subtest, which newer versions of pytest report."""
    return ("", "", "") if report.passed and hasattr(report, "context") else None


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """Prints the reasons to skip and the counts after all that pytest prints. A test with several
    failed subtests counts as one failure."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(session.config, "workerinput"):
        tests = {kind: {report.nodeid for report in reporter.stats.get(kind, ())}
                 for kind in ("passed", "failed", "error", "skipped")}
        failed = tests["failed"] | tests["error"]
        reasons = collections.Counter(report.longrepr[2].removeprefix("Skipped: ")
                                      for report in reporter.stats.get("skipped", ()))
        for reason, count in reasons.most_common():
            reporter.write_line(f"skipped {count}: {reason}")
        reporter.write_line(f"{len(tests['passed'] - failed)} passed, {len(failed)} failed, "
                            f"{len(tests['skipped'] - failed)} skipped")
