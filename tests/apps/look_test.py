#!/usr/bin/python3 -B
"""look as a user runs it: look_test.py LOOK TRAIN_LM {numbers|changes|bad-input|scripts|browser}

The browser is Chromium, without which that case is skipped.
"""
import html
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import sys
import tempfile

from generate_test import with_tokenizer
from program import check, check_refused, run, write_text
from tiny_run import TINY, shaped_tensors

WIDTHS = (375, 800, 1400)


def train(trainer, folder, kind, *flags):
    text = folder / "text.txt" if (folder / "text.txt").exists() else write_text(folder)
    result = run(trainer, "--text", text, *TINY, "--steps", 30, "--connection", kind, *flags, "--out", folder / kind)
    check(result.returncode == 0, f"{kind}: {result.stderr}")
    return folder / kind


def look(program, path, text, *flags):
    """The numbers of a run or of a model's folder."""
    source = "--run" if (path / "metrics.jsonl").exists() else "--model"
    out = path / "look.html"
    result = run(program, source, path, "--text", text, "--out", out, *flags)
    check(result.returncode == 0 and result.stderr == "", f"{path}: {result.returncode} {result.stderr}")
    data = json.loads((path / "look.json").read_text())
    page = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', out.read_text(), re.DOTALL)[1])
    table = [f"{'without changes':<32} loss {data['loss']:.4f}\n"]
    for row in data["changes"]:
        back = "" if row["recovered"] is None else f", {100 * row['recovered']:.1f} % comes back"
        table.append(f"{row['what']:<32} loss {row['loss']:.4f}, {row['loss'] - data['loss']:+.4f}{back}\n")
    check("".join(table) in result.stdout, f"{table} is not in {result.stdout}")
    check("--no-ablations" in flags or re.search(r"^evaluation (\d+)/\1  \| 0s left$", result.stdout, re.MULTILINE), f"no progress in {result.stdout}")
    check(page == data and not re.search(r'(src|href)="(?!data:)|https?://(?!www\.w3\.org)|@import|url\(', out.read_text()), "the page")
    return data


def close(a, b, tolerance=1e-4):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance / 10)


def softmax(logits):
    most = max(logits)
    powers = [math.exp(v - most) for v in logits]
    return [p / sum(powers) for p in powers]


def check_start(data, tensors, text):
    """Ids, norms and the lens before the first layer, computed from the checkpoint's embedding, norm and head."""
    alphabet = sorted(set(text))
    check(data["ids"] == [alphabet.index(letter) for letter in text[:len(data["ids"])]], f"ids {data['ids']}")
    likely = {id for site in data["lens"]["likely"] for stream in site for token in stream for id in token[::2]}
    check(data["words"] == {str(id): alphabet[id] for id in likely | set(data["ids"])}, f"words {data['words']} of {likely}")
    for t, id in enumerate(data["ids"][:-1]):
        x = [a + b for a, b in zip(tensors["model.embedding.weight"][id], tensors["model.positions"][t])]
        check(all(close(norm[t], math.hypot(*x)) for norm in data["norm"][0]), f"norm of token {t}")
        rms = math.sqrt(sum(v * v for v in x) / len(x) + 1e-5)
        normed = [v / rms * weight for v, weight in zip(x, tensors["model.norm.weight"])]
        likely = softmax([sum(a * b for a, b in zip(row, normed)) for row in tensors["model.head.weight"]])
        for stream in range(data["streams"] + 1):
            check(close(data["lens"]["loss"][0][stream][t], -math.log(likely[data["ids"][t + 1]])), f"lens of token {t}")
            seen = data["lens"]["likely"][0][stream][t]
            check(close(seen[1], max(likely)) and all(close(likely[id], p) for id, p in zip(seen[::2], seen[1::2])), f"lens {seen}")


def check_consistent(data):
    """What one measure says about another."""
    n, sites, tokens = data["streams"], len(data["sites"]), len(data["losses"])
    check(sites == 3 and data["sites"] == ["0 attention", "0 mlp", "head"] and tokens == len(data["ids"]) - 1, f"{data['sites']}, {tokens}")
    check(close(data["loss"], sum(data["losses"]) / tokens) and data["lens"]["loss"][-1][n] == data["losses"], "losses")
    for site in range(sites):
        for t in range(tokens):
            squares = [data["norm"][site][i][t]**2 for i in range(n)]
            check(all(close(data["share"][site][i][t], squares[i] / sum(squares), 3e-4) for i in range(n)), f"shares at site {site}")
            check(all(-1 - 1e-4 <= pair[t] <= 1 + 1e-4 for pair in data["cosine"][site]), "cosine")
    check(len(data["cosine"][0]) == n * (n - 1) // 2, "pairs")
    for start in range(sites - 1):
        gains = [None] * (start + 1)
        weights = data["h_post"][start]
        for i, t in itertools.product(range(n), range(tokens)):  # stream i behind the layer is no longer than its parts
            parts = [abs(data["h_res"][start][i * n + j][t]) * data["norm"][start][j][t] for j in range(n)]
            most = sum(parts) + abs(weights[i][t]) * data["write"][start][t]
            check(data["norm"][start + 1][i][t] <= most * (1 + 1e-4), f"token {t}: |x_{i}| is {data['norm'][start + 1][i][t]}, not at most {most}")
        for site in range(start + 1, sites):
            read = data["h_pre"][site]
            gains.append(sum(read[i][t] * weights[i][t] for i in range(n) for t in range(tokens)) / tokens)
            if site + 1 < sites:
                weights = [[sum(data["h_res"][site][i * n + j][t] * weights[j][t] for j in range(n)) for t in range(tokens)] for i in range(n)]
        check(all(a == b or close(a, b) for a, b in zip(data["gain"][start], gains, strict=True)), f"gains {data['gain'][start]}, not {gains}")


def numbers(program, trainer, folder):
    """Measures are those of a computation by hand, for any connection, and do not depend on threads."""
    for kind, *flags in (["residual"], ["mhc", "--phi-std", 0.3, "--alpha", 1], ["single-pass"], ["hc"]):
        path = train(trainer, folder, kind, *flags)
        text = (folder / "text.txt").read_text()
        data = look(program, path, folder / "text.txt")
        check((data["name"], data["connection"], data["unit"]) == (kind, kind, "characters"), f"{data['name']}")
        check(len(data["losses"]) == 16, "as many as fit into the context")
        check_start(data, shaped_tensors(path / "checkpoint.safetensors"), text)
        check_consistent(data)
        before = (path / "look.json").read_bytes()
        look(program, path, folder / "text.txt", "--threads", 1)
        check((path / "look.json").read_bytes() == before, "threads changed the numbers")
        check(all(close(sum(data["h_res"][0][i * 4 + j][0] for j in range(4)), 1, 1e-3) for i in range(4)) if kind == "mhc" else True, "rows of H_res")
    gated = look(program, train(trainer, folder, "gated"), folder / "text.txt", "--no-ablations", "--tokens", 5)
    check(gated["h_pre"][0] is None and gated["gain"][0] == [None, None, gated["gain"][0][2]] and "ablations" not in gated, "gates of channels")
    check(len(gated["losses"]) == 5, f"{len(gated['losses'])} tokens")
    (folder / "two.txt").write_text("th")
    check(len(look(program, folder / "gated", folder / "two.txt", "--no-ablations")["losses"]) == 1, "two characters are enough")
    (folder / "letters.txt").write_text("hello, \u00e9\u65e5, a")
    data = look(program, with_tokenizer("gpt2", folder), folder / "letters.txt")
    for letters in range(3):  # so that the start that is read ends in any byte of a character
        (folder / "long.txt").write_text("a" * letters + "\u65e5" * 999)
        check(len(look(program, folder / "gpt2", folder / "long.txt", "--no-ablations")["losses"]) == 32, "as many as fit into the context")
    check(data["connection"] == "residual" and data["unit"] == "tokens" and len(data["ids"]) == 15, f"{data['ids']}")
    check([data["words"][str(id)] for id in data["ids"][7:9]] == ["\ufffd", "\ufffd"], "parts of a character")


def changes(program, trainer, folder):
    """Losses of changes: what changes nothing, what is rescued, and the table of ablations."""
    path = train(trainer, folder, "mhc", "--phi-std", 0.3, "--alpha", 1)
    text = folder / "text.txt"
    data = look(program, path, text, "--ablate", "stream:2@1,write:0", "--scale", "write:1:1", "--scale", "path:0:1:0.5",
                "--swap", "stream:0:3@2", "--rescue", "stream:2@1,write:0")
    rows = {row["what"]: row for row in data["changes"]}
    check(list(rows) == ["ablate stream:2@1", "ablate write:0", "scale write:1:1", "scale path:0:1:0.5", "swap stream:0:3@2", "all 5 changes",
                         "rescue stream:2@1", "rescue write:0", "all 2 rescues"], f"{list(rows)}")
    check(rows["scale write:1:1"]["loss"] == rows["swap stream:0:3@2"]["loss"] == data["loss"], "what changes nothing has a loss")
    check(rows["ablate stream:2@1"]["loss"] == data["ablations"]["once"][2][1] != data["loss"], "one stream")
    check(rows["ablate write:0"]["loss"] == data["ablations"]["write"][0] != data["loss"], "one layer")
    shapes = {key: (len(losses), len(losses[0]) if isinstance(losses[0], list) else 0) for key, losses in data["ablations"].items()}
    check(shapes == {"once": (4, 3), "onward": (4, 3), "all": (3, 0), "alone": (4, 3), "write": (2, 0)}, f"{shapes}")
    check(all(losses[-1] == once[-1] for losses, once in zip(data["ablations"]["onward"], data["ablations"]["once"])), "the head is the last site")
    back = look(program, path, text, "--ablate", "stream:2@1", "--rescue", "stream:2@1")["changes"]
    check(back[1] == {"what": "rescue stream:2@1", "loss": data["loss"], "recovered": 1.0}, f"{back}")
    check(look(program, path, text)["changes"] == [], "no changes")


def bad_input(program, trainer, folder):
    path = train(trainer, folder, "mhc")
    text, skip = folder / "text.txt", train(trainer, folder, "skip")
    gated = train(trainer, folder, "gated")
    beyond = with_tokenizer("gpt2", folder)
    (beyond / "tokenizer.json").write_text((beyond / "tokenizer.json").read_text().replace('"a": 0', '"a": 61'))
    (folder / "abab.txt").write_text("abab")
    (folder / "empty.txt").write_text("")
    (folder / "foreign.txt").write_text("the QUICK")
    (folder / "bytes.txt").write_bytes(b"the \xff")
    (folder / "rests.txt").write_bytes(b"\x80" * 9999)
    (folder / "text.html").mkdir()
    before = sorted(folder.rglob("*"))
    start = ["--run", path, "--text", text]
    for expected, flags in [
        ("--text is required", ["--run", path]),
        ("--model, --run: give one of them", ["--text", text]),
        ("--model, --run: give one of them", [*start, "--model", path]),
        ("holds no checkpoint", ["--run", folder, "--text", text]),
        ("must have connections with streams, or residual ones, but has skip", ["--run", skip, "--text", text]),
        ("none.txt: cannot be opened", ["--run", path, "--text", folder / "none.txt"]),
        ("empty.txt must have at least 2 characters but has 0", ["--run", path, "--text", folder / "empty.txt"]),
        ("'Q' (U+0051) in line 1 is none of the", ["--run", path, "--text", folder / "foreign.txt"]),
        ("--text: has the id 61 but the model knows 61", ["--model", beyond, "--text", folder / "abab.txt"]),
        ("bytes.txt", ["--run", path, "--text", folder / "bytes.txt"]),
        ("rests.txt: must be UTF-8", ["--run", path, "--text", folder / "rests.txt"]),
        ("--tokens: must be at most 16, the context of the model, but is 17", [*start, "--tokens", 17]),
        ("--out: must end in .html but is 'page'", [*start, "--out", "page"]),
        ("none is not a folder", [*start, "--out", folder / "none/look.html"]),
        ("must be a regular file", [*start, "--out", folder / "text.html"]),
        ("--ablate: must be stream:I, stream:I@SITE, stream:I@SITE-SITE, write:SITE or path:SITE:SITE but is 'head:1'", [*start, "--ablate", "head:1"]),
        ("--ablate stream:4: a stream must be in [0, 3] but is 4", [*start, "--ablate", "stream:4"]),
        ("--scale write:2:0.5: the site of the write must be in [0, 1] but is 2", [*start, "--scale", "write:2:0.5"]),
        ("--rescue: needs --ablate, --scale or --swap", [*start, "--rescue", "stream:1"]),
        ("--ablate path:0:1: the input of site 1 is no weighted sum of the streams", ["--run", gated, "--text", text, "--ablate", "path:0:1"]),
    ]:
        result = run(program, *flags)
        check_refused(expected, result)
        check(result.stdout == "" and sorted(folder.rglob("*")) == before, f"{flags}: something was written")


def scripts(program, trainer, folder):
    """The losses are printed even if nothing can be drawn, and a line says what is missing."""
    path, text = train(trainer, folder, "mhc"), folder / "text.txt"
    table = run(program, "--run", path, "--text", text, "--no-ablations").stdout
    check(table.startswith("without changes") and table.endswith(f"{path}/look.html\n"), table)
    alone, plots = folder / "alone", folder / "alone/plots"
    alone.mkdir()
    for each in program, trainer:
        shutil.copy(each, alone)

    def fails(expected):
        result = run(alone / "look", "--run", path, "--text", text, "--no-ablations")
        check((result.returncode, result.stderr) == (2, f"{plots}/look.py{expected}\n"), f"{result.returncode} {result.stderr}")
        check(result.stdout == table.replace("look.html", "look.json"), result.stdout)

    fails(": there is no such script; the folder plots/ belongs beside the program")
    shutil.copytree(pathlib.Path(program).parent / "plots", plots)
    (plots / "report.py").write_text("raise ValueError('too blue')\n")
    fails(f" {path}/look.json {path}/look.html did not succeed: ValueError: too blue")
    script = (plots / "look.py").read_text()
    (plots / "look.py").write_text(script.replace("#!/usr/bin/python3", "#!/usr/none/python3"))
    fails(": needs /usr/bin/python3, which is not installed")
    (folder / "matplotlib.py").write_text("raise ModuleNotFoundError(\"No module named 'matplotlib'\")\n")
    result = run(alone / "train_lm", "--text", text, *TINY, "--steps", 6, "--out", folder / "plain", env={**os.environ, "PYTHONPATH": str(folder)})
    check((result.returncode, result.stderr) ==
          (0, f"{plots}/plot_loss.py: needs matplotlib for /usr/bin/python3; Debian's package is python3-matplotlib\n"), result.stderr)


# What a reader does; each finding is a name and what was seen.
READER = """<script>
const count = (selector) => document.querySelectorAll(selector).length;
const bytes = (selector) => document.querySelector(selector + " canvas").toDataURL();
const point = (selector) => {
  const target = document.querySelector(selector), box = target.getBoundingClientRect();
  target.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 2, clientY: box.top + 2, pointerType: "mouse" }));
  return document.getElementById("tip").textContent;
};
const seen = { panels: [...document.querySelectorAll(".panel[id]")].map((panel) => panel.id), maps: count("canvas"), tokens: count(".words button"),
  wide: document.documentElement.scrollWidth > innerWidth, title: document.querySelector("h1").textContent, share: point("#share canvas, #norm canvas"),
  rows: count("#words tbody tr"), changes: count("#changes tbody tr"), before: bytes("#norm") };
document.querySelectorAll(".words button")[3].click();
seen.chosen = document.querySelector("#words small").textContent;
seen.after = bytes("#norm");
seen.square = point(count("#h_res") ? "#h_res canvas" : "#norm canvas");
document.querySelector("#text .title button").click();
seen.again = bytes("#norm");
document.body.append(Object.assign(document.createElement("pre"), { id: "seen", textContent: JSON.stringify(seen) }));
</script></html>"""


def browse(chromium, page, folder, width):
    """An iframe has any width; a window of Chromium has at least 500."""
    frame = folder / "frame.html"
    frame.write_text(f'<iframe src="{page.name}" width="{width}" height="900" style="border: 0"></iframe><script>onload = () => document.body.append('
                     'document.querySelector("iframe").contentDocument.getElementById("seen").cloneNode(true))</script>')
    result = run(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--allow-file-access-from-files",
                 f"--user-data-dir={folder}/profile", f"--window-size={width + 50},1000", "--enable-logging=stderr", "--dump-dom", frame.as_uri())
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.DOTALL)
    check(not console and found, f"console {console}, exit code {result.returncode}")
    return json.loads(html.unescape(found[1]))


def browser(program, trainer, folder):
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit(77)
    page = folder / "page.html"
    streams = {"share", "cosine", "h_pre", "h_post", "h_res", "onward-loss", "all-loss", "alone-loss"}
    both = {"text", "norm", "writes", "gain", "lens-loss", "words", "changes", "write-loss", "once-loss"}
    for kind, ablate in (("mhc", "stream:1"), ("residual", "write:0")):
        path = train(trainer, folder, kind, *(["--phi-std", 0.3, "--alpha", 1] if kind == "mhc" else []))
        data = look(program, path, folder / "text.txt", "--ablate", ablate)
        page.write_text((path / "look.html").read_text().replace("</html>", READER))
        for width in WIDTHS:
            seen = browse(chromium, page, folder, width)
            check(set(seen["panels"]) == (both | streams if kind == "mhc" else both), f"{kind}, {width}: {seen['panels']}")
            check(not seen["wide"] and seen["tokens"] == 16 and seen["rows"] == 3 and seen["changes"] == 2, f"{kind}, {width}: {seen}")
            check(seen["title"].startswith(f"braid {kind}: {kind}") and seen["share"].startswith("stream 0, 0 attention"), f"{seen['title']}, {seen['share']}")
            check(seen["before"] != seen["after"] and seen["before"] == seen["again"], "a token's map is that of all")
            words = [data["words"][str(id)] for id in data["ids"][3:5]]
            check([word.strip() in seen["chosen"] for word in words] == [True, True], f"{seen['chosen']}, not {words}")
            check(seen["square"].startswith("0 attention, stream 0 into 0" if kind == "mhc" else "stream 0, 0 attention"), seen["square"])


if __name__ == "__main__":
    look_at, train_lm, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"numbers": numbers, "changes": changes, "bad-input": bad_input, "scripts": scripts, "browser": browser}[case](look_at, train_lm, pathlib.Path(name))
