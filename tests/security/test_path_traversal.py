"""No path leads out of a directory of files: images, assets, the reference."""

from itertools import product

from tests.security.instance import Place, Tell, first
from tests.security.wire_client import Ask

PREFIXES = ("/media/", "/media/1/", "/media/1/ab/", "/assets/", "/docs/", "/embed/assets/")
UPWARDS = (
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
INSIDE = ("root:", "daemon:x", "BaseSettings", "class Settings", "{% block", "{%- ")


def test_paths_cannot_escape_directories(place: Place, tell: Tell) -> None:
    targets = [prefix + path for prefix, path in product(PREFIXES, UPWARDS)]
    answers = place.ask_all(Ask("GET", target) for target in targets)
    wrong = [
        (target, got.text[:200])
        for target, got in zip(targets, answers, strict=True)
        if got.status not in (301, 400, 404) or any(word in got.text for word in INSIDE)
    ]
    assert wrong == [], f"{len(wrong)} of {len(targets)}: {first(wrong)}"
    led = [place.ask(Ask("GET", got.header("location"))).status for got in answers if got.status == 301]
    assert set(led) <= {400, 404}, led
    tell(f"{len(targets)} paths out of a directory, {len(targets)} lead nowhere")
