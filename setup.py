"""Builds the shared library with make, and packs it with the Python files: a wheel for every
Python 3 of this platform."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent


def version():
    header = (ROOT / "include/scalemodel/base.h").read_text()
    return re.search(r'^#define SM_VERSION "(.*)"', header, re.M).group(1)


def library(folder):
    """The library as released, built below `folder`."""
    jobs = f"-j{os.cpu_count() or 1}"
    # As make itself names it: what an object depends on is kept under the object's name.
    build = os.path.relpath(folder, ROOT) if ROOT in folder.resolve().parents else folder
    subprocess.run(["make", "-s", jobs, f"BUILD={build}", "python-library"], cwd=ROOT, check=True)
    return folder / "release/libscalemodel.so"


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        package = pathlib.Path(self.build_lib) / "scalemodel"
        # SCALEMODEL_BUILD: a folder that keeps what is compiled.
        folder = pathlib.Path(os.environ.get("SCALEMODEL_BUILD") or
                              pathlib.Path(self.build_lib).resolve().parent / "library")
        shutil.copy2(library(folder), package / "libscalemodel.so")
        shutil.copytree(ROOT / "data/truth", package / "truth", dirs_exist_ok=True)
        self.write_stub(package)

    @staticmethod
    def write_stub(package):
        """The types of the verbs, which the library describes itself."""
        made = subprocess.run([sys.executable, str(ROOT / "python/stub.py"), str(package.parent)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        compile(made, "__init__.pyi", "exec")  # what no checker could read would be found by users
        (package / "__init__.pyi").write_text(made)
        for cache in package.rglob("__pycache__"):
            shutil.rmtree(cache)


class PlatformDistribution(Distribution):
    """Of this platform, for a library of machine code lies in it."""

    def has_ext_modules(self):
        return True


def commands():
    found = {"build_py": BuildWithLibrary}
    try:
        from setuptools.command.bdist_wheel import bdist_wheel
    except ImportError:
        from wheel.bdist_wheel import bdist_wheel

    class AnyPython3(bdist_wheel):
        def get_tag(self):
            return ("py3", "none", super().get_tag()[2])

    found["bdist_wheel"] = AnyPython3
    return found


setup(version=version(), packages=["scalemodel"], package_dir={"": "python"},
      package_data={"scalemodel": ["py.typed"]}, cmdclass=commands(),
      distclass=PlatformDistribution, zip_safe=False)
