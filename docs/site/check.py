#!/usr/bin/python3 -B
"""Checks the built manual: check.py build/docs. Follows every link within the manual, and opens every page in Chromium, at the width of a
screen, a tablet and a phone. Prints what is wrong, and writes pictures of some pages into screenshots/."""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

WIDE, TABLET, PHONE = 1600, 1100, 390
SHOWN = ("index", "start", "hyper_connections", "gallery", "reference/mhc")
SEARCHES = ("Sinkhorn", "gradcheck", "AdamW")

# Opens the pages one after the other in a frame, and writes its findings into <pre id="seen">.
HARNESS = """<!DOCTYPE html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; height: 900px }</style><iframe id="frame"></iframe>
<pre id="seen"></pre><script>
const frame = document.getElementById("frame"), seen = {wide: [], empty: [], pages: 0};
const pushed = element => {  // part of a wide element that scrolls, such as code
  for (let e = element; e.localName != "article"; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true;
};
const open_page = (page, width) => new Promise(done => {
  frame.style.width = width + "px"; frame.onload = done; frame.src = page;
});
const found = () => frame.contentDocument.querySelectorAll("#search-results li").length;
const until = async (holds, tries) => { while (!holds() && tries-- > 0) await new Promise(done => setTimeout(done, 50)); };
(async () => {
  for (const page of PAGES) for (const width of WIDTHS) {
    await open_page(page, width);
    const all = frame.contentDocument.documentElement;
    seen.pages += 1;
    if (all.scrollWidth > width) seen.wide.push(`${page}: ${all.scrollWidth} pixels in a window of ${width}`);
    for (const element of all.querySelectorAll("article *"))
      if (element.getBoundingClientRect().right > width + 1 && !pushed(element)) {
        seen.wide.push(`${page}: a <${element.localName}> ends outside a window of ${width}: ${element.textContent.slice(0, 60)}`);
        break;
      }
  }
  for (const words of SEARCHES) {
    await open_page("search.html?q=" + words, WIDTHS[0]);
    await until(() => found() > 0, 200);
    if (found() == 0) seen.empty.push(words);
  }
  document.getElementById("seen").textContent = JSON.stringify(seen);
})();
</script>"""


class Page(html.parser.HTMLParser):
    """The ids and the references of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


def dead_links(site):
    """Links to files or anchors that do not exist, and references to other sites."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            to = urllib.parse.urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(to.path)).resolve() if to.path else path
            if not target.is_file():
                yield f"{path.relative_to(site)}: no file {link}"
            elif to.fragment and target in pages and urllib.parse.unquote(to.fragment) not in pages[target].ids:
                yield f"{path.relative_to(site)}: no place {link}"


def fetched(site):
    """Scripts, styles and pictures that would be loaded from a network."""
    for path in site.rglob("*.html"):
        yield from (f"{path.relative_to(site)}: fetches {url}"
                    for url in re.findall(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"((?:https?:)?//[^\"]+)", path.read_text()))


def chromium(*arguments):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                               "--allow-file-access-from-files", f"--user-data-dir={profile}", *map(str, arguments)],
                              capture_output=True, text=True, errors="replace", timeout=300)


def browse(site):
    """What is wrong with the pages in a browser."""
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    values = {"PAGES": pages, "WIDTHS": [WIDE, TABLET, PHONE], "SEARCHES": SEARCHES}
    harness = site / "check.html"
    harness.write_text(re.sub("|".join(values), lambda name: json.dumps(values[name[0]]), HARNESS))
    try:
        result = chromium(f"--window-size={WIDE},1000", "--enable-logging=stderr", "--virtual-time-budget=600000", "--dump-dom", harness.as_uri())
    finally:
        harness.unlink()
    seen = re.search(r'<pre id="seen">(\{.*?\})</pre>', result.stdout, re.DOTALL)
    if not seen:
        return [f"Chromium did not finish: {result.stderr[-500:]}"]
    seen = json.loads(html.unescape(seen[1]))
    print(f"Chromium: {seen['pages']} times a page, {len(SEARCHES)} searches")
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return [*seen["wide"], *(f"search for {words} finds nothing" for words in seen["empty"]), *console]


def draw(site, folder):
    """Pictures for visual inspection."""
    folder.mkdir(exist_ok=True)
    frame = site / "frame.html"
    for page in SHOWN:
        for name, width, height, theme in (("wide", WIDE, 1000, "light"), ("dark", WIDE, 1000, "dark"), ("phone", PHONE, 844, "light")):
            frame.write_text(f'<body style="margin: 0"><iframe src="{page}.html" style="border: 0; width: {width}px; height: {height}px" '
                             f'onload="this.contentDocument.body.dataset.theme = \'{theme}\'"></iframe>')
            chromium(f"--window-size={width},{height}", f"--screenshot={folder}/{page.replace('/', '_')}_{name}.png", frame.as_uri())
    frame.unlink()


def main(folder):
    site = folder / "html"
    wrong = [*dead_links(site), *fetched(site), *browse(site)]
    draw(site, folder / "screenshots")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(wrong)} faults; pictures: {folder / 'screenshots'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
