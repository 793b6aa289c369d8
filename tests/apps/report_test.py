#!/usr/bin/python3 -B
"""The page that report.py makes of runs: report_test.py PROGRAM {numbers|live|stability|bad-input|browser}.

PROGRAM is train_lm, for the case stability that; the browser is Chromium, without which the case is skipped.
"""
import html
import json
import math
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from program import check, check_refused, run, write_text
from stability_test import TINY as STABILITY
from tiny_run import TINY

REPORT = pathlib.Path(__file__).parents[2] / "apps/plots/report.py"
KINDS = ("residual", "mhc", "hc")


def train(program, folder):
    flags = ["--text", write_text(folder), *TINY, "--steps", 60, "--eval-every", 20, "--report"]
    for kind in KINDS:
        result = run(program, *flags, "--connection", kind, "--out", folder / kind)
        check(result.returncode == 0 and result.stderr == "" and f"report: {folder / kind}/report.html\n" in result.stdout, result.stderr)
    return [folder / kind for kind in KINDS]


def report(*arguments):
    return run(str(REPORT), *arguments)


def data_of(page):
    text = page.read_text()
    check(not re.search(r'(src|href)="(?!data:)|https?://(?!www\.w3\.org)|@import|url\(', text), "the page asks for other files")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_run(folder, lines, steps=100):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"connection": "mhc", "steps": steps, "machine": {"cores": 2}}))
    (folder / "metrics.jsonl").write_text(lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines))
    return folder


def numbers(program, folder):
    """Curves, evaluations, telemetry, samples and settings are those of the files; long runs are reduced to means, minima and maxima."""
    runs, page = train(program, folder), folder / "page.html"
    check(report(*runs, "--out", page).returncode == 0 and page.stat().st_size < 2e6, "three runs")
    for path, seen, own in zip(runs, data_of(page)["runs"], (data_of(path / "report.html") for path in runs)):
        lines = lines_of(path / "metrics.jsonl")
        check(seen["name"] == path.name and seen["train"]["x"] == [line["step"] for line in lines] == list(range(1, 61)), f"{path}: steps")
        for name, key in (("loss", "train_loss"), ("grad_norm",) * 2, ("learning_rate",) * 2, ("speed", "tokens_per_s")):
            check(seen["train"][name] == {"y": [line[key] for line in lines]}, f"{path}: {name}")
        check(seen["held_out"] == {"x": [20, 40, 60], "y": [line["val_loss"] for line in lines if "val_loss" in line]}, f"{path}: held out")
        check(seen["speed"] == statistics.median(line["tokens_per_s"] for line in lines), f"{path}: speed")
        check(seen["samples"] == [[line["step"], line["text"]] for line in lines_of(path / "samples.jsonl")] and
              [step for step, _ in seen["samples"]] == [20, 40, 60], f"{path}: samples")
        stats = lines_of(path / "telemetry.jsonl")
        check(seen["telemetry"]["x"] == [20, 40, 60] and len(stats) == 6, f"{path}: telemetry")
        for key in ("composed_forward_gain", "row_error", "similarity"):
            for shown, line in zip([v for column in seen["telemetry"][key] for v in column], stats, strict=True):
                check(shown == line[key] or math.isclose(shown, line[key], rel_tol=1e-3), f"{path}: {key} {shown} and not {line[key]}")
        check(seen["settings"]["connection"] == path.name and "machine.cores" in seen["settings"], f"{path}: settings")
        check(own == own | {"live": False, "runs": [seen]}, f"{path}: train_lm wrote another page")

    long = [{"step": s, "train_loss": 1 / s, "grad_norm": s % 7, "learning_rate": 1e-3, "tokens_per_s": 10**5 + s, "val_loss": 2 / s}
            for s in range(1, 25001)]
    many = [write_run(folder / f"{i}/long", long, 30000) for i in range(3)]
    stats = "".join(json.dumps({"step": s, "connection": c, "forward_gain": 1 + math.sin(s * c), "similarity": None}) + "\n"
                    for s in range(0, 25000, 50) for c in range(24))
    for path in many:
        (path / "telemetry.jsonl").write_text(stats)
    check(report(*many, "--out", page).returncode == 0 and page.stat().st_size < 2e6, f"three long runs take {page.stat().st_size} bytes")
    seen = data_of(page)["runs"][2]
    check(seen["name"] == "long #3" and seen["train"]["x"] == list(range(25, 25001, 25)), "pieces of 25 steps")
    loss = seen["train"]["loss"]
    check(loss["high"][1] == 1 / 26 and loss["low"][1] == 1 / 50, "the most and the least of a piece")
    check(math.isclose(loss["y"][1], statistics.mean(1 / s for s in range(26, 51))), "the mean of a piece")
    check(report(many[0]).stdout == f"{many[0]}/report.html\n" and not data_of(many[0] / "report.html")["live"], "nobody trains")


def live(program, folder):
    """A page reloads itself until its run ends, also by an interruption or a loss that is not finite."""
    flags = ["--text", write_text(folder), *TINY, "--eval-every", 20, "--report", "--sample", 1]
    page = folder / "long/report.html"
    process = subprocess.Popen([program, *map(str, flags), "--steps", "1000000", "--out", page.parent], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (page.is_file() and data_of(page)["runs"][0]["samples"]):
        check(time.monotonic() < end and process.poll() is None, "no page while it trains")
        time.sleep(0.05)
    check(data_of(page)["live"], "a run that goes on is not followed")
    process.send_signal(signal.SIGTERM)
    check(process.wait(60) == 130, f"exit code {process.returncode}")
    check(not data_of(page)["live"] and data_of(page)["runs"][0]["step"] == lines_of(page.parent / "metrics.jsonl")[-1]["step"], "interrupted")
    page = folder / "silent/report.html"
    result = run(program, *flags, "--sample", 0, "--steps", 40, "--out", page.parent)
    check(result.returncode == 0 and data_of(page)["runs"][0]["samples"] == [], f"a sample that nobody asked for: {result.stdout}")
    page = folder / "nan/report.html"
    result = run(program, *flags, "--lr", 1e30, "--min-lr", 1e30, "--clip", 1e30, "--steps", 1000, "--out", page.parent)
    check(result.returncode == 3 and not data_of(page)["live"], f"not finite: exit code {result.returncode}, {result.stderr}")


def stability(program, folder):
    """A results folder shows each connection's run at the shown learning rate, first seed."""
    config = folder / "config.toml"
    config.write_text(STABILITY)
    check(run(program, config, "--out", folder / "out").returncode == 0 and report(folder / "out").returncode == 0, "no page")
    runs = data_of(folder / "out/report.html")["runs"]
    check([seen["name"] for seen in runs] == ["residual", "hc n2", "mhc n2.i5", "skip-mhc k2.identity.simplex"], f"{[seen['name'] for seen in runs]}")
    for seen in runs:
        check((seen["settings"]["learning_rate"], seen["settings"]["seed"], seen["group"]) == ("0.01", "1", "deep mlp regression"), f"{seen}")
        (path,) = [path for path in (folder / "out/runs").iterdir() if lines_of(path)[0] | {"run": ""} == {
            **lines_of(path)[0], "run": "", "mode": seen["name"].split()[0], "learning_rate": 0.01, "seed": 1}]
        steps = lines_of(path)[1:-1]
        check(seen["train"]["loss"]["y"] == [step["loss"] for step in steps] and len(steps) == 10, f"{path}: loss")
        probes = {step["step"]: step["sublayers"] for step in steps if "sublayers" in step}
        check(seen["telemetry"]["x"] == list(probes), f"{path}: telemetry")
        for column, probe in zip(seen["telemetry"]["backward_gain"], probes.values()):
            check(all(math.isclose(*pair, rel_tol=1e-3) for pair in zip(column, probe["backward_gain"], strict=True)), f"{path}: gains")


def bad_input(_, folder):
    """Incomplete and bad lines, bad numbers and missing files are tolerated; other folders are refused."""
    good = [{"step": s, "train_loss": 3 - s / 10, "grad_norm": 1} for s in range(1, 6)]
    bad = ['{"step": "one"}', "[1]", "nonsense", '{"step": 1.5}', "{}", "[" * 100000, '{"step": -1}', '{"step": ' + "9" * 5000 + "}", "\udcff"]
    lines = "".join(json.dumps(line) + "\n" for line in good) + '{"step": 6, "train_loss": NaN, "grad_norm": 1e999}\n{"step": 7, "train_loss": "x"}\n'
    path = write_run(folder / "bad", lines)
    (path / "metrics.jsonl").write_text(lines + "\n".join(bad) + '\n{"step": 8, "tra', errors="surrogateescape")
    (path / "samples.jsonl").write_text(json.dumps({"step": 5, "text": "</script><script>throw 1</script>"}) + "\n")
    check(report(path).returncode == 0, "bad lines")
    (seen,) = data_of(path / "report.html")["runs"]
    check(seen["train"]["x"] == list(range(1, 8)) and seen["train"]["loss"]["y"] == [2.9, 2.8, 2.7, 2.6, 2.5, None, None], f"lines {seen['train']}")
    check(seen["notes"] == [f"metrics.jsonl: {len(bad)} lines could not be read"] and seen["bad"] == [6, 7], f"notes {seen['notes']}, {seen['bad']}")
    check(seen["samples"] == [[5, "</script><script>throw 1</script>"]] and seen["telemetry"]["x"] == [], "samples")
    (path / "metrics.jsonl").unlink()
    check(report(path).returncode == 0 and data_of(path / "report.html")["runs"][0]["step"] == 0, "a run before its first step")
    (path / "config.json").write_text("[")
    check(report(path).returncode == 0 and data_of(path / "report.html")["runs"][0]["notes"] == ["config.json could not be read"], "no config")

    deep = folder / "mhc.jsonl"
    deep.write_text('{"task": "deep_transformer", "mode": "mhc", "variant": "n4"}\n{"step": 1, "loss": 2.5, "gradient_norm": 1, "sublayers": '
                    '{"row_error": [0, 0.5], "similarity": [null, 1]}}\n{"step": 2, "loss": null}\n{"result": "diverged"}\n')
    check(report(deep, "--out", folder / "deep.html").returncode == 0, "a run of stability")
    (seen,) = data_of(folder / "deep.html")["runs"]
    check((seen["name"], seen["group"], seen["train"]["loss"]["y"], seen["bad"]) == ("mhc n4", "deep transformer", [2.5, None], [2]), f"{seen}")
    check(seen["telemetry"]["row_error"] == [[0, 0.5]] and seen["telemetry"]["similarity"] == [[None, 1]], "sublayers")

    (folder / "empty").mkdir()
    (folder / "half").mkdir()
    (folder / "half/config.toml").write_text("x = ")
    (folder / "half/summary.csv").write_text("")
    for wrong, expected in ((["none"], "none: holds no run"), ([folder / "empty"], "empty: holds no run"), ([folder / "half"], "half: "),
                            (["a\nb"], "a b: holds no run"), ([], "required"), ([path, "--x"], "--x"),
                            ([path, "--out", folder / "no/page.html"], "page.html: No such file")):
        check_refused(expected, report(*wrong))
    check(not list(folder.rglob("*.tmp")), "a temporary file is left")


# What a reader does; each finding is a name and what was seen.
READER = """<script>
const curves = () => [...document.querySelectorAll("#charts path.curve:not(.raw)")].map((path) => path.getAttribute("d"));
const count = (selector) => document.querySelectorAll(selector).length;
const seen = { curves: curves(), raw: count("path.raw"), panels: count("#charts svg"), maps: count("canvas"), samples: count("#samples pre"),
  differ: count("td.differs"), wide: document.documentElement.scrollWidth > innerWidth };
const point = (selector, type, x) => {
  const target = document.querySelector(selector), box = target.getBoundingClientRect();
  target.dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + 5, pointerType: "mouse" }));
  return document.getElementById("tip").textContent;
};
seen.tip = point("#chart-loss svg", "pointermove", document.querySelector("#chart-loss svg").clientWidth - 5);
seen.cursors = count(".cursor");
seen.cell = point("#heat-row_error canvas", "pointermove", 1);
const click = (selector) => { document.querySelector(selector).click(); return curves(); };
seen.log = click("#chart-loss .title button:last-child");
seen.minus = click("#chart-loss .title button:first-child");
seen.fewer = click(".run");
seen.logX = click("#log-x");
document.getElementById("smooth").value = 100;
document.getElementById("smooth").dispatchEvent(new Event("input"));
seen.smooth = curves();
seen.state = JSON.parse(decodeURIComponent(location.hash.slice(1)));
document.body.append(Object.assign(document.createElement("pre"), { id: "seen", textContent: JSON.stringify(seen) }));
</script></html>"""


def browse(chromium, page, folder, width):
    result = run(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
                 f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", page.as_uri())
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.DOTALL)
    check(not console and found, f"console {console}, exit code {result.returncode}")
    return json.loads(html.unescape(found[1]))


def browser(program, folder):
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit(77)
    runs, page = train(program, folder), folder / "page.html"
    check(report(*runs, "--out", page).returncode == 0, "no page")
    page.write_text(page.read_text().replace("</html>", READER))
    lasts = [f"{lines_of(path / 'metrics.jsonl')[-1]['train_loss']:.5g}" for path in runs]
    for width in (1300, 500):
        seen = browse(chromium, page, folder, width)
        check(seen["panels"] == 5 and len(seen["curves"]) == 15 and seen["raw"] == 9, f"{seen['panels']} charts, {len(seen['curves'])} curves")
        check(all("L" in curve and "NaN" not in curve for curve in seen["curves"]), f"curves {seen['curves']}")
        check(seen["maps"] >= 8 and seen["samples"] == 3 and seen["differ"] > 0 and not seen["wide"], f"the rest of the page: {seen}")
        check(seen["tip"].startswith("step 60") and all(last in seen["tip"] for last in lasts), f"tooltip {seen['tip']}, not {lasts}")
        check(seen["cursors"] == 5 and seen["cell"].startswith("step 20, connection 1"), f"cursors, {seen['cell']}")
        check(seen["log"][:3] != seen["curves"][:3] and seen["log"][3:] == seen["curves"][3:], "log axis")
        check(seen["minus"][:3] != seen["log"][:3] and len(seen["fewer"]) == 10, "minus the first run, fewer runs")
        check(seen["logX"] != seen["fewer"] and seen["smooth"] != seen["logX"], "steps, smoothing")
        chosen = {"logX": True, "minus": True, "smooth": 100, "off": ["residual"], "log": ["grad_norm", "loss"]}
        check(seen["state"] == seen["state"] | chosen, f"the address keeps {seen['state']}")


if __name__ == "__main__":
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"numbers": numbers, "live": live, "stability": stability, "bad-input": bad_input, "browser": browser}[case](program, pathlib.Path(name))
