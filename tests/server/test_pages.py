"""The pages about the server name what there is: metrics, settings, routes, and the files of the image."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import msgspec

from fairway.server.metrics import BUCKET_GAUGES, QUEUE_COUNTERS, QUEUE_GAUGES, TENANT_GAUGES
from fairway.server.rights import RIGHTS
from fairway.server.routes import ROUTES
from fairway.server.settings import Settings, settings
from tests.docs.pages import ROOT

SERVER = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_every_metric_is_in_the_table_and_no_other() -> None:
    told = set(re.findall(r"^\| `(fairway_\w+)` \|", METRICS, re.MULTILINE))
    made = {name for name, _, _ in (*QUEUE_GAUGES, *QUEUE_COUNTERS, *TENANT_GAUGES, *BUCKET_GAUGES)}
    http = {"fairway_http_requests_total", "fairway_http_request_seconds", "fairway_http_calls"}
    assert told == made | http


def test_every_setting_is_told() -> None:
    for field in msgspec.structs.fields(Settings):
        assert f"FAIRWAY_{field.name.upper()}" in SERVER, field.name


def test_every_right_is_told_as_it_is() -> None:
    for right, told in RIGHTS.items():
        assert re.search(rf"^\| `{right}` \| {re.escape(told)}", SECURITY, re.MULTILINE), right


def test_the_last_word_of_every_route_is_told() -> None:
    for route in ROUTES:
        last = route.path.rsplit("/", 1)[1]
        if not last.startswith("{") and route.name != "call":
            assert last in SERVER, route.path


def locked(name: str) -> set[str]:
    """The packages of a lock file, with their versions."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9._-]+==[^\s;\\]+)", text, re.MULTILINE))


def test_the_image_holds_what_was_tested_for_files_and_for_cassandra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*extras["dependencies"], *extras["optional-dependencies"]["server"]]
    asked += [*extras["optional-dependencies"]["client"], *extras["optional-dependencies"]["cassandra"]]
    named = {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower() for one in asked} - {"fairway"}
    assert named <= {one.partition("==")[0] for one in locked("image")}
    assert locked("image") | locked("build") <= locked("dev")
    for name in ("build", "image"):
        assert f"--require-hashes -r {name}.txt" in DOCKERFILE


def test_the_image_is_made_of_what_exists(tmp_path: Path) -> None:
    known = {f"FAIRWAY_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}
    assert set(re.findall(r"(FAIRWAY_\w+)=", DOCKERFILE)) <= known
    assert "USER fairway" in DOCKERFILE and "HEALTHCHECK" in DOCKERFILE
    # What the image's build can see is what is copied, and of that what the build is given at all.
    given = set((ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines())
    assert "*" in given
    tree = tmp_path / "src"
    tree.mkdir()
    for copied, to in re.findall(r"^COPY (?!--from)(.+) (\S+)$", DOCKERFILE, re.MULTILINE):
        for source in copied.split():
            assert f"!{source}" in given, f"{source} is copied, and kept from the build by .dockerignore"
            if (ROOT / source).is_dir():
                shutil.copytree(
                    ROOT / source, tree / to, ignore=shutil.ignore_patterns("__pycache__", "*.so")
                )
            else:
                shutil.copy(ROOT / source, tree / to)
    # The build of the image, without a network: the wheel that `pip install .` makes.
    assert "pip install --no-cache-dir --prefix=/install --no-deps --no-build-isolation ." in DOCKERFILE
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    run = subprocess.run([*pip, "--wheel-dir", wheels, "."], cwd=tree, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = wheels.glob("fairway-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {"fairway/server/app.py", "fairway/server/child.py", "fairway/cli/app.py"} <= packed
    assert any(name.endswith("entry_points.txt") for name in packed)


def test_what_the_image_sets_is_right_for_a_file_and_for_cassandra(tmp_path: Path) -> None:
    line = re.search(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE)
    assert line is not None
    environ = dict(part.split("=", 1) for part in line[1].split())
    assert settings({}, environ).store == environ["FAIRWAY_STORE"]
    secret = tmp_path / "cluster.key"
    secret.write_text("0" * 64)
    cluster = {"store": "cassandra://db/fairway", "secret_file": str(secret), "advertise": "http://n1:7420"}
    assert settings(cluster, environ).cluster
