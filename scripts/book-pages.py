#!/usr/bin/env python3
"""The pages of docs/book: the library's figures in their tables, from the acceptance set (BUILD/book), and below each
command the call of Python that asks the same. What the commands print is written by UPDATE=1 sh tests/cli/pages.t.
usage: BUILD=build scripts/book-pages.py; scripts/book-pages.py --learn: the pages as the script of the page for browsers"""
import json
import keyword
import os
import pathlib
import re
import shlex
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
build = os.environ.get("BUILD", "build")


def figures():
    """{id: the library's figures}, as tests/test_book.c compares them."""
    out = subprocess.run([f"{build}/book"], cwd=root, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^  (?:ok  |miss) (\S+): (.*)$", out, re.M))


def question_of(command):
    """(verb, arguments, options) of the first program of a shell's line; None where it is another's."""
    words = shlex.split(re.split(r" (?:\||>|&&|;) ", command.replace("\\\n", " "))[0])
    if len(words) < 2 or words[0] != "scalemodel" or any("$" in word for word in words):
        return None
    arguments, options, i = [], {}, 2
    while i < len(words):
        if words[i].startswith("--"):
            flag = i + 1 == len(words) or words[i + 1].startswith("--")
            options[words[i][2:]] = True if flag else words[i + 1]
            i += 1 if flag else 2
        else:
            arguments.append(words[i])
            i += 1
    return words[1], arguments, options


def python_of(command):
    """sm.roofline("A[B,D] W[D,F]", on="tpu-v5e")"""
    asked = question_of(command)
    if not asked:
        return None
    quoted = [f'"{a}"' for a in asked[1]]
    for name, value in asked[2].items():
        name = name.replace("-", "_") + ("_" if keyword.iskeyword(name) else "")
        quoted.append(f"{name}={value}" if value is True or re.fullmatch(r"\d+", value) else f'{name}="{value}"')
    return f"sm.{asked[0]}({', '.join(quoted)})"


def plain(text):
    return " ".join(re.sub(r"`([^`]*)`|\[([^]]*)\]\([^)]*\)", r"\1\2", text).split())


def problems(text):
    for command in re.findall(r"```console\n\$ ((?:.*\\\n)*.*)", text):
        asked = question_of(command)
        if asked and "inputs/" not in command:
            here = [word.replace("docs/book/", "") for word in asked[1]]
            options = {n: v if v is True else v.replace("docs/book/", "") for n, v in asked[2].items()}
            yield {"verb": asked[0], "places": here, "options": options,
                   "command": " ".join(re.split(r" \| ", command)[0].replace("\\\n", "").replace("docs/book/", "").split())}


def learn_of(page):
    head, *sections = page.read_text().split("\n## ")
    out = {"name": page.stem, "title": head.split("\n")[0][2:], "about": plain(head.split("\n", 1)[1]), "sections": [], "rows": []}
    for section in sections:
        title, text = section.split("\n", 1)
        rows = [[cell.strip() for cell in line.split("|")[1:6]] for line in text.split("\n") if line.startswith("| ")][1:]
        out["rows"] += rows
        if not rows:
            prose = re.sub(r"\s\([a-z]+\.[^)]*\)", "", re.sub(r"```.*?```", "", text, flags=re.S))
            named = " ".join(re.findall(r"\(([a-z0-9]+\.[^)]*)\)", text)).replace(",", " ").split()
            out["sections"].append({"title": title, "about": plain(prose), "problems": list(problems(text)), "items": named})
    return out


if sys.argv[1:] == ["--learn"]:
    pages = [page for page in sorted((root / "docs/book").glob("*.md")) if page.stem != "README"]
    pages.sort(key=lambda page: (not page.stem[0].isdigit(), page.stem))
    files = {f.name: f.read_text() for f in sorted((root / "docs/book").glob("*.json"))}
    print("/* learn: the pages of docs/book, by scripts/book-pages.py. */\n\"use strict\";")
    print(f"const LEARN = {json.dumps([learn_of(page) for page in pages], ensure_ascii=False)};")
    print(f"const LEARN_FILES = {json.dumps(files)};")
    sys.exit()


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
