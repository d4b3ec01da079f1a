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


def test_a_fit_is_shown_on_a_terminal(terminal):
    """A log stays short, and a cluster is silent."""
    assert fit_options(on_cluster=False) == {"progress": terminal}
    assert fit_options(on_cluster=True) == {"progress": False}


def test_the_end_of_a_fit(model, capsys):
    """One line, with the likelihood that the summary has."""
    told(model, 0.0)
    text = capsys.readouterr().out
    assert text.startswith("Fitted in")
    assert f"log-likelihood {model.log_likelihood:.2f}, without priors." in text


@pytest.mark.parametrize("on_cluster", [False, True])
def test_blocks(terminal, capsys, on_cluster, monkeypatch):
    """A bar is for a terminal, and for work in this process."""
    monkeypatch.setattr("xcopula.cli.progress.SHORTEST", 0.0)
    with watched(on_cluster=on_cluster):
        da.ones(4, chunks=1).compute()
    assert ("100%" in capsys.readouterr().err) == (terminal and not on_cluster)
