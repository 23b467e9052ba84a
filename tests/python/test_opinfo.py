"""A part of PyTorch's own database of ops through torch.compile; opinfo.py runs all of it."""

import pytest

pytest.importorskip("torch")
import opinfo  # noqa: E402

ENTRIES = sorted(opinfo.op_db, key=opinfo.name_of)[::6]


@pytest.mark.parametrize("entry", ENTRIES, ids=opinfo.name_of)
def test_an_entry_agrees_with_eager(entry):
    found = opinfo.check(entry, samples=2)  # the first through Dynamo, the second without it
    assert found.kind not in ("wrong", "failed"), found.message


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.supports_autograd][::3], ids=opinfo.name_of)
def test_the_gradients_of_an_entry_agree_with_eager(entry):
    found = opinfo.check(entry, samples=1, gradients=True)
    assert found.kind not in ("wrong", "failed"), found.message
