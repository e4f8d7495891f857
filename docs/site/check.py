# SPDX-License-Identifier: BSD-3-Clause
"""Finds links of a site that lead nowhere, and what a browser would load from other hosts."""
import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "object": "data", "source": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])
        if "style" in values:
            self.loaded += re.findall(r"url\(['\"]?([^)'\"]+)", values["style"])


def check(site: pathlib.Path) -> tuple[int, list[str]]:
    """Returns the number of links and the problems."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    count, problems = 0, []
    for path, page in pages.items():
        for target in page.links + page.loaded:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                if target in page.loaded and url.scheme != "data":
                    problems.append(f"{path.relative_to(site)}: loads {target}")
                continue
            count += 1
            there = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if not there.is_file():
                problems.append(f"{path.relative_to(site)}: {target} does not exist")
            elif url.fragment and there in pages and urllib.parse.unquote(url.fragment) not in pages[there].ids:
                problems.append(f"{path.relative_to(site)}: {target}: no such anchor")
    for style in site.rglob("*.css"):
        problems += [f"{style.relative_to(site)}: loads {address}" for address in
                     re.findall(r"(?:url\(|@import )['\"]?((?:https?:)?//[^)'\"]*)", style.read_text())]
    return count, problems


if __name__ == "__main__":
    links, found = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found) or f"{links} links within the site, none dead; nothing is loaded from other hosts")
    sys.exit(bool(found))
