"""Feeds in RSS 2.0, Atom and RSS 1.0, with typical and unusual content."""

from __future__ import annotations

from tests.fakes.web_server import Page

RSS_PATH, ATOM_PATH, RDF_PATH = "/world/rss.xml", "/tech/atom.xml", "/index.rdf"

RSS = """\
<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>World</title><link>https://world.example/</link><description>News</description>
<item><title><![CDATA[Bridge <b>opens</b> &amp; closes]]></title>
<link>https://world.example/bridge?utm_source=rss&amp;utm_medium=feed&amp;id=7</link>
<description>&lt;p&gt;The &lt;a href="https://x.example"&gt;bridge&lt;/a&gt; in Oslo.&lt;/p&gt;
&lt;script&gt;alert(1)&lt;/script&gt;</description>
<pubDate>Mon, 05 Jan 2026 07:30:00 GMT</pubDate></item>
<item><title>Rain in the north</title><link>https://world.example/rain#top</link>
<pubDate>Mon, 05 Jan 2026 10:00:00 +0200</pubDate></item>
<item><title>No date at all</title><link>javascript:alert(1)</link></item>
</channel></rss>
"""
ATOM = """\
<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Tech</title><id>urn:tech</id><updated>2026-01-05T08:45:00Z</updated>
<entry><title>A chip is &lt;faster&gt;</title><id>urn:1</id><updated>2026-01-05T08:45:00Z</updated>
<link rel="alternate" href="https://tech.example/chip"/><summary>Twice as fast.</summary></entry>
<entry><title>Bridge opens &amp; closes</title><id>urn:2</id><updated>2026-01-05T08:50:00Z</updated>
<link href="https://tech.example/bridge-again"/></entry>
<entry><title>Rain, they say</title><id>urn:3</id><updated>2026-01-05T08:55:00Z</updated>
<link href="http://www.world.example/rain/?utm_campaign=x"/></entry>
</feed>
"""
RDF = """\
<?xml version="1.0" encoding="gb2312"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://zh.example/"><title>新闻</title><link>https://zh.example/</link></channel>
<item rdf:about="https://zh.example/1"><title>北京下雪了</title><link>https://zh.example/1</link>
<dc:date>2026-01-05T16:00:00+08:00</dc:date></item>
</rdf:RDF>
""".encode("gb2312")
_XML = {"Content-Type": "application/xml"}


def feed_pages() -> dict[str, Page]:
    """The three feeds, each with validators for conditional requests."""
    return {
        RSS_PATH: Page(
            RSS.encode(), headers={**_XML, "ETag": '"one"', "Last-Modified": "Mon, 05 Jan 2026 08:00:00 GMT"}
        ),
        ATOM_PATH: Page(ATOM.encode(), headers={"Content-Type": "application/atom+xml"}),
        RDF_PATH: Page(RDF, headers=_XML),
    }
