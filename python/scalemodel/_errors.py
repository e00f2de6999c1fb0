"""What a question that cannot be answered raises."""
import json


class ScalemodelError(ValueError):
    """One sentence about what is wrong, with its place where there is one.

    status: the exit status of the command: 2 usage, 3 bad input, 4 I/O, 5 internal.
    sentence: what is wrong, what was expected, the nearest valid name.
    source, line, column, span: the option or file, and what of it is meant (1-based, else None).
    excerpt: the line of the source.
    """

    def __init__(self, shown, parts):
        super().__init__(shown.rstrip("\n"))
        placed = bool(parts.get("line"))
        self.status = int(parts["status"])
        self.sentence = parts["sentence"]
        self.source = parts["source"]
        self.line = int(parts["line"]) if placed else None
        self.column = int(parts["column"]) if placed else None
        self.span = int(parts["span"]) if placed else None
        self.excerpt = parts["excerpt"] or None

    @classmethod
    def of(cls, command, library):
        shown = command.text(library.ERROR)
        return cls(shown or "out of memory", json.loads(command.text(library.ERROR_JSON)))
