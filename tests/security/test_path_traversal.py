"""No path leads out of a directory of files: images, assets, the reference."""

from itertools import product

from tests.security.instance import Instance, Report, take_first
from tests.security.wire_client import WireRequest

PREFIXES = ("/media/", "/media/1/", "/media/1/ab/", "/assets/", "/docs/", "/embed/assets/")
TRAVERSALS = (
    "../../../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5c..%5c..%5cetc%5cpasswd",
    "....//....//....//....//etc/passwd",
    "%252e%252e%252f%252e%252e%252fetc%252fpasswd",
    "..%c0%af..%c0%af..%c0%afetc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "file:///etc/passwd",
    "../settings.py",
    "../../kalends/settings.py",
    "..%00/../settings.py",
    "site.css%00.png",
    "../templates/base.html",
    "..;/..;/settings.py",
)
LEAK_MARKERS = ("root:", "daemon:x", "BaseSettings", "class Settings", "{% block", "{%- ")


def test_paths_cannot_escape_directories(instance: Instance, report: Report) -> None:
    targets = [prefix + path for prefix, path in product(PREFIXES, TRAVERSALS)]
    responses = instance.request_all(WireRequest("GET", target) for target in targets)
    wrong = [
        (target, response.text[:200])
        for target, response in zip(targets, responses, strict=True)
        if response.status not in (301, 400, 404) or any(word in response.text for word in LEAK_MARKERS)
    ]
    assert wrong == [], f"{len(wrong)} of {len(targets)}: {take_first(wrong)}"
    led = [
        instance.request(WireRequest("GET", got.header("location"))).status for got in responses if got.status == 301
    ]
    assert set(led) <= {400, 404}, led
    report(f"{len(targets)} path traversals, {len(targets)} rejected")
