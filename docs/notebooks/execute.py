"""Run a notebook from its first cell to its last; what a cell raises is the script's error.
usage: execute.py NOTEBOOK [HTML]   HTML: also write what it shows (needs nbconvert)"""
import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
pictures = sum("image/" in kind or "svg" in kind for cell in notebook.cells
               for output in cell.get("outputs", []) for kind in output.get("data", {}))
print(f"{sys.argv[1]}: {len(notebook.cells)} cells, {pictures} pictures")
if len(sys.argv) > 2:
    from nbconvert import HTMLExporter
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(HTMLExporter().from_notebook_node(notebook)[0])
