"""Screenshots of a chart and of SQL Lab, in headless Chromium."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,720"),
)


@contextmanager
def logged_in(url: str, user: str, password: str) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            driver.get(f"{url}/login/")
            wait(driver, "input#username").send_keys(user)
            driver.find_element(By.CSS_SELECTOR, "input#password").send_keys(password, Keys.ENTER)
            WebDriverWait(driver, 240).until(expected_conditions.url_contains("welcome"))
            yield driver
        finally:
            driver.quit()


def wait(driver: webdriver.Chrome, selector: str, seconds: float = 240):  # type: ignore[no-untyped-def]
    """The first visible element for a CSS selector."""
    condition = expected_conditions.visibility_of_element_located((By.CSS_SELECTOR, selector))
    return WebDriverWait(driver, seconds).until(condition)


def shoot_chart(driver: webdriver.Chrome, url: str, chart: int, file: Path) -> None:
    driver.get(f"{url}/explore/?slice_id={chart}")
    wait(driver, ".slice_container canvas")
    time.sleep(2)  # until the bars have grown
    _save(driver, file)


def shoot_sql_lab(driver: webdriver.Chrome, url: str, saved_query: int, file: Path) -> None:
    """Open a saved query, run it, and wait for its rows."""
    driver.get(f"{url}/sqllab?savedQueryId={saved_query}")
    wait(driver, ".ace_content")
    button = "//button[contains(@class, 'cta') or .//span[text()='Run']][contains(., 'Run')]"
    WebDriverWait(driver, 240).until(expected_conditions.element_to_be_clickable((By.XPATH, button))).click()
    wait(driver, ".SouthPane [role='grid'], .SouthPane .virtual-grid, .SouthPane table, .ag-root")
    south = driver.find_element(By.CSS_SELECTOR, ".SouthPane")
    ActionChains(driver).move_to_element(south).perform()  # away from the button, which shows a tip
    time.sleep(1)
    _save(driver, file)


def _save(driver: webdriver.Chrome, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not driver.save_screenshot(str(file)) or file.stat().st_size < 10_000:
        raise RuntimeError(f"{file} shows nothing")
