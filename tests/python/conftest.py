"""Leaves the numbers of cases that passed and failed, and a line for each that was skipped, in the file of --counts."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--counts", help="a file for the numbers of cases")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if not (path := config.getoption("--counts")):
        return
    stats = terminalreporter.stats
    with open(path, "w", encoding="utf-8") as file:
        print(len(stats.get("passed", [])) + len(stats.get("xfailed", [])),
              len(stats.get("failed", [])) + len(stats.get("error", [])), file=file)
        for report in stats.get("skipped", []):
            print(f"{report.nodeid}: {report.longrepr[2].removeprefix('Skipped: ')}", file=file)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TENON_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
