"""The calls on the pages of docs/book give what the commands above them print: the first of each page, all with
SCALEMODEL_BOOK=all."""
import os
import pathlib
import re
import shlex
import subprocess

import pytest
import scalemodel as sm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/book").glob("*.md"))


def without_effort(text):
    return re.sub(r"The search took [^\n]*|\S+ priced|\S+ ruled out", "", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_calls(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    program = os.environ["SCALEMODEL"]
    blocks = re.findall(r"```console\n\$ ((?:.*\\\n)*.*)\n(?:.*\n)*?```\n\n```python\n(.*)\n```", page.read_text())
    for command, call in blocks if os.environ.get("SCALEMODEL_BOOK") == "all" else blocks[:1]:
        words = shlex.split(command.replace("\\\n", " ").split(" | ")[0])
        if any("inputs/" in word for word in words):
            continue
        answer = eval(call, {"sm": sm})
        printed = subprocess.run([program, *words[1:]], capture_output=True, text=True).stdout
        assert without_effort(str(answer)).strip() == without_effort(printed).strip(), call
