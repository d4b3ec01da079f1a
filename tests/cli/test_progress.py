"""What a command says while it works."""

from __future__ import annotations

import dask.array as da
import pytest

from xcopula.cli.progress import fit_options, told, watched


@pytest.fixture(params=[False, True], ids=["log", "terminal"])
def terminal(request, monkeypatch):
    """Write to a log, then to a terminal."""
    monkeypatch.setattr("xcopula.cli.progress._on_terminal", lambda: request.param)
    return request.param


def test_iterations(terminal, capsys):
    """A terminal shows each on one line that changes; a log every tenth on a line of its own."""
    show = fit_options(on_cluster=False)["callback"]
    for k in range(1, 21):
        show(k, -10.0 - k, None)
    text = capsys.readouterr().out
    assert text.count("iteration") == (20 if terminal else 2)
    assert text.count("\r") == (20 if terminal else 0)
    assert text.count("\n") == (0 if terminal else 2)


def test_a_cluster_is_silent():
    """It would call a copy."""
    assert fit_options(on_cluster=True) == {}


def test_the_end_of_a_fit(terminal, model, capsys):
    """The last line is written over on a terminal."""
    told(model, 0.0)
    text = capsys.readouterr().out
    assert text.startswith("\rFitted in" if terminal else "Fitted in")
    assert f"log-likelihood {model.log_likelihood:.2f}, without priors." in text


@pytest.mark.parametrize("on_cluster", [False, True])
def test_blocks(terminal, capsys, on_cluster, monkeypatch):
    """A bar is for a terminal, and for work in this process."""
    monkeypatch.setattr("xcopula.cli.progress.SHORTEST", 0.0)
    with watched(on_cluster=on_cluster):
        da.ones(4, chunks=1).compute()
    assert ("100%" in capsys.readouterr().out) == (terminal and not on_cluster)
