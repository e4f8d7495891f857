# SPDX-License-Identifier: BSD-3-Clause
"""Finds links of a site that lead nowhere, and what a browser would load from other hosts."""
import html.parser
import os
import pathlib
import re
import urllib.parse

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "object": "data", "source": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])


def check(site: pathlib.Path) -> tuple[int, list[str]]:
    """Returns the number of links within the site, and the problems."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    count, problems = 0, []
    for path, page in pages.items():
        problems += [f"{path.relative_to(site)}: loads {target}" for target in page.loaded
                     if re.match(r"(?!data:)\w+:|//", target)]
        for target in page.links + page.loaded:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                continue
            count += 1
            there = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(url.path))) if url.path else path
            if not there.is_file():
                problems.append(f"{path.relative_to(site)}: {target} does not exist")
            elif url.fragment and there in pages and urllib.parse.unquote(url.fragment) not in pages[there].ids:
                problems.append(f"{path.relative_to(site)}: {target}: no such anchor")
    for style in site.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import )(?!url)['\"]?(?!data:)([^)'\"]+)", style.read_text()):
            if address.startswith("/") or not (style.parent / address).is_file():
                problems.append(f"{style.relative_to(site)}: loads {address}")
    return count, problems
