"""Pages in tabs of Debian's chromium, and what they do there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


class Opened:
    """A page in a tab of its own, and what it did."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.getElementById('count').textContent")

    @property
    def shown(self) -> int:
        """Cards that can be seen."""
        return int(self.page.locator(".card:visible").count())


@pytest.fixture
def open_file(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Opens a file in a tab."""
    tabs: list[Opened] = []

    def open_tab(path: Path, **options: Any) -> Opened:
        tabs.append(Opened(browser, path, **options))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.context.close()
