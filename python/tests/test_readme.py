"""The examples of README.md beside the package."""
import doctest
import pathlib


def test_examples():
    readme = pathlib.Path(__file__).resolve().parents[1] / "README.md"
    assert doctest.testfile(str(readme), module_relative=False).failed == 0
