"""The notebooks of docs/notebooks run, and are stored without what depends on when they ran."""

import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("torch")

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    nbclient.NotebookClient(notebook, timeout=1800, startup_timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any("text/html" in output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
