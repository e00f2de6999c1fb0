#!/usr/bin/env python3
"""The pages of docs/book: the library's figures in their tables, from the acceptance set (BUILD/book), and below each
command the call of Python that asks the same. What the commands print is written by UPDATE=1 sh tests/cli/pages.t.
usage: BUILD=build scripts/book-pages.py"""
import keyword
import os
import pathlib
import re
import shlex
import subprocess

root = pathlib.Path(__file__).resolve().parents[1]
build = os.environ.get("BUILD", "build")


def figures():
    """{id: the library's figures}, as tests/test_book.c compares them."""
    out = subprocess.run([f"{build}/book"], cwd=root, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^  (?:ok  |miss) (\S+): (.*)$", out, re.M))


def python_of(command):
    """sm.roofline("A[B,D] W[D,F]", on="tpu-v5e") of the first program of a shell's line; None for others."""
    words = shlex.split(re.split(r" (?:\||>|&&|;) ", command.replace("\\\n", " "))[0])
    if len(words) < 2 or words[0] != "scalemodel" or any("$" in word for word in words):
        return None
    arguments, options, i = [], {}, 2
    while i < len(words):
        if words[i].startswith("--"):
            name = words[i][2:].replace("-", "_") + ("_" if keyword.iskeyword(words[i][2:]) else "")
            flag = i + 1 == len(words) or words[i + 1].startswith("--")
            options[name] = True if flag else words[i + 1]
            i += 1 if flag else 2
        else:
            arguments.append(words[i])
            i += 1
    quoted = [f'"{a}"' for a in arguments]
    quoted += [f"{n}=True" if v is True else f"{n}={v}" if re.fullmatch(r"\d+", v) else f'{n}="{v}"' for n, v in options.items()]
    return f"sm.{words[1]}({', '.join(quoted)})"


def with_calls(text):
    def one(block):
        call = python_of(re.match(r"```console\n\$ ((?:.*\\\n)*.*)", block[1])[1])
        return block[1] + (f"\n```python\n{call}\n```\n" if call else "")
    return re.sub(r"(```console\n.*?\n```\n)(?:\n```python\n.*?\n```\n)?", one, text, flags=re.S)


given = figures()
for page in sorted((root / "docs/book").glob("*.md")):
    rows = []
    for line in with_calls(page.read_text()).split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[1] in given:
            cells[4] = given[cells[1]]
            line = " | ".join(cells).strip()
        rows.append(line)
    page.write_text("\n".join(rows))
