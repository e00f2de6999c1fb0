"""Run a notebook from its first cell to its last; what a cell raises is the script's error, and so is a cell that is tagged
"picture" and shows none.
usage: execute.py NOTEBOOK [FOLDER]   FOLDER: also leave its pictures there"""
import base64
import pathlib
import sys

import nbformat
from nbclient import NotebookClient

path = pathlib.Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
expected = shown = 0
for number, cell in enumerate(notebook.cells):
    pictures = [(kind, data) for output in cell.get("outputs", []) for kind, data in output.get("data", {}).items()
                if kind in ("image/svg+xml", "image/png")]
    if "picture" in cell.metadata.get("tags", []):
        expected += 1
        if not any(len(data) > 2000 for _, data in pictures):
            sys.exit(f"{path}: cell {number} shows no picture:\n{cell.source}")
    shown += len(pictures)
    for i, (kind, data) in enumerate(pictures if len(sys.argv) > 2 else []):
        file = pathlib.Path(sys.argv[2]) / f"{path.stem}-{number}{chr(97 + i)}.{'svg' if 'svg' in kind else 'png'}"
        file.write_bytes(base64.b64decode(data) if kind == "image/png" else data.encode())
if not expected:
    sys.exit(f"{path}: no cell is tagged as one with a picture")
print(f"{path}: {len(notebook.cells)} cells, {shown} pictures")
