"""Custom CSS is rejected if it could load anything from other hosts."""

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import MAX_BYTES, read_custom_css


def write_attacks(address: str) -> dict[str, str]:
    """Return rules that load something from `address`, a host with its port, in Chromium, each by its name."""
    image = "background-image"
    return {
        "url": f"body {{ {image}: url(http://{address}/url) }}",
        "one slash": f"header {{ {image}: url(http:/{address}/one-slash) }}",
        "no host": f"main {{ {image}: url(//{address}/no-host) }}",
        "quoted": f"footer {{ {image}: URL( ' http://{address}/quoted' ) }}",
        "escape": rf"h1 {{ {image}: \75rl(http://{address}/escape) }}",
        "backslashes": rf"p {{ {image}: url('\\\\{address}\\backslashes') }}",
        "image-set": f"html {{ {image}: image-set('http://{address}/image-set' 1x) }}",
        "property": f":root {{ --x: 'http://{address}/property' }} nav {{ {image}: image-set(var(--x) 1x) }}",
        "border": f"a {{ border-image: url(http://{address}/border) }}",
        "font": f"@font-face {{ font-family: F; src: url(http://{address}/font) }} h1 {{ font-family: F }}",
        "cursor": f"body {{ cursor: url(http://{address}/cursor), auto }}",
        "list": f"li {{ list-style-image: url(http://{address}/list) }}",
    }


ATTACKS = write_attacks("elsewhere.example")


@pytest.mark.parametrize(
    "css",
    [
        *ATTACKS.values(),
        "@import 'x.css';",
        "@IMPORT url(/x.css)",
        "@im/* */port 'x.css'",
        "a { background: url(http:elsewhere.example/x) }",
        "a { background: url(HTTPS:elsewhere.example/x) }",
        "a { background: url(ht\ntp:/elsewhere.example/x) }",
        "a { background: url(\thttp\t:\t/elsewhere.example/x) }",
        "a { background: url(ftp:/elsewhere.example/x) }",
        "a { background: url(wss:elsewhere.example) }",
        "a { background: url(file:///etc/passwd) }",
        "a { background: url(javascript:alert(1)) }",
        "a { background: url(data:text/html,x) }",
        "a { background: url(unknown:x) }",
        "a { background: url(//elsewhere.example/x",
        "a { background: url('//elsewhere.example/x",
        "a { background: url(x\"y); color: url(//elsewhere.example/x) }",
        "a { content: '\n; background: url(//elsewhere.example/x) }",
        "a { content: '\"'; background: url(//elsewhere.example/x) }",
        "//**/* ' */ a { background: url(http:/elsewhere.example/x) } /* ' */",
        "a { background: url(/*x*///elsewhere.example/x) }",
        "a { background: src('//elsewhere.example/x') }",
        "a { background: image('http:elsewhere.example/x') }",
        "@namespace url(http://www.w3.org/1999/xhtml);",
        "a { width: expression(alert(1)) }",
        "</style><script>",
        "a { content: '\0' }",
        "a { background: url(\x0bhttp:elsewhere.example/x) }",
        "a" * (MAX_BYTES + 1),
    ],
)  # fmt: skip
def test_css_that_could_reach_other_hosts_is_rejected(css: str) -> None:
    with pytest.raises(InvalidValue):
        read_custom_css(css)


@pytest.mark.parametrize(
    "css",
    [
        "@media (min-width: 40em) { a > b::after { background: url(/media/1/x.webp); content: '→' } }",
        "a { background: url( 'x.png' ) url(../y.png) url(?a=b:c) url(#x) url() url(a//b.png) }",
        "a { background: url(data:image/png;base64,iVBOR//x=) }",
        "a { background: url('data:image/svg+xml,%3Csvg/%3E') }",
        "a { background: image-set('x.png' 1x, url(y.png) 2x) }",
        "a::before { content: 'Ort: Bonn, 10:30 // 11:30' }",
        "a::before { content: 'url(http:/elsewhere.example/x)' }",
    ],
)
def test_own_and_embedded_images_and_texts_are_allowed(css: str) -> None:
    assert read_custom_css(css) == css
