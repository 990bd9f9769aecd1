from tests.pages.browser_page import open_browser_page
from tests.pages.conftest import chromium
from tests.push.test_hall_display import hall, DISPLAY
import pytest
__all__=["chromium","hall"]
SIZES={"1920":(1920,1080),"1280":(1280,720),"390":(390,844),"1080p":(1080,1920)}
def test_shots(hall, chromium):
    for name,(w,h) in SIZES.items():
        for scheme in ("light","dark"):
            with open_browser_page(chromium, viewport={"width":w,"height":h}, color_scheme=scheme) as b:
                b.page.goto(hall.server.base_url+DISPLAY)
                b.page.wait_for_timeout(800)
                b.page.screenshot(path=f"/tmp/shots/display-{name}-{scheme}.png")
    with open_browser_page(chromium, viewport={"width":1920,"height":1080}) as b:
        b.page.goto(hall.server.base_url+DISPLAY+"?lang=ja&tags=free-entry"); b.page.wait_for_timeout(800)
        b.page.screenshot(path="/tmp/shots/display-ja.png")
    with open_browser_page(chromium, viewport={"width":1920,"height":1080}) as b:
        b.page.route("**/display/", lambda r: r.continue_() if r.request.resource_type=="document" else r.abort())
        b.page.goto(hall.server.base_url+DISPLAY); b.page.wait_for_timeout(1500)
        b.page.screenshot(path="/tmp/shots/display-offline.png")
