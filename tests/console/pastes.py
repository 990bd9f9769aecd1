# ruff: noqa: E501  Clipboards are quoted as they are.
"""Clipboards of office programs, mail programs and web pages, with the HTML that the editor makes of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paste:
    name: str
    html: str
    expected: str
    text: str = "plain"


GOOGLE_DOCS = """<meta charset='utf-8'><meta charset="utf-8"><b style="font-weight:normal;" id="docs-internal-guid-1f"><h1
dir="ltr" style="line-height:1.38;margin-top:20pt;"><span style="font-size:20pt;font-family:Arial;font-weight:400;">
Summer fair</span></h1><p dir="ltr" style="line-height:1.38;"><span style="font-weight:400;font-style:normal;">Come to
the </span><span style="font-weight:700;font-style:normal;">town hall</span><span style="font-weight:400;"> and
</span><span style="font-weight:400;font-style:italic;">dance</span><span>.</span></p><br><ul style="margin-top:0;"><li
dir="ltr" style="list-style-type:disc;" aria-level="1"><p dir="ltr" role="presentation"><span style="font-weight:400;">
Music</span></p></li><li dir="ltr" aria-level="1"><p dir="ltr"><a href="https://example.org/food" style="color:#15c"><span
style="font-weight:400;text-decoration:underline;">Food</span></a></p></li></ul></b><br class="Apple-interchange-newline">"""

WORD = """<html xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:w="urn:schemas-microsoft-com:office:word">
<head><meta name=Generator content="Microsoft Word 15"><!--[if gte mso 9]><xml><o:p>x</o:p></xml><![endif]-->
<style><!-- p.MsoNormal {margin:0cm; font-family:"Calibri",sans-serif;} @list l0 {mso-list-id:1;} --></style></head>
<body lang=DE style='tab-interval:35.4pt;word-wrap:break-word'><!--StartFragment-->
<p class=MsoNormal style='margin-bottom:8.0pt'><b style='mso-bidi-font-weight:normal'><span style='font-size:14.0pt'>Fair
<o:p></o:p></span></b></p>
<p class=MsoNormal><o:p>&nbsp;</o:p></p>
<p class=MsoListParagraphCxSpFirst style='text-indent:-18.0pt;mso-list:l0 level1 lfo1'><![if !supportLists]><span
style='font-family:Symbol'><span style='mso-list:Ignore'>·<span style='font:7.0pt "Times New Roman"'>&nbsp;&nbsp;
</span></span></span><![endif]>Music<o:p></o:p></p>
<p class=MsoListParagraphCxSpMiddle style='margin-left:72.0pt;mso-list:l0 level2 lfo1'><span
style='mso-list:Ignore'>o<span>&nbsp;</span></span>Choir</p>
<p class=MsoListParagraphCxSpLast style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>·</span>Food</p>
<p class=MsoNormal>See <a href="mailto:fair@example.org">us</a><i>!</i></p><!--EndFragment--></body></html>"""

LIBRE_OFFICE = """<!DOCTYPE html><html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"/>
<title></title><style type="text/css">p { margin-bottom: 0.1in } a:link { color: #000080 }</style></head>
<body lang="en-US" link="#000080" dir="ltr"><h2 class="western">Fair</h2><p style="line-height: 100%"><font
face="Liberation Serif, serif"><font size="3" style="font-size: 12pt"><b>Bold</b> and <i>italic</i> and
<u>underlined</u></font></font></p><ol><li><p style="margin-bottom: 0in">First</p></li><li><p>Second</p></li></ol>
</body></html>"""

OUTLOOK = """<html><body><div class=WordSection1><p class=MsoNormal><span lang=EN-GB style='font-size:11.0pt;
font-family:"Calibri",sans-serif;color:#1F497D'>Dear all,<o:p></o:p></span></p><p class=MsoNormal><span><o:p>&nbsp;</o:p>
</span></p><p class=MsoNormal><span style='font-weight:bold'>Doors</span> open at 8.<br>Bring friends.</p><div
style='border:none;border-top:solid #E1E1E1 1.0pt'><p class=MsoNormal><b>From:</b> Anna</p></div></div></body></html>"""

WEB_PAGE = """<article style="color: rgb(0,0,0)"><h1 class="headline" style="font-size:40px">Headline</h1><div
class="meta"><time datetime="2030-05-01">1 May</time></div><p style="margin:0">Text with <em>emphasis</em>, <code>code</code>
and <a href="/relative">a relative link</a> and <a href="https://example.org/a?b=1&amp;c=2#d" target="_blank" rel="x"
onclick="track()">a link</a>.</p><figure><img src="https://example.org/x.jpg" srcset="x 2x" alt="A picture"
loading="lazy"><figcaption>Caption</figcaption></figure><h5>Small</h5><button>Share</button></article>"""

TABLE = """<table border="1" style="border-collapse:collapse"><tbody><tr><th scope="col">Time</th><th>Band</th></tr><tr>
<td style="width:50%">20:00</td><td><b>Foo</b></td></tr></tbody></table><p>After</p>"""

SPREADSHEET = """<style type="text/css">td {border: 1px solid #ccc;}</style><google-sheets-html-origin><table><colgroup>
<col width="100"></colgroup><tbody><tr style="height:21px;"><td data-sheets-value="{}">A1</td><td>B1</td></tr><tr><td>A2
</td><td>B2</td></tr></tbody></table></google-sheets-html-origin>"""

HOSTILE = """<p>One<script>window.wasRun = true</script><img src=x onerror="window.wasRun = true">
<a href="javascript:window.wasRun=true">two</a> <a href=" jAvA&#10;script:window.wasRun=true">three</a>
<a href="data:text/html,<script>window.wasRun=true</script>">four</a> <a href="vbscript:x">five</a></p>
<svg onload="window.wasRun = true"><script>window.wasRun = true</script><a xlink:href="javascript:1">x</a></svg>
<math><mi xlink:href="data:x">m</mi></math><iframe srcdoc="<script>parent.wasRun = true</script>"></iframe>
<style>* { background: url(https://evil.example/x) }</style><object data="https://evil.example/"></object>
<form action="https://evil.example/"><input name=q autofocus onfocus="window.wasRun = true"><button>Go</button></form>
<p style="background:url(javascript:window.wasRun=true)" onclick='window.wasRun=true' onmouseover=window.wasRun=true>Six</p>
<template><p>seven</p></template><base href="https://evil.example/"><meta http-equiv=refresh content="0;url=//evil">
<noscript><p title="</noscript><img src=x onerror=window.wasRun=true>">eight</p></noscript><body onload=window.wasRun=true>"""

UNQUOTED = """<p style=color:red title=a>One <b style=font-weight:normal>two</b> <b STYLE = 'font-weight: 400'>three</b>
<span style=font-weight:bold>four</span> <span
style = "font-weight : 700 ; color: red">five</span> <span title='>' style="font-style:italic">six</span></p>"""

TEXT_LIKE_MARKUP = """<p>Write style="x" onclick='y' in a tag, a &lt;b style="font-weight:bold"&gt; or 1 < 2 style=3</p>
<!-- <p style="color:red"> --><pre>&lt;p style="a"&gt;</pre>"""

NESTED_LISTS = """<ul><li>One<ul><li>Two<ol start="3"><li>Three</li></ol></li></ul></li><li><p>Four</p><p>Five</p></li></ul>
<ul><ul><li>Indented</li></ul></ul>"""

UNCLEAN_TEXT = "<p>Cafe\u0301 one\u2028two \u0007three\u00a0four</p>"

PASTES = [
    Paste(
        "Google Docs",
        GOOGLE_DOCS,
        "<h2>Summer fair</h2>\n<p>Come to the <strong>town hall</strong> and <em>dance</em>.</p>\n"
        '<ul><li>Music</li><li><a href="https://example.org/food">Food</a></li></ul>',
    ),
    Paste(
        "Word",
        WORD,
        "<p><strong>Fair</strong></p>\n<ul><li>Music<ul><li>Choir</li></ul></li><li>Food</li></ul>\n"
        '<p>See <a href="mailto:fair@example.org">us</a><em>!</em></p>',
    ),
    Paste(
        "LibreOffice",
        LIBRE_OFFICE,
        "<h2>Fair</h2>\n<p><strong>Bold</strong> and <em>italic</em> and underlined</p>\n"
        "<ol><li>First</li><li>Second</li></ol>",
    ),
    Paste(
        "Outlook",
        OUTLOOK,
        "<p>Dear all,</p>\n<p><strong>Doors</strong> open at 8.<br>Bring friends.</p>\n"
        "<p><strong>From:</strong> Anna</p>",
    ),
    Paste(
        "web page",
        WEB_PAGE,
        "<h2>Headline</h2>\n<p>1 May</p>\n<p>Text with <em>emphasis</em>, code and a relative link and "
        '<a href="https://example.org/a?b=1&amp;c=2#d">a link</a>.</p>\n<p>Caption</p>\n<h4>Small</h4>',
    ),
    Paste("table", TABLE, "<p>Time Band</p>\n<p>20:00 <strong>Foo</strong></p>\n<p>After</p>"),
    Paste("spreadsheet", SPREADSHEET, "<p>A1 B1</p>\n<p>A2 B2</p>"),
    Paste("hostile", HOSTILE, '<p>One two three four five</p>\n<p>Six</p>\n<p>"&gt;eight</p>'),
    Paste(
        "unquoted attributes",
        UNQUOTED,
        "<p>One two three <strong>four</strong> <strong>five</strong> <em>six</em></p>",
    ),
    Paste(
        "text like markup",
        TEXT_LIKE_MARKUP,
        '<p>Write style="x" onclick=\'y\' in a tag, a &lt;b style="font-weight:bold"&gt; or 1 &lt; 2 style=3</p>\n'
        '<p>&lt;p style="a"&gt;</p>',
    ),
    Paste(
        "nested lists",
        NESTED_LISTS,
        "<ul><li>One<ul><li>Two<ol><li>Three</li></ol></li></ul></li><li><p>Four</p><p>Five</p></li></ul>\n"
        "<ul><li>Indented</li></ul>",
    ),
    Paste("unclean text", UNCLEAN_TEXT, "<p>Café one\ntwo three&nbsp;four</p>"),
    Paste(
        "plain text",
        "",
        "<p>One &lt;b&gt; line</p>\n<p>Another &amp; line</p>",
        "One <b> line\n\nAnother & line",
    ),
]
