"""A real browser for the tests of pages; where there is none, they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.install import FLAGS, BrowserMissingError, find


class Visit:
    """A page opened from a file without a network, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("console", lambda said: self.wrong.append(f"{said.type}: {said.text}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def press(self, selector: str, key: str, times: int = 1) -> None:
        for _ in range(times):
            self.page.locator(selector).first.press(key)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        path = find()
    except BrowserMissingError as error:
        pytest.fail(str(error))
    if path is None:
        pytest.fail("no browser: run `python tests/browser/install.py` or set HARDMAX_CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """Open HTML in a fresh context; at the end nothing may have gone wrong."""
    opened: list[tuple[Any, Visit]] = []

    def go(html: str, **context_options: Any) -> Visit:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(**context_options)
        context.set_offline(True)
        context.route("http*://**", lambda route: route.abort())
        made = Visit(context.new_page())
        opened.append((context, made))
        made.page.goto(file.as_uri())
        return made

    yield go
    for context, made in opened:
        context.close()
        assert made.wrong == []
        assert [url for url in made.requests if not url.startswith("file:")] == []
        assert len(made.requests) == 1, "a page is one file"
