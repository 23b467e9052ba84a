#!/usr/bin/python3
"""browser_test — opens reports in headless Chromium and uses them as a reader would.

browser_test.py [--template PAGE.html] [--first-paint MILLISECONDS] [REPORT.html ...]

With --template it fills that page with small data of its own, also with parts missing. Any report can be given besides.
It prints when each was first painted and when its graph was drawn; --first-paint fails those painted later.
"""

import argparse
import json
import os
import pathlib
import shlex
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

sys.dont_write_bytecode = True  # beside the sources
import example_report  # noqa: E402

VIEWS = ("overview", "graph", "passes", "kernels", "memory", "checks")
WAIT = 60  # seconds, on a machine that does other things, too


class Reader:
    """One browser, and what a reader does with it."""

    def __init__(self):
        options = Options()
        for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                         "--force-prefers-reduced-motion"):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def open(self, path, width=1440, height=900, scheme="light", fragment=""):
        self.path = path
        self.resize(width, height)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.get("about:blank")
        self.driver.get(path.as_uri() + fragment)
        self.wait("document.querySelector('#tabs [aria-selected=true]')")

    def ask(self, expression):
        return self.driver.execute_script(f"return {expression}")

    def wait(self, expression):
        """Until the expression is true."""
        try:
            WebDriverWait(self.driver, WAIT, poll_frequency=0.05).until(lambda _: self.ask(f"!!({expression})"))
        except Exception as error:
            console = self.driver.get_log("browser")
            raise AssertionError(f"never came true: {expression}; the console says {console}") from error

    def press(self, selector):
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", self.find(selector))
        self.find(selector).click()

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def show(self, view):
        self.press(f"#tab-{view}")
        self.wait(f"!document.getElementById('view-{view}').hidden")
        if view == "graph":
            self.wait("document.getElementById('graph').dataset.stage !== undefined")

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def inputs_of(data, stage):
    """The nodes of the graph after a stage, by number, and what each reads."""
    inputs = {}
    for change in data.get("stages", [])[:stage + 1]:
        for node in change.get("removed", []):
            inputs.pop(node, None)
        inputs.update((node, data["nodes"][node].get("inputs", [])) for node in change.get("added", []))
        inputs.update(change.get("rewired", []))
    return {node: [value[0] if isinstance(value, list) else value for value in values]
            for node, values in inputs.items()}


def drawn_of(data, stage):
    """The nodes that are drawn of themselves: constants, and what is computed of them alone, are not,
    unless a kernel computes it after all."""
    fixed = set()
    for change in data.get("stages", [])[:stage + 1]:
        fixed -= {*change.get("removed", []), *change.get("unfixed", [])}
        fixed |= set(change.get("fixed", []))
    fixed -= {node for kernel in data.get("kernels", []) for node in kernel.get("nodes", [])
              if data["nodes"][node].get("kind") not in ("constant", "parameter")}
    return inputs_of(data, stage).keys() - fixed


def text_of(data, text):
    """Texts may be named by their place."""
    return data["strings"][text] if isinstance(text, int) else text


def node_of_a_kernel(data):
    """A node of the last graph that a kernel computes, and that kernel; or nothing."""
    drawn = drawn_of(data, len(data.get("stages", [])))
    for number, kernel in enumerate(data.get("kernels", [])):
        for node in kernel.get("nodes", []):
            if node in drawn:
                return node, number
    return None


def check_views(reader, data):
    for view in VIEWS:
        reader.show(view)
    reader.show("graph")
    drawn = reader.ask("document.querySelectorAll('#graph .boxes > g').length")
    check((drawn > 0) == bool(drawn_of(data, len(data.get("stages", [])))), f"{drawn} boxes are drawn")
    check(drawn <= 150, f"{drawn} boxes are drawn at first")


def check_search_and_kernel(reader, data):
    found = node_of_a_kernel(data)
    if not found:
        return
    node, kernel = found
    strings = data["strings"]
    name = strings[data["nodes"][node]["name"]]
    field = reader.find("#search")
    field.send_keys(name)
    reader.wait("document.querySelectorAll('#hits [role=option]').length > 0")
    field.send_keys(Keys.ENTER)
    reader.wait("document.querySelector('#inspector .eyebrow')?.textContent.startsWith('node')")
    check(reader.ask("document.querySelector('#inspector .name').textContent") == name, f"search does not find {name}")
    reader.driver.execute_script(f"location.hash = 'view=graph&select=node:{node}'")
    reader.wait(f"document.querySelector('#graph [data-key=\"node:{node}\"].selected')")
    reader.press("#inspector .close")
    reader.wait("document.getElementById('inspector').hidden")
    reader.press(f"#graph [data-key='node:{node}']")
    reader.wait("!document.getElementById('inspector').hidden")
    reader.press("#inspector .kernel-link")
    reader.wait("document.querySelector('#inspector .eyebrow').textContent.startsWith('kernel')")
    if "loops" in data["kernels"][kernel]:
        check(reader.ask("document.querySelector('#inspector .loops pre').textContent.length > 0"), "no loop nest is shown")
        reader.press("#inspector .loops button")
        reader.wait("document.getElementById('nests').open")
        shown = reader.ask("[...document.querySelectorAll('#nests pre')].map((nest) => nest.textContent)")
        loops = data["loops"][data["kernels"][kernel]["loops"]]
        check(shown == [text_of(data, loops[key]) for key in ("before", "after") if key in loops],
              "other loop nests at full width")
        reader.press("#nests .close")
        reader.wait("!document.getElementById('nests').open")
    reader.press("#inspector .close")


def check_stages(reader, data):
    stages = data.get("stages", [])
    reader.show("graph")
    if len(stages) < 2:
        check(reader.find("#stage").get_attribute("disabled"), "a slider for one stage")
        return
    slider = reader.find("#stage")
    slider.send_keys(Keys.HOME)
    reader.wait("document.getElementById('graph').dataset.stage === '0'")
    check(stages[0]["name"] in reader.find(".stage-name").text, "stage 0 is not named")
    before = reader.ask("document.querySelector('#graph .boxes').innerHTML")
    changed = next((k for k in range(1, len(stages)) if drawn_of(data, k) != drawn_of(data, k - 1)), 0)
    for _ in range(changed):
        slider.send_keys(Keys.ARROW_RIGHT)
    reader.wait(f"document.getElementById('graph').dataset.stage === '{changed}'")
    after = reader.ask("document.querySelector('#graph .boxes').innerHTML")
    check(after != before or changed == 0, f"the graph of stage {changed} looks like the first")
    if drawn_of(data, changed).intersection(stages[changed].get("added", [])):
        check(reader.ask("document.querySelectorAll('#graph .added').length > 0"), "nothing is marked as added")
    if drawn_of(data, changed - 1).intersection(stages[changed].get("removed", [])) and changed > 0:
        check(reader.ask("document.querySelectorAll('#graph .removed').length > 0"), "what was removed is not drawn")
        reader.press(".choices label:nth-of-type(3) input")
        reader.wait("document.querySelectorAll('#graph .removed').length === 0")
        reader.press(".choices label:nth-of-type(3) input")


def check_constants(reader, data):
    """They are drawn once one is selected."""
    last = len(data.get("stages", [])) - 1
    hidden = inputs_of(data, last).keys() - drawn_of(data, last)
    if not hidden:
        return
    node = max(hidden)
    key = f"#graph [data-key=\"node:{node}\"]"
    reader.open(reader.path, fragment="#view=graph")
    reader.wait("document.getElementById('graph').dataset.stage !== undefined")
    check(not reader.ask(f"document.querySelector('{key}')"), "a constant is drawn that nobody asked for")
    reader.driver.execute_script(f"location.hash = 'view=graph&select=node:{node}'")
    reader.wait(f"document.querySelector('{key}.selected')")
    check(reader.find(".choices input[type=checkbox]").is_selected(), "constants are shown, and not ticked")
    reader.press("#inspector .close")


def check_resizing(reader):
    """What comes into view is drawn, without the graph being moved."""
    shown = ("[...document.querySelectorAll('#graph .boxes > g')].every((box) => {"
             " const place = document.getElementById('graph').getBoundingClientRect();"
             " const [, x, y] = box.style.transform.match(/translate\\((.*)px, (.*)px\\)/).map(Number);"
             " const {a, e, f} = document.querySelector('#graph .layer').transform.baseVal.consolidate().matrix;"
             " const [left, top] = [x * a + e, y * a + f];"
             " return box.style.display !== 'none' || left < 0 || top < 0 || left > place.width || top > place.height;"
             "})")
    reader.open(reader.path, 800, 400, fragment="#view=graph")
    reader.wait("document.getElementById('graph').dataset.stage !== undefined")
    reader.resize(1440, 1200)
    reader.wait("innerHeight === 1200")
    reader.wait(shown)
    reader.resize(1440)


def check_notes(reader, data):
    """What makes shares add up, and what is above a ceiling."""
    reader.show("kernels")
    text = reader.find(".view.kernels").text
    check(("outside its steps" in text) == ("outside_steps_ms" in data.get("summary", {})), "shares do not add up")
    above = any(kernel.get("ceiling", 0) > 1 for kernel in data.get("kernels", []))
    check(("above 100" in text) == above, "nothing says why a kernel is above its ceiling")


def check_plots(reader, data):
    reader.show("kernels")
    placed = [kernel for kernel in data.get("kernels", [])
              if all(kernel.get(key, 0) > 0 for key in ("flops", "bytes", "gflops"))]
    if placed:
        reader.wait(f"document.querySelectorAll('.roofline .dot').length === {len(placed)}")
    else:
        check(reader.find(".roofline .nothing").is_displayed(), "an empty roofline says nothing")
    reader.show("memory")
    if any(data.get("memory", {}).get("live", [])):
        reader.wait("document.querySelector('.live-area')?.getBBox().height > 0")
        rows = reader.ask("document.querySelectorAll('.view.memory tbody tr').length")
        check(rows > 0 or not data["memory"].get("tensors"), "no tensor makes the peak")
    else:
        check(reader.find(".view.memory .nothing").is_displayed(), "an empty plot of memory says nothing")


def check_checks(reader, data):
    reader.show("checks")
    shown = reader.find(".view.checks").text
    for row in data.get("verification", []):
        check(row["pass"] in shown, f"what was found after {row['pass']} is not shown")
    if any("gradient_difference" in row for row in data.get("verification", [])):
        check("gradient difference" in shown, "the difference of gradients is not shown")
    if not data.get("verification"):
        check(f"tenon verify {shlex.quote(data['model'])}" in shown, "nothing says how to verify the model")


def check_press_on_memory(reader, data):
    """Also after the plot was drawn anew, at another width, a press is one press."""
    if not any(data.get("memory", {}).get("live", [])):
        return
    reader.show("memory")
    heading = "document.querySelector('.view.memory section:last-child h2')"
    reader.driver.execute_script(
        "window.presses = 0; new MutationObserver((all) => { window.presses += all.length; })"
        f".observe({heading}.parentElement, {{ childList: true }})")
    for width in (1300, 1200):
        reader.resize(width)
        reader.wait(f"document.querySelector('.plot.live svg').viewBox.baseVal.width < {width}")
    reader.press(".plot.live svg")
    reader.wait("window.presses > 0")
    check(reader.ask("window.presses") == 1, "one press on the plot of memory counts as several")


def check_keys(reader):
    page = reader.find("body")
    page.send_keys("/")
    check(reader.ask("document.activeElement.id") == "search", "/ does not lead to the search")
    reader.find("#search").send_keys(Keys.ESCAPE)
    page.send_keys("?")
    reader.wait("document.getElementById('keys').open")
    reader.find("#keys").send_keys(Keys.ESCAPE)
    reader.wait("!document.getElementById('keys').open")
    page.send_keys("3")
    reader.wait("!document.getElementById('view-passes').hidden")
    reader.driver.back()
    reader.wait("document.getElementById('view-passes').hidden")


def check_phone(reader, path):
    reader.open(path, 390, 844, "dark")
    check(reader.ask("document.documentElement.dataset.theme") == "dark", "not dark, as the system is")
    for view in VIEWS:
        reader.show(view)
        check(reader.ask("document.documentElement.scrollWidth") <= 390, f"{view} is wider than a phone")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = reader.ask(background)
    reader.press("#theme")
    check(reader.ask(background) != dark, "the theme does not change")
    reader.press("#theme")


def check_failing_worker(reader, path):
    """A graph is drawn also where its worker does not load, or a layout throws there."""
    for script in ("throw Error('for the test')", "onmessage = () => { throw Error('for the test') }"):
        source = ("const Before = Worker; window.Worker = class extends Before {"
                  f"constructor() {{ super(URL.createObjectURL(new Blob([{json.dumps(script)}]))) }} }}")
        added = reader.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        reader.open(path, fragment="#view=graph")
        reader.wait("performance.getEntriesByName('graph drawn').length")
        check(reader.ask("document.querySelector('.busy').hidden"), "still laying out what is drawn")
        reader.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    reader.errors()  # are those of the test


def check_report(reader, path, latest_paint):
    reader.open(path, fragment="#view=graph")
    data = json.loads(reader.ask("document.getElementById('data').textContent"))
    check(data["model"].split("/")[-1] in reader.find("h1").text, "the model is not named")
    reader.wait("performance.getEntriesByName('graph drawn').length")
    drawn = reader.ask("performance.getEntriesByName('graph drawn')[0].startTime")
    painted = reader.ask("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1")
    check_views(reader, data)
    check_search_and_kernel(reader, data)
    check_stages(reader, data)
    check_constants(reader, data)
    check_resizing(reader)
    check_notes(reader, data)
    check_plots(reader, data)
    check_checks(reader, data)
    check_press_on_memory(reader, data)
    check_keys(reader)
    check_phone(reader, path)
    errors = reader.errors()
    check(not errors, f"errors on the console: {errors}")
    check_failing_worker(reader, path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(data.get('nodes', []))} nodes, "
          f"first paint after {painted:.0f} ms, graph drawn after {drawn:.0f} ms", flush=True)
    check(latest_paint is None or 0 <= painted <= latest_paint, f"painted after {painted:.0f} ms")


def fill(template, folder):
    """Reports of small data, as `tenon report` fills the page."""
    page = pathlib.Path(template).read_text()
    for name, data in example_report.reports().items():
        path = pathlib.Path(folder) / f"{name}.html"
        path.write_text(page.replace("/*REPORT_DATA*/", json.dumps(data).replace("<", "\\u003c")))
        yield path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--template")
    parser.add_argument("--first-paint", type=float)
    parser.add_argument("reports", nargs="*")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(report).resolve() for report in options.reports]
        if options.template:
            paths += fill(options.template, folder)
        check(paths, "no report to open")
        reader = Reader()
        try:
            for path in paths:
                try:
                    check_report(reader, path, options.first_paint)
                except AssertionError as error:
                    print(f"{path.name}: FAILED: {error}", flush=True)
                    failed += 1
        finally:
            reader.driver.quit()
    print(f"{len(paths) - failed} reports passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
