from tests.console.form_browser import open_console
from tests.pages.conftest import chromium
from tests.push.test_webhook_console_browser import server, PATH
__all__=["chromium","server"]
def test_shots(server, chromium):
    for w in (390,1280):
        for scheme in ("light","dark"):
            with open_console(chromium, server, "administrator", viewport={"width":w,"height":900}, color_scheme=scheme) as b:
                p=b.page; p.goto(PATH); p.screenshot(path=f"/tmp/shots/hooks-list-{w}-{scheme}.png", full_page=True)
                paths=p.locator("tbody th a").evaluate_all("l=>l.map(x=>x.pathname)")
                for i,path in enumerate([*paths[1:3], PATH+"/new"]):
                    p.goto(path); p.screenshot(path=f"/tmp/shots/hooks-{i}-{w}-{scheme}.png", full_page=(i!=1))
