"""How soon a computing thread hands the interpreter to a waiting one."""

import sys

import pytest

from chatsite.server.serving import web_process


class Reached(Exception):
    pass


def test_web_processes_hand_over_the_interpreter_sooner_than_the_default(monkeypatch):
    before = sys.getswitchinterval()

    def load(*arguments, **options):
        raise Reached

    monkeypatch.setattr(web_process.uvicorn, "Config", load)
    for name in ("exit_with_parent", "raise_file_limit"):
        monkeypatch.setattr(web_process, name, lambda *arguments: None)
    options = {"--parent": "1", "--socket": "3", "--gate": "4", "--serving": "5"}
    monkeypatch.setattr(sys, "argv", ["web_process", *(word for pair in options.items() for word in pair)])
    try:
        with pytest.raises(Reached):
            web_process.main()
        assert sys.getswitchinterval() < before / 5
    finally:
        sys.setswitchinterval(before)
