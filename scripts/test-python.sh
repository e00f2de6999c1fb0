#!/bin/sh
# The Python package as users install it: a wheel of this folder, in an environment of its own with pandas, matplotlib and
# JAX, its tests, its types, its notebooks. Needs the network; says so and passes where there is none.
# usage: BUILD=build scripts/test-python.sh      PYTHON: the interpreter (python3); PICTURES: a folder for the notebooks as HTML
set -eu
cd "$(dirname "$0")/.."
BUILD="${BUILD:-build}"
python="${PYTHON:-python3}"
place="$BUILD/python"
mkdir -p "$place"
rm -rf "$place/environment" "$place"/*.whl
"$python" -m venv "$place/environment"
pip="$place/environment/bin/pip --disable-pip-version-check -q"
if ! $pip install pytest pandas matplotlib tqdm jax mypy nbclient nbformat ipykernel auditwheel; then
    echo "test-python: skipped, there is no network to install pytest, pandas, matplotlib and jax from"
    exit 0
fi
SCALEMODEL_BUILD="$(cd "$BUILD" && pwd)" $pip wheel --no-deps -w "$place" .
wheel="$(ls "$place"/scalemodel-*.whl)"
"$place/environment/bin/auditwheel" show "$wheel" | sed -n '/is consistent/,/^$/p;/constrains/p'
$pip install "$wheel"
tests="$PWD/python/tests" notebooks="$PWD/docs/notebooks"
export SCALEMODEL_BOOK=all SCALEMODEL="$(cd "$BUILD" && pwd)/release/scalemodel"
cd "$place"
SCALEMODEL_JAX=needed environment/bin/python -m pytest -q -p no:cacheprovider "$tests"
environment/bin/python -m mypy --strict "$tests/typed.py"
for notebook in "$notebooks"/*.ipynb; do
    environment/bin/python "$notebooks/execute.py" "$notebook" ${PICTURES:+"$PICTURES"}
done
